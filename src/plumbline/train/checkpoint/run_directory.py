"""Names what lies in the state directory of one run, for both doors: records, rolling and probe checkpoints."""

from __future__ import annotations

from functools import partial
from typing import Any

from plumbline.runtime import provenance
from plumbline.runtime.distributed import Ranks
from plumbline.specs.spec import RunSpec
from plumbline.train.checkpoint import fit
from plumbline.train.checkpoint.probe_checkpoints import ProbeCheckpoints
from plumbline.train.checkpoint.rolling import RollingCheckpoints
from plumbline.train.checkpoint.run_lock import RunLock
from plumbline.train.checkpoint.state import StateDirectory
from plumbline.train.settings import Settings


class RunDirectory:
    """Names what lies in the state directory of one run, as one rank sees it.

    Only the rank with the lock changes it.

    Attributes:
        whose: what says of a checkpoint or a probe point which run's it is.
        made_with: the code and torch at work.
        started: whether this process has recorded a start, which it then ends.
    """

    def __init__(
        self, spec: RunSpec, settings: Settings, ranks: Ranks, run_lock: RunLock | None, fingerprints: dict[str, str]
    ) -> None:
        """`fingerprints` are those of the run's packs, by their keys in the metadata of checkpoints."""
        self.spec, self.settings, self.ranks, self.run_lock = spec, settings, ranks, run_lock
        self.whose = {"run_id": spec.run_id, **fingerprints}
        self.made_with = provenance.made_with()
        self.records = StateDirectory(settings.state)
        self.checkpoints = RollingCheckpoints(settings.state, settings.keep, partial(fit.require, spec=spec))
        self.points = ProbeCheckpoints(settings.state, spec)
        self.started = False

    @property
    def circumstances(self) -> dict[str, Any]:
        """The settings, ranks and code under which a run that was given up is not started again."""
        return self.settings.circumstances() | {"ranks": self.ranks.world} | self.made_with
