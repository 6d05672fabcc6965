"""Checkpoints that are written while steps are taken: the same bytes, one at a time, and no less sure to be whole."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.core.errors import PlumblineError
from plumbline.core.stop_request import StopRequest
from plumbline.model.distributed import RankGroup
from plumbline.train import loop as loop_module
from plumbline.train.batches.batch_prefetch import BatchReader
from plumbline.train.batches.micro_batches import MicroBatching
from plumbline.train.checkpoint import weight_files
from plumbline.train.checkpoint.background_saving import BackgroundSaving, CheckpointContents, HostCopies
from plumbline.train.checkpoint.checkpoint_folders import RollingCheckpoints, damage
from plumbline.train.checkpoint.training_state import SavedLoopState
from plumbline.train.monitoring.run_metrics import OnlineProbes, RunMetrics
from tests.model_specs import run_spec
from tests.train.small_runs import PROBES, products, read, settings, start_child, train

#: Seconds after which a test that would hang goes on, and fails.
LONG = 60


@pytest.fixture
def before_step(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], None]], None]:
    """Have something called with the number of each step before it is taken."""

    def install(call: Callable[[int], None]) -> None:
        original = loop_module.TrainingLoop.train_step

        def train_step(self: loop_module.TrainingLoop) -> tuple[bool, bool]:
            call(self.step + 1)
            return original(self)

        monkeypatch.setattr(loop_module.TrainingLoop, "train_step", train_step)

    return install


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Writers wait for `go` before they write tensors; `most` of them were at it at a time, `begun` in all."""
    state = SimpleNamespace(go=threading.Event(), most=0, now=0, begun=0)
    original = weight_files.write

    def write(*arguments: Any) -> None:
        state.now, state.begun = state.now + 1, state.begun + 1
        state.most = max(state.most, state.now)
        assert state.go.wait(LONG)
        original(*arguments)
        state.now -= 1

    monkeypatch.setattr(weight_files, "write", write)
    return state


def list_steps(state: Path) -> list[int]:
    return sorted(int(path.name[5:]) for path in state.glob("step-*"))


def contents(checkpoint: Path) -> dict[str, Any]:
    """All that a checkpoint's files state, to the byte, except for the time that training took."""
    files = {path.name: path.read_bytes() for path in checkpoint.iterdir() if path.suffix != ".json"}
    loop, metadata = read(checkpoint / "loop.json"), read(checkpoint / "metadata.json")
    del loop["seconds"], metadata["files"]["loop.json"], metadata["sha256"]
    return files | {"loop": loop, "metadata": metadata}


def test_steps_taken_meanwhile_change_no_byte(packs: Path, tmp_path: Path, probed: Path, gate, before_step) -> None:
    """The checkpoint after step 4 is not written before step 8 begins, the next one waits for it."""
    spec, state = run_spec(probes=PROBES), tmp_path / "beside/state"
    gate.go.set()
    assert train(spec, settings(packs, tmp_path / "once", checkpoint_steps=4, background_io=False)) == 0
    gate.go.clear()
    gate.most = gate.begun = 0
    there: list[list[int]] = []

    def notice(step: int) -> None:
        there.append(list_steps(state))
        if step == 8:
            assert gate.begun == 1
            gate.go.set()

    before_step(notice)
    assert train(spec, settings(packs, tmp_path / "beside", checkpoint_steps=4, background_io=True)) == 0
    # Whether the one after step 8 is written by the time that step 9 begins is the writer's affair.
    assert there[:8] == [[]] * 8 and 4 in there[8] and (gate.most, gate.begun) == (1, 3)
    for step in (4, 8, 12):
        first, other = (tmp_path / name / f"state/step-{step:07d}" for name in ("once", "beside"))
        assert damage(other) is None and contents(other) == contents(first)
    assert products(tmp_path / "beside") == products(probed)


def test_a_full_disk_ends_the_run_at_the_next_step(
    packs: Path, tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch, before_step
) -> None:
    """The second checkpoint finds no room, as the thread learns before step 6."""
    chosen = settings(packs, tmp_path, checkpoint_steps=2, background_io=True)
    original, full, steps = weight_files.write, threading.Event(), []

    def write(directory: Path, files: list[weight_files.TensorFile]) -> None:
        if directory.name == ".step-0000004":
            full.set()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        original(directory, files)

    def notice(step: int) -> None:
        steps.append(step)
        if step == 5:
            assert full.wait(LONG)
            for thread in threading.enumerate():
                if thread.name == "checkpoint writer":
                    thread.join(LONG)

    with monkeypatch.context() as patch:
        patch.setattr(weight_files, "write", write)
        before_step(notice)
        with pytest.raises(PlumblineError, match=r"no disk.*space"):
            train(run_spec(), chosen)
    assert steps[-1] in (4, 5) and list_steps(chosen.state) == [2] and not list(chosen.state.glob(".step-*"))
    (start,) = read(chosen.state / "starts.json")
    assert start["ended"] == "disk full"
    assert train(run_spec(), chosen) == 0 and products(tmp_path) == products(undisturbed)


