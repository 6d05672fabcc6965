"""A call of the check with toy sections: what fails, dies or takes too long is reported, and stops nothing else."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.gpu_check import __main__ as command_line
from benchmarks.gpu_check import section_worker
from benchmarks.gpu_check.call_settings import REHEARSAL, SectionCall
from benchmarks.gpu_check.measured_rows import FAILED, GOES_ON, MEASURED, NO_MEMORY, MeasuredRows
from benchmarks.gpu_check.results_page import page
from benchmarks.gpu_check.run_sections import FINISHED, OUT_OF_TIME, conduct
from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from tests.conftest import REPOSITORY
from tests.gpu_check import steady_section

MODULES = {
    name: f"tests.gpu_check.{name}_section" for name in ("ahead", "broken", "failing", "lacking", "slow", "steady")
}

#: Enough for each of them but the slow one, and no section's time is another's: `seconds` of a call are the sum.
SECONDS = dict.fromkeys(MODULES, 20.0) | {"slow": 3.0}


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)


def call(folder: Path, *names: str, seconds: float = 60.0, grace: float = 0.5, device: str = "cpu") -> bool:
    setting = SectionCall(device=device, sizes="tiny", beside=str(folder))
    chosen = {name: MODULES[name] for name in names}
    return conduct(chosen, SECONDS, folder / "state.json", setting, seconds, lambda text: None, grace)


def statuses(state: MeasuredRows, name: str) -> dict[str, str]:
    return {key: row["status"] for key, row in state.section(name)["rows"].items()}


def test_what_fails_is_said_and_stops_nothing(tmp_path: Path) -> None:
    assert not call(tmp_path, "broken", "failing", "steady")
    state = MeasuredRows.read(tmp_path / "state.json")
    assert state.section("broken")["ended"] == "failed: ImportError: no package of that name"
    expected = {"refused": FAILED, "large": NO_MEMORY, "killed": FAILED, "after them": MEASURED}
    assert statuses(state, "failing") == expected
    assert state.section("failing")["ended"] == state.section("steady")["ended"] == FINISHED
    text = page(state, SectionCall(device="cpu", sizes="tiny"), MODULES)
    assert text.count(REHEARSAL) == 1 + len(MODULES)
    assert "Not measured: failed: ImportError" in text and "Not measured: not reached yet" in text
    assert "memory: large: OutOfMemoryError: tried" in text
    assert "process ended with -9" in text
    assert "| after them | 7 |" in text
    # What failed is final, until it is requested again.
    state.again()
    assert state.missing("failing") == ["refused", "large", "killed"]


def test_a_row_that_takes_too_long_is_cut_off_and_gone_on_with(tmp_path: Path) -> None:
    """Its section has its seconds; the next section is not kept waiting."""
    assert not call(tmp_path, "slow", "steady", seconds=24.0)
    state = MeasuredRows.read(tmp_path / "state.json")
    assert statuses(state, "slow") == {"quick": MEASURED, "waiting": GOES_ON}
    assert state.section("slow")["ended"] == OUT_OF_TIME
    assert statuses(state, "steady") == {"first": MEASURED}
    assert call(tmp_path, "slow", "steady", seconds=1000.0)
    state = MeasuredRows.read(tmp_path / "state.json")
    numbers = {key: row["number"] for name in ("slow", "steady") for key, row in state.rows(name).items()}
    assert numbers == {"quick": 1, "waiting": 2, "first": 1}  # what was measured is not measured again


def test_a_call_without_time_begins_nothing(tmp_path: Path) -> None:
    assert not call(tmp_path, "steady", seconds=0.0)
    assert MeasuredRows.read(tmp_path / "state.json").section("steady")["ended"] == OUT_OF_TIME
    assert not (tmp_path / "first").exists()


def test_a_killed_call_is_gone_on_with(tmp_path: Path) -> None:
    """kill -9 while the second section is running."""
    program = "import sys; from pathlib import Path; from tests.gpu_check.test_failing_sections import call; "
    program += "call(Path(sys.argv[1]), 'steady', 'slow', seconds=10000.0)"
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    while not (tmp_path / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert statuses(MeasuredRows.read(tmp_path / "state.json"), "steady") == {"first": MEASURED}
    assert call(tmp_path, "steady", "slow", seconds=1000.0)
    state = MeasuredRows.read(tmp_path / "state.json")
    assert state.rows("steady")["first"]["number"] == 1 and state.rows("slow")["waiting"]["number"] == 2


def test_a_row_in_which_calls_were_ended_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither where nothing is begun in this call, nor where the section cannot begin."""
    state = MeasuredRows.read(tmp_path / "state.json")
    for name in ("steady", "broken"):
        state.plan(name, ["first"])
        state.begin(name, "first")
        state.begin(name, "first")
    assert not call(tmp_path, "broken")
    program = tmp_path / "to run again"
    program.write_text(f"#!/bin/sh\nexit {EXIT_RUN_AGAIN}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert not call(tmp_path, "steady")
    state = MeasuredRows.read(tmp_path / "state.json")
    for name in ("steady", "broken"):
        assert {key: row["tries"] for key, row in state.rows(name, GOES_ON).items()} == {"first": 1}


def test_what_is_not_to_be_had_keeps_no_call_from_being_whole(tmp_path: Path) -> None:
    assert call(tmp_path, "lacking", "steady")
    text = page(MeasuredRows.read(tmp_path / "state.json"), SectionCall(device="cpu", sizes="tiny"), MODULES)
    assert "Not measured: not to be had here: no Snakemake." in text
    assert not call(tmp_path, "broken")


def test_rows_are_carried_out_ahead_side_by_side(tmp_path: Path) -> None:
    """Those that are still missing; what they raise or how they die there is forgotten."""
    assert call(tmp_path, "ahead", device="cuda")
    state = MeasuredRows.read(tmp_path / "state.json")
    assert {key: row["number"] for key, row in state.rows("ahead").items()} == {"first": 2, "second": 2, "dies once": 2}
    ahead_section = state.section("ahead")["ahead"]
    assert ahead_section["rows"] == 3 and ahead_section["unfinished"] == 1 and 1 <= ahead_section["processes"] <= 3
    text = page(state, SectionCall(device="cpu", sizes="tiny"), MODULES)
    assert "3 rows were compiled ahead" in text and "1 did not finish" in text


def test_nothing_is_carried_out_ahead_on_a_processor(tmp_path: Path) -> None:
    """Which compiles nothing: each row is carried out once, and the one that dies has died."""
    assert call(tmp_path, "ahead")
    assert statuses(MeasuredRows.read(tmp_path / "state.json"), "ahead")["dies once"] == FAILED
    assert {name: (tmp_path / name).read_text() for name in ("first", "second")} == {"first": ".", "second": "."}


def test_a_row_that_has_no_time_left_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady_section, "LEAST", 1e6, raising=False)
    measured = SectionCall(device="cuda", sizes="paper", beside=str(tmp_path), until=time.time() + 1000)
    state = MeasuredRows.read(tmp_path / "state.json")
    assert section_worker.carry_out("steady", MODULES["steady"], state, measured) == EXIT_RUN_AGAIN
    assert state.missing("steady") == ["first"] and not (tmp_path / "first").exists()
    rehearsal = SectionCall(device="cpu", sizes="tiny", beside=str(tmp_path), until=time.time() + 1000)
    assert section_worker.carry_out("steady", MODULES["steady"], state, rehearsal) == 0


