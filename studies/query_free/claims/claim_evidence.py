"""Reads what the query_free study's claims are about; every value notes the runs that gave it.

How near is near: losses match within `SAME` percent (interpretation `same_loss`), and a percentage is met within as
much; a level of loss within a twentieth, since nothing is printed of the held-out text."""

from __future__ import annotations

import math
from functools import cached_property

import pandas as pd

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.claims import claim_registry
from plumbline.results.claims.claim_registry import MissingRun
from plumbline.results.claims.claim_tolerances import factor, near
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.spec import RunSpec
from plumbline.specs.study_config import Study

from .. import basis_transfer_results, theorem_checks
from ..run_values import BASELINE, SAME, SCALE, ParameterCounts, RunValues, count_parameters, find_spec

LEVEL, PERCENT = factor(1.05), near(SAME)


class Evidence(claim_registry.ClaimEvidence):
    """Accessors raise `MissingRun` where a run gave no value: the claim then has none here."""

    def __init__(self, frames: RunFrames, study: Study, published: PrintedNumbers) -> None:
        super().__init__(frames, study, published)
        self.values = RunValues(frames, study)

    @cached_property
    def basis_transfer(self) -> pd.DataFrame | None:
        """What the measurement says at its end, by width; None if it was not made."""
        return basis_transfer_results.finals(self.frames)

    def spec(self, method: str) -> RunSpec:
        """A method's run at the paper's own size."""
        return find_spec(theorem_checks.load_paper(self.study.code), method)

    def counts(self, method: str) -> ParameterCounts:
        """Its parameters there."""
        return count_parameters(self.spec(method).model)

    def loss(self, method: str) -> float:
        """The final held-out loss of a method's run.

        Raises:
            MissingRun: the run is missing or diverged.
        """
        value, word = self.values.loss(method), self.values.word(method)
        self.used |= set(self.values.keys(method)) if word != MISSING else set()
        if math.isnan(value):
            raise MissingRun(word or MISSING, self.values.key(method) or f"{SCALE}/{method}")
        return value

    def percent(self, method: str, other: str = BASELINE) -> float:
        """By how much a method's loss is above another one's, in percent of that."""
        return 100 * (self.loss(method) / self.loss(other) - 1)
