"""How alike two columns order methods: by hand, its interval and chance against other computations, and bad input."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from plumbline.stats.order_agreement import order_agreement


def columns(n: int, noise: float, seed: int = 0) -> tuple[dict[str, float], dict[str, float]]:
    """Values of n methods, and the same with noise."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n)
    names = [f"m{i}" for i in range(n)]
    return dict(zip(names, values, strict=True)), dict(zip(names, values + noise * rng.normal(size=n), strict=True))


def test_by_hand_ties_and_missing_values() -> None:
    first = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 3.0, "only here": 9.0, "missing": 4.0}
    other = {"a": 1.0, "b": 3.0, "c": 2.0, "d": 4.0, "missing": math.nan, "only there": 1.0}
    result = order_agreement(first, other)
    # ab, ac, ad, bd alike; bc not; cd tied.
    assert (result.methods, result.pairs, result.alike, result.share) == (4, 6, 4.5, 0.75)
    assert order_agreement(first, {name: -value for name, value in first.items()}).alike == 0.5, "the tie alone"
    assert math.isnan(order_agreement({"a": 1.0}, {"a": 2.0}).share)
    few = order_agreement({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 1.0, "b": 2.0, "c": 3.0})
    assert few.share == 1 and math.isnan(few.low) and math.isnan(few.p)


def test_without_ties_it_is_kendalls_tau_and_its_p() -> None:
    first, other = columns(12, 0.8)
    result = order_agreement(first, other)
    tau = stats.kendalltau(list(first.values()), list(other.values()), alternative="greater")
    assert 2 * result.share - 1 == pytest.approx(tau.statistic)
    assert result.p == pytest.approx(tau.pvalue, abs=0.005)


def test_chance_is_where_random_orders_stay() -> None:
    result = order_agreement(*columns(5, 0.5, seed=3))
    shares = [
        np.mean([p[i] < p[j] for i, j in itertools.combinations(range(5), 2)]) for p in itertools.permutations(range(5))
    ]
    assert result.chance == pytest.approx(np.quantile(shares, 0.95), abs=0.1)
    assert result.p == pytest.approx(np.mean(np.array(shares) >= result.share - 1e-12), abs=0.015)


def test_its_interval_holds_the_true_share_of_the_population() -> None:
    """With correlated normal values the true share is 1/2 + arcsin(r) / pi."""
    rng = np.random.default_rng(0)
    r, covered = 0.7, 0
    true = 0.5 + math.asin(r) / math.pi
    for _ in range(60):
        values = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], size=20)
        first, other = ({f"m{i}": value for i, value in enumerate(column)} for column in values.T)
        result = order_agreement(first, other, draws=600)
        covered += result.low <= true <= result.high
    assert 48 <= covered <= 60  # 95 % would be 57; a bootstrap of 20 methods covers a little less


def test_pairs_that_do_not_count() -> None:
    first, other = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, {"a": 2.0, "b": 1.0, "c": 3.0, "d": 4.0}
    counted = np.ones((4, 4))
    counted[0, 1] = counted[1, 0] = 0  # the one pair that is not alike
    result = order_agreement(first, other, counted=counted)
    assert (result.alike, result.pairs, result.share, result.low) == (5, 5, 1.0, 1.0)
    assert math.isnan(order_agreement(first, other, counted=np.zeros((4, 4))).share)
