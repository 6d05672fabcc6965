"""Attacks on what is on the disk: errors of the file system, starts that end without progress, suspension, three runs
that take turns, a last update that is no numbers. (Damaged files: test_checkpoint, test_pretrain,
test_probe_checkpoints.)"""

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.stop_request import StopRequest
from plumbline.model.finished_run import FinishedRun
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs import finished_runs
from plumbline.results.runs.expected_runs import ExpectedRun
from plumbline.specs import study_config
from plumbline.studies.transfer.tables.table6 import table6
from plumbline.train import loop as loop_module
from plumbline.train import pretrain as pretrain_module
from plumbline.train.checkpoint.checkpoint_folders import RollingCheckpoints
from plumbline.train.checkpoint.checkpoint_saver import CheckpointSaver
from plumbline.train.checkpoint.resume_run import RunResumer
from plumbline.train.checkpoint.state_records import StateRecords
from plumbline.train.compiling import CompiledModel
from plumbline.train.monitoring.run_metrics import RunMetrics
from tests.model_specs import run_spec
from tests.train.child_processes import of_a_terminal
from tests.train.small_runs import PROCESSES, products, read, settings, start_child, train
from tests.train.test_checkpoint import write
from tests.train.test_pretrain import StopAt
from tests.train.test_run_lock import holder
from tests.train.test_train_command import command


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch):
    """A file system that does not give some files back: `broken(number, *endings)` by the ends of their paths."""

    def install(number: int, *endings: str) -> Any:
        patch = pytest.MonkeyPatch()
        patches.append(patch)
        # Who may not read a file is informed all the same whose it is.
        more = [(os, "stat")] if number != errno.EACCES else []
        for module, name in [(builtins, "open"), (io, "open"), (os, "open"), *more]:
            original = getattr(module, name)

            def fail(path: Any, *arguments: Any, original: Any = original, **options: Any) -> Any:
                if isinstance(path, (str, os.PathLike)) and os.fspath(path).endswith(endings):
                    raise OSError(number, os.strerror(number), os.fspath(path))
                return original(path, *arguments, **options)

            patch.setattr(module, name, fail)
        return patch

    patches: list[pytest.MonkeyPatch] = []
    yield install
    for patch in patches:
        patch.undo()


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (errno.EIO, "metadata.json"),
        (errno.ESTALE, "shards/rank-00000.safetensors"),
        (errno.EACCES, "model.safetensors"),
    ],
)
def test_a_file_that_cannot_be_read_is_not_damaged(tmp_path: Path, number: int, name: str, broken, capfd) -> None:
    checkpoints = RollingCheckpoints(tmp_path, keep=3)
    paths = [write(checkpoints, step) for step in (3, 9)]
    patch = broken(number, f"step-0000009/{name}")
    assert checkpoints.find_newest().step == 3  # type: ignore[union-attr]
    assert f"step-0000009 cannot be read ([Errno {number}]" in capfd.readouterr().err
    every = broken(number, f"/{name}")
    message = r"2 checkpoint\(s\), the newest step-0000009, cannot be read.*not damage"
    if number == errno.EACCES:
        message = rf"step-0000009/{name} cannot be read or changed by .*: it belongs to .*chmod -R g\+rwX"
    with pytest.raises(PlumblineError, match=message):
        RollingCheckpoints(tmp_path, keep=3).find_newest()
    assert checkpoints.newest_finite() is None
    every.undo(), patch.undo()
    assert sorted(tmp_path.iterdir()) == paths, "nothing was renamed"
    assert RollingCheckpoints(tmp_path, keep=3).find_newest().step == 9  # type: ignore[union-attr]


