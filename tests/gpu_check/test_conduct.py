"""A call of the check with toy sections: what fails, dies or takes too long is said, and stops nothing else."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.gpu_check import __main__ as command_line
from benchmarks.gpu_check import worker
from benchmarks.gpu_check.conduct import FINISHED, OUT_OF_TIME, conduct
from benchmarks.gpu_check.page import page
from benchmarks.gpu_check.setting import REHEARSAL, Setting
from benchmarks.gpu_check.state import FAILED, GOES_ON, MEASURED, NO_MEMORY, State
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from tests.conftest import REPOSITORY
from tests.gpu_check import steady

MODULES = {name: f"tests.gpu_check.{name}" for name in ("ahead", "broken", "failing", "slow", "steady")}


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def call(folder: Path, *names: str, seconds: float = 60.0, grace: float = 0.5) -> bool:
    setting = Setting(device="cpu", sizes="tiny", nanogpt=str(folder))
    chosen = {name: MODULES[name] for name in names}
    return conduct(chosen, folder / "state.json", setting, seconds, lambda words: None, grace)


def statuses(state: State, name: str) -> dict[str, str]:
    return {key: row["status"] for key, row in state.section(name)["rows"].items()}


def test_what_fails_is_said_and_stops_nothing(tmp_path: Path) -> None:
    assert not call(tmp_path, "broken", "failing", "steady")
    state = State.read(tmp_path / "state.json")
    assert state.section("broken")["ended"] == "failed: ImportError: no package of that name"
    expected = {"refused": FAILED, "large": NO_MEMORY, "killed": FAILED, "after them": MEASURED}
    assert statuses(state, "failing") == expected
    assert state.section("failing")["ended"] == state.section("steady")["ended"] == FINISHED
    text = page(state, Setting(device="cpu", sizes="tiny"), MODULES)
    assert text.count(REHEARSAL) == 1 + len(MODULES)
    assert "Not measured: failed: ImportError" in text and "Not measured: not reached yet" in text
    assert "- out of memory: large: OutOfMemoryError: tried to allocate" in text
    assert "- failed: killed: its process ended with -9" in text
    assert "| after them | 7 |" in text
    # What failed is final, until it is asked for again.
    state.again()
    assert state.missing("failing") == ["refused", "large", "killed"]


def test_a_row_that_takes_too_long_is_cut_off_and_gone_on_with(tmp_path: Path) -> None:
    """Its section has the least that one has; the next section is not kept waiting."""
    assert not call(tmp_path, "slow", "steady", seconds=300.0)
    state = State.read(tmp_path / "state.json")
    assert statuses(state, "slow") == {"quick": MEASURED, "waiting": GOES_ON}
    assert state.section("slow")["ended"] == OUT_OF_TIME
    assert statuses(state, "steady") == {"first": MEASURED}
    assert call(tmp_path, "slow", "steady", seconds=1000.0)
    state = State.read(tmp_path / "state.json")
    numbers = {key: row["number"] for name in ("slow", "steady") for key, row in state.rows(name).items()}
    assert numbers == {"quick": 1, "waiting": 2, "first": 1}  # what was measured is not measured again


def test_a_call_without_time_begins_nothing(tmp_path: Path) -> None:
    assert not call(tmp_path, "steady", seconds=0.0)
    assert State.read(tmp_path / "state.json").section("steady")["ended"] == OUT_OF_TIME
    assert not (tmp_path / "first").exists()


def test_a_killed_call_is_gone_on_with(tmp_path: Path) -> None:
    """kill -9 while the second section is at work."""
    program = "import sys; from pathlib import Path; from tests.gpu_check.test_conduct import call; "
    program += "call(Path(sys.argv[1]), 'steady', 'slow', seconds=10000.0)"
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    while not (tmp_path / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert statuses(State.read(tmp_path / "state.json"), "steady") == {"first": MEASURED}
    assert call(tmp_path, "steady", "slow", seconds=1000.0)
    state = State.read(tmp_path / "state.json")
    assert state.rows("steady")["first"]["number"] == 1 and state.rows("slow")["waiting"]["number"] == 2


def test_rows_are_carried_out_ahead_side_by_side_and_then_measured(tmp_path: Path) -> None:
    """Those that are still missing; what they raise or how they die there is forgotten."""
    assert call(tmp_path, "ahead")
    state = State.read(tmp_path / "state.json")
    assert {key: row["number"] for key, row in state.rows("ahead").items()} == {"first": 2, "second": 2, "dies once": 2}
    told = state.section("ahead")["ahead"]
    assert told["rows"] == 3 and told["unfinished"] == 1 and 1 <= told["processes"] <= 3
    text = page(state, Setting(device="cpu", sizes="tiny"), MODULES)
    assert "3 rows were compiled ahead by" in text and "1 did not finish" in text


def test_a_row_that_has_no_time_left_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady, "LEAST", 1e6, raising=False)
    measured = Setting(device="cuda", sizes="paper", nanogpt=str(tmp_path), until=time.time() + 1000)
    state = State.read(tmp_path / "state.json")
    assert worker.carry_out("steady", MODULES["steady"], state, measured) == EXIT_RUN_AGAIN
    assert state.missing("steady") == ["first"] and not (tmp_path / "first").exists()
    rehearsal = Setting(device="cpu", sizes="tiny", nanogpt=str(tmp_path), until=time.time() + 1000)
    assert worker.carry_out("steady", MODULES["steady"], state, rehearsal) == 0


def test_what_an_earlier_call_left_is_gone_on_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of every device, but what is here already stays."""
    before, now = tmp_path / "before", tmp_path / "now"
    before.mkdir(), now.mkdir()
    for name in ("gpu_check_a.json", "gpu_check_a_key_norms_x.zip", "gpu_check_b.json", "other.json"):
        (before / name).write_text("before")
    (now / "gpu_check_b.json").write_text("now")
    command_line.brought(before, now)
    found = {path.name: path.read_text() for path in now.iterdir()}
    kept = {"gpu_check_a.json": "before", "gpu_check_a_key_norms_x.zip": "before", "gpu_check_b.json": "now"}
    assert found == kept
    with pytest.raises(PlumblineError, match="no such folder; in a first call leave it out"):
        command_line.brought(tmp_path / "nowhere", now)
    (tmp_path / "empty").mkdir()
    command_line.brought(tmp_path / "empty", now)
    assert "nothing was measured before" in capsys.readouterr().out


def test_another_file_is_not_taken_for_a_state(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"rows": []}')
    with pytest.raises(PlumblineError, match="not a state of this check; move it away"):
        State.read(tmp_path / "state.json")
