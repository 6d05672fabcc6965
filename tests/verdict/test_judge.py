"""The deciding test against scipy's, the prediction t and a case by hand; its power; what is said in which case."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.stats.noise_floor import noise_floor
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.judge import BaselineComparison, judge, judge_all, judge_goal
from plumbline.verdict.numbers.sentences import write_sentence
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome
from plumbline.verdict.power import ComparisonDesign, compute_sigma_interval, count_seeds
from plumbline.verdict.seed_values import Seeds

UP = ComparisonTerms(higher=True)


def seeds(*values: float) -> Seeds:
    return {str(seed): value for seed, value in enumerate(values)}


BASE = seeds(1.0, 2.0, 3.0)


def test_a_case_by_hand() -> None:
    """Means 5 and 2, sums of squares 2 and 2, sigma 1 with 4 degrees of freedom, t = 3 / sqrt(2 / 3)."""
    result = judge("a", seeds(4.0, 5.0, 6.0), BASE, UP, tries=2)
    assert (result.gain, result.sigma, result.freedom, result.z) == (3.0, 1.0, 4, 3.0)
    assert result.t == pytest.approx(3 / math.sqrt(2 / 3))
    assert result.p_corrected == 2 * result.p == pytest.approx(2 * stats.t.sf(3.6742346, 4), rel=1e-6)
    assert result.high - result.gain == pytest.approx(stats.t.isf(0.025 / 2, 4) * math.sqrt(2 / 3))


@pytest.mark.parametrize("n", [2, 3, 7])
def test_p_is_students_and_the_paired_one_that_of_pairs(n: int) -> None:
    rng = np.random.default_rng(n)
    ours, theirs = rng.normal(size=n), rng.normal(size=5)
    result = judge("a", seeds(*ours), seeds(*theirs), UP)
    assert result.p == pytest.approx(stats.ttest_ind(ours, theirs, alternative="greater").pvalue)
    assert result.p_two_sided == pytest.approx(stats.ttest_ind(ours, theirs).pvalue)
    welch = stats.ttest_ind(ours, theirs, equal_var=False, alternative="greater").pvalue
    assert result.welch.p_greater == pytest.approx(welch)
    paired = judge("a", seeds(*ours), seeds(*theirs), ComparisonTerms(higher=True, paired=True))
    shared = min(n, 5)
    of_pairs = stats.ttest_rel(ours[:shared], theirs[:shared], alternative="greater").pvalue
    assert paired.p == pytest.approx(of_pairs) and paired.n == shared
    assert result.pairs is not None and result.pairs.p == pytest.approx(paired.p)


@pytest.mark.parametrize(("alpha", "level"), [(0.025, 0.95), (0.05, 0.9), (0.01, 0.98)])
def test_the_sentence_gives_the_interval_its_level(alpha: float, level: float) -> None:
    ours, theirs = [4.0, 5.5, 6.0], [1.0, 2.0, 3.0, 2.2]
    text = write_sentence(
        judge("a", seeds(*ours), seeds(*theirs), ComparisonTerms(higher=True, alpha=alpha)), "b", "acc"
    )
    ends = stats.ttest_ind(ours, theirs).confidence_interval(level)
    assert f"by 3.12 ({level:.0%}".replace("%", " %") + f" interval {ends.low:.2f} to {ends.high:.2f}; 3" in text
    assert "3 seeds against 4 of `b`; one-sided" in text and "sigma" not in text
    paired = ComparisonTerms(higher=True, paired=True)
    assert "deviations of a difference; " in write_sentence(judge("a", seeds(*ours), BASE, paired), "b", "acc")


def test_one_seed_is_the_prediction_t() -> None:
    result, floor = judge("a", seeds(4.5), BASE, UP), noise_floor([1.0, 2.0, 3.0])
    assert result.t == pytest.approx(float(floor.prediction(4.5)))
    assert result.p == pytest.approx(stats.t.sf(result.t, 2))
    assert result.prediction == pytest.approx((result.t, result.p)) and math.isnan(result.welch.p)


def test_a_given_sigma_is_taken_with_the_runs_it_is_from() -> None:
    result = judge("a", seeds(3.0), seeds(1.0), ComparisonTerms(higher=True, sigma=1.0))
    assert result.p == pytest.approx(stats.norm.sf(2 / math.sqrt(2))) == result.p_face
    of_four = judge("a", seeds(3.0), seeds(1.0), ComparisonTerms(higher=True, sigma=1.0, sigma_runs=4))
    assert of_four.p == pytest.approx(stats.t.sf(2 / math.sqrt(2), 3))


def test_a_minimum_gain_is_taken_off_before_the_test() -> None:
    result = judge("a", seeds(6.0, 7.0, 8.0), BASE, ComparisonTerms(higher=True, minimum_gain=2.0))
    assert result.gain == 5.0 and result.p == pytest.approx(judge("a", seeds(4.0, 5.0, 6.0), BASE, UP).p)
    reached = judge("a", seeds(2.9, 3.9, 4.9), BASE, ComparisonTerms(higher=True, minimum_gain=2.0))
    assert reached.t < 0 < reached.gain and reached.p > 0.5


@pytest.mark.parametrize(
    ("method", "terms", "outcome"),
    [
        (seeds(9.0, 10.0, 11.0), UP, Outcome.KEEP),
        (seeds(2.0, 3.0, 4.0), UP, Outcome.UNDECIDED),  # a gain of one sigma: these could not have seen it
        (seeds(1.0, 2.0, 3.1), UP, Outcome.UNDECIDED),
        (seeds(-9.0, -10.0, -11.0), UP, Outcome.DISCARD),
        (seeds(1.0, 2.0, 3.1), ComparisonTerms(higher=True, target_gain=9.0), Outcome.DISCARD),
        (seeds(-9.0, -10.0, -11.0), ComparisonTerms(higher=False), Outcome.KEEP),
        (seeds(2.0, 3.0, 4.0), ComparisonTerms(higher=True, claimed_gain=2.0), Outcome.UNDECIDED),
        (seeds(2.0, 3.0, 4.0), ComparisonTerms(higher=True, claimed_gain=9.0), Outcome.DISCARD),
    ],
)
def test_what_is_said(method: Seeds, terms: ComparisonTerms, outcome: Outcome) -> None:
    assert judge("a", method, BASE, terms, tries=2).outcome is outcome


def test_every_further_try_makes_the_same_numbers_weaker() -> None:
    corrected = [judge("a", seeds(4.8, 5.0, 5.2), BASE, UP, tries=tries) for tries in (1, 2, 20, 2000)]
    assert [each.p_corrected / corrected[0].p for each in corrected[:3]] == pytest.approx([1, 2, 20])
    assert corrected[3].p_corrected == 1
    assert [each.high for each in corrected] == sorted(each.high for each in corrected)
    assert (corrected[0].outcome, corrected[2].outcome) == (Outcome.KEEP, Outcome.UNDECIDED)


VALUES = st.lists(st.floats(-10, 10).map(lambda value: round(value, 3)), min_size=2, max_size=6, unique=True)


@given(ours=VALUES, theirs=VALUES)
def test_metric_turned_over_and_better_downwards_is_same_verdict(ours, theirs) -> None:
    up = judge("a", seeds(*ours), seeds(*theirs), UP)
    down = judge(
        "a", seeds(*(-value for value in ours)), seeds(*(-value for value in theirs)), ComparisonTerms(higher=False)
    )
    for key in (
        "gain",
        "t",
        "p",
        "low",
        "high",
        "outcome",
        "welch",
        "pairs",
        "prediction",
        "resolved",
        "seeds_to_decide",
    ):
        assert getattr(up, key) == getattr(down, key)
    assert up.mean == -down.mean


@pytest.mark.parametrize("n", [2, 3, 10])
def test_power_is_that_of_the_noncentral_t(n: int) -> None:
    design = ComparisonDesign(math.sqrt(2 / n), 2 * n - 2, 0.025)
    expected = stats.nct.sf(stats.t.isf(0.025, 2 * n - 2), 2 * n - 2, 3.0 / math.sqrt(2 / n))
    assert design.power(3.0) == pytest.approx(expected, abs=1e-6)
    assert design.power(design.find_smallest_gain(0.8)) == pytest.approx(0.8, abs=1e-4)


@pytest.mark.parametrize("alpha", [0.05, 5e-5, 1e-9])
@pytest.mark.parametrize("freedom", [1, 2, 5, 1e6])
def test_the_resolved_gain_is_found_for_any_number_of_tries(alpha: float, freedom: float) -> None:
    """Where scipy's own series gives up, the law of sigma alone decides."""
    design = ComparisonDesign(1.2, freedom, alpha)
    shift, sigma = (
        design.find_smallest_gain(0.8) / 1.2,
        np.sqrt(stats.chi2.ppf((np.arange(20_000) + 0.5) / 20_000, freedom) / freedom),
    )
    assert stats.norm.sf(design.critical * sigma - shift).mean() == pytest.approx(0.8, abs=2e-3)