def test_what_could_not_be_read_is_made_again_and_kept(tmp_path: Path, broken) -> None:
    checkpoints = RollingCheckpoints(tmp_path, keep=1)
    for step in (3, 9):
        checkpoints.keep = None
        write(checkpoints, step)
    patch = broken(errno.ESTALE, "step-0000009/metadata.json")
    assert checkpoints.find_newest().step == 3 and not checkpoints.has(9)  # type: ignore[union-attr]
    checkpoints.keep = 1
    write(checkpoints, 5)
    assert (tmp_path / "step-0000009").is_dir(), "nobody knows what it is, so it is not rotated away"
    patch.undo()
    write(checkpoints, 9)
    assert checkpoints.has(9) and checkpoints.find_newest().step == 9  # type: ignore[union-attr]
    assert (tmp_path / "step-0000009.unreadable" / "metadata.json").exists()


def test_what_was_set_aside_before_stays(tmp_path: Path) -> None:
    checkpoints = RollingCheckpoints(tmp_path, keep=3)
    for _ in range(3):
        (write(checkpoints, 4) / "model.safetensors").unlink()
        assert checkpoints.find_newest() is None
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "step-0000004.damaged", "step-0000004.damaged-2", "step-0000004.damaged-3",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def halfway(packs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state of the small run, stopped after step 7, with checkpoints after 3, 6 and 7."""
    work = tmp_path_factory.mktemp("halfway")
    stop, original = StopRequest(), loop_module.TrainingLoop.train_step

    def train_step(self: loop_module.TrainingLoop) -> tuple[bool, bool]:
        stop.requested = self.step == 7
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module.TrainingLoop, "train_step", train_step)
        assert train(run_spec(), settings(packs, work, checkpoint_steps=3), stop) == EXIT_RUN_AGAIN
    assert [path.name for path in sorted((work / "state").glob("step-*"))] == [
        f"step-000000{step}" for step in (3, 6, 7)
    ]
    return work / "state"


@pytest.fixture
def interrupted(halfway: Path, tmp_path: Path) -> Path:
    shutil.copytree(halfway, tmp_path / "state")
    return tmp_path


def names(state: Path) -> list[str]:
    return sorted(path.name for path in state.iterdir())


@pytest.mark.parametrize("ending", ["/metadata.json", "/run.json", "/starts.json"])
def test_a_state_that_cannot_be_read(packs: Path, interrupted: Path, undisturbed: Path, ending: str, broken) -> None:
    state, chosen = interrupted / "state", settings(packs, interrupted)
    before = names(state)
    patch = broken(errno.EIO, ending)
    for _ in range(4):
        with pytest.raises(PlumblineError, match=r"cannot.*system"):
            train(run_spec(), chosen)
    patch.undo()
    assert names(state) == before and names(interrupted) == ["state"]
    assert train(run_spec(), chosen) == 0
    assert read(interrupted / "out/manifest.json")["resumed_from"] == [7]
    assert products(interrupted) == products(undisturbed)


def test_an_earlier_checkpoint_is_read(packs: Path, interrupted: Path, undisturbed: Path, broken, capfd) -> None:
    patch = broken(errno.EIO, "step-0000007/optimizer.safetensors")
    assert train(run_spec(), settings(packs, interrupted)) == 0
    patch.undo()
    assert "resumed at step 6" in capfd.readouterr().err
    assert not [name for name in names(interrupted / "state") if "damaged" in name]
    assert products(interrupted) == products(undisturbed)


@pytest.mark.parametrize("name", ["run.json", "starts.json"])
def test_a_damaged_record_costs_no_progress(
    packs: Path, interrupted: Path, undisturbed: Path, name: str, capfd
) -> None:
    (interrupted / "state" / name).write_text("")
    assert train(run_spec(), settings(packs, interrupted)) == 0
    stderr = capfd.readouterr().err
    assert f"{name} is damaged" in stderr and "resumed at step 7" in stderr
    assert (interrupted / "state" / f"{name}.damaged").exists() and products(interrupted) == products(undisturbed)


def test_a_run_that_lost_its_starts_has_its_checkpoints(packs: Path, tmp_path: Path) -> None:
    chosen = settings(packs, tmp_path)
    assert train(run_spec(), chosen) == 0
    before = read(tmp_path / "out/manifest.json")
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "state/starts.json").unlink()
    assert train(run_spec(), chosen) == 0
    after = read(tmp_path / "out/manifest.json")
    assert after["code"] == before["code"] and after["starts"][0]["recovered"]


# How starts end


def ends(state: Path) -> list[str | None]:
    return [entry.get("ended") for entry in read(state / "starts.json")]


def test_clean_stops_are_no_faults(packs: Path, tmp_path: Path) -> None:
    chosen = settings(packs, tmp_path)
    assert [train(run_spec(), chosen, StopAt(3)) for _ in range(3)] == [EXIT_RUN_AGAIN] * 3
    assert train(run_spec(), chosen) == 0
    assert ends(chosen.state) == ["stopped"] * 3 + ["completed"]
    assert read(tmp_path / "out/manifest.json")["starts"][-1]["ended"] == "completed"


@pytest.mark.parametrize("where", ["find", "create", "compile"])
def test_a_stop_before_the_first_step(packs: Path, tmp_path: Path, undisturbed: Path, where: str, capfd) -> None:
    """Asked to stop when its place is found, when its model is made, while that is compiled."""
    place = {
        "find": (RunResumer, "find"),
        "create": (pretrain_module, "create"),
        "compile": (CompiledModel, "attempt"),
    }[where]
    original = (lambda *args: "no compiler") if where == "compile" else getattr(*place)
    chosen = settings(packs, tmp_path, compile=where == "compile")
    for _ in range(4):
        stop = StopRequest()

        def ask(*args: Any, stop: StopRequest = stop, **options: Any) -> Any:
            stop.requested = True
            return original(*args, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(*place, ask)
            assert train(run_spec(), chosen, stop) == EXIT_RUN_AGAIN
    assert ends(chosen.state) == ["stopped"] * 4
    assert train(run_spec(), settings(packs, tmp_path)) == 0 and products(tmp_path) == products(undisturbed)
    stderr = capfd.readouterr().err
    assert "killed" not in stderr and stderr.count("run me again") == 4


def test_a_start_that_fails_before_its_loop_was_not_killed(packs: Path, tmp_path: Path, monkeypatch) -> None:
    def fail(*args: Any) -> None:
        raise RuntimeError("no driver")

    monkeypatch.setattr(pretrain_module, "create", fail)
    with pytest.raises(RuntimeError, match="no driver"):
        train(run_spec(), settings(packs, tmp_path))
    (start,) = read(tmp_path / "state/starts.json")
    assert (start["ended"], start["reason"]) == ("error", "RuntimeError: no driver")


def test_full_disks_are_no_faults(packs: Path, tmp_path: Path) -> None:
    """Three times no room for the first checkpoint, once none for the record of the start itself; then there is."""
    import resource

    chosen = settings(packs, tmp_path, checkpoint_steps=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (20_000, 20_000, 20_000, 100):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            with pytest.raises(PlumblineError, match=r"no disk space .*Free space"):
                train(run_spec(), chosen)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ends(chosen.state) == ["disk full"] * 3
    assert train(run_spec(), chosen) == 0


def test_being_killed_is_no_fault_but_is_told(tmp_path: Path, capfd) -> None:
    state = StateRecords(tmp_path)
    for _ in range(5):
        state.start(0, 3, {}, {})
    assert "step 0, ended without" in capfd.readouterr().err


def test_faults_of_the_loop_count_whatever_lies_between(tmp_path: Path) -> None:
    state = StateRecords(tmp_path)
    for ended in ("fault", "stopped", "fault", "disk full", "lock lost", "error", "fault"):
        state.start(4, 3, {}, {})
        state.amend(ended=ended, reason="ZeroDivisionError: division by zero")
    with pytest.raises(PlumblineError, match=r"3.*step 4 without any progress.*ZeroDivisionError.*given"):
        state.start(4, 3, {}, {})
    (tmp_path / "fault.json").unlink()
    state.start(4, 3, {}, {})


def test_faults_at_other_steps_are_progress(tmp_path: Path) -> None:
    state = StateRecords(tmp_path)
    for step in (0, 0, 5, 5, 9):
        state.start(step, 3, {}, {})
        state.amend(ended="fault")
    state.start(9, 3, {}, {})


# Suspended


@pytest.mark.parametrize("number", range(7))
def test_a_trainer_suspended_inside_its_outputs(packs: Path, tmp_path: Path, undisturbed: Path, number: int) -> None:
    """Another trainer takes the lock and leaves its outputs between any two file operations of this one."""
    from plumbline.train import run_outputs

    theirs = {"metrics.parquet", "model.safetensors", "manifest.json", "outcome.json"}
    files: list[set[str]] = []
    calls = 0

    def take_over() -> None:
        nonlocal calls
        calls += 1
        if calls == number + 1:
            files.append({name for name in theirs if (tmp_path / "out" / name).exists()})
            holder(tmp_path / "state", token="other")
            (tmp_path / "out").mkdir(exist_ok=True)
            for name in theirs:
                (tmp_path / "out" / name).write_text("theirs")

    def before(module: Any, name: str) -> None:
        original = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            take_over()
            return original(*arguments, **options)

        patch.setattr(module, name, call)

    with pytest.MonkeyPatch.context() as patch:
        before(RunMetrics, "write")
        before(CheckpointSaver, "leave")
        before(run_outputs, "atomic_write_json")
        if hasattr(run_outputs, "fsync_directory"):
            before(run_outputs, "fsync_directory")
        with pytest.raises(PlumblineError, match=r"was taken over by"):
            train(run_spec(), settings(packs, tmp_path))
    assert files
    assert {name for name in theirs if (tmp_path / "out" / name).read_text() == "theirs"} == theirs
    assert not list((tmp_path / "out").glob(".*"))


# A, B, A


def test_state_belongs_to_its_run(packs: Path, interrupted: Path, undisturbed: Path, capfd) -> None:
    """A is stopped, B is trained in its place, B's configuration goes and A goes on where it was; then B's is back."""
    chosen, other = settings(packs, interrupted), run_spec(optimizer__learning_rate=0.002)
    assert train(other, chosen) == 0
    assert "(run_id changed); kept" in capfd.readouterr().err
    of_other = products(interrupted)
    shutil.rmtree(interrupted / "out")
    assert train(run_spec(), chosen) == 0
    stderr = capfd.readouterr().err
    assert "this run's state" in stderr and "resumed at step 7" in stderr
    assert products(interrupted) == products(undisturbed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module.TrainingLoop, "train_step", lambda self: pytest.fail("trained again"))
        assert train(other, chosen) == 0
    assert products(interrupted) == of_other
    assert len([name for name in names(interrupted) if name.startswith("state.")]) == 1


def test_runs_on_other_data_have_a_state_of_their_own(packs: Path, interrupted: Path, undisturbed: Path, capfd) -> None:
    assert train(run_spec(), settings(packs, interrupted, training_pack=packs / "validation.json")) == 0
    assert "(data_fingerprint changed)" in capfd.readouterr().err
    assert train(run_spec(), settings(packs, interrupted)) == 0
    assert "resumed at step 7" in capfd.readouterr().err and products(interrupted) == products(undisturbed)


def identity(run: str) -> dict[str, str]:
    return {"run_id": run * 16, "data_fingerprint": "d", "validation_fingerprint": "v"}


@pytest.mark.parametrize("next_one", ["a", "b"])
@pytest.mark.parametrize("moves", range(8))
def test_a_kill_while_runs_change_places_loses_nothing(tmp_path: Path, moves: int, next_one: str) -> None:
    """B comes to A's place and is killed before any move of a file; then either of them starts."""
    path = tmp_path / "s42"
    for run in ("b", "a"):
        path.mkdir(exist_ok=True)
        StateRecords(path).claim(identity(run))
        (path / f"step-{run}").write_text(run)
        (path / "starts.json").write_text(f'"{run}"')
    budget = moves

    def rename(source: Any, target: Any, original: Any = os.rename) -> None:
        nonlocal budget
        budget -= 1
        if budget < 0:
            raise KeyboardInterrupt
        original(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "rename", rename)
        if moves < 5:
            with pytest.raises(KeyboardInterrupt):
                StateRecords(path).claim(identity("b"))
        else:
            StateRecords(path).claim(identity("b"))
    for run in (next_one, "b" if next_one == "a" else "a", next_one):
        StateRecords(path).claim(identity(run))
        assert names(path) == ["run.json", "starts.json", f"step-{run}"]
        assert read(path / "starts.json") == run and read(path / "run.json")["run_id"] == run * 16
    assert len(names(tmp_path)) == 2


# The last update


@pytest.mark.parametrize("checkpoint_steps", [None, 1])
def test_a_last_update_that_is_no_numbers_diverges(packs: Path, tmp_path: Path, checkpoint_steps: int | None) -> None:
    """The loss and gradient of the last step are numbers, its update is not: no further step comes to notice."""
    spec, chosen = run_spec(), settings(packs, tmp_path, checkpoint_steps=checkpoint_steps)
    original = loop_module.TrainingLoop.train_step

    def overflow(self: loop_module.TrainingLoop) -> tuple[bool, bool]:
        result = original(self)
        if self.step == spec.train.steps:
            with torch.no_grad():
                next(self.parts.model.parameters()).view(-1)[3] = float("inf")
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_module.TrainingLoop, "train_step", overflow)
        assert train(spec, chosen) == 0
    outcome = read(tmp_path / "out/outcome.json")
    assert outcome["outcome"] == "diverged" and outcome["validation_loss"] is None
    assert outcome["reason"] == "step 12: weights that are not finite after its update"
    assert (outcome["step"], outcome["last_finite_step"]) == (12, 12) and outcome["weights_step"] in (0, 11)
    weights = load_file(tmp_path / "out/model.safetensors")
    assert all(torch.isfinite(value).all() for value in weights.values())
    # Evaluation and tables take it for what it is.
    finished = FinishedRun.read(tmp_path / "out")
    assert finished.outcome == "diverged" and finished.weights_sha256()
    shutil.copytree(tmp_path / "out", tmp_path / "work/runs" / spec.key)
    frames = finished_runs.load([ExpectedRun(key=spec.key, run_id=spec.run_id)], tmp_path / "work")
    row = frames.runs.loc[spec.key]
    assert (row.outcome, row.step, row.last_finite_step) == ("diverged", 12, 12) and np.isnan(row.validation_loss)
    assert _in_table6(frames, "base/baseline/s42") == ("diverged", 12, outcome["reason"])
    shutil.rmtree(tmp_path / "out")
    assert train(spec, chosen) == 0
    assert read(tmp_path / "out/outcome.json") == outcome


