"""The check on a machine that has its own torch, no index, and not all of our packages; killed on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check import device_under_test
from benchmarks.gpu_check.measured_rows import MEASURED, REHEARSAL
from benchmarks.gpu_check.sections import SECTIONS
from plumbline.core import provenance
from tests.conftest import REPOSITORY
from tests.gpu_check import bare_image

NAME = "gpu_check_rehearsal"
PACKAGES = Path("work/gpu-check/packages")
#: All sections as far as their rows are planned, in one process: what they import at the top and for that.
PLANS = """
from benchmarks.gpu_check import __main__, run_sections
from benchmarks.gpu_check.sections import SECTIONS, SectionCall
for name, section in SECTIONS.items():
    print(name, len(section.rows(SectionCall(device="cpu"))))
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process on the machine."""
    return bare_image.make_image(tmp_path_factory.mktemp("image"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with nothing in it but a bundle: the tracked files as they are now, and the packages for this Python."""
    git = ["git", "-C", str(REPOSITORY), "-c", "user.name=t", "-c", "user.email=t@t"]
    # What is there now, without a trace: a commit of the tracked files where any was changed.
    changed = subprocess.run([*git, "stash", "create"], check=True, capture_output=True, text=True).stdout.strip()
    archive = tmp_path / "gpu-check-bundle.tar"
    subprocess.run([*git, "archive", "--output", str(archive), changed or "HEAD"], check=True)
    for name in bare_image.CARRIED:
        shutil.copytree(bare_image.SITE / name, tmp_path / PACKAGES / name)
    subprocess.run(["tar", "--append", "--file", archive, "-C", tmp_path, PACKAGES.parent], check=True)
    shutil.rmtree(tmp_path / "work")
    return tmp_path


def test_every_section_plans_its_rows_on_image_with_bundle(folder: Path, image: dict[str, str]) -> None:
    subprocess.run(["tar", "-xf", "gpu-check-bundle.tar"], cwd=folder, check=True)

    def plan(*paths: str) -> subprocess.CompletedProcess[str]:
        command = ["python3", "-c", f"import sys; sys.path += {paths}{PLANS}"]
        return subprocess.run(command, cwd=folder, env=image, capture_output=True, text=True)

    without = plan("src")
    assert without.returncode and "No module named 'msgspec'" in without.stderr
    done = plan("src", str(PACKAGES))
    assert not done.returncode, done.stderr
    planned = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert [*planned] == [*SECTIONS] and all(number.isdecimal() for number in planned.values())


def test_a_bundle_of_files_in_no_commit_is_refused(tmp_path: Path) -> None:
    for command in (["git", "init", "--quiet"], ["mkdir", "src"], ["touch", "src/new.py"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    command = ["make", "--file", REPOSITORY / "Makefile", "--old-file", ".venv/complete", "gpu-check-bundle"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode and "?? src/" in done.stderr and "commit" in done.stderr
    assert not (tmp_path / "gpu-check-bundle.tar").exists()


def test_code_of_a_bundle_says_its_commit_and_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(provenance, "describe_code", lambda: {"code_from": "no git", "git_commit": None})
    assert device_under_test.describe("cpu")["git_commit"] is None
    device_under_test.COMMIT.parent.mkdir(parents=True)
    device_under_test.COMMIT.write_text("0123abc\n")
    facts = device_under_test.describe("cpu")
    assert (facts["code_from"], facts["git_commit"]) == ("a bundle", "0123abc")
    assert facts["code_sha256"] == provenance.code_sha256()


@pytest.mark.slow
def test_a_rehearsal_from_the_bundle_survives_three_kills(folder: Path, image: dict[str, str]) -> None:
    """By the page's first line: each call has a new `out`, as on a machine that keeps nothing, and what the last one
    left lies in `before`."""
    outs = [folder / f"out{number}" for number in range(4)]

    def measured(out: Path, *sections: str) -> dict[tuple[str, str], dict[str, Any]]:
        path = out / f"{NAME}.json"
        sections_of_file = json.loads(path.read_text())["sections"] if path.exists() else {}
        return {
            (section, key): row
            for section, entry in sections_of_file.items()
            for key, row in entry["rows"].items()
            if row["status"] == MEASURED and section in (sections or SECTIONS)
        }

    before: dict[tuple[str, str], dict[str, Any]] = {}
    for out, section, number in zip(outs, ("accuracy", "blocks", "other_blocks"), (5, 2, 2), strict=False):
        _kill(folder, image, out, lambda out=out, section=section, number=number: len(measured(out, section)) >= number)
        after = measured(out)
        assert len(before) < len(after) and before.items() <= after.items()  # to the second at which they were measured
        before = after
        shutil.rmtree(folder / "before")
        shutil.copytree(out, folder / "before")
    process = _call(folder, image, outs[3])
    done = process.communicate(timeout=1200)[0]
    assert process.returncode == 0
    last = measured(outs[3])
    assert before.items() <= last.items()
    content = json.loads((outs[3] / f"{NAME}.json").read_text())
    planned = {(name, key) for name, entry in content["sections"].items() for key in entry["planned"] or []}
    rows = {(name, key): row for name, entry in content["sections"].items() for key, row in entry["rows"].items()}
    assert planned == set(rows) == set(last), [row for row in rows.values() if row["status"] != MEASURED]
    assert all(row["values"].get("equal", True) for row in rows.values())
    text = (outs[3] / f"{NAME}.md").read_text()
    assert text in done and text.count(REHEARSAL) == 1 + len(SECTIONS)
    assert {path.suffix for path in outs[3].iterdir()} == {".json", ".md", ".log"}


def _call(folder: Path, image: dict[str, str], out: Path) -> subprocess.Popen[str]:
    """The page's first command line, at toy sizes."""
    line = bare_image.list_device_commands()[0].replace(" out", f" {out.name}")
    command = ["bash", "-c", f"{line} --rehearse --minutes 60"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=image, start_new_session=True)


def _kill(folder: Path, image: dict[str, str], out: Path, far_enough: Callable[[], bool]) -> None:
    """A call that is killed, with all that it has started, in the middle of whatever it does then."""
    process = _call(folder, image, out)
    until = time.monotonic() + 600
    try:
        while not far_enough():
            assert process.poll() is None and time.monotonic() < until, process.communicate()[0]
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
