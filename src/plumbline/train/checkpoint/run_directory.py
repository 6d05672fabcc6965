"""Names what lies in the state directory of one run, for both doors: records, rolling and probe checkpoints."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.runtime import provenance
from plumbline.runtime.distributed import RankGroup, RankLost
from plumbline.specs.spec import RunSpec
from plumbline.train.checkpoint import check_fit
from plumbline.train.checkpoint.probe_checkpoints import ProbeCheckpoints
from plumbline.train.checkpoint.rolling_checkpoints import RollingCheckpoints
from plumbline.train.checkpoint.run_lock import RunLock, RunLockError
from plumbline.train.checkpoint.state_records import COUNTED, StateRecords
from plumbline.train.disk_faults import in_words, is_full
from plumbline.train.trainer_settings import TrainerSettings


class RunDirectory:
    """Names what lies in the state directory of one run, as one rank sees it.

    Only the rank with the lock changes it.

    Attributes:
        whose: what says of a checkpoint or a probe point which run's it is.
        made_with: the code and torch at work.
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
        self.made_with = provenance.made_with()
        self.records = StateRecords(settings.state)
        fits = partial(check_fit.require, spec=spec)
        self.checkpoints = RollingCheckpoints(settings.state, settings.keep_checkpoints, fits)
        self.points = ProbeCheckpoints(settings.state, spec)
        self.started = False

    @property
    def circumstances(self) -> dict[str, Any]:
        """The settings, ranks and code under which a run that was given up is not started again."""
        return self.settings.circumstances() | {"ranks": self.ranks.world} | self.made_with

    def end(self, how: str, step: int, facts: dict[str, Any]) -> None:
        """Record how this process's start has ended, with `facts` of it; a failure to write them is ignored."""
        if not self.started or self.run_lock is None:
            return
        with contextlib.suppress(PlumblineError, OSError):
            self.run_lock.check()
            self.records.amend(ended=how, ended_at=step, **facts)

    def end_by(self, error: BaseException, step: int, facts: dict[str, Any], *, in_loop: bool) -> None:
        """Record that this process's start ended by an error.

        An error in the loop counts towards giving the run up, unless it is the disk's or the lock's, or another rank
        was killed.
        """
        if isinstance(error, KeyboardInterrupt):
            how = "interrupted"
        elif is_full(error):
            how = "disk full"
        elif in_words(error, self.settings.state) is not None:
            how = "disk error"
        elif isinstance(error, RunLockError):
            how = "lock lost"
        elif isinstance(error, RankLost):
            how = "rank lost"
        else:
            how = COUNTED if in_loop else "error"
        self.end(how, step, facts | {"reason": f"{type(error).__name__}: {error}"})
