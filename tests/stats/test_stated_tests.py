"""Each stated test is scipy's or statsmodels', and decides what was drawn."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as formulas
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from plumbline.core.errors import PlumblineError
from plumbline.stats import stated_tests
from plumbline.stats.stated_tests import NOT_DECIDED, NOT_SEEN, REVERSED, SEEN

LEVEL = 0.025


@pytest.mark.parametrize(("gain", "minimum"), [(0.5, 0.0), (-0.5, 0.0), (0.0, -0.2), (0.0, 0.0)])
def test_a_paired_test_is_scipys(gain: float, minimum: float) -> None:
    gains = np.random.default_rng(1).normal(gain, 0.6, 9)
    tested = stated_tests.compare_pairs(gains, minimum, LEVEL)
    above = stats.ttest_1samp(gains, minimum, alternative="greater")
    below = stats.ttest_1samp(gains, minimum, alternative="less")
    assert (tested.p, tested.p_reversed) == (pytest.approx(above.pvalue), pytest.approx(below.pvalue))
    interval = stats.ttest_1samp(gains, 0).confidence_interval(1 - 2 * LEVEL)
    assert (tested.low, tested.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert (tested.gain, tested.sigma, tested.df) == (pytest.approx(gains.mean()), pytest.approx(gains.std(ddof=1)), 8)


@pytest.mark.parametrize("weights", [{"a": 1.0, "b": -1.0}, {"c": -1.0}, {"a": 1.0, "b": -2.0, "c": 1.0}])
def test_a_test_of_means_is_that_of_a_linear_model(weights: dict[str, float]) -> None:
    """Of arms with unequal numbers of seeds; the model has a mean for each arm and one variance."""
    rng, sizes = np.random.default_rng(2), {"a": 4, "b": 6, "c": 3}
    samples = {arm: rng.normal(mean, 0.3, sizes[arm]) for arm, mean in (("a", 1.0), ("b", 0.7), ("c", 1.4))}
    minimum = -0.1
    tested = stated_tests.compare_weighted_means(samples, weights, minimum, LEVEL)
    rows = pd.DataFrame([(arm, value) for arm, values in samples.items() for value in values], columns=["arm", "value"])
    model = formulas.ols("value ~ 0 + arm", rows).fit()
    fitted = model.t_test([weights.get(arm, 0.0) for arm in "abc"])
    t = (fitted.effect.item() - minimum) / fitted.sd.item()
    assert tested.gain == pytest.approx(fitted.effect.item()) and tested.df == model.df_resid
    assert tested.p == pytest.approx(stats.t.sf(t, model.df_resid))
    assert tested.p_reversed == pytest.approx(stats.t.cdf(t, model.df_resid))
    assert (tested.low, tested.high) == pytest.approx(tuple(fitted.conf_int(2 * LEVEL)[0]))


def test_two_arms_are_scipys_test_of_two_samples() -> None:
    a, b = np.random.default_rng(3).normal([[0.3], [0.0]], 0.2, (2, 5))
    tested = stated_tests.compare_weighted_means({"a": a, "b": b}, {"a": 1, "b": -1}, 0, LEVEL)
    assert tested.p == pytest.approx(stats.ttest_ind(a, b, alternative="greater").pvalue)


@pytest.mark.parametrize(
    ("wins", "ties", "n"), [(12, 0, 12), (10, 2, 12), (7, 1, 12), (0, 0, 12), (0, 12, 12), (2, 1, 8)]
)
def test_a_sign_test_is_scipys_with_clopper_pearson_bounds(wins: int, ties: int, n: int) -> None:
    """Equal seeds are no wins; nor do they speak for the opposite."""
    gains = [1.0] * wins + [0.0] * ties + [-1.0] * (n - wins - ties)
    tested = stated_tests.count_signs(gains, 0.0, LEVEL)
    assert tested.p == pytest.approx(stats.binomtest(wins, n, alternative="greater").pvalue)
    losses = n - wins - ties
    assert tested.p_reversed == pytest.approx(stats.binomtest(losses, n, alternative="greater").pvalue)
    low, high = proportion_confint(wins, n, 2 * LEVEL, method="beta")
    assert (tested.low, tested.high) == (pytest.approx(low), pytest.approx(high)) and tested.gain == wins / n


@pytest.mark.parametrize("seed", range(4))
def test_an_order_is_scipys_exact_kendall(seed: int) -> None:
    first, second = np.random.default_rng(seed).normal(size=(2, 12))
    tested = stated_tests.compare_orders(first, second, LEVEL, spread=1.0, sigma=0.5, n=(3, 4))
    for alternative, p in (("greater", tested.p), ("less", tested.p_reversed)):
        expected = stats.kendalltau(first, second, method="exact", alternative=alternative)
        assert (tested.gain, p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))


def test_an_orders_bounds_hold_the_true_correlation() -> None:
    """As often as the level says: 0.05 on both sides, at correlations within and at the end."""
    rng, n, sigma = np.random.default_rng(7), (3, 4), 0.5
    for correlation in (0.0, 0.8):
        inside = 0
        for _ in range(40):
            true, other = rng.normal(size=(2, 12))
            other = correlation * true + math.sqrt(1 - correlation**2) * other
            views = [
                view + rng.normal(0, sigma / math.sqrt(each), 12) for view, each in zip((true, other), n, strict=True)
            ]
            tested = stated_tests.compare_orders(*views, LEVEL, spread=1.0, sigma=sigma, n=n)
            inside += tested.low <= correlation <= tested.high
        assert inside >= 34, "38 are expected of 40; fewer than 34 come once in 50 such worlds"


@pytest.mark.parametrize(
    ("gain", "sigma", "word"), [(1.0, 0.3, SEEN), (-1.0, 0.3, REVERSED), (0.02, 0.3, NOT_SEEN), (0.4, 1.5, NOT_DECIDED)]
)
def test_the_first_that_holds_decides(gain: float, sigma: float, word: str) -> None:
    gains = gain + sigma * stats.norm.ppf((np.arange(10) + 0.5) / 10)
    assert stated_tests.compare_pairs(gains, 0.0, LEVEL).decide(0.5, LEVEL) == word


def test_what_is_seen_stays_seen_below_its_target() -> None:
    tested = stated_tests.compare_pairs([0.09, 0.1, 0.11, 0.1], 0.0, LEVEL)
    assert tested.high < 0.5 and tested.decide(0.5, LEVEL) == SEEN


def test_chance_is_seen_as_often_as_the_level_says() -> None:
    draws = np.random.default_rng(11).normal(0, 1, (4000, 6))
    words = [stated_tests.compare_pairs(gains, 0.0, 0.05).decide(100.0, 0.05) for gains in draws]
    assert (words.count(SEEN) / 4000, words.count(REVERSED) / 4000) == pytest.approx((0.05, 0.05), abs=0.012)


@pytest.mark.parametrize(("gain", "word"), [(0.2, SEEN), (0.0, NOT_SEEN), (-0.2, REVERSED)])
def test_seeds_that_are_all_alike_go_by_the_gain(gain: float, word: str) -> None:
    """As the fraction at which a rule releases may be; sums of equal numbers are rounded."""
    tested = stated_tests.compare_weighted_means({"a": [-0.12 + gain] * 7}, {"a": 1.0}, -0.12, LEVEL)
    assert tested.sigma == 0 and tested.decide(-0.05, LEVEL) == word


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [
        ((SEEN, SEEN), SEEN),
        ((SEEN, NOT_DECIDED), NOT_DECIDED),
        ((NOT_DECIDED, NOT_SEEN), NOT_SEEN),
        ((NOT_SEEN, REVERSED, SEEN), REVERSED),
    ],
)
def test_a_statement_is_seen_where_all_its_contrasts_are(verdicts: tuple[str, ...], word: str) -> None:
    assert stated_tests.join_verdicts(verdicts) == word


def test_one_seed_is_no_test() -> None:
    for test in (
        lambda: stated_tests.compare_pairs([1.0], 0, LEVEL),
        lambda: stated_tests.compare_weighted_means({"a": [1.0], "b": [1.0, 2.0]}, {"b": 1.0}, 0, LEVEL),
        lambda: stated_tests.count_signs([1.0], 0, LEVEL),
    ):
        with pytest.raises(PlumblineError, match="two seeds"):
            test()
