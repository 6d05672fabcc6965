"""Writes a run's checkpoints while it trains, one at a time.

What is written is a copy in the host's memory, so that steps go on changing the tensors meanwhile. A thread writes,
syncs, hashes and renames (`plumbline.train.checkpoint.background_thread`); what goes wrong there is raised in the loop,
at the next step at the latest. A kill at any moment leaves a temporary directory, which the next start clears, or a
whole checkpoint.

A model in one piece is the leader's to write, and no other rank is asked. Of a sharded one every rank writes its rows,
and only when all have done so may the checkpoint get its name: the ranks ask one another 1, 2, 4, 8 ... steps after
they began, which costs a run a dozen collectives a checkpoint and delays the name by no more than the writing took. No
thread takes part in a collective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.runtime.distributed import RankGroup
from plumbline.train.checkpoint import weight_files
from plumbline.train.checkpoint.background_thread import BackgroundThread
from plumbline.train.checkpoint.host_copies import HostCopies
from plumbline.train.checkpoint.rolling_checkpoints import RollingCheckpoints
from plumbline.train.checkpoint.run_lock import RunLock
from plumbline.train.checkpoint.training_state import SavedLoopState
from plumbline.train.disk_faults import guarded
from plumbline.train.monitoring.progress import TrainingProgress


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointContents:
    """Everything that goes into a checkpoint; none of it changes any more.

    `files`: those that this rank writes. Of a rank that does not lead nothing else is read.
    """

    step: int
    diverged: bool
    sharded: bool
    files: list[weight_files.TensorFile]
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
        self._steps = self._ask_after = 0
        self._done: int | None = None

    @property
    def under_way(self) -> bool:
        """Whether a checkpoint is being written and has no name yet, as far as this rank knows."""
        return self._shards is not None or self._writer.busy

    def prepare(self, files: list[weight_files.TensorFile]) -> None:
        """Get ready for checkpoints of such files, in another thread, as far as that takes time on this device."""
        self._copies.prepare(files)

    def begin(self, saved: CheckpointContents, *, beside: bool) -> None:
        """Begin to write a checkpoint, and wait until it is there; with `beside`, copy it now and return at once.

        Raises:
            Exception: as `wait`, without `beside`.
        """
        copies = self._copies.copied(saved.files) if beside else (saved.files, lambda: None)
        saved, there = replace(saved, files=copies[0]), copies[1]
        if saved.sharded:
            self._begin_shards(saved, there)
        elif self.run_lock is not None:
            self._start(lambda: self._whole(saved, there))
        if not beside:
            self.wait(saved.step)

    def note_progress(self, step: int) -> None:
        """Check, before the step after `step`, how the writing goes, and name a checkpoint that is done.

        Never waits for the disk.

        Raises:
            Exception: as `wait`.
        """
        if self._shards is not None:
            self._steps += 1
            if self._steps < self._ask_after:
                return
            self._ask_after *= 2
            if not self.ranks.sum([float(self._writer.busy)])[0]:
                self._name()
        elif not self._writer.busy:
            self._settled(step)

    def wait(self, step: int) -> None:
        """Wait until every checkpoint that was begun is there, on all ranks.

        `step`: the updates that the loop has made.

        Raises:
            DiskFull, RunLockError, OSError, RuntimeError: it could not be written.
        """
        if self._shards is not None:
            self._name()
        self._settled(step)
        self.ranks.barrier()

    def let_end(self) -> None:
        """Wait until this rank writes no more, before its lock is given back because of another error.

        Nothing is raised.
        """
        try:
            self._writer.wait()
        except Exception as error:
            self.progress.say(f"a checkpoint could not be written either: {error}")

    def _begin_shards(self, saved: CheckpointContents, there: Callable[[], None]) -> None:
        temporary: Path | None = None
        if self.run_lock is not None:
            self.run_lock.check()
            temporary = guarded(self.checkpoints.directory, lambda: self.checkpoints.begin(saved.step))
        temporary = self.ranks.broadcast(temporary)
        assert temporary is not None
        self._shards, self._steps, self._ask_after = (saved, temporary), 0, 1
        self._writer.start(lambda: self._tensors(temporary, saved, there))

    def _start(self, work: Callable[[], None]) -> None:
        self._writer.start(lambda: guarded(self.checkpoints.directory, work))

    def _settled(self, step: int) -> None:
        """Wait for the thread, and tell of what it has finished."""
        self._writer.wait()
        done, self._done = self._done, None
        if done is not None:
            self.progress.event("checkpoint", step, saved=done)

    def _name(self) -> None:
        """Wait for every rank's rows, and let the leader's thread do the rest."""
        assert self._shards is not None
        (saved, temporary), self._shards = self._shards, None
        directory = self.checkpoints.directory
        guarded(directory, lambda: weight_files.on_every_rank(self.ranks, self._writer.wait))
        if self.run_lock is not None:
            self._start(lambda: self._finish(temporary, saved))

    # By the thread

    def _whole(self, saved: CheckpointContents, there: Callable[[], None]) -> None:
        assert self.run_lock is not None
        self.run_lock.check()
        temporary = self.checkpoints.begin(saved.step)
        self._tensors(temporary, saved, there)
        self._finish(temporary, saved)

    def _tensors(self, temporary: Path, saved: CheckpointContents, there: Callable[[], None]) -> None:
        there()
        weight_files.write(temporary, saved.files)

    def _finish(self, temporary: Path, saved: CheckpointContents) -> None:
        assert self.run_lock is not None
        saved.state.write(temporary)
        self.checkpoints.finish(temporary, saved.step, saved.metadata, saved.diverged, check=self.run_lock.check)
        self._done = saved.step
