"""Judges a method against a baseline or a fixed goal: one test of the difference of two means, and its outcome.

The test is Student's t with the noise pooled over the seeds of the method and of the baseline,

    t = (gain - minimum gain) / (sigma sqrt(1/n + 1/n')),  n + n' - 2 degrees of freedom, one-sided,

because it is the only one of the usual ones that keeps its promise with the few seeds that pretraining has. If the
method does nothing, its runs and the baseline's are drawn from one law; if that is normal, t follows Student's law
exactly, whatever the numbers of seeds. With one seed of the method it *is* the prediction t of
`plumbline.stats.noise_floor`. Welch's test has no value for one seed, and is approximate, and weak, for three; it is
shown beside, since a method that spreads wider than the baseline is outside what is assumed. The z of the papers
takes mean and sigma as known: with three seeds of a reference it crowns far more often than it says.

One-sided, because the question is whether the method is better: 0.025 is the two-sided 0.05 of papers.

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
from dataclasses import dataclass, replace

import numpy as np

from plumbline.core.errors import PlumblineError, nearest
from plumbline.stats.welch_and_stouffer import WelchResult, welch, welch_of_summaries
from plumbline.verdict.comparison_terms import POWER, ComparisonTerms
from plumbline.verdict.evidence import RunsSummary
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome
from plumbline.verdict.power import ComparisonDesign, Plan, compute_sigma_interval, count_seeds, upper_tail
from plumbline.verdict.seed_values import (
    ACCIDENT,
    Seeds,
    advise_repeats,
    bound_rounding,
    check_seeds,
    compute_accident,
    describe_break_even,
    estimate_noise,
    find_scale,
    require_spread,
    sort_values,
    subtract_means,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedSeeds:
    """The paired test over the seeds that both sides have: mean and sigma of the differences, t and its one-sided p."""

    mean: float
    sigma: float
    n: int
    t: float
    p: float
    wins: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunsNeeded:
    """The runs that would find a gain with a chance of `POWER`: so many more of the method and of the baseline.

    Attributes:
        method, baseline: runs to add (pairs, the same of both, if paired).
        each: runs of each then.
        gain: the gain that they would find, in the metric's units; in_sigma: whether it was named in units of sigma,
            for which the number of runs is exact.
        low, high: the number of each at the ends of the 95 % interval of sigma; None above a million.
    """

    method: int
    baseline: int
    each: int
    gain: float
    in_sigma: bool
    low: int | None
    high: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineComparison:
    """The judgement of a method against the baseline. Gains count upwards when better, in the units of the metric.

    Attributes:
        n, n_baseline: seeds that decided (the pairs, twice, if paired); no seeds of a goal.
        mean, mean_baseline: of those seeds; the goal itself.
        sigma: standard deviation of one run (of a difference, if paired).
        freedom: its degrees of freedom; infinite if it was given as known.
        gain: how much better the method's mean is.
        z: gain / sigma.
        t, p: of the test that decides, against the minimum gain; p is one-sided.
        p_face: the same taking sigma as known.
        tries: what p is multiplied by; p_corrected is that, at most 1.
        low, high: the gain's bounds, each of them one-sided at 1 - alpha / tries.
        outcome: what is said.
        design: for the power of the comparison.
        method, baseline: every seed that was given, as it was given; a goal has none, and neither have summaries.
        summaries: of the method and of the baseline (a goal has none), where these were given in place of seeds.
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
    outcome: Outcome
    design: ComparisonDesign
    terms: ComparisonTerms
    method: Seeds
    baseline: Seeds
    summaries: tuple[RunsSummary, ...] = ()

    @property
    def plan(self) -> Plan:
        """What was compared: two sets of runs, pairs, or runs with a goal."""
        if not self.n_baseline:
            return "goal"
        return "pairs" if self.terms.paired else "two"

    @property
    def p_two_sided(self) -> float:
        """The p that papers print: of a difference this large in either direction, from the required gain."""
        return min(1.0, 2 * upper_tail(abs(self.t), self.freedom))

    @property
    def resolved(self) -> float:
        """The smallest gain, in units of the metric, that these seeds find with a chance of POWER."""
        return self.terms.minimum_gain + self.sigma * self.design.find_smallest_gain(POWER)

    @property
    def has_equal_values(self) -> bool:
        """Whether the method was asked to be as good, and its values are the baseline's of the same seeds, to all
        digits: two or more, and so many digits that this is no accident.
        """
        pairs = [(value, self.baseline.get(seed)) for seed, value in self.method.items()]
        equal = bool(self.terms.as_good_as) and len(pairs) > 1 and all(ours == theirs for ours, theirs in pairs)
        return equal and compute_accident([value for value, _ in pairs]) <= ACCIDENT

    @property
    def seeds_to_decide(self) -> int | None:
        """Seeds of each side that find a gain as large as the seen one.

        None if there is no gain, or they would be too many.
        """
        return self.seeds_for(self.gain)

    def seeds_for(self, gain: float, *, sigma: float | None = None) -> int | None:
        """Compute how many seeds of each side find a gain of this size (units of the metric) with a chance of POWER.

        They are another look, which is corrected for. `sigma`: if it were this and not what was estimated.
        """
        excess = gain - self.terms.minimum_gain
        design = ComparisonDesign(self.design.error, self.freedom, self.terms.alpha / (self.tries + 1))
        return count_seeds(excess, sigma or self.sigma, design, POWER, plan=self.plan)

    @property
    def runs_needed(self) -> RunsNeeded | None:
        """The runs that would find the gain that is in question, or, where these find it already, the seen one.

        None if they would be more than a million.
        """
        for gain, in_sigma in (
            (self.terms.target_gain_at(self.sigma), self.terms.asked_gain is None),
            (self.gain, False),
        ):
            each = self.seeds_for(gain)
            added = 0 if each is None else max(each - self.n, 0 if self.plan != "two" else each - self.n_baseline)
            if each is not None and added > 0:
                ends: tuple[int | None, int | None] = (each, each)
                if not in_sigma:
                    low, high = compute_sigma_interval(self.sigma, self.freedom)
                    ends = (self.seeds_for(gain, sigma=low), self.seeds_for(gain, sigma=high))
                of_baseline = 0 if self.plan == "goal" else max(0, each - self.n_baseline)
                return RunsNeeded(
                    method=max(0, each - self.n),
                    baseline=of_baseline,
                    each=each,
                    gain=gain,
                    in_sigma=in_sigma,
                    low=ends[0],
                    high=ends[1],
                )
        return None

    @property
    def prediction(self) -> tuple[float, float] | None:
        """t and one-sided p of the prediction test, which takes sigma from the baseline alone.

        None if the baseline has no spread.
        """
        if self.summaries:
            if len(self.summaries) < 2 or not (sigma := self.summaries[1].std) > 0:
                return None
            t = (self.gain - self.terms.minimum_gain) / (sigma * self.design.error)
            return t, upper_tail(t, self.n_baseline - 1)
        ours, theirs = sort_values(self.method), sort_values(self.baseline)
        if len(theirs) < 2:
            return None
        scale = find_scale(ours, theirs)
        sigma = scale * float((theirs / scale).std(ddof=1))
        if sigma <= bound_rounding(theirs):
            return None
        gain = self.terms.sign * subtract_means(ours, theirs, scale) - self.terms.minimum_gain
        t = gain / (sigma * math.sqrt(1 / len(ours) + 1 / len(theirs)))
        return t, upper_tail(t, len(theirs) - 1)

    @property
    def welch(self) -> WelchResult:
        """Welch's test against the minimum gain, which does not assume one sigma; its fields are NaN with one seed."""
        if self.summaries:
            sides = [(side.std, side.n) for side in self.summaries]
            return welch_of_summaries(self.gain - self.terms.minimum_gain, *sides)
        ours, theirs = sort_values(self.method), sort_values(self.baseline)
        scale = find_scale(ours, theirs)
        return welch(self.terms.sign * ours / scale - self.terms.minimum_gain / scale, self.terms.sign * theirs / scale)

    @property
    def pairs(self) -> PairedSeeds | None:
        """The paired test over the seeds that both sides have, beyond the minimum gain.

        None of fewer than two shared seeds, or if all differences are the same.
        """
        shared = sorted(self.method.keys() & self.baseline.keys())
        if len(shared) < 2:
            return None
        ours, theirs = (np.array([side[seed] for seed in shared]) for side in (self.method, self.baseline))
        difference = self.terms.sign * (ours - theirs) - self.terms.minimum_gain
        scale = float(np.abs(difference).max()) or 1.0
        sigma = scale * float((difference / scale).std(ddof=1))
        if sigma <= bound_rounding(ours, theirs):
            return None
        mean, n = scale * float((difference / scale).mean()), len(shared)
        t = mean / (sigma / math.sqrt(n))
        return PairedSeeds(mean=mean, sigma=sigma, n=n, t=t, p=upper_tail(t, n - 1), wins=int((difference > 0).sum()))


