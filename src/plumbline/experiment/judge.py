"""Judges a method against a baseline: one test of the difference of two means, and the words for its result.

The test is Student's t with the noise pooled over the seeds of the method and of the baseline,

    t = (gain - minimum gain) / (sigma sqrt(1/n + 1/n')),  n + n' - 2 degrees of freedom, two-sided,

because it is the only one of the usual ones that keeps its promise with the few seeds that pretraining has. If the
method does nothing, its runs and the baseline's are drawn from one law; if that is normal, t follows Student's law
exactly, whatever the numbers of seeds. With one seed of the method it *is* the prediction t of
`plumbline.stats.noise_floor`. Welch's test has no value for one seed, and is approximate, and weak, for three; it is
shown beside, since a method that spreads wider than the baseline is outside what is assumed. The z of the papers
takes mean and sigma as known: with three seeds of a reference it crowns far more often than it says.

Pairing is a choice that is made beforehand (`ComparisonTerms.paired`) and not derived from seed numbers being the same:
with three seeds it leaves two degrees of freedom of four, and finds a gain of three sigma with 50 % chance instead of
78 %, unless the same seed makes both runs alike (from a correlation of about 0.5 on). Alike, they make the pooled test
stricter than promised, never laxer. Where the same seeds were run with both, the paired figures stand beside.

Corrected is by Bonferroni: p times the ledger's tries. It needs no other p-value than this, so that a page can be
recomputed from what it prints, and its power is known in a closed form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd
from scipy import stats

from plumbline.core.errors import PlumblineError, nearest
from plumbline.experiment.comparison_terms import POWER, ComparisonTerms
from plumbline.experiment.power import ComparisonDesign, seeds_each
from plumbline.stats import (
    PairedResult,
    WelchResult,
    noise_floor,
    paired_difference,
    two_sided_normal,
    two_sided_t,
    welch,
)

#: Seed -> value, of one method.
Seeds = Mapping[str, float]


class MethodVerdict(StrEnum):
    """The verdict on a method, in the words of a page."""

    SURVIVES = "survives"
    FAILS = "does not survive"
    OPEN = "cannot be decided"


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineComparison:
    """The judgement of a method against the baseline. Gains count upwards when better, in the units of the metric.

    Attributes:
        n, n_baseline: seeds that decided (the pairs, twice, if paired).
        mean, mean_baseline: of those seeds.
        sigma: standard deviation of one run (of a difference, if paired).
        freedom: its degrees of freedom; infinite if it was given as known.
        gain: how much better the method's mean is.
        z: gain / sigma.
        t, p: of the test that decides, against the minimum gain.
        p_face: the same taking sigma as known.
        tries: what p is multiplied by; p_corrected is that, at most 1.
        low, high: ends of the gain's interval at 1 - alpha / tries.
        outcome: what is said.
        design: for the power of the comparison.
        method, baseline: every seed that was given, as it was given.
    """

    name: str
    n: int
    n_baseline: int
    mean: float
    mean_baseline: float
    sigma: float
    freedom: float
    gain: float
    z: float
    t: float
    p: float
    p_face: float
    tries: int
    p_corrected: float
    low: float
    high: float
    outcome: MethodVerdict
    design: ComparisonDesign
    terms: ComparisonTerms
    method: Seeds
    baseline: Seeds

    @property
    def resolved(self) -> float:
        """The smallest gain, in units of the metric, that these seeds find with a chance of POWER."""
        return self.terms.minimum_gain + self.sigma * self.design.resolved(POWER)

    @property
    def seeds_to_decide(self) -> int | None:
        """Seeds of each side that find a gain as large as the seen one.

        None if there is no gain, or they would be too many.
        """
        return self.seeds_for(self.gain)

    def seeds_for(self, gain: float) -> int | None:
        """Compute how many seeds of each side find a gain of this size (units of the metric) with a chance of POWER."""
        beyond = gain - self.terms.minimum_gain
        return seeds_each(beyond, self.sigma, self.design, POWER, paired=self.terms.paired)

    @property
    def prediction(self) -> tuple[float, float] | None:
        """t and p of the prediction test, which takes sigma from the baseline alone.

        None if the baseline has no spread.
        """
        floor = noise_floor(_sorted(self.baseline))
        if not floor.usable:
            return None
        gain = self.terms.sign * float(_sorted(self.method).mean() - floor.mean) - self.terms.minimum_gain
        t = gain / (floor.sigma * math.sqrt(1 / len(self.method) + 1 / floor.n))
        return t, float(two_sided_t(t, floor.n - 1))

    @property
    def welch(self) -> WelchResult:
        """Welch's test against the minimum gain, which does not assume one sigma; its fields are NaN with one seed."""
        ours, theirs = (self.terms.sign * _sorted(side) for side in (self.method, self.baseline))
        return welch(ours - self.terms.minimum_gain, theirs)

    @property
    def pairs(self) -> PairedResult | None:
        """The paired test over the seeds that both sides have, beyond the minimum gain.

        None of fewer than two shared seeds, or if all differences are the same.
        """
        shared = sorted(self.method.keys() & self.baseline.keys())
        if len(shared) < 2:
            return None
        sides = (self.method, self.baseline)
        ours, theirs = (pd.Series([self.terms.sign * side[seed] for seed in shared], shared) for side in sides)
        pairs = paired_difference(ours - self.terms.minimum_gain, theirs)
        return pairs if pairs.sigma > _rounding(ours, theirs) else None