@pytest.mark.parametrize("last", [4, 5])
def test_a_stop_waits_for_the_writer(
    packs: Path, tmp_path: Path, undisturbed: Path, gate, before_step, last: int
) -> None:
    """The checkpoint after step 4 is being written; asked to stop after it, there is nothing more to save."""
    stop = StopRequest()

    def ask(step: int) -> None:
        if step == last + 1:
            stop.requested = True
            threading.Timer(0.2, gate.go.set).start()

    before_step(ask)
    chosen = settings(packs, tmp_path, checkpoint_steps=4, background_io=True)
    assert train(run_spec(), chosen, stop) == EXIT_RUN_AGAIN
    newest = RollingCheckpoints(chosen.state, keep=3).find_newest()
    assert newest is not None and newest.step == last and gate.begun == last - 3
    before_step(lambda step: None)
    assert train(run_spec(), settings(packs, tmp_path)) == 0
    assert read(tmp_path / "out/manifest.json")["resumed_from"] == [last]
    assert products(tmp_path) == products(undisturbed)


def test_a_fault_of_training_does_not_cost_the_checkpoint(packs: Path, tmp_path: Path, gate, before_step) -> None:
    """It is there before the lock is given back."""

    def fail(step: int) -> None:
        if step == 6:
            threading.Timer(0.2, gate.go.set).start()
            raise ZeroDivisionError

    before_step(fail)
    chosen = settings(packs, tmp_path, checkpoint_steps=4, background_io=True)
    with pytest.raises(ZeroDivisionError):
        train(run_spec(), chosen)
    assert list_steps(chosen.state) == [4] and damage(chosen.state / "step-0000004") is None
    assert not (chosen.state / "run_lock.json").exists()


