"""The check on a machine that has its own torch, no index, and not all of our packages; killed on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks.gpu_check import device_under_test, measured_rows
from benchmarks.gpu_check.measured_rows import MEASURED, REHEARSAL, Row
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
    process = plan("src", str(PACKAGES))
    assert not process.returncode, process.stderr
    planned = dict(line.split(" ", 1) for line in process.stdout.splitlines())
    assert [*planned] == [*SECTIONS] and all(number.isdecimal() for number in planned.values())


def test_a_bundle_of_files_in_no_commit_is_refused(tmp_path: Path) -> None:
    for command in (["git", "init", "--quiet"], ["mkdir", "src"], ["touch", "src/new.py"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    command = ["make", "--file", REPOSITORY / "Makefile", "--old-file", ".venv/complete", "gpu-check-bundle"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert process.returncode and "?? src/" in process.stderr and "commit" in process.stderr
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
    before: dict[tuple[str, str], Row] = {}
    for section, number in (("accuracy", 5), ("blocks", 2), ("other_blocks", 2)):
        _call(folder, image, section, number)
        after = list_measured(folder / section)
        assert len(before) < len(after) and before.items() <= after.items()  # to the second at which they were measured
        before = after
        shutil.rmtree(folder / "before")
        shutil.copytree(folder / section, folder / "before")
    printed, last = _call(folder, image, "last"), list_measured(folder / "last")
    assert before.items() <= last.items()
    sections = measured_rows.read(folder / f"last/{NAME}.json").sections
    assert {(name, key) for name, section in sections.items() for key in section.planned or ()} == set(last)
    assert all(section.missing == [] for section in sections.values())
    assert all(row.values.get("equal", True) for row in last.values())
    text = (folder / f"last/{NAME}.md").read_text()
    assert text in printed and text.count(REHEARSAL) == 1 + len(SECTIONS)
    assert {path.suffix for path in (folder / "last").iterdir()} == {".json", ".md", ".log"}


def list_measured(out: Path) -> dict[tuple[str, str], Row]:
    """The measured rows of a call by section and key."""
    path = out / f"{NAME}.json"
    sections = measured_rows.read(path).sections if path.exists() else {}
    rows = {(name, key): row for name, section in sections.items() for key, row in section.rows.items()}
    return {place: row for place, row in rows.items() if row.status == MEASURED}


def _call(folder: Path, image: dict[str, str], out: str, number: int | None = None) -> str:
    """The page's first command line, at toy sizes: what it prints; killed with all that it has started, in the middle
    of whatever it does then, when the section that is called as its folder has so many rows."""
    line = bare_image.list_device_commands()[0].replace(" out", f" {out}")
    command = ["bash", "-c", f"{line} --rehearse --minutes 60"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, env=image, start_new_session=True
    )
    try:
        while number is not None and [name for name, _ in list_measured(folder / out)].count(out) < number:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.01)
        printed = process.communicate(timeout=1200)[0] if number is None else ""
        assert number is not None or process.returncode == 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return printed
