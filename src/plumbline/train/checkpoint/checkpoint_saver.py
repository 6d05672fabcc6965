"""Saves a running run: the one door through which anything of it is written into its state directory.

Rolling checkpoints, at once or while further steps are taken; the weights at probe points; how the start went. The
outputs get their weights here as well. Only the rank that has the lock writes (of sharded tensors each rank its own),
and it makes sure that the lock is still its own before anything gets its name.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from plumbline.core.run_files import MODEL, POINTS
from plumbline.model.distributed import all_finite, gather_weights, is_sharded
from plumbline.train.checkpoint import weight_files
from plumbline.train.checkpoint.background_saving import BackgroundSaving, CheckpointContents
from plumbline.train.checkpoint.resume_run import RunDirectory
from plumbline.train.checkpoint.training_state import TrainingState
from plumbline.train.disk_faults import guard_write
from plumbline.train.interventions import Intervention
from plumbline.train.monitoring.progress import TrainingProgress
from plumbline.train.run_optimizer import RunOptimizer


class CheckpointSaver:
    """Saves one running run. Methods that are collectives are called by every rank at the same step."""

    def __init__(
        self,
        directory: RunDirectory,
        *,
        model: nn.Module,
        optimizer: RunOptimizer,
        interventions: Sequence[Intervention],
        progress: TrainingProgress,
    ) -> None:
        self.directory, self.model, self.optimizer, self.interventions = directory, model, optimizer, interventions
        ranks, settings = directory.ranks, directory.settings
        self._background = BackgroundSaving(directory.checkpoints, ranks, directory.run_lock, progress)
        default = 15.0 if ranks.device.type == "cpu" else 600.0
        self._every_seconds = default if settings.checkpoint_seconds is None else settings.checkpoint_seconds
        self._saved_at = time.monotonic()
        self._prepared = not settings.background_io

    def check(self) -> None:
        """Make sure, before anything is written, that the lock is still this trainer's.

        Raises:
            RunLockError: it was taken over.
        """
        assert self.directory.run_lock is not None
        self.directory.run_lock.check()

    # Rolling checkpoints

    def due(self, step: int) -> bool:
        """Whether a checkpoint is due after `step` by the step's number, which every rank knows at once."""
        every = self.directory.settings.checkpoint_steps
        return every is not None and step % every == 0

    def is_overdue(self) -> bool:
        """Whether rank 0 wants a checkpoint because enough time has passed since the last one."""
        if not self.directory.ranks.leader or self.directory.settings.checkpoint_steps is not None:
            return False
        return time.monotonic() - self._saved_at >= self._every_seconds and not self._background.under_way

    def save(self, state: TrainingState, *, background: bool = False) -> None:
        """Write a checkpoint of `state`, unless there is one of its step (a collective).

        It is there on return; with `background` it may still be written while further steps are taken.

        Raises:
            Exception: as `wait`, of this checkpoint or of the one before.
        """
        directory, ranks = self.directory, self.directory.ranks
        diverged = state.divergence is not None
        self.wait(state.step)
        if ranks.broadcast(directory.checkpoints.has(state.step, diverged)):
            return
        finite = all_finite(self.model, ranks)
        loop_state = state.snapshot(ranks, self.interventions)
        metadata = {
            **directory.whose,
            "finite": finite,
            "diverged": diverged,
            "ranks": ranks.world,
            "strategy": directory.settings.strategy,
            **directory.made_with,
        }
        saved = CheckpointContents(
            step=state.step,
            diverged=diverged,
            sharded=is_sharded(self.model),
            files=weight_files.files(self.model, self.optimizer, ranks),
            state=loop_state,
            metadata=metadata,
        )
        self._background.begin(saved, background=background)
        self._saved_at = time.monotonic()

    def note_progress(self, step: int) -> None:
        """Check, before the step after `step`, how the writing goes; never waits for the disk (a collective).

        What a checkpoint will need is got ready as soon as a step has made the optimizer's state.

        Raises:
            Exception: as `wait`.
        """
        self._background.note_progress(step)
        if not self._prepared and self.optimizer.tensors():
            self._prepared = True
            self._background.prepare(weight_files.files(self.model, self.optimizer, self.directory.ranks))

    def wait(self, step: int) -> None:
        """Wait until every checkpoint that was begun is there, on all ranks (a collective).

        `step`: the updates that the loop has made.

        Raises:
            DiskFull, RunLockError, OSError, RuntimeError: it could not be written.
        """
        self._background.wait(step)

    def let_end(self) -> None:
        """Wait until this rank writes no more, before its lock is given back because of another error.

        Nothing is raised.
        """
        self._background.let_end()

    # Weights that stay

    def point_due(self, step: int) -> bool:
        """Whether the weights after `step` are a probe point, which is kept for good."""
        return self.directory.points.due(step)

    def keep_point(self, step: int) -> None:
        """Keep the weights after `step` for good, where it is a probe point (a collective)."""
        directory, ranks = self.directory, self.directory.ranks
        points, run_lock = directory.points, directory.run_lock
        if not points.due(step):
            return
        if ranks.broadcast(ranks.leader and points.has(step, directory.made_with)):
            return
        weights = gather_weights(self.model, ranks)
        if run_lock is not None:
            run_lock.check()
            metadata = {**directory.whose, **directory.made_with}
            write = partial(weight_files.write_weights, tensors=weights)
            keep = partial(points.keep, step, write, metadata, run_lock.check)
            guard_write(points.checkpoints.directory, keep, state=directory.settings.state)
        ranks.barrier()

    def leave(self, outputs: Path, weights: dict[str, torch.Tensor], last: int, completed: bool) -> None:
        """Put the run's weights, and those of its probe points up to the step `last`, into a folder of outputs.

        Raises:
            PlumblineError: a probe point is not as it was written.
        """
        weight_files.write_weights(outputs / MODEL, weights)
        self.directory.points.leave(outputs / POINTS, last, completed)

    # How the start went

    def note(self, **facts: Any) -> None:
        """Add facts to the record of the start that this process began, if it began one."""
        if self.directory.started:
            guard_write(self.directory.settings.state, lambda: self.directory.records.amend(**facts))
