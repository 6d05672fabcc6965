"""Loads what was saved of a run: the one door through which a run is resumed.

`hold_run_lock` keeps other trainers away. `RunResumer.find` makes the state directory this run's (state of another run
moves aside), refuses a run that was given up, finds the newest whole checkpoint and sets damaged ones aside, and
records the start. `RunResumer.put_back` fills weights, optimizer, training state and interventions from it.
`RunDirectory` names what lies in a state directory, for both doors: records, rolling and probe checkpoints.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from plumbline.core import provenance
from plumbline.core.errors import PlumblineError
from plumbline.core.stop_request import StopRequest
from plumbline.model.distributed import RankGroup, RankLost, all_finite
from plumbline.model.numerics import float32_error
from plumbline.specs.spec import RunSpec
from plumbline.train.checkpoint import weight_files
from plumbline.train.checkpoint.checkpoint_folders import (
    CompleteCheckpoint,
    ProbeCheckpoints,
    RollingCheckpoints,
    how_to_restart,
)
from plumbline.train.checkpoint.run_lock import RunLock, RunLockError
from plumbline.train.checkpoint.state_records import COUNTED, StateRecords
from plumbline.train.checkpoint.training_state import TrainingState, require_fit
from plumbline.train.disk_faults import describe_disk_error, explain_read_errors, guard_write, is_full
from plumbline.train.interventions import Intervention
from plumbline.train.run_optimizer import RunOptimizer
from plumbline.train.trainer_settings import TrainerSettings


class RunDirectory:
    """Names what lies in the state directory of one run, as one rank sees it.

    Only the rank with the lock changes it.

    Attributes:
        whose: metadata that identifies the run of a checkpoint or a probe point, compared at every start: with another
            value it is another run's.
        made_with: the running code and torch, compared too: a probe point with another value is set aside. What is only
            told goes into `CheckpointSaver.save`.
        started: whether this process has recorded a start, which it then ends.
    """

    def __init__(
        self,
        spec: RunSpec,
        settings: TrainerSettings,
        ranks: RankGroup,
        run_lock: RunLock | None,
        fingerprints: dict[str, str],
    ) -> None:
        """`fingerprints` are those of the run's packs, by their keys in the metadata of checkpoints."""
        self.spec, self.settings, self.ranks, self.run_lock = spec, settings, ranks, run_lock
        self.whose = {"run_id": spec.run_id, **fingerprints}
        self.made_with = provenance.identify_code()
        self.records = StateRecords(settings.state)
        fits = partial(require_fit, spec=spec)
        self.checkpoints = RollingCheckpoints(settings.state, settings.keep_checkpoints, fits)
        self.points = ProbeCheckpoints(settings.state, spec)
        self.started = False

    @property
    def circumstances(self) -> dict[str, Any]:
        """The settings, ranks and code under which a run that was given up is not started again."""
        return self.settings.circumstances() | {"ranks": self.ranks.world} | self.made_with

    def end(self, ending: str, step: int, facts: dict[str, Any]) -> None:
        """Record how this process's start has ended, with `facts` of it; a failure to write them is ignored."""
        if not self.started or self.run_lock is None:
            return
        with contextlib.suppress(PlumblineError, OSError):
            self.run_lock.check()
            self.records.amend(ended=ending, ended_at=step, **facts)

    def end_by(self, error: BaseException, step: int, facts: dict[str, Any], *, in_loop: bool) -> None:
        """Record that this process's start ended by an error.

        An error in the loop counts towards giving the run up, unless it is the disk's or the lock's, or another rank
        was killed.
        """
        if isinstance(error, KeyboardInterrupt):
            ending = "interrupted"
        elif is_full(error):
            ending = "disk full"
        elif describe_disk_error(error, self.settings.state) is not None:
            ending = "disk error"
        elif isinstance(error, RunLockError):
            ending = "lock lost"
        elif isinstance(error, RankLost):
            ending = "rank lost"
        else:
            ending = COUNTED if in_loop else "error"
        self.end(ending, step, facts | {"reason": f"{type(error).__name__}: {error}"})


@contextlib.contextmanager
def hold_run_lock(settings: TrainerSettings, stop: StopRequest) -> Iterator[RunLock]:
    """Hold the run's lock during a ``with`` block, so that no other trainer works in its state directory.

    Raises:
        RunLockError: another trainer still has it after the time to wait.
        StopRequested: asked to stop while waiting.
        DiskFull, UnreadableFile: the disk has something against it.
    """
    mine = RunLock(settings.state, limit=settings.stale_lock_seconds, wait=settings.lock_wait_seconds, stop=stop)
    with contextlib.ExitStack() as stack:
        with explain_read_errors(settings.state):
            guard_write(settings.state, lambda: stack.enter_context(mine))
        yield mine