def test_power_of_one_seed_against_five_is_what_simulation_finds() -> None:
    rng, worlds = np.random.default_rng(0), 40_000
    base, method = rng.normal(size=(worlds, 5)), rng.normal(3.0, size=worlds)
    t = (method - base.mean(axis=1)) / (base.std(axis=1, ddof=1) * math.sqrt(1 + 1 / 5))
    design = ComparisonDesign(math.sqrt(1 + 1 / 5), 4, 0.05 / 3)
    assert (t >= design.critical).mean() == pytest.approx(design.power(3.0), abs=4 * 0.5 / math.sqrt(worlds))


@pytest.mark.parametrize(
    ("plan", "design"),
    [
        ("two", lambda n: ComparisonDesign(math.sqrt(2 / n), 2 * n - 2, 0.01)),
        ("pairs", lambda n: ComparisonDesign(math.sqrt(1 / n), n - 1, 0.01)),
        ("two", lambda n: ComparisonDesign(math.sqrt(2 / n), math.inf, 0.01)),
    ],
)
def test_seeds_that_would_decide_are_the_fewest(plan: Any, design) -> None:
    n = count_seeds(0.5, 1.0, design(4), 0.8, plan=plan)
    assert n is not None and design(n - 1).power(0.5) < 0.8 <= design(n).power(0.5)
    assert count_seeds(0.0, 1.0, design(4), 0.8, plan=plan) is None
    assert count_seeds(1e-6, 1.0, design(4), 0.8, plan=plan) is None


