"""A trend with the order of runs: its p by every order, what it is not fooled by, what a session spends."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.stats.order_trend import (
    FRESH_LEVEL,
    SESSION_ERROR,
    count_rises,
    measure_trend,
    p_of_rises,
    spend_level,
    tail_of_rises,
)


def test_p_is_share_of_all_orders_of_arms_that_rise_or_fall() -> None:
    arms = [[3.0, 1.0, 4.0, 5.0], [2.0, 6.0, 7.0]]
    trend = measure_trend(arms)
    rises = [
        sum(int(count_rises(np.array([order]))[0]) for order in orders)
        for orders in product(*(permutations(arm) for arm in arms))
    ]
    assert trend.p == pytest.approx(np.mean(np.abs(rises) >= 7)) and trend.correlation == pytest.approx(7 / 9)
    values = [5.0, 1.0, 2.0, 9.0, 4.0, 8.0, 7.0]
    expected = stats.kendalltau(range(7), values, method="exact")
    assert (measure_trend([values]).correlation, measure_trend([values]).p) == pytest.approx(tuple(expected))


def test_neither_a_gain_nor_a_wider_arm_is_a_trend() -> None:
    steady = [[5.0, 1.0, 3.0, 2.0, 4.0], [1.0, 3.0, 2.0]]
    moved = [steady[0], [100 - 30 * value for value in steady[1]]]
    assert measure_trend([steady[0], [100 + 30 * value for value in steady[1]]]) == measure_trend(steady)
    assert measure_trend(moved).p > 0.5
    # Ten values that fall, of two arms: 1 in 5! squared, up or down.
    assert measure_trend([[5.0, 4.0, 3.0, 2.0, 1.0]] * 2).p == pytest.approx(2 / 120**2)


def test_equal_values_are_no_trend() -> None:
    assert measure_trend([[1.0, 1.0, 1.0]]).p == 1
    assert p_of_rises(200, (41,)) == pytest.approx(p_of_rises(200, (40,)), abs=0.01)
    assert tail_of_rises((40,))[200] == pytest.approx(p_of_rises(200, (40,)))
    with pytest.raises(PlumblineError, match="runs of one arm"):
        measure_trend([[1.0], [2.0]])
    with pytest.raises(PlumblineError, match="finite"):
        measure_trend([[1.0, float("nan")]])


def test_all_tries_of_a_session_spend_the_error_and_no_more() -> None:
    spent = np.cumsum([spend_level(tries) for tries in range(1, 100_000)])
    assert 0.88 * SESSION_ERROR < spent[39] < spent[-1] < SESSION_ERROR
    assert spent[-1] == pytest.approx(SESSION_ERROR, rel=1e-3)
    assert spend_level(1, fresh=True) == spend_level(40, fresh=True) == FRESH_LEVEL
    assert spent[39] + 40 * 0.05 * FRESH_LEVEL < 0.05, "what does nothing is kept by the looks in 1 of 20 at most"


def test_the_page_of_rates_agrees_with_a_simulation() -> None:
    page = (Path(__file__).parents[2] / "benchmarks/evidence_rates.md").read_text()
    rows = [[cell.strip().partition(" ")[0] for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    rng = np.random.default_rng(0)

    def beats(gain: float, level: float, *, width: float = 1.0, drift: float = 0.0) -> float:
        base, own = rng.standard_normal((2, 40_000, 5))
        base, own = base + 2 * drift * np.arange(5), width * own + gain + drift * (2 * np.arange(5) + 1)
        return float((stats.ttest_ind(own, base, axis=1, alternative="greater").pvalue <= level).mean())

    wide = next(row for row in rows if row[:2] == ["the", "2"])
    assert float(wide[-1]) == pytest.approx(beats(0, 0.025, width=2), abs=0.005)
    real = next(row for row in rows if row[:2] == ["first", "2"])
    looks, keeps, refused = map(float, real[2:5])
    assert keeps + refused == pytest.approx(looks * beats(2, 0.25), abs=0.01)
    drifting = next(row for row in rows if row[:2] == ["0.2", "no"])
    assert float(drifting[3]) == pytest.approx(float(drifting[2]) * beats(0, 0.25, drift=0.2), abs=0.01)
