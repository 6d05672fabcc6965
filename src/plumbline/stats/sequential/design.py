"""Declares what is fixed before the first run of a candidate: how many runs, which level, when it may be kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from plumbline.core.errors import PlumblineError

#: `bank`: all baseline runs first. `interleaved`: the bank, then candidate and baseline runs in turn, the candidate's
#: first. `paired`: both arms at each seed, and their differences are tested; there is no bank.
Plan = Literal["bank", "interleaved", "paired"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SequentialDesign:
    """What a sequential comparison of a candidate with its baseline has fixed before it sees a value.

    Attributes:
        bank: baseline runs that are there before the first look (of no account in pairs).
        most: candidate runs at most, and as many looks.
        alpha: one-sided error for each candidate, over all its looks.
        plan: in which order the arms are run.
        first_keep: a keep needs so many candidate runs; what earlier looks would spend is spent there.
        target_gain_sigmas: the gain beyond the least one, in sigma, whose loss the futility rule bounds; None: no
            such rule.
        futility: error of that rule at `target_gain_sigmas`, over all looks.
        allow_wider: whether the candidate may spread more than the baseline. Where its variance is beyond the median of
            what equal spreads give, and Welch's test is stricter than Student's, t is then the one that has Welch's p.
    """

    bank: int
    most: int
    alpha: float = 0.05
    plan: Plan = "bank"
    first_keep: int = 2
    target_gain_sigmas: float | None = 2.0
    futility: float = 0.10
    allow_wider: bool = False

    def __post_init__(self) -> None:
        """Refuse what no boundary exists for.

        Raises:
            PlumblineError: names the field, and what it may be.
        """
        least = 0 if self.plan == "paired" else 1
        if self.plan not in ("bank", "interleaved", "paired"):
            raise PlumblineError(f"plan = {self.plan!r}: must be bank, interleaved or paired")
        if self.bank < least:
            raise PlumblineError(f"bank = {self.bank}: at least {least} baseline run is needed before the first look")
        if not 1 <= self.first_keep <= self.most:
            raise PlumblineError(
                f"first_keep = {self.first_keep}, most = {self.most}: need 1 <= first_keep <= most candidate runs"
            )
        if not 0 < self.alpha < 0.5:
            raise PlumblineError(f"alpha = {self.alpha}: must lie between 0 and 0.5")
        if self.target_gain_sigmas is not None and not (
            math.isfinite(self.target_gain_sigmas) and self.target_gain_sigmas > 0
        ):
            raise PlumblineError(
                f"target_gain_sigmas = {self.target_gain_sigmas}: must be a gain above 0, in sigma, or None"
            )
        if self.allow_wider and self.plan == "paired":
            raise PlumblineError("allow_wider = True: in pairs the spread of an arm does not enter; leave it out")
        if not 0 < self.futility < 1:
            raise PlumblineError(f"futility = {self.futility}: must lie between 0 and 1")
        if self.df(self.most) < 1:
            raise PlumblineError(
                f"most = {self.most}: with bank = {self.bank} there would never be two runs of one arm"
            )

    def baseline_runs(self, look: int) -> int:
        """Baseline runs that are there at a look."""
        return {"bank": self.bank, "interleaved": self.bank + look - 1, "paired": look}[self.plan]

    def df(self, look: int) -> float:
        """Degrees of freedom of sigma at a look."""
        return float(look - 1 if self.plan == "paired" else self.baseline_runs(look) + look - 2)

    def information(self, look: int) -> float:
        """1 / the variance of the mean difference at a look, in units of sigma (in pairs: that of the differences)."""
        return information(self.baseline_runs(look), look, self.plan)


def information(baseline: int, candidate: int, plan: Plan) -> float:
    """1 / the variance of the difference of the arms' means, in units of sigma (in pairs: that of the differences)."""
    return float(candidate) if plan == "paired" else 1 / (1 / baseline + 1 / candidate)