def judge(name: str, method: Seeds, baseline: Seeds, terms: ComparisonTerms, *, tries: int = 1) -> BaselineComparison:
    """Judge one method against a baseline by their seeds' values; `tries`: what p is multiplied by.

    Raises:
        CannotBeJudgedError: there is no noise to judge by: too few seeds, or no spread.
        PlumblineError: a side is empty, or a value is not a finite number.
    """
    method, baseline = check_seeds(name, method), check_seeds("the baseline", baseline)
    ours, theirs = sort_values(method), sort_values(baseline)
    if terms.paired:
        shared = sorted(method.keys() & baseline.keys())
        if len(shared) < 2:
            raise CannotBeJudgedError(
                f"--paired: {name!r} and the baseline share {len(shared)} seeds; run two or more with both, or leave "
                "out --paired"
            )
        ours, theirs = (np.array([side[seed] for seed in shared]) for side in (method, baseline))
    scale = find_scale(ours, theirs)
    sigma, freedom = estimate_noise(name, ours, theirs, terms, tries)
    error = math.sqrt(1 / len(ours)) if terms.paired else math.sqrt(1 / len(ours) + 1 / len(theirs))
    means = (scale * float((ours / scale).mean()), scale * float((theirs / scale).mean()))
    gain = terms.sign * subtract_means(ours, theirs, scale)
    counts = (len(ours), len(theirs))
    comparison = build_comparison(name, method, baseline, terms, tries, counts, means, gain, sigma, freedom, error)
    return replace(comparison, outcome=Outcome.AS_GOOD) if comparison.has_equal_values else comparison