def test_killed_while_writing(packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    chosen = settings(packs, tmp_path, checkpoint_steps=3, background_io=True)
    process = start_child(run_spec(), chosen, {"DIE_WRITING": "6", "DIE_IN_STEP": "8"})
    process.join(LONG)
    assert process.exitcode == -signal.SIGKILL
    assert list_steps(chosen.state) == [3] and (chosen.state / ".step-0000006").is_dir()
    assert train(run_spec(), chosen) == 0
    assert read(tmp_path / "out/manifest.json")["resumed_from"] == [3]
    assert products(tmp_path) == products(undisturbed) and not list(chosen.state.glob(".step-*"))


def test_sharded_checkpoint_gets_its_name(tmp_path: Path, gate) -> None:
    """They ask one another after 1, 2, 4 ... steps, so that those who have written need no word from the slowest."""
    sums: list[list[float]] = []
    ranks: Any = SimpleNamespace(
        rank=0, device=torch.device("cpu"), leader=True, gather=lambda value: [value], barrier=lambda: None,
        broadcast=lambda value: value, sum=lambda values: sums.append(values) or values,
    )  # fmt: skip
    events: list[tuple[str, int, int]] = []
    progress: Any = SimpleNamespace(event=lambda kind, step, saved: events.append((kind, step, saved)))
    run_lock: Any = SimpleNamespace(check=lambda: None)
    checkpoints = RollingCheckpoints(tmp_path, keep=3)
    saving, rows = BackgroundSaving(checkpoints, ranks, run_lock, progress), torch.arange(6.0)
    file = weight_files.TensorFile(path=Path("shards/rank-00000.safetensors"), tensors={"model.a": rows})
    saved = CheckpointContents(
        step=7, diverged=False, sharded=True, files=[file], metadata={"finite": True},
        state=SavedLoopState(metrics=RunMetrics(), online=OnlineProbes(run_spec()), loop="{}"),
    )  # fmt: skip
    saving.begin(saved, background=True)
    rows.zero_()
    for step in range(8, 14):
        saving.note_progress(step)
    assert sums == [[1.0]] * 3 and saving.under_way and not checkpoints.has(7)
    gate.go.set()
    saving.let_end()
    saving.note_progress(14)
    assert len(sums) == 3, "it is not yet time"
    saving.note_progress(15)
    saving.let_end()
    saving.note_progress(16)
    assert sums[3:] == [[0.0]] and events == [("checkpoint", 16, 7)] and not saving.under_way
    whole = checkpoints.find_newest()
    assert whole is not None and whole.step == 7
    shard = (whole.path / "shards/rank-00000.safetensors").read_bytes()
    assert shard.endswith(torch.arange(6.0).numpy().tobytes())


def test_the_next_batch_is_read_ahead() -> None:
    spec, read_by = run_spec(), []

    class Failing:
        sequences = 180

        def rows(self, indices: np.ndarray) -> np.ndarray:
            read_by.append(threading.current_thread() is threading.main_thread())
            if len(read_by) == 5:
                raise OSError(errno.ESTALE, "gone")
            return np.repeat(indices[:, None], 3, axis=1)

    ranks, batching = RankGroup(rank=0, world=1, device=torch.device("cpu")), MicroBatching.derive(8, 4, 1)
    pack: Any = Failing()
    batches = BatchReader(pack, spec, batching, ranks, ahead=True)
    ahead = [batches.take(step) for step in (1, 2)]
    with pytest.raises(OSError, match="gone"):
        batches.take(3)
    assert read_by == [True, True, False, False, False]
    at_once = BatchReader(pack, spec, batching, ranks, ahead=False)
    for step, rows in enumerate(ahead, start=1):
        assert len(rows) == 2 and all(map(torch.equal, rows, at_once.take(step)))
    assert [len(value) for value in batches.take(spec.train.steps)] == [4, 4], "and out of turn, as after a resume"
    assert read_by[5:] == [True] * 6, "nothing is read beyond the last step"


def test_a_copy_has_twelve_bytes_a_parameter(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and two moments of AdamW's; of each tensor its count of steps comes on top."""
    original, sizes = HostCopies.copy_tensors, []

    def copy_files(self: HostCopies, files: list[weight_files.TensorFile]) -> Any:
        copies, wait = original(self, files)
        (parameters,) = (
            sum(map(torch.numel, each.tensors.values())) for each in copies if each.path.name == "model.safetensors"
        )
        sizes.append(sum(value.nbytes for each in copies for value in each.tensors.values()) / parameters)
        return copies, wait

    monkeypatch.setattr(HostCopies, "copy_tensors", copy_files)
    assert train(run_spec(), settings(packs, tmp_path, checkpoint_steps=6, background_io=True)) == 0
    assert sizes and sizes == pytest.approx([12] * len(sizes), rel=0.01)


@pytest.fixture
def absent_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What copies from a GPU call of it does nothing."""
    event = SimpleNamespace(record=lambda stream: None, synchronize=lambda: None)
    monkeypatch.setattr(torch.cuda, "Event", lambda: event)
    for name in ("current_stream", "set_device"):
        monkeypatch.setattr(torch.cuda, name, lambda device: None)


@pytest.mark.parametrize("there", [True, False])
def test_a_checkpoint_waits_for_memory(there: bool, monkeypatch: pytest.MonkeyPatch, absent_gpu: None) -> None:
    """It gets none in addition, and is told where the thread could get none."""
    may_go, by_main = threading.Event(), []

    def pin(value: torch.Tensor) -> torch.Tensor:
        by_main.append(threading.current_thread() is threading.main_thread())
        if not by_main[-1]:
            may_go.wait(10)
            if not there:
                raise RuntimeError("no pinned memory")
        return torch.empty_like(value)

    monkeypatch.setattr("plumbline.train.checkpoint.background_saving._allocate_pinned", pin)
    tensors = {"first": torch.ones(3), "second": torch.zeros(2)}
    copies, files = HostCopies(torch.device("cuda")), [weight_files.TensorFile(path=Path("x"), tensors=tensors)]
    copies.prepare(files)
    threading.Timer(0.1, may_go.set).start()
    if there:
        ((copied,), _) = copies.copy_tensors(files)
        assert all(torch.equal(copied.tensors[name], value) for name, value in tensors.items())
        assert by_main == [False, False]
    else:
        with pytest.raises(RuntimeError, match="no pinned memory"):
            copies.copy_tensors(files)


def test_pinned_memory_is_got_once(
    packs: Path, tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch, absent_gpu: None
) -> None:
    """Memory of a processor stands in for what a GPU copies into; the run, and its checkpoints, are the same."""
    got: list[bool] = []

    def pin(value: torch.Tensor) -> torch.Tensor:
        got.append(threading.current_thread() is threading.main_thread())
        return torch.empty_like(value)

    def begun(self: HostCopies, device: torch.device) -> None:
        original(self, torch.device("cuda"))

    original = HostCopies.__init__
    monkeypatch.setattr(HostCopies, "__init__", begun)
    monkeypatch.setattr("plumbline.train.checkpoint.background_saving._allocate_pinned", pin)
    assert train(run_spec(), settings(packs, tmp_path, checkpoint_steps=3, background_io=True)) == 0
    with safe_open(tmp_path / "state/step-0000012/model.safetensors", "pt") as weights:
        parameters = len(weights.keys())
    assert got == [False] * 4 * parameters, "weights, two moments and a count of steps, for all four checkpoints"
    assert products(tmp_path) == products(undisturbed)
