"""Defines the terms of a comparison, which are stated before the numbers are looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from plumbline.core.errors import PlumblineError

#: The share of verdicts on methods that do nothing which may be wrong, one-sided: what a claim is held to (the
#: two-sided 0.05 of papers), and what a loop that runs again what it keeps may keep a candidate at.
CLAIM, LOOP = 0.025, 0.05
#: The level that decides unless another is named.
ALPHA = CLAIM
#: The chance with which "resolves" and "would find" are meant.
POWER = 0.8
#: The gain beyond the minimum that would be worth having where none is named, in sigma of one run.
TARGET_GAIN_SIGMAS = 2.0
#: Values and sigmas beyond these have squares that no float64 holds.
LARGEST, SMALLEST = 1e300, 1e-290


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """The terms of every verdict, on numbers as on runs that are still to be made.

    Attributes:
        higher: whether higher is better.
        alpha: the promised share of errors, one-sided: of the tries against this baseline together, or of a candidate.
        minimum_gain: a gain must exceed this, in the metric's units; in a search, a change was kept if it did.
    """

    higher: bool
    alpha: float
    minimum_gain: float = 0.0

    @property
    def sign(self) -> int:
        """The sign that turns a difference of values into a gain: 1 if higher is better, else -1."""
        return 1 if self.higher else -1


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparisonTerms(Terms):
    """The terms of a comparison of numbers that are there; gains and sigma are in the units of the metric.

    Attributes:
        claimed_gain: what somebody says that it gains; None if there is no such claim.
        target_gain: the gain that would be worth having: a method that is not better is discarded if the runs rule
            this out; None for `TARGET_GAIN_SIGMAS` sigma beyond the minimum gain.
        sigma: the noise of one run, known from elsewhere; None if the numbers are to tell it.
        sigma_runs: how many runs `sigma` is from; None if it is taken as known.
        paired: compare seed by seed.
        allow_diverged: how many of the baseline's seeds may have diverged or crashed; a method may lose as many as the
            baseline did.
        as_good_as: the margin as it was requested, where the question is whether a method is as good within it;
            `minimum_gain` is then minus the margin.
        margin_sigmas: the margin in sigma of one run, where it is named so; `with_margin` makes a minimum gain of it.
    """

    alpha: float = ALPHA
    claimed_gain: float | None = None
    target_gain: float | None = None
    sigma: float | None = None
    sigma_runs: int | None = None
    paired: bool = False
    allow_diverged: int = 0
    as_good_as: str = ""
    margin_sigmas: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 0.5:
            raise PlumblineError(f"--alpha {self.alpha:g} must lie between 0 and 0.5; it is one-sided")
        if self.as_good_as and (self.minimum_gain > 0 or self.claimed_gain is not None or self.target_gain is not None):
            raise PlumblineError(
                f"--as-good-as {self.as_good_as} asks for no gain; leave out --minimum-gain, --claimed-gain and "
                "--target-gain, or it"
            )
        if not (0 <= self.minimum_gain <= LARGEST or (self.as_good_as and self.minimum_gain >= -LARGEST)):
            raise PlumblineError(f"--minimum-gain {self.minimum_gain:g} must be 0 or more, in the metric's units")
        for flag, gain in (("--claimed-gain", self.claimed_gain), ("--target-gain", self.target_gain)):
            if gain is not None and not self.minimum_gain < gain <= LARGEST:
                raise PlumblineError(f"{flag} {gain:g} must be above {self.minimum_gain:g}")
        if self.claimed_gain is not None and self.target_gain is not None:
            raise PlumblineError("--claimed-gain is the gain that is ruled out or not; leave out --target-gain, or it")
        if self.sigma is not None and not SMALLEST < self.sigma < LARGEST:
            raise PlumblineError(f"--sigma {self.sigma:g} must be above 0, in the metric's units")
        if self.sigma_runs is not None and (self.sigma is None or self.sigma_runs < 2):
            raise PlumblineError("--sigma-runs is the number of runs, two or more, that --sigma was computed from")
        if self.paired and self.sigma is not None:
            raise PlumblineError("--paired takes its noise from the differences; leave out --sigma, or --paired")
        if self.allow_diverged < 0:
            raise PlumblineError(f"--allow-diverged {self.allow_diverged} must be a number of seeds, 0 or more")

    def with_margin(self, sigma: float) -> ComparisonTerms:
        """Return the terms with the margin in the metric's units, where it is named in sigma."""
        return self if self.margin_sigmas is None else replace(self, minimum_gain=-self.margin_sigmas * sigma)

    @property
    def asked_gain(self) -> float | None:
        """The gain that is asked after in the metric's units, claimed or worth having; None where none was named."""
        return self.target_gain if self.claimed_gain is None else self.claimed_gain

    def target_gain_at(self, sigma: float) -> float:
        """The gain that is asked after, in the metric's units; `TARGET_GAIN_SIGMAS` of this sigma if none was named."""
        if self.as_good_as:  # what is not to be missed is a method that does nothing
            return 0.0
        return self.minimum_gain + TARGET_GAIN_SIGMAS * sigma if self.asked_gain is None else self.asked_gain

    @property
    def sigma_freedom(self) -> float:
        """Degrees of freedom of a sigma that was given; infinite if it is taken as known."""
        return math.inf if self.sigma_runs is None else self.sigma_runs - 1

    @property
    def test(self) -> str:
        """The name of the test that decides, as the ledger records it."""
        margin = f", as good within {self.as_good_as}" if self.as_good_as else ""
        return self.test_of_gain + margin

    @property
    def test_of_gain(self) -> str:
        """The name of the test, whatever the gain is compared with."""
        if self.paired:
            return "paired t"
        if self.sigma is None:
            return "pooled t"
        return f"t with sigma {self.sigma!r} of {self.sigma_runs or 'any number of'} runs"