class RunResumer:
    """Finds where one run is to continue, and restores it.

    Without a lock nothing is claimed, and the run is at its start.
    """

    def __init__(
        self,
        spec: RunSpec,
        settings: TrainerSettings,
        ranks: RankGroup,
        run_lock: RunLock | None,
        fingerprints: dict[str, str],
    ) -> None:
        """`fingerprints`: those of the run's packs, by their keys in the metadata of checkpoints."""
        self.directory = RunDirectory(spec, settings, ranks, run_lock, fingerprints)
        self._checkpoint: CompleteCheckpoint | None = None

    @property
    def step(self) -> int:
        """The step that the run continues from: how many updates its checkpoint has seen."""
        return 0 if self._checkpoint is None else self._checkpoint.step

    @property
    def has_taken_all_steps(self) -> bool:
        """Whether earlier starts have taken all of the run's steps."""
        if self._checkpoint is None:
            return False
        return self._checkpoint.step == self.directory.spec.train.steps or self._checkpoint.metadata["diverged"]

    @property
    def starts(self) -> list[dict[str, Any]]:
        """The starts of the run so far, one entry each, oldest first."""
        return self.directory.records.starts

    def find(self) -> None:
        """Make the state directory this run's, and find the checkpoint to continue from (a collective).

        Raises:
            RunBlocked: the run may not be started again.
            PlumblineError: no checkpoint is whole, a probe point is lost, or nothing says whose state this is.
            DiskFull, UnreadableFile: the disk has something against it; nothing is given up for it.
        """
        ranks = self.directory.ranks
        self._checkpoint = ranks.broadcast(self._claim_on_disk() if ranks.leader else None)

    def put_back(
        self, state: TrainingState, model: nn.Module, optimizer: RunOptimizer, interventions: Sequence[Intervention]
    ) -> Path | None:
        """Restore everything from the checkpoint that was found, whoever saved it on however many ranks.

        Returns its path. None if there is no checkpoint.
        """
        if self._checkpoint is None:
            return None
        path, ranks = self._checkpoint.path, self.directory.ranks
        with explain_read_errors(path):
            assert self._checkpoint.metadata["run_id"] == self.directory.spec.run_id, f"{path} is another run's"
            weight_files.load(path, model, optimizer)
            state.put_back(path, ranks, interventions)
        return path

    def make_finite(self, model: nn.Module, step: int) -> int:
        """Make sure that all weights are finite, and return the step that they are of (a collective).

        Finite ones stay as they are after `step`; else those of the newest checkpoint that are finite, or of the start,
        are put back.
        """
        ranks = self.directory.ranks
        if all_finite(model, ranks):
            return step
        checkpoint = ranks.broadcast(self.directory.checkpoints.newest_finite() if ranks.leader else None)
        if checkpoint is not None:
            weight_files.load(checkpoint.path, model, None)
            return checkpoint.step
        weight_files.initialise_again(model, self.directory.spec.init_seed)
        return 0

    def give_up(self, reason: str) -> None:
        """Record why the run may not be started again under the same circumstances."""
        if self.directory.ranks.leader:
            self.directory.records.give_up(reason, self.directory.circumstances)

    def _claim_on_disk(self) -> CompleteCheckpoint | None:
        """Claim the state directory as `_claim` does, with errors of the disk turned into messages."""
        place = self.directory.settings.state
        with explain_read_errors(place):
            checkpoint: CompleteCheckpoint | None = guard_write(place, self._claim)
        return checkpoint

    def _claim(self) -> CompleteCheckpoint | None:
        """Under the lock: make the state directory this run's, and find the checkpoint to continue from."""
        directory, spec, place = self.directory, self.directory.spec, self.directory.settings.state
        identity = {"key": spec.key, "preset": spec.preset, "steps": spec.train.steps, "spec": spec.to_dict()}
        directory.records.claim({"run_id": spec.run_id} | identity | directory.whose)
        directory.records.refuse_if_given_up(directory.circumstances)
        checkpoint = directory.checkpoints.find_newest()
        if checkpoint is None and directory.checkpoints.has_any():
            faults = "; ".join(directory.checkpoints.faults())
            raise PlumblineError(
                f"{place}: none of its checkpoints is intact ({faults}); restore a copy, or {how_to_restart(place)}"
            )
        lost_points = (
            directory.points.list_lost(checkpoint.step, checkpoint.metadata["diverged"])
            if checkpoint is not None
            else []
        )
        if lost_points:
            raise PlumblineError(
                f"{place}: the weights of its probe point at step {lost_points[0]} are lost, and only "
                f"training can make them: restore a copy, or {how_to_restart(place)}"
            )
        self._record_start(checkpoint)
        return checkpoint

    def _record_start(self, checkpoint: CompleteCheckpoint | None) -> None:
        directory, spec = self.directory, self.directory.spec
        records, step = directory.records, 0 if checkpoint is None else checkpoint.step
        threads, last_threads = torch.get_num_threads(), [entry["threads"] for entry in records.starts][-1:]
        if last_threads and last_threads != [threads]:
            print(
                f"{spec.key}: {threads} threads where there were {last_threads[0]}: the same up to rounding, "
                "not to the bit",
                file=sys.stderr,
            )
        if step < spec.train.steps:
            device = directory.ranks.device
            details = (
                provenance.describe_code()
                | provenance.describe_machine(device, float32_error(device))
                | directory.made_with
            )
            details |= {"threads": threads, "resumed": checkpoint is not None}
            details |= {"packages": provenance.list_packages(), "lock_sha256": provenance.lock_sha256()}
            recorded = len(records.starts)
            try:
                records.start(step, directory.settings.max_starts_without_progress, details, directory.circumstances)
            except OSError as error:  # the record may be in its place, and the sync of its folder have failed
                directory.started = len(records.starts) > recorded
                directory.end_by(error, step, {}, in_loop=False)
                raise
            directory.started = True
        elif checkpoint is not None and not records.starts:
            records.restore_start(checkpoint.metadata)
