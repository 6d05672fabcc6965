"""Seeds that are all equal have no spread, whatever their value: nothing can be judged by them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.stats.item_noise import compare_with_chance, sampling_error
from plumbline.stats.noise_floor import compute_verdicts, noise_floor
from plumbline.stats.paired_runs import compute_paired_difference
from plumbline.stats.pooling import bartlett_p, pool_spreads
from plumbline.stats.power import power_of_gain
from plumbline.stats.sample_spread import sample_deviation
from plumbline.stats.welch_and_stouffer import welch
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.evidence import ItemEvidence
from plumbline.verdict.numbers.item_comparison import judge_items
from plumbline.verdict.outcome import CannotBeJudgedError

VALUE = st.one_of(st.sampled_from([0.2, 0.1 + 0.2, 1 / 3, -1e-12]), st.floats(-1e150, 1e150, allow_subnormal=False))


@given(VALUE, st.integers(2, 12), VALUE)
def test_equal_values_have_no_spread_in_any_estimator(value: float, n: int, other: float) -> None:
    equal, index = [value] * n, pd.RangeIndex(n)
    floor = noise_floor(equal)
    assert floor.sigma == 0 and not floor.usable
    with pytest.warns(UserWarning, match="no noise floor"):
        assert compute_verdicts(pd.Series({"m": other}), floor)[["z", "p", "p_run_vs_seeds"]].isna().all(axis=None)
    assert pool_spreads([equal, [other] * n]).sigma == 0 and math.isnan(bartlett_p([equal, [other] * n, [1.0, 2.0]]))
    with pytest.raises(PlumblineError, match="sigma must be above 0"):
        power_of_gain(1.0, floor.sigma, n)
    paired = compute_paired_difference(pd.Series(equal, index), pd.Series([other] * n, index))
    assert paired.sigma == 0 and math.isnan(paired.t) and math.isnan(paired.p)
    assert math.isnan(welch(equal, [other] * n).p)
    items = sampling_error([np.full(8, value), np.full(9, other)])
    assert items.se == 0 and math.isnan(items.t) and math.isnan(items.p)


@given(st.lists(st.floats(0.1, 5), min_size=2, max_size=6), st.floats(0.01, 3))
def test_equal_differences_have_no_spread(seeds: list[float], gain: float) -> None:
    theirs = pd.Series(seeds)
    paired = compute_paired_difference(theirs + gain, theirs)
    assert paired.sigma == 0 and math.isnan(paired.p)


def test_what_differs_keeps_its_deviation() -> None:
    values = np.array([0.2, 0.2, np.nextafter(0.2, 1)])
    assert sample_deviation(values) == values.std(ddof=1) > 0 and math.isnan(sample_deviation(values[:1]))


def test_items_of_one_value_are_beyond_a_guess_by_no_error() -> None:
    items = pd.Series(0.2, index=pd.MultiIndex.from_product([["t"], range(10)]))
    assert compare_with_chance(items, {"t": float(items.mean())}) == {"t": "at"}
    ours, theirs = ({"t": {str(n): ItemEvidence(value, "") for n in range(7)}} for value in (0.7, 0.1))
    with pytest.raises(CannotBeJudgedError, match="differ equally"):
        judge_items("a", ours, "b", theirs, ComparisonTerms(higher=True))
