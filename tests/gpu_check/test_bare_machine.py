"""The check on a machine that has its own torch, no index, and not all of our packages; killed on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check import bare_machine, bundle, device_under_test
from benchmarks.gpu_check.measured_rows import MEASURED
from benchmarks.gpu_check.section_call import BEFORE, INSTALLED, PACKED, REHEARSAL, WHEELS
from benchmarks.gpu_check.sections import SECTIONS
from plumbline.core import provenance
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json
from tests.conftest import REPOSITORY
from tests.gpu_check import bare_image

NAME = "gpu_check_rehearsal"
#: All sections as far as their rows are planned, in one process: what they import at the top and for that.
PLANS = """
from benchmarks.gpu_check import __main__, bare_machine, run_sections
from benchmarks.gpu_check.section_call import SectionCall
from benchmarks.gpu_check.sections import SECTIONS
for name, section in SECTIONS.items():
    print(name, len(section.rows(SectionCall(device="cpu"))))
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing in it but a bundle: the files of the working tree, and wheels for this Python."""
    root = tmp_path_factory.mktemp("bare")
    git = ["git", "-C", str(REPOSITORY), "-c", "user.name=t", "-c", "user.email=t@t"]
    # What is there now, without a trace: a commit of the tracked files where any was changed.
    changed = subprocess.run([*git, "stash", "create"], check=True, capture_output=True, text=True).stdout.strip()
    bundle.write(root.parent / "bundle.tar", folders=(), commit=changed or "HEAD")
    with tarfile.open(root.parent / "bundle.tar") as archive:
        archive.extractall(root)
    for name in bundle.PACKAGES:
        bare_image.wheel(name, root / WHEELS)
    (root / BEFORE).mkdir()
    return root


def python(root: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The machine's own Python, in that folder."""
    environment = bare_image.environment(**more)
    return subprocess.run([sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True)


def test_every_section_plans_its_rows_on_image_with_wheels(unpacked: Path) -> None:
    without = python(unpacked, "-c", f"import sys; sys.path.append('src'){PLANS}")
    assert without.returncode and "No module named 'msgspec'" in without.stderr
    packages = unpacked.parent / "packages"
    pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(packages)]
    assert not python(unpacked, *pip, *map(str, (unpacked / WHEELS).iterdir())).returncode
    done = python(unpacked, "-c", f"import sys; sys.path += ['src', '{packages}']{PLANS}")
    assert not done.returncode, done.stderr
    planned = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert [*planned] == [*SECTIONS] and all(number.isdecimal() for number in planned.values())


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    path = os.pathsep.join([str(REPOSITORY), bare_image.environment()["PYTHONPATH"]])
    done = python(tmp_path, "-m", "benchmarks.gpu_check.bare_machine", PYTHONPATH=path)
    assert done.returncode == 1 and "has no wheels: unpack the bundle here" in done.stderr
    (tmp_path / WHEELS).mkdir(parents=True)
    (tmp_path / WHEELS / "msgspec-0.1-cp27-cp27m-win32.whl").touch()
    done = python(tmp_path, "-m", "benchmarks.gpu_check.bare_machine", PYTHONPATH=path)
    assert done.returncode == 1 and f"make gpu-check-bundle FOR=3.{sys.version_info[1]}" in done.stderr


def test_a_bundle_that_is_too_large_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr(bundle, "MOST", 2**20)
    with pytest.raises(PlumblineError, match="MiB, over 1: nothing is written"):
        bundle.write(tmp_path / "bundle.tar", folders=())
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_of_files_in_no_commit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.setattr(bundle, "ROOT", tmp_path)
    monkeypatch.setattr(bundle, "describe_code", lambda: {"git_commit": "c", "git_dirty": False})
    for folder in ("src", "benchmarks", "notes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    assert bundle.describe_commit() == {"git_commit": "c", "git_dirty": False, "code_sha256": provenance.code_sha256()}
    (tmp_path / "src" / "new.py").touch()
    with pytest.raises(PlumblineError, match=r"src/new\.py.*commit"):
        bundle.describe_commit()


def test_code_that_was_changed_since_it_was_packed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        provenance, "describe_code", lambda: {"code_from": "a source tree without git", "git_commit": None}
    )
    packed = {"git_commit": "c", "git_dirty": False}
    for code_sha256, changed in ((provenance.code_sha256(), False), ("another", True)):
        atomic_write_json(PACKED, {"code": packed | {"code_sha256": code_sha256}})
        description = device_under_test.describe("cpu")
        assert (description["code_from"], description["git_commit"], description["git_dirty"]) == (
            "a bundle",
            "c",
            changed,
        )


