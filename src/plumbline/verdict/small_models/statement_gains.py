"""Tests a statement at a size by the runs that are there: each contrast's gain, and the verdict.

A verdict is of all runs that were stated, those that choose rates among them. While one is missing nothing is tested by
the others, so that no gain is known before all are made; where one has no number the statement is not decided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.results.runs.stated_values import NOT_READ, RunValues, Value, choose_rate
from plumbline.specs.small_file import CAPPED_LOSS, SmallFile, Statement
from plumbline.specs.small_runs import StatedRun
from plumbline.stats import stated_power, stated_tests
from plumbline.stats.stated_tests import NOT_DECIDED, TestedGain

#: Arm -> seed -> its number.
Numbers = Mapping[str, Mapping[int, Value]]

#: The word of a statement whose runs are not all there.
NOT_RUN = "not run"
#: Of a tuned statement whose runs are at other rates than those that its tuning runs choose.
OTHER_RATE = "at a rate that tuning does not choose"


@dataclass(frozen=True, kw_only=True, slots=True)
class ContrastGain:
    """A contrast of a statement at a size.

    Attributes:
        tested: its gain and test, by the seeds that have a number of all arms; None where they are too few, and while
            a run is missing.
        n: how many these are, of `stated` ones.
        word: why there is no verdict: runs that are missing, diverged, were not read, or are at another rate; empty
            where all are there.
        power: the chance of seeing the target with the spread of these runs; NaN where there is none.
        runs: the keys of the runs behind it, with those that choose its rates.
    """

    statement: Statement
    size: str
    contrast: str
    tested: TestedGain | None
    n: int
    stated: int
    word: str
    power: float
    runs: tuple[str, ...]

    @property
    def scale(self) -> tuple[float, float]:
        """What must be exceeded, and the target; of signs it is even chances that must be."""
        return (0.5 if self.statement.test == "sign" else self.statement.minimum_gain), self.statement.target_gain

    @property
    def verdict(self) -> str:
        """The contrast's own verdict; `NOT_RUN` while runs are missing."""
        if self.word == MISSING:
            return NOT_RUN
        if self.tested is None or self.word:
            return NOT_DECIDED
        return self.tested.decide(self.statement.target_gain, self.statement.level_of_contrast)


def join_verdicts(gains: Sequence[ContrastGain]) -> str:
    """The verdict of a statement at a size: not decided where a contrast lacks a run, whatever the others say."""
    verdicts = [gain.verdict for gain in gains]
    if NOT_RUN in verdicts:
        return NOT_RUN
    return NOT_DECIDED if any(gain.word for gain in gains) else stated_tests.join_verdicts(verdicts)


def compute_gains(
    small: SmallFile,
    statement: Statement,
    size: str,
    runs: Sequence[StatedRun],
    values: RunValues,
    *,
    pilot: bool = False,
) -> list[ContrastGain]:
    """Test a statement's contrasts at a size; an order is a single one.

    Args:
        runs: those of the whole file.
        pilot: by the runs alone that are made first. Of a tuned statement they are those that choose the rate, at the
            rate of the lowest mean loss.
    """
    own_runs = [run for run in runs if run.statement == statement.id and run.size == size]
    if statement.test == "order" and not pilot:
        gains = [_test_order(small, statement, size, own_runs, values)]
    else:
        chosen_runs = (
            _choose_pilot(statement, own_runs, values) if pilot else [run for run in own_runs if not run.tuning]
        )
        numbers = _read(statement, chosen_runs, values)
        contrasts = statement.contrasts.items()
        gains = [_test_contrast(statement, size, name, weights, numbers) for name, weights in contrasts]
    if not pilot:
        word, tuning = _check_rates(statement, own_runs, values), [run.spec.key for run in own_runs if run.tuning]
        word = MISSING if any(gain.word == MISSING for gain in gains) else word
        gains = [
            replace(gain, word=_choose_word({gain.word, word}), runs=tuple(dict.fromkeys([*gain.runs, *tuning])))
            for gain in gains
        ]
    return [replace(gain, tested=None, power=math.nan) if gain.word == MISSING else gain for gain in gains]


def _check_rates(statement: Statement, runs: Sequence[StatedRun], values: RunValues) -> str:
    """What is wrong with the rates: a run that chooses one is missing, or what these choose is not what was run."""
    tuning = [run for run in runs if run.tuning]
    if any(values.is_missing(run.spec.key) for run in tuning):
        return MISSING
    chosen_rates = {arm: choose_rate([run for run in tuning if run.arm == arm], values) for arm in statement.arms}
    if tuning and None in chosen_rates.values():
        return DIVERGED
    test_runs = [run for run in runs if tuning and run.spec.init_seed in statement.seeds]
    return OTHER_RATE if any(run.rate != chosen_rates[run.arm] for run in test_runs) else ""


def _choose_pilot(statement: Statement, runs: Sequence[StatedRun], values: RunValues) -> list[StatedRun]:
    if statement.tuning is None:
        return [run for run in runs if run.pilot]
    tuning = [run for run in runs if run.tuning]
    rates = {arm: choose_rate([run for run in tuning if run.arm == arm], values) for arm in statement.arms}
    return [run for run in tuning if rates[run.arm] in (None, run.rate)]


def _read(statement: Statement, runs: Sequence[StatedRun], values: RunValues) -> Numbers:
    by_seed: dict[str, dict[int, list[StatedRun]]] = {arm: {} for arm in statement.arms}
    for run in runs:
        by_seed[run.arm].setdefault(run.spec.init_seed, []).append(run)
    return {
        arm: {seed: values.read(statement.measure, each) for seed, each in of_arm.items()}
        for arm, of_arm in by_seed.items()
    }