def judge(name: str, method: Seeds, baseline: Seeds, terms: ComparisonTerms, *, tries: int = 1) -> BaselineComparison:
    """Judge one method against a baseline by their seeds' values; `tries`: what p is multiplied by.

    Raises:
        PlumblineError: there is no noise to judge by: too few seeds, or no spread.
    """
    shared = sorted(method.keys() & baseline.keys())
    ours, theirs = _sorted(method), _sorted(baseline)
    if terms.paired:
        if len(shared) < 2:
            raise PlumblineError(
                f"--paired: {name!r} and the baseline share {len(shared)} seeds; run two or more with both, or leave "
                "out --paired"
            )
        ours, theirs = (np.array([side[seed] for seed in shared]) for side in (method, baseline))
    sigma, freedom = _noise(name, ours, theirs, terms)
    error = math.sqrt(1 / len(ours)) if terms.paired else math.sqrt(1 / len(ours) + 1 / len(theirs))
    design = ComparisonDesign(error, freedom, terms.alpha / tries)
    gain = terms.sign * float(ours.mean() - theirs.mean())
    t = (gain - terms.minimum_gain) / (sigma * error)
    p, p_face = float(two_sided_t(t, freedom)), float(two_sided_normal(t))
    reach = design.critical * sigma * error
    corrected = min(1.0, tries * p)
    return BaselineComparison(
        name=name,
        n=len(ours),
        n_baseline=len(theirs),
        mean=float(ours.mean()),
        mean_baseline=float(theirs.mean()),
        sigma=sigma,
        freedom=freedom,
        gain=gain,
        z=gain / sigma,
        t=t,
        p=p,
        p_face=p_face,
        tries=tries,
        p_corrected=corrected,
        low=gain - reach,
        high=gain + reach,
        outcome=_outcome(t, corrected, tries * p_face, gain + reach, terms),
        design=design,
        terms=terms,
        method=method,
        baseline=baseline,
    )


def _outcome(t: float, corrected: float, face: float, high: float, terms: ComparisonTerms) -> MethodVerdict:
    """A gain survives if its corrected p is at most alpha. Otherwise it is undecided, and not refuted,

    - where a gain is claimed: if that lies within the gain's interval;
    - else: if it would survive were sigma known, so that only the fewness of the seeds is in the way.
    """
    if t > 0 and corrected <= terms.alpha:
        return MethodVerdict.SURVIVES
    if terms.claimed_gain is not None:
        return MethodVerdict.OPEN if high >= terms.claimed_gain else MethodVerdict.FAILS
    return MethodVerdict.OPEN if t > 0 and face <= terms.alpha else MethodVerdict.FAILS


def judge_all(
    values: Mapping[str, Seeds], baseline: str, terms: ComparisonTerms, *, tries: int | None = None
) -> dict[str, BaselineComparison]:
    """Judge every method of a table against the one that is the baseline.

    `tries`: what every p is multiplied by; by default the number of the other methods.

    Raises:
        PlumblineError: the baseline is not there, or is alone; or as `judge`.
    """
    if baseline not in values:
        raise PlumblineError(
            f"--baseline {baseline!r} is none of the methods {sorted(values)}{nearest(baseline, values)}"
        )
    others = sorted(set(values) - {baseline})
    if not others:
        raise PlumblineError(f"there is no method besides the baseline {baseline!r}; add the rows of one")
    count = len(others) if tries is None else tries
    return {name: judge(name, values[name], values[baseline], terms, tries=count) for name in others}


def _sorted(seeds: Seeds) -> np.ndarray:
    """Values in the order of the seeds' names, so that sums do not hang on the order of rows."""
    return np.array([seeds[seed] for seed in sorted(seeds)])


def _noise(name: str, ours: np.ndarray, theirs: np.ndarray, terms: ComparisonTerms) -> tuple[float, float]:
    """Sigma of one run (of a difference, if paired) and its degrees of freedom."""
    if terms.sigma is not None:
        return terms.sigma, terms.sigma_freedom
    if terms.paired:
        sigma, freedom = float((ours - theirs).std(ddof=1)), len(ours) - 1
    else:
        if len(theirs) < 2:
            raise PlumblineError(
                "the baseline has one seed, so there is no noise floor: run the same configuration again with another "
                "seed, or give --sigma (and --sigma-runs) from other runs"
            )
        freedom = len(ours) + len(theirs) - 2
        squares = sum(float(((side - side.mean()) ** 2).sum()) for side in (ours, theirs))
        sigma = math.sqrt(squares / freedom)
    if sigma <= _rounding(ours, theirs):
        what = "differ equally at every seed" if terms.paired else "have no spread over seeds"
        remedy = "leave out --paired" if terms.paired else "give --sigma from other runs"
        raise PlumblineError(
            f"{name!r} and the baseline {what}, so there is no noise floor: are these seeds copies of one run? If they "
            f"are not, {remedy}"
        )
    return sigma, freedom


def _rounding(*sides: np.ndarray | pd.Series) -> float:
    """A spread that numbers without any have once means and differences were taken of them."""
    return 1e-12 * max(float(np.abs(side).max()) for side in sides)


def sigma_interval(sigma: float, freedom: float, confidence: float = 0.95) -> tuple[float, float]:
    """Compute the interval of the true sigma from an estimate with these degrees of freedom, for normally distributed
    runs.
    """
    if math.isinf(freedom):
        return sigma, sigma
    tail = (1 - confidence) / 2
    low, high = (sigma * math.sqrt(freedom / float(stats.chi2.ppf(q, freedom))) for q in (1 - tail, tail))
    return low, high