def judge_goal(name: str, method: Seeds, goal: float, terms: ComparisonTerms, *, tries: int = 1) -> BaselineComparison:
    """Judge one method against a fixed value: the one-sample t of its seeds; `tries`: what p is multiplied by.

    Raises:
        CannotBeJudgedError: one seed and no sigma, or no spread.
        PlumblineError: there is no seed, or a value is not a finite number; or pairs are requested.
    """
    if terms.paired:
        raise PlumblineError("a goal is one number, which has no pairs; leave out --paired")
    method = check_seeds(name, method)
    (goal,) = check_seeds("the goal", {"goal": goal}).values()
    ours, goal_values = sort_values(method), np.array([goal])
    scale = find_scale(ours, goal_values)
    if terms.sigma is not None:
        sigma, freedom = terms.sigma, terms.sigma_freedom
    elif len(ours) < 2:
        raise CannotBeJudgedError(
            f"{name!r} was run once, so there is no noise floor: {advise_repeats()}. "
            + describe_break_even(terms.sign * (float(ours[0]) - goal), 1.0, terms, tries)
        )
    else:
        sigma, freedom = scale * float((ours / scale).std(ddof=1)), float(len(ours) - 1)
        require_spread(name, sigma, ours, goal_values, paired=False)
    means = (scale * float((ours / scale).mean()), goal)
    gain, error = terms.sign * subtract_means(ours, goal_values, scale), math.sqrt(1 / len(ours))
    return build_comparison(name, method, {}, terms, tries, (len(ours), 0), means, gain, sigma, freedom, error)


def build_comparison(
    name: str,
    method: Seeds,
    baseline: Seeds,
    terms: ComparisonTerms,
    tries: int,
    counts: tuple[int, int],
    means: tuple[float, float],
    gain: float,
    sigma: float,
    freedom: float,
    error: float,
    *,
    summaries: tuple[RunsSummary, ...] = (),
) -> BaselineComparison:
    """Test a gain by its sigma, the degrees of freedom and its standard error in units of sigma, and name the verdict.

    `counts`, `means`: of the method and of what it is compared with.
    """
    if tries < 1:
        raise PlumblineError(f"p is multiplied by the number of tries, 1 or more; got {tries}")
    terms = terms.with_margin(sigma)
    design = ComparisonDesign(error, freedom, terms.alpha / tries)
    t = (gain - terms.minimum_gain) / (sigma * error)
    p = upper_tail(t, freedom)
    reach, corrected = design.critical * sigma * error, min(1.0, tries * p)
    return BaselineComparison(
        name=name,
        n=counts[0],
        n_baseline=counts[1],
        mean=means[0],
        mean_baseline=means[1],
        sigma=sigma,
        freedom=freedom,
        gain=gain,
        z=gain / sigma,
        t=t,
        p=p,
        p_face=upper_tail(t, math.inf),
        tries=tries,
        p_corrected=corrected,
        low=gain - reach,
        high=gain + reach,
        outcome=choose_outcome(corrected, gain + reach, sigma, terms),
        design=design,
        terms=terms,
        method=method,
        baseline=baseline,
        summaries=summaries,
    )


def choose_outcome(corrected: float, high: float, sigma: float, terms: ComparisonTerms) -> Outcome:
    """Name the verdict: better by its corrected p; else ruled out or not, by the upper bound `high` of its gain.

    Ruled out is the gain that is in question (claimed, or worth having); if none was named, `TARGET_GAIN_SIGMAS`. Where
    it is whether a method is as good, it is ruled out if it is worse by more than the margin.
    """
    if corrected <= terms.alpha:
        return Outcome.AS_GOOD if terms.as_good_as else Outcome.KEEP
    if terms.as_good_as:
        return Outcome.DISCARD if high <= terms.minimum_gain else Outcome.UNDECIDED
    return Outcome.DISCARD if high < terms.target_gain_at(sigma) else Outcome.UNDECIDED


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
    other_methods = sorted(set(values) - {baseline})
    if not other_methods:
        raise PlumblineError(f"there is no method besides the baseline {baseline!r}; add the rows of one")
    count = len(other_methods) if tries is None else tries
    return {name: judge(name, values[name], values[baseline], terms, tries=count) for name in other_methods}