def _test_contrast(
    statement: Statement, size: str, name: str, weights: Mapping[str, float], numbers: Numbers
) -> ContrastGain:
    # Of means, the spread of all of the statement's arms is pooled; of pairs, the contrast's own arms are needed.
    arms = list(statement.arms) if statement.test == "t" else list(weights)
    values = [value for arm in arms for value in numbers[arm].values()]
    level, minimum = statement.level_of_contrast, statement.minimum_gain
    seeds = sorted(set.intersection(*(set(numbers[arm]) for arm in arms)))
    whole_seeds = [seed for seed in seeds if not any(numbers[arm][seed].word for arm in arms)]
    tested: TestedGain | None = None
    reasons = {value.word for value in values}
    if statement.test == "t":
        samples = {arm: [value.number for value in numbers[arm].values() if not value.word] for arm in arms}
        n = min(len(sample) for sample in samples.values())
        if n >= 2:
            tested = stated_tests.compare_weighted_means(samples, weights, minimum, level)
    else:
        gains = [sum(weight * numbers[arm][seed].number for arm, weight in weights.items()) for seed in whole_seeds]
        n = len(gains)
        if statement.measure.column == CAPPED_LOSS and gains and not any(gains):
            n, reasons = 0, reasons | {DIVERGED}  # no arm trains in any seed, which tells nothing of a difference
        if n >= 2 and statement.test == "sign":
            ties = [seed for seed, gain in zip(whole_seeds, gains, strict=True) if gain == minimum]
            tested = stated_tests.count_signs(gains, minimum, level, _count_ended(statement, arms, ties, numbers))
        elif n >= 2:
            tested = stated_tests.compare_pairs(gains, minimum, level)
    power, count = math.nan, len(statement.seeds)
    if tested is not None and statement.test == "sign":
        power = stated_power.compute_sign_power(statement.target_gain, count, level)
    elif tested is not None:
        power = compute_t_power(statement, name, tested.sigma, count) if tested.sigma else 1.0
    return ContrastGain(
        statement=statement,
        size=size,
        contrast=name,
        tested=tested,
        n=n,
        stated=len(seeds),
        word=_choose_word(reasons),
        power=power,
        runs=tuple(dict.fromkeys(key for value in values for key in value.runs)),
    )


def _count_ended(statement: Statement, arms: Sequence[str], seeds: Sequence[int], numbers: Numbers) -> int:
    """The seeds in which every arm still trains at the largest rate that was tried: none is known to be ahead."""
    if statement.measure.over_rates != "largest_trained":
        return 0
    end = math.log10(max(statement.rates or [1.0]))
    return sum(all(numbers[arm][seed].number == end for arm in arms) for seed in seeds)


def _test_order(
    small: SmallFile, statement: Statement, size: str, runs: Sequence[StatedRun], values: RunValues
) -> ContrastGain:
    """Test the order of contrasts: at the arms' own rates, by seeds that choose none, against that at the tuned."""
    assert statement.tuning is not None and statement.tuning.own_seeds is not None
    assert statement.spread is not None and statement.noise is not None
    own_seeds = statement.tuning.own_seeds
    own_numbers, tuned_numbers = (
        _read(statement, [run for run in runs if run.spec.init_seed in seeds], values)
        for seeds in (own_seeds, statement.seeds)
    )
    all_values = [
        value for numbers in (own_numbers, tuned_numbers) for of_arm in numbers.values() for value in of_arm.values()
    ]
    views: list[list[float]] = []
    counts = []
    for numbers in (own_numbers, tuned_numbers):
        means = {arm: [value.number for value in of_arm.values() if not value.word] for arm, of_arm in numbers.items()}
        counts.append(min(len(sample) for sample in means.values()))
        if counts[-1]:
            by_arm = {arm: float(np.mean(sample)) for arm, sample in means.items()}
            views.append([sum(w * by_arm[arm] for arm, w in each.items()) for each in statement.contrasts.values()])
    tested = None
    sigma, level = (small.noise or {})[statement.noise[size]].sigma, statement.level_of_contrast
    n = (len(own_seeds), len(statement.seeds))
    if len(views) == 2:
        first, second = views
        tested = stated_tests.compare_orders(first, second, level, spread=statement.spread, sigma=sigma, n=n)
    return ContrastGain(
        statement=statement,
        size=size,
        contrast="order",
        tested=tested,
        n=counts[1],
        stated=n[1],
        word=_choose_word({value.word for value in all_values}),
        power=stated_power.simulate_order_test(
            statement.target_gain, statement.spread, sigma, n, methods=len(statement.contrasts), level=level
        ),
        runs=tuple(dict.fromkeys(key for value in all_values for key in value.runs)),
    )


def compute_t_power(statement: Statement, contrast: str, sigma: float, n: int) -> float:
    """The power of a contrast's t test at the target, by n seeds; `sigma`: of a run, of pairs of a seed's own gain."""
    weights, arms = tuple(statement.contrasts[contrast].values()), len(statement.arms)
    if statement.test == "paired_t":
        weights, arms = (1.0,), 1
    gain, level = statement.target_gain - statement.minimum_gain, statement.level_of_contrast
    return stated_power.simulate_t_test(gain, sigma, n, weights, arms=arms, level=level)


def _choose_word(words: Set[str]) -> str:
    """Why there is no verdict: the first of these that holds; none of no value at all is one that is missing."""
    return next((word for word in (MISSING, NOT_READ, OTHER_RATE, DIVERGED) if word in words), "" if words else MISSING)