def test_missing_runs_find_the_gain_as_another_try() -> None:
    result = judge("a", seeds(2.0, 3.0, 4.0), BASE, UP)
    more = result.runs_needed
    assert more is not None and more.in_sigma and (more.method, more.baseline) == (more.each - 3, more.each - 3)
    after = ComparisonDesign(math.sqrt(2 / more.each), 2 * more.each - 2, 0.025 / 2)
    fewer = ComparisonDesign(math.sqrt(2 / (more.each - 1)), 2 * more.each - 4, 0.025 / 2)
    assert fewer.power(2.0) < 0.8 <= after.power(2.0)
    assert f"{more.method} more runs and {more.baseline} of `base`" in write_sentence(result, "base", "loss")
    runs_needed = judge("a", seeds(2.0, 3.0, 4.0), BASE, ComparisonTerms(higher=True, target_gain=2.0)).runs_needed
    assert runs_needed is not None and runs_needed.low is not None and runs_needed.high is not None
    assert runs_needed.low < runs_needed.each < runs_needed.high


def test_a_goal_is_judged_by_the_one_sample_t() -> None:
    result = judge_goal("a", seeds(1.0, 2.0, 4.0), 1.5, ComparisonTerms(higher=True, alpha=0.01))
    assert result.p == pytest.approx(stats.ttest_1samp([1.0, 2.0, 4.0], 1.5, alternative="greater").pvalue)
    assert (result.n_baseline, result.mean_baseline) == (0, 1.5)
    assert "3 seeds against the fixed" in write_sentence(result, "goal 1.5", "loss")


def test_the_interval_of_sigma_holds_it_as_often_as_it_says() -> None:
    sigma = np.random.default_rng(0).normal(size=(2000, 4)).std(axis=1, ddof=1)
    covered = [low <= 1 <= high for low, high in (compute_sigma_interval(float(each), 3) for each in sigma[:500])]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.04)