TOLD: dict[str, object] = {"device": "a", "kind": "cuda", "sizes": "paper", "rehearsal": None}


def leave_state(folder: Path, name: str, **fields: object) -> None:
    """A state as a call leaves it."""
    state = MeasuredRows.read(folder / name)
    state.content["told"] = TOLD | fields
    state.write()


def test_goes_on_from_an_earlier_call_on_this_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of other devices, nothing half-written, and nothing where a call goes on from what is there."""
    before, now = tmp_path / "before", tmp_path / "now"
    before.mkdir()
    leave_state(before, "gpu_check_a.json")
    leave_state(before, "gpu_check_a_large.json", device="a large")
    others = ("gpu_check_a_large_key_norms_x.zip", ".gpu_check_a.json.0123abcd", "other.json")
    for name in ("gpu_check_a_key_norms_x.zip", *others):
        (before / name).write_text("before")
    command_line.copy_earlier_call(before, now / "gpu_check_a.json", TOLD)
    assert {path.name for path in now.iterdir()} == {"gpu_check_a.json", "gpu_check_a_key_norms_x.zip"}
    output = capsys.readouterr().out
    assert (
        "taken: gpu_check_a_key_norms_x.zip, gpu_check_a.json; not taken: gpu_check_a_large_key_norms_x.zip" in output
    )
    (before / "gpu_check_a_key_norms_y.zip").touch()
    command_line.copy_earlier_call(before, now / "gpu_check_a.json", TOLD)
    assert "nothing is taken, " in capsys.readouterr().out and len(list(now.iterdir())) == 2
    with pytest.raises(PlumblineError, match=r"no such.*folder"):
        command_line.copy_earlier_call(tmp_path / "nowhere", now / "gpu_check_a.json", TOLD)
    command_line.copy_earlier_call(before, now / "gpu_check_b.json", TOLD)
    assert "no gpu_check_b.json, nothing was measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": 1}', "state.*check"),
        ('{"format": 1, "machine": {}, "sections": {"kernel_accuracy": {}}}', "state.*check"),
        ('{"format": 1, "machine": {}, "sections": {}}', "not say.*measured"),
    ],
)
def test_nothing_is_taken_of_a_damaged_call(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "gpu_check_a.json").write_text(content)
    (tmp_path / "gpu_check_a.md").touch()
    with pytest.raises(PlumblineError, match=message):
        command_line.copy_earlier_call(tmp_path, tmp_path / "now" / "gpu_check_a.json", TOLD)
    assert not (tmp_path / "now").exists()
    (tmp_path / "gpu_check_a.json").unlink()
    leave_state(tmp_path, "gpu_check_a.json")
    (tmp_path / "gpu_check_a.md").unlink()
    (tmp_path / "gpu_check_a.md").mkdir()
    with pytest.raises(PlumblineError, match=r"file.*leaves"):
        command_line.copy_earlier_call(tmp_path, tmp_path / "now" / "gpu_check_a.json", TOLD)
    assert not (tmp_path / "now").exists()


def test_an_impossible_place_is_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.json").mkdir()
    monkeypatch.setattr(command_line, "machine", lambda device: {"device": "processor"})
    monkeypatch.setattr(command_line, "conduct", lambda *arguments: pytest.fail("begun"))
    for out, message in (
        ("file", "file is a file; name a folder"),
        ("folder.json", "a folder; name one without .json"),
        ("other.json", "give --out a folder, not"),
    ):
        command = ["gpu_check", "--device", "cpu", "--sizes", "tiny", "--continue-from", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", [*command, "--out", str(tmp_path / out)])
        with pytest.raises(PlumblineError, match=message):
            command_line.main()


def test_another_file_is_not_taken_for_a_state(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"rows": []}')
    with pytest.raises(PlumblineError, match=r"state.*check"):
        MeasuredRows.read(tmp_path / "state.json")


def test_a_call_that_is_out_of_time_ends_with_75(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = [
        "gpu_check",
        "--device",
        "cpu",
        "--sizes",
        "tiny",
        "--sections",
        "kernel_accuracy",
        "--minutes",
        "0.0001",
        "--out",
    ]
    monkeypatch.setattr(sys, "argv", [*arguments, str(tmp_path)])
    assert command_line.main() == EXIT_RUN_AGAIN == 75
    (state,) = tmp_path.glob("*.json")
    assert MeasuredRows.read(state).section("kernel_accuracy")["ended"] == OUT_OF_TIME