def _in_table6(frames: finished_runs.RunFrames, row: str) -> tuple[Any, ...]:
    """What the study's table of divergences states about a run."""
    table = table6(frames, study_config.load("transfer", "smoke"), PrintedNumbers.of("transfer"))
    return tuple(table.cell(row, column).value for column in ("outcome", "first_nan_step", "divergence_reason"))


def test_single_update_that_overflows_is_divergence_in_table(packs: Path, tmp_path: Path) -> None:
    """As it happens: loss and gradient are numbers, and the learning rate makes weights of them that are none."""
    wild = {"optimizer__learning_rate": 3e38, "optimizer__weight_decay": 3.0, "schedule__warmup_steps": 1}
    spec = run_spec(**wild, train__steps=1)
    assert train(spec, settings(packs, tmp_path, out=tmp_path / "work/runs" / spec.key)) == 0
    frames = finished_runs.load([ExpectedRun(key=spec.key, run_id=spec.run_id)], tmp_path / "work")
    reason = "step 1: weights that are not finite after its update"
    assert _in_table6(frames, "base/baseline/s42") == ("diverged", 1, reason)
    assert FinishedRun.read(tmp_path / "work/runs" / spec.key).model(), "evaluation can read what is left"


def test_a_last_loss_of_nan_diverges(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = RunMetrics.add_validation

    def no_number(self: RunMetrics, step: int, loss: float, *rest: Any) -> None:
        original(self, step, float("nan") if step == 12 else loss, *rest)

    monkeypatch.setattr(RunMetrics, "add_validation", no_number)
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    outcome = read(tmp_path / "out/outcome.json")
    assert (outcome["outcome"], outcome["weights_step"]) == ("diverged", 12)
    assert outcome["reason"] == "step 12: held-out loss nan after its update"


# Given again, and Ctrl-C


def test_outputs_given_again_say_what_the_run_was_made_with(packs: Path, tmp_path: Path, monkeypatch) -> None:
    from plumbline.core import provenance

    assert train(run_spec(), settings(packs, tmp_path, micro_batch=4)) == 0
    before = read(tmp_path / "out/manifest.json")
    shutil.rmtree(tmp_path / "out")
    monkeypatch.setattr(provenance, "list_packages", lambda: {"torch": "9"})
    assert train(run_spec(), settings(packs, tmp_path, micro_batch=2)) == 0
    after = read(tmp_path / "out/manifest.json")
    assert (after["micro_batch"], after["accumulation"]) == (4, 2)
    changed = {key for key in before if before[key] != after[key]}
    assert changed <= {"finished", "wall_seconds", "sha256_of_the_rest"}, changed


def test_values_that_nobody_needs_may_find_a_full_disk(packs: Path, tmp_path: Path, undisturbed: Path, capfd) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/scalars.jsonl").symlink_to("/dev/full")
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    assert products(tmp_path) == products(undisturbed)
    assert capfd.readouterr().err.count("ScalarsFile takes no more values ([Errno 28]") == 1


#: A shell that puts a command into the background has it ignore Ctrl-C, and what it starts as well.
in_the_foreground = pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN, reason="Ctrl-C is ignored: started in the background"
)


