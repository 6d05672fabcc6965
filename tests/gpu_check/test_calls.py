"""A call of the check with toy sections: what fails, dies or takes too long is reported, and stops nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.gpu_check import __main__ as command_line
from benchmarks.gpu_check import measured_rows
from benchmarks.gpu_check import run_sections as run_sections_module
from benchmarks.gpu_check.measured_rows import CUT_OFF, FAILED, MEASURED, REHEARSAL, State
from benchmarks.gpu_check.run_sections import FINISHED, OUT_OF_TIME, run_sections
from benchmarks.gpu_check.sections import SECTIONS
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from tests.conftest import REPOSITORY
from tests.gpu_check.toy_sections import FOLDER


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv(FOLDER, str(tmp_path))


def call(folder: Path, *names: str, seconds: float = 60.0, device: str = "cpu") -> bool:
    path = folder / "state.json"
    if not path.exists():
        measured_rows.write(path, State(rehearsal=True, machine={"device": "processor"}))
    return run_sections([*names], path, device, seconds, table="tests.gpu_check.toy_sections", grace=0.5)


def read(folder: Path) -> State:
    return measured_rows.read(folder / "state.json")


def statuses(folder: Path, name: str) -> dict[str, str]:
    return {key: row.status for key, row in read(folder).section(name).rows.items()}


def test_what_fails_is_said_and_stops_nothing(tmp_path: Path) -> None:
    assert call(tmp_path, "broken", "failing", "steady"), "every row has its end"
    state = read(tmp_path)
    expected = {"refused": FAILED, "large": FAILED, "killed": FAILED, "after them": MEASURED}
    assert statuses(tmp_path, "failing") == expected
    assert all(section.ended.startswith(FINISHED) for section in state.sections.values())
    text = (tmp_path / "state.md").read_text()
    assert text.count(REHEARSAL) == 1 + len(state.sections)
    assert "failed: all rows: ImportError: no package of that name" in text
    assert "failed: large: OutOfMemoryError: tried" in text
    assert "failed: killed: its process ended with -9" in text
    assert "| after them | 7 |" in text and re.search(r"1 of 4 rows measured, in \d+ s: finished", text)
    # What failed is final, until it is requested again.
    for retry_failed, missing in ((False, []), (True, ["refused", "large", "killed"])):
        machine = {"device": "processor"}
        command_line.open_state(tmp_path / "state.json", machine, rehearsal=True, retry_failed=retry_failed)
        sections = read(tmp_path).sections
        assert sections["failing"].missing == missing and set(SECTIONS) < set(sections)


def test_a_row_that_takes_too_long_is_cut_off_and_continued(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its section has its seconds; the next section is not kept waiting, and in the next call its other rows come
    first."""
    assert not call(tmp_path, "slow", "steady", seconds=24.0)
    assert statuses(tmp_path, "slow") == {"waiting": CUT_OFF}
    assert read(tmp_path).section("slow").missing == ["quick", "waiting"]
    assert f"slow: {OUT_OF_TIME}" in capfd.readouterr().out and statuses(tmp_path, "steady") == {"first": MEASURED}
    assert call(tmp_path, "slow", "steady", seconds=1000.0)
    measured = {name: read(tmp_path).measured(name) for name in ("slow", "steady")}
    # What was measured is not measured again.
    assert measured == {"slow": {"quick": {"number": 1}, "waiting": {"number": 2}}, "steady": {"first": {"number": 1}}}


def test_the_seconds_of_finished_sections_are_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(tmp_path, "steady")
    untils: list[float] = []
    monkeypatch.setattr(run_sections_module, "_run_section", lambda *inputs: untils.append(inputs[4]) or FINISHED)
    call(tmp_path, "slow", "steady", seconds=22.0)
    call(tmp_path, "slow", "ahead", seconds=22.0)
    assert [until - time.time() for until in untils[:2]] == pytest.approx([22.0, 3.0], abs=0.9)


def test_a_killed_call_is_continued(tmp_path: Path) -> None:
    """kill -9 while the second section is running: of its row nothing is kept, and it is begun again."""
    program = "import sys; from pathlib import Path; from tests.gpu_check.test_calls import call; "
    program += "call(Path(sys.argv[1]), 'steady', 'slow', seconds=10000.0)"
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    while not (tmp_path / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert statuses(tmp_path, "steady") == {"first": MEASURED} and statuses(tmp_path, "slow") == {}
    assert call(tmp_path, "steady", "slow", seconds=1000.0)
    assert read(tmp_path).measured("steady")["first"] == {"number": 1}
    assert read(tmp_path).measured("slow")["waiting"] == {"number": 2}


@pytest.mark.parametrize(("device", "carried_out"), [("cuda", 2), ("cpu", 1)])
def test_rows_are_carried_out_ahead_side_by_side(tmp_path: Path, device: str, carried_out: int) -> None:
    """What they raise or how they die there is forgotten. Not on a processor, which compiles nothing."""
    assert call(tmp_path, "ahead", device=device)
    section = read(tmp_path).section("ahead")
    numbers = {key: section.rows[key].values["number"] for key in ("first", "second")}
    assert numbers == {"first": carried_out, "second": carried_out}
    assert section.rows["dies once"].status == (MEASURED if device == "cuda" else FAILED)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"rehearsal": false, "machine": {"device": "a"}}', "measured on a,.*for b"),
        ('{"rehearsal": true, "machine": {"device": "b"}}', "measured on b"),
        ('{"rehearsal": false, "machine": {}, "sections": {"x": 1}}', "state of this check"),
        ('{"rehearsal": false, "machi', "state of this check"),
    ],
)
def test_what_another_device_or_a_damaged_call_left_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "gpu_check_b.json"
    path.write_text(content)
    with pytest.raises(PlumblineError, match=rf"gpu_check_b\.json.*{message}"):
        command_line.open_state(path, {"device": "b"}, rehearsal=False)
    assert path.read_text() == content


def test_places_are_by_device_and_rehearsals_apart() -> None:
    place = command_line.find_place
    assert place("NVIDIA H100 80GB HBM3", None, rehearsal=False) == Path("benchmarks/gpu_check_h100_80gb_hbm3.json")
    assert place("NVIDIA H200", Path("out"), rehearsal=False) == Path("out/gpu_check_h200.json")
    assert place("processor", None, rehearsal=True) == Path("benchmarks/runs/gpu_check_rehearsal.json")


def test_a_call_that_is_out_of_time_ends_with_75(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And begins nothing. Where every row would fail by the environment there is no file."""
    monkeypatch.setattr(sys, "argv", ["gpu_check", "--rehearse", "--minutes", "0", "--out", str(tmp_path)])
    with monkeypatch.context() as narrow, pytest.raises(PlumblineError, match=r"unset NVIDIA_TF32_OVERRIDE"):
        narrow.setenv("NVIDIA_TF32_OVERRIDE", "1")
        command_line.main()
    assert not [*tmp_path.iterdir()]
    assert command_line.main() == EXIT_RUN_AGAIN == 75
    (path,) = tmp_path.glob("*.json")
    sections = measured_rows.read(path).sections
    assert set(sections) == set(SECTIONS)
    assert all(each.ended.startswith(OUT_OF_TIME) and each.planned is None for each in sections.values())
