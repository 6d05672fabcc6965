"""The gain by budget, derived a second time from its model: each arm has a normal law of its own at each budget.

The model, in neutral words: cells i have means m_i of n_i normal values with variances v_i. A quantity is L m, L a row
of numbers; its estimate has the variance L D L', D = diag(v_i / n_i), and the variance of *that* estimate follows from
v_i being chi-squared over n_i - 1, by the gradient of L D L' in v. The slope is the second coefficient of the
regression of the differences of the cells of a budget on (1, log2 budget).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.stats.gain_by_budget import GainCourse, WelchEstimate, measure_gains

Values = dict[float, tuple[list[float], list[float]]]


def draw(seed: int, gains: list[float], n: int = 5, widths: tuple[float, ...] = (1.0, 1.0)) -> Values:
    rng = np.random.default_rng(seed)
    return {
        float(at): (
            (rng.standard_normal(n) * widths[0] - at).tolist(),
            (rng.standard_normal(n) * widths[1] - at - gain).tolist(),
        )
        for at, gain in enumerate(gains)
    }


def derive(values: Values, weights_of_gains: np.ndarray) -> tuple[float, float, float]:
    """Estimate, standard error and degrees of freedom of a weighted sum of the gains (lower is better)."""
    cells = [np.array(arm) for at in sorted(values) for arm in values[at]]
    row = np.kron(weights_of_gains, [1.0, -1.0])  # baseline minus candidate
    means, n = np.array([cell.mean() for cell in cells]), np.array([len(cell) for cell in cells])
    variances = np.array([stats.tvar(cell) for cell in cells])

    def variance(v: np.ndarray) -> float:
        return float(row @ np.diag(v / n) @ row)

    step = 1e-6 * variances
    gradient = np.array([(variance(variances + e) - variance(variances - e)) / (2 * e.sum()) for e in np.diag(step)])
    spread = np.diag(2 * variances**2 / (n - 1))  # of the estimated variances
    return (
        float(row @ means),
        variance(variances) ** 0.5,
        float(2 * variance(variances) ** 2 / (gradient @ spread @ gradient)),
    )


def same(estimate: WelchEstimate, derived: tuple[float, float, float]) -> bool:
    return (estimate.value, estimate.error, estimate.df) == pytest.approx(derived, rel=1e-6)


def test_gains_slope_and_the_gain_beyond_are_those_of_the_model() -> None:
    values = draw(1, [2.0, 1.0, 0.5, 3.0], widths=(0.5, 2.0))
    values[4.5] = ([1.0, 2.0, 4.0], [1.0, 0.0, 0.0, 1.0, 0.5])  # budgets apart, and arms of unequal size
    gain = measure_gains(values, higher=False)
    design = np.column_stack([np.ones(5), sorted(values)])
    slope = np.linalg.pinv(design)[1]
    assert same(gain.slope, derive(values, slope))
    assert same(gain.gains[4], derive(values, np.eye(5)[4]))
    assert same(gain.beyond, derive(values, np.eye(5)[4] + slope))
    theirs, ours = values[4.5]
    welch = stats.ttest_ind(theirs, ours, equal_var=False, alternative="greater")
    assert gain.gains[4].p_above() == pytest.approx(welch.pvalue) and gain.gains[4].df == pytest.approx(welch.df)
    ends = welch.confidence_interval  # one-sided: the lower end of the two-sided interval at .9
    assert gain.gains[4].interval(0.9)[0] == pytest.approx(ends(0.95).low)


def test_each_part_is_shown_as_often_as_its_level_says() -> None:
    sessions = [measure_gains(draw(seed, [2.0, 2.0, 2.0], widths=(1.0, 2.0)), higher=False) for seed in range(1000)]
    share = np.mean([session.slope.p_below() <= 0.05 for session in sessions])
    inside = np.mean([session.slope.interval(0.9)[0] <= 0 <= session.slope.interval(0.9)[1] for session in sessions])
    at_last = np.mean([session.gains[2].p_above(2.0) <= 0.05 for session in sessions])
    assert abs(share - 0.05) < 0.02 and abs(at_last - 0.05) < 0.02 and abs(inside - 0.9) < 0.03


NOISE = [-0.1, -0.05, 0.0, 0.05, 0.1]


def course(*gains: float, higher: bool = True, minimum_gain: float = 0.0) -> GainCourse:
    sign = 1 if higher else -1
    values = {float(at): (NOISE, [each + sign * gain for each in NOISE]) for at, gain in enumerate(gains)}
    return measure_gains(values, higher=higher).find_course(0.05, minimum_gain)


@pytest.mark.parametrize("higher", [True, False])
def test_the_words(higher: bool) -> None:
    assert course(1.0, 1.0, 1.0, higher=higher) == GainCourse.HOLDS
    assert course(1.0, 0.9, 0.8, higher=higher) == GainCourse.HOLDS  # a slope that does not cancel it soon
    assert course(0.0, 0.5, 1.0, higher=higher) == GainCourse.HOLDS  # it comes with the budget
    assert course(1.0, 0.5, 0.25, higher=higher) == GainCourse.SHRINKS  # shown at each, and gone by the next doubling
    assert course(1.0, 0.5, 0.0, higher=higher) == GainCourse.SHRINKS
    assert course(1.0, 0.0, -1.0, higher=higher) == GainCourse.TURNS
    for nothing in ((0.0, 0.0, 0.0), (0.0, -0.5, -1.0), (-1.0, 0.0, 0.02), (-1.0, -1.0, -1.0)):
        assert course(*nothing, higher=higher) == GainCourse.NOT_DECIDED


def test_the_minimum_gain_is_asked_of_what_holds() -> None:
    assert course(1.0, 1.0, 1.0, minimum_gain=0.8) == GainCourse.HOLDS
    assert course(1.0, 1.0, 1.0, minimum_gain=0.99) == GainCourse.NOT_DECIDED


def test_what_has_no_slope_is_refused() -> None:
    with pytest.raises(PlumblineError, match="two budgets"):
        measure_gains({0.0: (NOISE, NOISE)}, higher=True)
    with pytest.raises(PlumblineError, match="two runs"):
        measure_gains({0.0: (NOISE, NOISE), 1.0: (NOISE, [1.0])}, higher=True)
    with pytest.raises(PlumblineError, match="one value"):
        measure_gains({0.0: ([1.0, 1.0], [2.0, 2.0]), 1.0: (NOISE, NOISE)}, higher=True)


def test_the_numbers_of_a_second_derivation() -> None:
    """Derived from the model in words by one who had not seen the code: value, error, df and one-sided p."""
    first, later = (
        ([3.12, 3.10, 3.15, 3.11], [3.01, 3.04, 2.99, 3.02]),
        ([2.80, 2.83, 2.79, 2.81], [2.74, 2.77, 2.73, 2.75]),
    )
    last = ([2.50, 2.52, 2.49, 2.53], [2.49, 2.50, 2.47, 2.505])
    estimate = measure_gains({0.0: first, 2.0: later, 4.0: last}, higher=False)
    gains = [(0.105, 0.015, 5.991780822), (0.06, 0.0120761473, 6.0), (0.01875, 0.0119678388, 5.843528654)]
    assert [(gain.value, gain.error, gain.df) for gain in estimate.gains] == [pytest.approx(each) for each in gains]
    assert estimate.gains[0].interval(0.9) == pytest.approx((0.0758451337, 0.1341548663))
    slope, beyond = estimate.slope, estimate.beyond
    expected = (-0.0215625, 0.004797324558, 11.33744377, 4.217945088e-4)
    assert (slope.value, slope.error, slope.df, slope.p_below()) == pytest.approx(expected)
    expected = (-0.0028125, 0.01542264805, 6.575652514, 0.5696036826)
    assert (beyond.value, beyond.error, beyond.df, beyond.p_above()) == pytest.approx(expected)
