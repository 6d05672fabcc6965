"""A call of the check with toy sections: what fails, dies or takes too long is reported, and stops nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_check import __main__ as command_line
from benchmarks.gpu_check import measured_rows
from benchmarks.gpu_check import run_sections as run_sections_module
from benchmarks.gpu_check.measured_rows import BEGUN, CONTINUES, FAILED, MEASURED, Row, State
from benchmarks.gpu_check.results_page import page
from benchmarks.gpu_check.run_sections import FINISHED, OUT_OF_TIME, run_sections
from benchmarks.gpu_check.sections import REHEARSAL
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from tests.conftest import REPOSITORY
from tests.gpu_check.toy_sections import FOLDER, SECTIONS


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv(FOLDER, str(tmp_path))


def call(folder: Path, *names: str, seconds: float = 60.0, device: str = "cpu") -> bool:
    path = folder / "state.json"
    if not path.exists():
        measured_rows.write(path, State(rehearsal=True, machine={"device": "processor"}))
    measured_rows.release(path)
    table = "tests.gpu_check.toy_sections"
    return run_sections([*names], path, device, seconds, lambda text: None, table=table, grace=0.5)


def read(folder: Path) -> State:
    return measured_rows.read(folder / "state.json")


def statuses(folder: Path, name: str) -> dict[str, str]:
    return {key: row.status for key, row in read(folder).section(name).rows.items()}


def test_what_fails_is_said_and_stops_nothing(tmp_path: Path) -> None:
    assert not call(tmp_path, "broken", "failing", "steady")
    state = read(tmp_path)
    assert state.section("broken").ended.startswith("failed: ImportError: no package of that name (")
    expected = {"refused": FAILED, "large": FAILED, "killed": FAILED, "after them": MEASURED}
    assert statuses(tmp_path, "failing") == expected
    assert all(state.section(name).ended.startswith(FINISHED) for name in ("failing", "steady"))
    text = page(state, SECTIONS)
    assert text.count(REHEARSAL) == 1 + len(SECTIONS)
    assert "Not measured: failed: ImportError" in text and "Not measured: not reached yet" in text
    assert "failed: large: OutOfMemoryError: tried" in text
    assert "process ended with -9" in text
    assert "| after them | 7 |" in text and re.search(r"4 of 4 rows, \d+ of 20 s: finished", text)
    # What failed is final, until it is requested again.
    measured_rows.release(tmp_path / "state.json", retry_failed=True)
    assert read(tmp_path).section("failing").missing == ["refused", "large", "killed"]


def test_a_row_that_takes_too_long_is_cut_off_and_continued(tmp_path: Path) -> None:
    """Its section has its seconds; the next section is not kept waiting."""
    assert not call(tmp_path, "slow", "steady", seconds=24.0)
    assert statuses(tmp_path, "slow") == {"quick": MEASURED, "waiting": CONTINUES}
    assert read(tmp_path).section("slow").ended.startswith(OUT_OF_TIME)
    assert statuses(tmp_path, "steady") == {"first": MEASURED}
    assert call(tmp_path, "slow", "steady", seconds=1000.0)
    measured = {name: read(tmp_path).measured(name) for name in ("slow", "steady")}
    # What was measured is not measured again.
    assert measured == {"slow": {"quick": {"number": 1}, "waiting": {"number": 2}}, "steady": {"first": {"number": 1}}}


def test_the_seconds_of_finished_sections_are_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(tmp_path, "steady")
    untils: list[float] = []
    monkeypatch.setattr(run_sections_module, "_run_section", lambda *inputs: untils.append(inputs[4]))
    call(tmp_path, "slow", "steady", seconds=22.0)
    call(tmp_path, "slow", "ahead", seconds=22.0)
    assert [until - time.time() for until in untils[:2]] == pytest.approx([22.0, 3.0], abs=0.9)


def test_a_call_without_time_begins_nothing(tmp_path: Path) -> None:
    assert not call(tmp_path, "steady", seconds=0.0)
    assert read(tmp_path).section("steady").ended.startswith(OUT_OF_TIME) and not (tmp_path / "first").exists()
    assert call(tmp_path, "late") and not call(tmp_path / "gpu", "late", device="cuda"), "no time is left for a row"
    assert read(tmp_path / "gpu").section("late").missing == ["first"]


def test_a_killed_call_is_continued(tmp_path: Path) -> None:
    """kill -9 while the second section is running: its row is begun again, and no try is counted."""
    program = "import sys; from pathlib import Path; from tests.gpu_check.test_calls import call; "
    program += "call(Path(sys.argv[1]), 'steady', 'slow', seconds=10000.0)"
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    while not (tmp_path / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert statuses(tmp_path, "steady") == {"first": MEASURED} and statuses(tmp_path, "slow")["waiting"] == BEGUN
    assert call(tmp_path, "steady", "slow", seconds=1000.0)
    assert read(tmp_path).measured("steady")["first"] == {"number": 1}
    row = read(tmp_path).section("slow").rows["waiting"]
    assert (row.values, row.tries) == ({"number": 2}, 1)


@pytest.mark.parametrize(("device", "carried_out"), [("cuda", 2), ("cpu", 1)])
def test_rows_are_carried_out_ahead_side_by_side(tmp_path: Path, device: str, carried_out: int) -> None:
    """What they raise or how they die there is forgotten. Not on a processor, which compiles nothing."""
    assert call(tmp_path, "ahead", device=device)
    section = read(tmp_path).section("ahead")
    assert {key: section.rows[key].values["number"] for key in ("first", "second")} == {
        "first": carried_out, "second": carried_out,
    }  # fmt: skip
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
    command: list[Any] = ["gpu_check", "--rehearse", "--sections", "accuracy", "--minutes", "0.0001", "--out", tmp_path]
    monkeypatch.setattr(sys, "argv", [*map(str, command)])
    assert command_line.main() == EXIT_RUN_AGAIN == 75
    (path,) = tmp_path.glob("*.json")
    assert measured_rows.read(path).section("accuracy").ended.startswith(OUT_OF_TIME)


def test_a_row_that_is_cut_off_twice_is_given_up(tmp_path: Path) -> None:
    state = State(rehearsal=True, machine={"device": "processor"})
    state.section("slow").planned = ["quick", "waiting"]
    state.section("slow").rows = {
        "quick": Row(status=MEASURED), "waiting": Row(status=CONTINUES, reason="its section's time was out"),
    }  # fmt: skip
    measured_rows.write(tmp_path / "state.json", state)
    call(tmp_path, "slow", seconds=3.0)
    row = read(tmp_path).section("slow").rows["waiting"]
    assert (row.status, row.tries) == (FAILED, 2)
