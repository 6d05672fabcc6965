"""Bootstrap, Welch and Stouffer against scipy, printed numbers and simulation."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from plumbline.core.errors import PlumblineError
from plumbline.stats.bootstrap import bootstrap_interval, probability_not_above
from plumbline.stats.welch_and_stouffer import stouffer, task_correlation, welch, welch_per_task

BASELINE, SOFTPICK = [0.4820, 0.4815, 0.4853], [0.4922, 0.4905, 0.4931]


def test_bootstrap_of_three_seeds_warns_and_stays_inside_them():
    with pytest.warns(UserWarning, match="3 values: only 10 distinct resamples"):
        interval = bootstrap_interval([*BASELINE, math.nan])
    assert interval.n == 3 and interval.resamples == 10_000
    assert interval.low == pytest.approx(min(BASELINE)) and interval.high == pytest.approx(max(BASELINE))
    assert probability_not_above(SOFTPICK, BASELINE) == 0


@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_bootstrap_agrees_with_normal_interval_for_large_sample(method):
    sample = np.random.default_rng(1).normal(size=400)
    interval = bootstrap_interval(sample, method=method, resamples=2000)
    half = 1.96 * sample.std(ddof=1) / math.sqrt(sample.size)
    assert interval.low == pytest.approx(sample.mean() - half, abs=0.02)
    assert interval.high == pytest.approx(sample.mean() + half, abs=0.02)


def test_welch_reproduces_the_printed_softpick_test():
    test = welch(SOFTPICK, BASELINE)
    assert (round(test.t, 2), round(test.p, 4)) == (6.36, 0.0053)
    assert test.p_greater == pytest.approx(test.p / 2)
    assert math.isnan(welch([1.0], BASELINE).p) and math.isnan(welch([1.0, 1.0], [1.0, 1.0]).t)


def test_stouffer_agrees_with_scipy_without_correlation():
    p = [0.01, 0.2, 0.5, 0.03]
    plain = stouffer([*p, math.nan])
    assert plain.z == pytest.approx(scipy_stats.combine_pvalues(p, method="stouffer").statistic)
    assert (plain.tasks, plain.missing) == (4, 1)
    assert stouffer(p, np.eye(4)).z == pytest.approx(plain.z)
    # Four copies of one task are one task.
    assert stouffer([0.02] * 4, np.ones((4, 4))).p_one_sided == pytest.approx(0.02)


def test_only_correlation_aware_form_keeps_its_level():
    rng, tasks, rho = np.random.default_rng(2), 12, 0.4
    matrix = np.full((tasks, tasks), rho) + (1 - rho) * np.eye(tasks)
    z = rng.multivariate_normal(np.zeros(tasks), matrix, size=2000)
    p = scipy_stats.norm.sf(z)
    aware = np.mean([stouffer(row, matrix).p_one_sided < 0.05 for row in p])
    plain = np.mean([stouffer(row).p_one_sided < 0.05 for row in p])
    assert aware == pytest.approx(0.05, abs=0.015) and plain > 0.15


def test_per_task_tests_and_their_correlation():
    rng = np.random.default_rng(3)
    common = rng.normal(size=(200, 1))
    frame = pd.DataFrame(common + 0.5 * rng.normal(size=(200, 3)), columns=list("abc"))
    table = welch_per_task(frame.add([1.0, 0.0, -1.0]), frame)
    assert list(table.index) == ["a", "b", "c"] and table.p_greater["a"] < 1e-6 < 1 - 1e-6 < table.p_greater["c"]
    matrix = task_correlation([frame, frame + 7.0])
    np.testing.assert_allclose(matrix, frame.corr(), atol=1e-9)
    with pytest.warns(UserWarning, match="low rank"):
        task_correlation([frame.head(3)])
    with pytest.raises(PlumblineError, match=r"different tasks: \['c'\]"):
        welch_per_task(frame, frame[["a", "b"]])
