"""Writes a run's checkpoints while it trains, one at a time.

What is written is a copy in the host's memory (`HostCopies`), so that steps go on changing the tensors meanwhile. A
thread writes, syncs, hashes and renames (`BackgroundThread`); what goes wrong there is raised in the loop, at the next
step at the latest. A kill at any moment leaves a temporary directory, which the next start clears, or a whole
checkpoint.

A model in one piece is the leader's to write, and no other rank is asked. Of a sharded one every rank writes its rows,
and only when all have done so may the checkpoint get its name: the ranks ask one another 1, 2, 4, 8 ... steps after
they began, which costs a run a dozen collectives a checkpoint and delays the name by no more than the writing took. No
thread takes part in a collective.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from plumbline.model.distributed import RankGroup
from plumbline.train.checkpoint import weight_files
from plumbline.train.checkpoint.checkpoint_folders import RollingCheckpoints
from plumbline.train.checkpoint.run_lock import RunLock
from plumbline.train.checkpoint.training_state import SavedLoopState
from plumbline.train.checkpoint.weight_files import TensorFile
from plumbline.train.disk_faults import guard_write
from plumbline.train.monitoring.progress import TrainingProgress


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointContents:
    """Everything that goes into a checkpoint; none of it changes any more.

    `files`: those that this rank writes. Of a rank that does not lead nothing else is read.
    """

    step: int
    diverged: bool
    sharded: bool
    files: list[TensorFile]
    state: SavedLoopState
    metadata: dict[str, Any]


class BackgroundSaving:
    """Writes the checkpoints of one run in the background. All methods are called by every rank at the same step."""

    def __init__(
        self, checkpoints: RollingCheckpoints, ranks: RankGroup, run_lock: RunLock | None, progress: TrainingProgress
    ) -> None:
        self.checkpoints, self.ranks, self.run_lock, self.progress = checkpoints, ranks, run_lock, progress
        self._writer = BackgroundThread("checkpoint writer")
        self._copies = HostCopies(ranks.device)
        self._shards: tuple[CheckpointContents, Path] | None = None
        self._steps_waited = self._ask_after = 0
        self._written_step: int | None = None

    @property
    def under_way(self) -> bool:
        """Whether a checkpoint is being written and has no name yet, as far as this rank knows."""
        return self._shards is not None or self._writer.busy

    def prepare(self, files: list[TensorFile]) -> None:
        """Get ready for checkpoints of such files, in another thread, as far as that takes time on this device."""
        self._copies.prepare(files)

    def begin(self, saved: CheckpointContents, *, background: bool) -> None:
        """Begin to write a checkpoint, and wait until it is there; with `background`, copy it now and return at once.

        Raises:
            Exception: as `wait`, without `background`.
        """
        copies = self._copies.copy_tensors(saved.files) if background else (saved.files, lambda: None)
        saved, wait_for_copies = replace(saved, files=copies[0]), copies[1]
        if saved.sharded:
            self._begin_shards(saved, wait_for_copies)
        elif self.run_lock is not None:
            self._start(lambda: self._write_whole(saved, wait_for_copies))
        if not background:
            self.wait(saved.step)

    def note_progress(self, step: int) -> None:
        """Check, before the step after `step`, how the writing goes, and name a checkpoint that is done.

        Never waits for the disk.

        Raises:
            Exception: as `wait`.
        """
        if self._shards is not None:
            self._steps_waited += 1
            if self._steps_waited < self._ask_after:
                return
            self._ask_after *= 2
            if not self.ranks.sum([float(self._writer.busy)])[0]:
                self._finish_shards()
        elif not self._writer.busy:
            self._report_finished(step)

    def wait(self, step: int) -> None:
        """Wait until every checkpoint that was begun is there, on all ranks.

        `step`: the updates that the loop has made.

        Raises:
            DiskFull, RunLockError, OSError, RuntimeError: it could not be written.
        """
        if self._shards is not None:
            self._finish_shards()
        self._report_finished(step)
        self.ranks.barrier()

    def let_end(self) -> None:
        """Wait until this rank writes no more, before its lock is given back because of another error.

        Nothing is raised.
        """
        try:
            self._writer.wait()
        except Exception as error:
            self.progress.say(f"a checkpoint could not be written either: {error}")

    def _begin_shards(self, saved: CheckpointContents, wait_for_copies: Callable[[], None]) -> None:
        temporary: Path | None = None
        if self.run_lock is not None:
            self.run_lock.check()
            temporary = guard_write(self.checkpoints.directory, lambda: self.checkpoints.begin(saved.step))
        temporary = self.ranks.broadcast(temporary)
        assert temporary is not None
        self._shards, self._steps_waited, self._ask_after = (saved, temporary), 0, 1
        self._writer.start(lambda: self._write_tensors(temporary, saved, wait_for_copies))

    def _start(self, work: Callable[[], None]) -> None:
        self._writer.start(lambda: guard_write(self.checkpoints.directory, work))

    def _report_finished(self, step: int) -> None:
        """Wait for the thread, and tell of what it has finished."""
        self._writer.wait()
        written_step, self._written_step = self._written_step, None
        if written_step is not None:
            self.progress.event("checkpoint", step, saved=written_step)

    def _finish_shards(self) -> None:
        """Wait for every rank's rows, and let the leader's thread do the rest."""
        assert self._shards is not None
        (saved, temporary), self._shards = self._shards, None
        directory = self.checkpoints.directory
        guard_write(directory, lambda: weight_files.on_every_rank(self.ranks, self._writer.wait))
        if self.run_lock is not None:
            self._start(lambda: self._finish(temporary, saved))

    # By the thread

    def _write_whole(self, saved: CheckpointContents, wait_for_copies: Callable[[], None]) -> None:
        assert self.run_lock is not None
        self.run_lock.check()
        temporary = self.checkpoints.begin(saved.step)
        self._write_tensors(temporary, saved, wait_for_copies)
        self._finish(temporary, saved)

    def _write_tensors(self, temporary: Path, saved: CheckpointContents, wait_for_copies: Callable[[], None]) -> None:
        wait_for_copies()
        weight_files.write(temporary, saved.files)

    def _finish(self, temporary: Path, saved: CheckpointContents) -> None:
        assert self.run_lock is not None
        saved.state.write(temporary)
        self.checkpoints.finish(temporary, saved.step, saved.metadata, saved.diverged, check=self.run_lock.check)
        self._written_step = saved.step


class BackgroundThread:
    """Runs work in a thread. The work takes no part in collectives and touches nothing that training changes.

    The thread is a daemon: a process that is told to end at once (the second Ctrl-C) does not wait for the disk, and
    what was half written is a temporary directory, as after a kill.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Whether the thread is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, work: Callable[[], None]) -> None:
        """Start `work` in the thread as soon as the work before it has ended.

        Raises:
            Exception: what the work before it raised, which nobody has fetched yet.
        """
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(work,), name=self.name, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until no work is under way.

        Raises:
            Exception: what the work raised, as it was; once.
        """
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failure = error


class HostCopies:
    """Copies the tensors of one run's checkpoints into the host's memory, one checkpoint at a time.

    From a GPU they go into pinned memory, which takes seconds to get where a checkpoint has some ten gigabytes. A
    thread gets it while the first steps are taken, and every checkpoint uses it again.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._memory: dict[tuple[str, str], torch.Tensor] = {}
        self._thread = BackgroundThread("pinned memory")

    def prepare(self, files: list[TensorFile]) -> None:
        """Begin to get the memory for tensors like these, in a thread, where it is to be pinned."""
        if self.device.type == "cuda":
            self._thread.start(lambda: self._reserve(files))

    def copy_tensors(self, files: list[TensorFile]) -> tuple[list[TensorFile], Callable[[], None]]:
        """Copy the tensors of files, whose copies before these nobody reads any more.

        Returns the copies, and a function that waits until they are there. From a GPU they are copied in the order of
        its work, so that the caller need not wait.

        Raises:
            RuntimeError: the memory could not be had.
        """
        if self.device.type != "cuda":
            return [
                _replace_tensors(file, {name: _clone(value) for name, value in file.tensors.items()}) for file in files
            ], _copies_are_ready
        self._thread.wait()
        self._reserve(files)
        copies = [
            _replace_tensors(file, {
                name: self._memory[str(file.path), name].copy_(value, non_blocking=True)
                for name, value in file.tensors.items()
            })
            for file in files
        ]  # fmt: skip
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(self.device))
        return copies, event.synchronize

    def _reserve(self, files: list[TensorFile]) -> None:
        """Hold memory for each tensor of files, and for no other."""
        torch.cuda.set_device(self.device)  # a thread's own is the first one
        old_memory, self._memory = self._memory, {}
        for file in files:
            for name, value in file.tensors.items():
                memory = old_memory.get((str(file.path), name))
                fits = memory is not None and (memory.shape, memory.dtype) == (value.shape, value.dtype)
                self._memory[str(file.path), name] = memory if fits else _allocate_pinned(value)


def _replace_tensors(file: TensorFile, tensors: dict[str, torch.Tensor]) -> TensorFile:
    return replace(file, tensors=tensors)


def _clone(value: torch.Tensor) -> torch.Tensor:
    return value.clone(memory_format=torch.contiguous_format)


def _allocate_pinned(value: torch.Tensor) -> torch.Tensor:
    return torch.empty(value.shape, dtype=value.dtype, pin_memory=True)


def _copies_are_ready() -> None:
    """Wait for copies that were made at once."""
