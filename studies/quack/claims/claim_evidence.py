"""Reads from the quack study's runs what its claims are about; every value notes the runs that gave it.

A diverged run is a finding here and not a gap: it is worse than any loss. A run that is missing is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import PaperClaim, PrintedNumbers
from plumbline.results.claims import claim_registry
from plumbline.results.claims.claim_checkers import ComputedValues, Verdict
from plumbline.results.claims.claim_registry import MissingRun
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..run_grid import ATTENTION, COMPETITIVE, DIFFERENT, RunGrid

#: Both kinds of attention.
BOTH = tuple(ATTENTION)


class Evidence(claim_registry.ClaimEvidence):
    """Accessors raise `MissingRun` where a run is missing: the claim then has no value here."""

    def __init__(self, frames: RunFrames, study: Study, published: PrintedNumbers) -> None:
        super().__init__(frames, study, published)
        self.grid = RunGrid(frames, study)

    def require_run(self, key: str | None, name: str = "a run") -> str:
        """A run that is there; it is used from here on."""
        if key is None or self.grid.outcome(key) == MISSING:
            raise MissingRun(MISSING, key or name)
        self.used.add(key)
        return key

    def require_best_run(self, scale: str, method: str, eta: float) -> str:
        """The run that stands for a method at a base rate; every tau of it must be there."""
        for key in self.grid.keys(scale, method, eta).values():
            self.require_run(key)
        return self.require_run(self.grid.find_best_run(scale, method, eta), f"{scale}/{method} at {eta:g}")

    def loss_at(self, scale: str, method: str, eta: float) -> float:
        """Its final held-out loss; infinite if it diverged."""
        return self.loss(self.require_best_run(scale, method, eta))

    def loss(self, key: str) -> float:
        """A run's final held-out loss; infinite if it diverged."""
        value = self.grid.loss(self.require_run(key))
        return math.inf if math.isnan(value) else value

    def lowest_loss(self, scale: str, methods: Iterable[str]) -> float:
        """The lowest final held-out loss over base rates, taus and some methods; infinite if all diverged."""
        return min(self.loss_at(scale, method, eta) for method in methods for eta in self.grid.etas)

    def stable(self, scale: str, method: str, eta: float) -> bool:
        """Whether the run that stands for a method at a base rate is stable."""
        return self.grid.stable(self.require_best_run(scale, method, eta))

    def is_usable(self, scale: str, method: str, eta: float) -> bool:
        """Whether a base rate is usable (interpretation `usable`)."""
        return not self.explain_unusable(scale, method, eta)

    def explain_unusable(self, scale: str, method: str, eta: float) -> str:
        """Why a base rate is not usable: the run is not stable, or worse than at the rate below by a difference; empty
        where it is usable."""
        if not self.stable(scale, method, eta):
            return self.grid.trouble(self.require_best_run(scale, method, eta))
        below = [other for other in self.grid.etas if other < eta]
        worse = self.loss_at(scale, method, eta) - self.loss_at(scale, method, below[-1]) if below else 0.0
        return f"{worse:.3g} nats above the loss at {below[-1]:g}" if worse > DIFFERENT else ""

    def highest_usable(self, scale: str, method: str) -> float:
        """The highest usable base rate; 0 where none is."""
        return max((eta for eta in self.grid.etas if self.is_usable(scale, method, eta)), default=0.0)

    def largest_logits(self, key: str) -> tuple[float, float]:
        """The largest logit of all heads before the first step, and the largest ever after."""
        curve = self.grid.largest_logit(self.require_run(key))
        if len(curve) < 2:
            raise MissingRun("not read", key)
        return float(curve.iloc[0]), float(curve.iloc[1:].max())


def gap(first: float, other: float) -> float:
    """How much the second loss is above the first; a loss that is infinite is a run that diverged.

    Raises:
        MissingRun: both diverged.
    """
    if math.isinf(first) and math.isinf(other):
        raise MissingRun("diverged", "every run of both sides")
    return other - first


def in_each(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """Rule: `holds_in` is true in both kinds of attention: reproduced; in one: partly; in none: not reproduced."""
    holds_by_scale = dict(zip(BOTH, measured.values["holds_in"], strict=True))
    where = [ATTENTION[scale] for scale, holds in holds_by_scale.items() if holds]
    verdict: Verdict = "reproduced" if all(holds_by_scale.values()) else "partly" if where else "not reproduced"
    return verdict, f"it holds in {' and '.join(where) or 'neither'}"


def lower(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """Rule: every `gap` is above what counts as a difference: reproduced; none of them is: not reproduced."""
    gaps = [float(value) for value in measured.values["gap"]]
    apart = sum(value > DIFFERENT for value in gaps)
    verdict: Verdict = "reproduced" if apart == len(gaps) else "partly" if apart else "not reproduced"
    return verdict, f"lower by more than {DIFFERENT:g} nats in {apart} of {len(gaps)}"


def slightly_worse(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """Rule: `gap` is between 0 and what still competes: reproduced; below 0 by no difference: partly; above, or on the
    other side by a difference: not reproduced."""
    above = float(measured.values["gap"])
    if above > COMPETITIVE:
        return "not reproduced", f"{above:.3f} nats above are more than the {COMPETITIVE:g} that still compete"
    if above < -DIFFERENT:
        return "not reproduced", f"better by {-above:.3f} nats, which is the other order"
    return ("reproduced", "competitive and worse") if above > 0 else ("partly", "competitive, and not worse")


#: A statement about one kind of attention.
Statement = Callable[[str], bool]


def try_each(statement: Statement, **numbers: object) -> ComputedValues:
    """What `in_each` judges."""
    return ComputedValues(values={"holds_in": [statement(scale) for scale in BOTH]}, shown=numbers)