@in_the_foreground
def test_ctrl_c_saves_and_a_second_one_ends_at_once(packs: Path, tmp_path: Path) -> None:
    process = start_child(run_spec(train__steps=100000), settings(packs, tmp_path))
    progress = tmp_path / "state" / "progress.jsonl"
    deadline = time.monotonic() + 120
    while not (progress.exists() and '"step": 3,' in progress.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    process.join(120)
    process.kill()  # were it still there, it would train for hours
    assert process.exitcode == EXIT_RUN_AGAIN and list((tmp_path / "state").glob("step-*"))
    assert ends(tmp_path / "state") == ["stopped"]


@in_the_foreground
def test_a_second_ctrl_c_gives_no_traceback_and_is_no_kill(packs: Path, tmp_path: Path) -> None:
    """It comes while the checkpoint is written that the first one requested."""
    args = command(packs, tmp_path, run_spec(train__steps=100000).to_json())[3:]
    stderr_file = tmp_path / "said"
    process = PROCESSES.Process(target=of_a_terminal, args=([*args, "--report-every", "0.001s"], str(stderr_file)))
    process.start()
    for line in (" step 3/", "writing"):
        deadline = time.monotonic() + 120
        while not (stderr_file.exists() and line in stderr_file.read_text()) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGINT)
    process.join(120)
    process.kill()
    assert process.exitcode == -signal.SIGINT and "Traceback" not in stderr_file.read_text()
    assert ends(tmp_path / "state") == ["interrupted"] and not (tmp_path / "state/run_lock.json").exists()


@in_the_foreground
def test_the_second_ctrl_c_interrupts() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        stop = StopRequest().install()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_metrics_know_their_last_numbers() -> None:
    metrics = RunMetrics()
    assert metrics.last_finite_train() is None
    for step, loss, norm in ((1, 2.0, 1.0), (2, 1.5, np.inf), (3, np.nan, 1.0)):
        metrics.add_training(step, loss, norm, 0.1, step)
    metrics.add_validation(3, 1.0, 0.1, 3)
    assert metrics.last_finite_train()[:3] == (1, "train", 2.0)  # type: ignore[index]
