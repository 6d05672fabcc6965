"""Holds what the checks of comparability look at: the evidence of both arms, and what was asked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plumbline.verdict.evidence import Evidence, RunEvidence


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedArms:
    """A candidate and what it is compared with.

    Attributes:
        evidence: of both arms, as their source knows it; its `runs` are by arm, then by seed.
        baseline, candidate: the two arms, as keys of `evidence.runs` (or of its summaries).
        models: of two models that are compared by item: arm -> what its source says of it.
        may_differ: words of the names of printed settings that may differ.
        labels: arm -> its name for a reader, where that differs.
        higher: whether higher is better.
        paired: whether the differences at each seed are tested, so that the spread of an arm does not enter.
        equal: the measures (`plumbline.verdict.evidence.MEASURES`) that have to be equal, or there is no verdict.
        guards: measures and metrics that may not get worse -> their limits (`plumbline.verdict.guard_limit`).
        confirmed: whether fresh runs agreed with the ones that were examined; None where none were made.
        tries: the number of candidates so far against this baseline, this one among them.
    """

    evidence: Evidence
    baseline: str
    candidate: str
    models: Mapping[str, Evidence] = field(default_factory=dict)
    may_differ: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    higher: bool = False
    paired: bool = False
    equal: tuple[str, ...] = ()
    guards: Mapping[str, str] = field(default_factory=dict)
    confirmed: bool | None = None
    tries: int = 1

    def runs_of(self, arm: str) -> Sequence[RunEvidence]:
        """List the runs of an arm, those without a value among them; empty of printed means."""
        return tuple(self.evidence.runs.get(arm, {}).values())

    def label(self, arm: str) -> str:
        """Name an arm as a reader knows it."""
        return self.labels.get(arm, arm)
