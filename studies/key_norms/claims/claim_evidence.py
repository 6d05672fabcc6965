"""Reads from the key_norms study's runs what its claims are about; every value notes the runs that gave it."""

from __future__ import annotations

import pandas as pd

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.claims import claim_registry
from plumbline.results.claims.claim_registry import MissingRun
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Study

from ..norm_curves import (
    AS_PUBLISHED,
    ENTROPY,
    KEY_NORM,
    NO_DECAY,
    SCALE,
    StartAndFinalValues,
    count_layers,
    decay,
    find_spec,
    groups,
    read_ends,
)


class Evidence(claim_registry.ClaimEvidence):
    """Accessors raise `MissingRun` where a run is missing or diverged: the claim then has no value here."""

    def __init__(self, frames: RunFrames, study: Study, published: PrintedNumbers) -> None:
        super().__init__(frames, study, published)
        self.groups = {group.name: group for group in groups(count_layers(study))}
        self._read: dict[tuple[str, str], StartAndFinalValues] = {}

    @property
    def spec(self) -> RunSpec:
        """The spec of the paper's run under this preset."""
        spec = find_spec(self.study, AS_PUBLISHED)
        if spec is None:
            raise MissingRun(MISSING, f"{SCALE}/{AS_PUBLISHED}")
        return spec

    def end(self, probe: str, arm: str = AS_PUBLISHED) -> StartAndFinalValues:
        """What a probe read of an arm at both ends of its training."""
        ends = self._ends(arm, probe)
        if ends.word:
            raise MissingRun(ends.word, ends.runs[0] if ends.runs else f"{SCALE}/{arm}")
        self.used |= set(ends.runs)
        return ends

    def of_group(self, values: pd.Series, group: str) -> float:
        """The mean over a group's layers."""
        return float(values[list(self.groups[group].layers)].mean())

    def start(self) -> float:
        """The key norm before the first step, the mean over layers."""
        return float(self.end(KEY_NORM).start.mean())

    def norm(self, group: str) -> float:
        """A group's final key norm in the paper's run."""
        return self.of_group(self.end(KEY_NORM).final, group)

    def entropies(self) -> pd.Series:
        """Final attention entropy by layer in the paper's run."""
        return self.end(ENTROPY).final

    def reference_norms(self, group: str) -> dict[str, float]:
        """What a reader must see next to a group's key norm: what decay alone leaves of it, and the same layers trained
        without decay (where that run is there)."""
        norms = {"decay_alone": self.start() * float(decay(self.spec)[-1])}
        other = self._ends(NO_DECAY, KEY_NORM)
        if not other.word:
            self.used |= set(other.runs)
            norms["without_decay"] = self.of_group(other.final, group)
        return norms

    def _ends(self, arm: str, probe: str) -> StartAndFinalValues:
        """Ends of an arm's curves: a dozen claims ask for the same ones."""
        if (arm, probe) not in self._read:
            self._read[arm, probe] = read_ends(self.frames, arm, probe)
        return self._read[arm, probe]
