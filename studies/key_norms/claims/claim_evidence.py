"""Reads from the key_norms study's runs what its claims are about; every value notes the runs that gave it."""

from __future__ import annotations

import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.claims import claim_registry
from plumbline.results.claims.claim_registry import MissingRun
from plumbline.results.runs.finished_runs import MISSING, RunFrames
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Study

from ..norm_curves import (
    AS_PUBLISHED,
    ENTROPY,
    KEY_NORM,
    NO_DECAY,
    SCALE,
    StartAndFinalValues,
    decay,
    end,
    groups,
    layers_of,
    spec_of,
)


class Evidence(claim_registry.ClaimEvidence):
    """Accessors raise `MissingRun` where a run is missing or diverged: the claim then has no value here."""

    def __init__(self, frames: RunFrames, study: Study, published: PrintedNumbers) -> None:
        super().__init__(frames, study, published)
        self.groups = {group.name: group for group in groups(layers_of(study))}

    @property
    def spec(self) -> RunSpec:
        """The spec of the paper's run under this preset."""
        found = spec_of(self.study, AS_PUBLISHED)
        if found is None:
            raise MissingRun(MISSING, f"{SCALE}/{AS_PUBLISHED}")
        return found

    def end(self, probe: str, arm: str = AS_PUBLISHED) -> StartAndFinalValues:
        """What a probe read of an arm at both ends of its training."""
        found = end(self.frames, arm, probe)
        if found.word:
            raise MissingRun(found.word, found.runs[0] if found.runs else f"{SCALE}/{arm}")
        self.used |= set(found.runs)
        return found

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

    def beside(self, group: str) -> dict[str, float]:
        """What a reader must see beside a group's key norm: what decay alone leaves of it, and the same layers trained
        without decay (where that run is there)."""
        shown = {"decay_alone": self.start() * float(decay(self.spec)[-1])}
        other = end(self.frames, NO_DECAY, KEY_NORM)
        if not other.word:
            self.used |= set(other.runs)
            shown["without_decay"] = self.of_group(other.final, group)
        return shown