@pytest.mark.parametrize(
    ("method", "baseline", "terms", "message"),
    [
        (seeds(1.0, 2.0), seeds(1.0), UP, "baseline.*seed"),
        (seeds(3.0), seeds(1.0), UP, r"0.72 \(one-sided 0.025\)"),
        (seeds(0.5), seeds(1.0), UP, "no sigma.*better"),
        (seeds(0.1, 0.1, 0.1), seeds(0.3, 0.3), UP, "no spread over seeds"),
        ({"x": 1.0}, BASE, ComparisonTerms(higher=True, paired=True), "share 0 seeds"),
    ],
)
def test_without_a_noise_floor(method: Seeds, baseline: Seeds, terms: ComparisonTerms, message: str) -> None:
    with pytest.raises(CannotBeJudgedError, match=message):
        judge("a", method, baseline, terms)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({}, "has no seeds"),
        (seeds(math.nan, 1.0), "'0': nan is no finite"),
        (seeds(1.0, -math.inf), "'1': -inf.*finite"),
        (seeds(1e301), "too large to compare"),
        ({"1": 2.0, "01": 3.0}, "has seed '1' twice"),
    ],
)
def test_values_that_are_none_are_refused_on_either_side(method: Seeds, message: str) -> None:
    calls = [
        lambda: judge("a", method, BASE, UP),
        lambda: judge("a", BASE, method, UP),
        lambda: judge_goal("a", method, 1.0, UP),
    ]
    for call in calls:
        with pytest.raises(PlumblineError, match=message):
            call()


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4),
)
def test_any_finite_values_are_judged_or_refused_in_a_sentence(ours, theirs) -> None:
    try:
        result = judge("a", seeds(*ours), seeds(*theirs), UP)
    except PlumblineError:
        return
    assert isinstance(result, BaselineComparison) and 0 <= result.p <= 1 and result.low <= result.high
    assert write_sentence(result, "base", "loss") and result.welch and result.pairs is not False


def test_of_values_of_1e200_and_of_1_the_same_is_said() -> None:
    small = judge("a", seeds(5.0, 6.0, 7.5), BASE, UP)
    large = judge("a", seeds(5e200, 6e200, 7.5e200), seeds(1e200, 2e200, 3e200), UP)
    assert (large.outcome, large.p, large.z) == (small.outcome, pytest.approx(small.p), pytest.approx(small.z))
    assert large.welch.p_greater == pytest.approx(small.welch.p_greater) and large.pairs is not None


def test_a_real_gain_of_one_sigma_is_seldom_discarded() -> None:
    """With 3 seeds against 3, 72 % of files with such a gain were once stated not to survive."""
    rng = np.random.default_rng(0)
    results = [judge("a", seeds(*rng.normal(1.0, size=3)), seeds(*rng.normal(size=3)), UP) for _ in range(1000)]
    assert np.mean([each.outcome is Outcome.DISCARD for each in results]) < 0.1
    assert np.mean([each.high < 1.0 for each in results]) < 0.04  # what is ruled out is not there: 2.5 % promised


def test_a_baseline_that_is_not_there_is_named_with_the_nearest() -> None:
    with pytest.raises(PlumblineError, match=r"did you mean 'base'"):
        judge_all({"base": BASE, "a": BASE}, "basse", UP)
    with pytest.raises(PlumblineError, match=r"no method.*baseline"):
        judge_all({"base": BASE}, "base", UP)


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"minimum_gain": -1.0},
        {"minimum_gain": math.nan},
        {"claimed_gain": 0.0},
        {"target_gain": 0.0},
        {"target_gain": 1.0, "claimed_gain": 1.0},
        {"allow_diverged": -1},
        {"sigma": 0.0},
        {"sigma_runs": 5},
        {"sigma": 1.0, "sigma_runs": 1},
        {"sigma": 1.0, "paired": True},
    ],
)
def test_terms_that_make_no_sense_are_refused(wrong) -> None:
    with pytest.raises(PlumblineError, match="--"):
        ComparisonTerms(higher=True, **wrong)


def test_the_example_of_the_page(repository: Path) -> None:
    page = (repository / "docs/python.md").read_text().partition("\n## A verdict\n")[2]
    namespace: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], namespace)
    assert namespace["judged"].outcome is Outcome.KEEP and namespace["judged"].tries == 4
