"""What stands around the stopping rule: the estimate after it, sigma's pool, sessions and sentinels."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.stats import pooling
from plumbline.stats.after_stopping import estimate, estimate_single_test
from plumbline.stats.distributions import log_ratio
from plumbline.stats.fresh_runs import p_of_fresh_runs
from plumbline.stats.sentinel import is_due, measure_drift
from plumbline.stats.sequential import Look, SequentialDesign, boundary, compute_characteristics, statistic
from plumbline.stats.sequential.operating_characteristics import chance_reached
from plumbline.stats.sequential.simulation import find_ends
from plumbline.stats.sessions import false_keeps

DESIGN = SequentialDesign(bank=5, most=8)


def draw_comparison(gain: float, seed: int) -> tuple[list[Look], str]:
    """The looks of one drawn comparison until its end, and what ended it."""
    rng = np.random.default_rng(seed)
    base, own, edges = rng.standard_normal(5), rng.standard_normal(8) + gain, boundary(DESIGN)
    looks: list[Look] = []
    for k in range(1, 9):
        looks.append(look := statistic(base, own[:k], higher=True))
        if look.t >= edges.keep[k - 1]:
            return looks, "keep"
        if look.t <= edges.discard[k - 1]:
            return looks, "discard"
    return looks, "undecided"


def test_noncentral_t_is_scipys() -> None:
    for df, ncp in ((1, 0.5), (4, 2.0), (24, 6.0), (200, 3.0)):
        t = np.array([-2.0, 0.1, 1.5, 4.0, 9.0])
        expected = stats.nct.logpdf(t, df, ncp) - stats.t.logpdf(t, df)
        np.testing.assert_allclose(log_ratio(t / np.sqrt(df + t * t), df, ncp), expected, atol=1e-6)


def test_a_keep_is_where_the_interval_excludes_no_gain() -> None:
    for seed in range(6):
        looks, end = draw_comparison(1.5, seed)
        result = estimate(DESIGN, looks, end)  # type: ignore[arg-type]
        assert (result.low >= 0) == (end == "keep")
        assert result.low <= result.median <= result.high
        assert result.p <= DESIGN.alpha or end != "keep"


def test_the_interval_is_the_boundary_turned_around() -> None:
    def at(k: int, t: float) -> Look:
        root = math.sqrt(DESIGN.information(k))
        return Look(k=k, t=t, df=DESIGN.df(k), sigma=2.0, gain=t * 2.0 / root, information=DESIGN.information(k))

    path, edge = [at(1, 1.0), at(2, 1.5), at(3, 1.6)], boundary(DESIGN).keep[3]
    for t, end in ((edge - 0.01, "undecided"), (edge + 0.01, "keep")):
        result = estimate(DESIGN, [*path, at(4, t)], end)  # type: ignore[arg-type]
        assert (result.low > 0) == (end == "keep")
        width = (result.high - result.low) * math.sqrt(DESIGN.information(4)) / 2.0
        assert width == pytest.approx(edge + 2.806, abs=0.02)  # the upper end's, which may act from the first look on
    early = estimate(DESIGN, [at(1, -0.5)], "discard")
    assert early.low == -math.inf, "one run keeps nothing, and so says nothing from below"
    assert early.high * math.sqrt(DESIGN.information(1)) / 2.0 == pytest.approx(4.315 - 0.5, abs=0.01)


def test_an_estimate_of_a_keep_is_below_the_plain_mean() -> None:
    looks = [
        Look(k=k, t=t, df=DESIGN.df(k), sigma=2.0, gain=0.0, information=DESIGN.information(k))
        for k, t in ((1, 1.0), (2, 2.0), (3, 3.5))
    ]
    plain = 3.5 * 2.0 / math.sqrt(looks[-1].information)
    ending = [*looks[:2], replace(looks[2], gain=plain)]
    result = estimate(DESIGN, ending, "keep")
    assert 0.5 * plain < result.median < plain
    moved = [*looks[:2], replace(looks[2], gain=plain + 7, minimum_gain=7.0)]
    assert estimate(DESIGN, moved, "keep").median == pytest.approx(result.median + 7)


@pytest.mark.parametrize("gain", [0.0, 1.5])
def test_a_result_at_the_true_gain_is_no_outlier(gain: float) -> None:
    """The stage-wise p-value at the truth is uniform: that makes the median unbiased."""
    chances = []
    for seed in range(80):
        looks, _ = draw_comparison(gain, 1000 + seed)
        chances.append(chance_reached(DESIGN, gain, looks[-1].k, looks[-1].t))
    assert stats.kstest(chances, "uniform").pvalue > 0.001


def test_an_estimate_of_another_experiment_is_refused() -> None:
    looks, end = draw_comparison(1.5, 0)
    with pytest.raises(PlumblineError, match="degrees of freedom"):
        estimate(SequentialDesign(bank=6, most=8), looks, end)  # type: ignore[arg-type]
    with pytest.raises(PlumblineError, match="stopped_by"):
        estimate(DESIGN, looks, "discard" if end == "keep" else "keep")
    with pytest.raises(PlumblineError, match="no look"):
        estimate(DESIGN, [], "undecided")


def test_sigma_is_pooled_without_its_means() -> None:
    spread = pooling.pool_spreads([[1.0, 2.0, 3.0], [101.0, 102.0, 103.0], [7.0]])
    assert spread == (pytest.approx(1.0), 4)
    assert pooling.pool_spreads([]) == (0.0, 0)
    with pytest.raises(PlumblineError, match="group 2"):
        pooling.pool_spreads([[1.0, 2.0], [math.nan, 1.0]])


def test_fresh_runs_are_tested_as_students_t_has_it() -> None:
    rng = np.random.default_rng(2)
    bank, fresh = rng.normal(0, 1, (3, 5)), rng.normal(0.3, 1, (3, 4))
    expected = stats.ttest_ind(fresh, bank, axis=1, alternative="greater")
    np.testing.assert_allclose(p_of_fresh_runs(bank, fresh), expected.pvalue)
    result = estimate_single_test(statistic(bank[0], fresh[0], higher=True), alpha=0.05)
    interval = stats.ttest_ind(fresh[0], bank[0]).confidence_interval(0.9)
    assert (result.p, result.low, result.high) == pytest.approx((expected.pvalue[0], interval.low, interval.high))


def test_bartletts_test_is_scipys() -> None:
    rng = np.random.default_rng(1)
    groups = [rng.normal(0, scale, size) for scale, size in ((1, 5), (2, 8), (1, 3))]
    assert pooling.bartlett_p(groups) == pytest.approx(stats.bartlett(*groups).pvalue)
    assert math.isnan(pooling.bartlett_p([[1.0, 2.0], [3.0]]))


def test_session_is_told_how_many_false_keeps_shared_bank_makes() -> None:
    keeps = false_keeps(DESIGN, 40)
    first = false_keeps(DESIGN, 1).mean
    assert first == pytest.approx(compute_characteristics(DESIGN, 0).kept, abs=0.01)
    assert keeps.mean < 0.5 * 40 * first, "a bad bank is made anew"
    assert false_keeps(DESIGN, 40, fresh_runs=5).mean < 0.65 * keeps.mean, "most are not confirmed"


def test_a_sentinel_tells_of_drift() -> None:
    assert [number for number in range(1, 12) if is_due(number)] == [3, 6, 9]
    when, values = [1, 2, 3, 9, 15], [3.00, 3.02, 2.99, 3.08, 3.15]
    line = stats.linregress(when, values)
    drift = measure_drift(values, when)
    assert (drift.p, drift.total) == (pytest.approx(line.pvalue), pytest.approx(14 * line.slope))
    with pytest.raises(PlumblineError, match="two times"):
        measure_drift([1.0, 2.0], [3, 3])
    with pytest.raises(PlumblineError, match="three runs"):
        measure_drift([1.0, 2.0], [3, 4])


def test_the_same_comparison_ends_the_same_way_by_either_code() -> None:
    """`ends` of drawn paths, which the simulations use, and the looks one after another, which users have."""
    for seed in range(20):
        looks, end = draw_comparison(1.0, seed)
        t = np.full((1, 8), np.nan)
        t[0, : len(looks)] = [look.t for look in looks]
        keep_rate, discarded, runs = find_ends(boundary(DESIGN), t)
        assert ("keep" if keep_rate[0] else "discard" if discarded[0] else "undecided", runs[0]) == (end, len(looks))