def test_packages_are_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed call left is removed, and an older Python's kept."""
    monkeypatch.chdir(tmp_path)
    bare_image.wheel("msgspec", tmp_path / WHEELS)
    older, unfinished = INSTALLED.with_name("cpython-30-x86_64"), INSTALLED.with_name(f"{INSTALLED.name}.unfinished")
    for folder in (older, unfinished):
        folder.mkdir(parents=True)
    (unfinished / "half").touch()
    bare_machine.install()
    assert (
        set(INSTALLED.parent.iterdir()) == {INSTALLED, older} and f"cpython-3{sys.version_info[1]}-" in INSTALLED.name
    )
    assert (INSTALLED / "msgspec").is_dir() and not (INSTALLED / "half").exists()


def test_the_remedy_is_that_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bare_image.wheel("msgspec", tmp_path / WHEELS)
    monkeypatch.setattr(subprocess, "run", lambda command: subprocess.CompletedProcess(command, 1))
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    with pytest.raises(SystemExit, match=r"x86_64, and this is aarch64"):
        bare_machine.install()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="no pip: `python3 -m ensurepip --user` brings"):
        bare_machine.install()


@pytest.mark.slow
def test_a_rehearsal_from_the_bundle_survives_three_kills(unpacked: Path) -> None:
    """Each call writes to a new folder, as on a machine that keeps nothing, and goes on from what the last one left."""
    folders = [unpacked / "out" / str(number) for number in range(4)]

    def measured(folder: Path, *sections: str) -> dict[tuple[str, str], dict[str, Any]]:
        path = folder / f"{NAME}.json"
        sections_of_file = json.loads(path.read_text())["sections"] if path.exists() else {}
        return {
            (section, key): row
            for section, entry in sections_of_file.items()
            for key, row in entry["rows"].items()
            if row["status"] == MEASURED and section in (sections or SECTIONS)
        }

    _killed(unpacked, folders[0], unpacked / BEFORE, lambda: len(measured(folders[0], "accuracy")) >= 5)
    first = measured(folders[0])
    _killed(unpacked, folders[1], folders[0], lambda: len(measured(folders[1], "blocks")) >= 2)
    second = measured(folders[1])
    assert len(first) < len(second) and first.items() <= second.items()
    _killed(unpacked, folders[2], folders[1], lambda: len(measured(folders[2], "key_norms")) >= 1)
    third = measured(folders[2])
    assert len(second) < len(third) and second.items() <= third.items()
    process = _call(unpacked, folders[3], folders[2])
    done = process.communicate(timeout=1200)[0]
    assert process.returncode == 0
    last = measured(folders[3])
    assert third.items() <= last.items()  # to the second at which they were measured
    content = json.loads((folders[3] / f"{NAME}.json").read_text())
    planned = {(name, key) for name, entry in content["sections"].items() for key in entry["planned"] or []}
    rows = {(name, key): row for name, entry in content["sections"].items() for key, row in entry["rows"].items()}
    assert planned == set(rows) == set(last), [row for row in rows.values() if row["status"] != MEASURED]
    assert all(row["values"].get("equal", True) for row in rows.values())
    text = (folders[3] / f"{NAME}.md").read_text()
    assert text in done and text.count(REHEARSAL) == 1 + len(SECTIONS)
    archives = {path.name for path in folders[3].glob("*.zip")}
    assert archives == {f"{NAME}_key_norms_{arm}.zip" for arm in ("as_published", "no_decay", "frozen_gains")}


def _call(root: Path, out: Path, before: Path) -> subprocess.Popen[str]:
    """The one command line of such a machine, at toy sizes."""
    command = [sys.executable, "-m", "benchmarks.gpu_check.bare_machine", "--out", str(out)]
    command += ["--continue-from", str(before), "--rehearse", "--minutes", "60", "--sections", *SECTIONS]
    environment = bare_image.environment(OMP_NUM_THREADS="1")
    return subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def _killed(root: Path, out: Path, before: Path, far_enough: Callable[[], bool]) -> None:
    """A call that is killed, with all that it has started, in the middle of whatever it does then."""
    process = _call(root, out, before)
    until = time.monotonic() + 600
    try:
        while not far_enough():
            assert process.poll() is None and time.monotonic() < until, process.communicate()[0]
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
