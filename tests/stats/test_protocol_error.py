"""The worth of the protocol: simulation against an integral, corrections against the library's, limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.stats.multiplicity import adjust
from plumbline.stats.noise_floor import compute_verdicts
from plumbline.stats.protocol_error import (
    draw_studies,
    mark_rejected,
    simulate_pooled_test,
    simulate_protocol,
    standard_error,
)


def integral(n: int, m: int, statistic: str, alpha: float = 0.05) -> tuple[float, float]:
    """Any survivor and any improver under Bonferroni where nothing works: given the reference's mean and spread the
    methods are independent, and both have known laws."""
    if statistic == "normal":
        critical = stats.norm.isf(alpha / m / 2)
    else:
        critical = stats.t.isf(alpha / m / 2, n - 1) * np.sqrt(1 + 1 / n)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    means, weights = nodes / np.sqrt(n), weights / weights.sum()
    spreads = np.sqrt(stats.chi2.ppf((np.arange(4000) + 0.5) / 4000, n - 1) / (n - 1))
    below = stats.norm.cdf(means[:, None] + critical * spreads)
    inside = below - stats.norm.cdf(means[:, None] - critical * spreads)
    return tuple(1 - float(weights @ (part**m).mean(axis=1)) for part in (inside, below))  # type: ignore[return-value]


@pytest.mark.parametrize("statistic", ["normal", "prediction"])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_where_nothing_works_the_simulation_is_the_integral(statistic, n: int) -> None:
    result = simulate_protocol(statistic, "bonferroni", m=19, n=n)
    for share, exact in zip((result.survivor, result.improver), integral(n, 19, statistic), strict=True):
        assert abs(share - exact) < 4 * standard_error(exact)


def test_the_papers_protocol_crowns_half_of_null_worlds() -> None:
    survivor, improver = integral(3, 19, "normal")
    assert 0.45 < survivor < 0.47 and 0.31 < improver < 0.33
    assert max(integral(n, 19, "prediction")[0] for n in range(2, 11)) < 0.05


@pytest.mark.parametrize("correction", ["bonferroni", "holm", "bh"])
def test_corrections_are_those_of_the_tables(correction) -> None:
    rng = np.random.default_rng(1)
    p_WM = rng.uniform(size=(300, 7)) ** 4
    expected = np.array([adjust(p_M, correction) <= 0.05 for p_M in p_WM])
    assert np.array_equal(mark_rejected(p_WM, correction), expected) and 0 < expected.mean() < 1


def test_one_world_is_a_table() -> None:
    """What is counted is what the columns of Table 2 state about the same numbers."""
    reference_WN, methods_WM = draw_studies(5, 3, 400, 0)
    counted = {"normal": [], "prediction": []}
    for reference_N, methods_M in zip(reference_WN, methods_WM, strict=True):
        frame = compute_verdicts(pd.Series(methods_M), reference_N)
        counted["normal"].append((frame["p_holm"] <= 0.05).any())
        counted["prediction"].append((adjust(frame["p_run_vs_seeds"], "holm") <= 0.05).any())
    for statistic, any_W in counted.items():
        assert simulate_protocol(statistic, "holm", m=5, n=3, worlds=400).survivor == np.mean(any_W)  # type: ignore[arg-type]


def test_a_larger_gain_is_found_more_often() -> None:
    shares = simulate_protocol("prediction", "bonferroni", m=19, n=6, gains=(0.5, 2.0, 5.0, 1000.0), worlds=4000).power
    assert list(shares.values()) == sorted(shares.values()) and shares[1000.0] == 1.0
    single = simulate_protocol("normal", "bonferroni", m=1, n=400, gains=(1.5,), worlds=4000)
    assert single.survivor == pytest.approx(0.05, abs=4 * standard_error(0.05, 4000))
    assert single.power[1.5] == pytest.approx(stats.norm.sf(1.96 - 1.5), abs=4 * standard_error(0.32, 4000))


@pytest.mark.parametrize("wrong", [{"m": 0}, {"n": 1}, {"worlds": 0}, {"alpha": 1.0}])
def test_what_cannot_be_simulated_is_refused(wrong) -> None:
    with pytest.raises(PlumblineError, match=r"need m >= 1, n >= 2"):
        simulate_protocol("normal", "bh", **({"m": 3, "n": 3} | wrong))


def test_the_test_of_all_seeds_is_as_wrong_as_it_says() -> None:
    alike = simulate_pooled_test([0.5, 0.5], [6, 3], m=1)
    assert abs(alike - 0.05) < 4 * standard_error(0.05), "one method: Student's t, exactly"
    many = simulate_pooled_test([1.0] * 20, [6] + [3] * 19, m=19)
    assert 0.025 < many < 0.05, "Bonferroni, over differences that share a reference"
    assert simulate_pooled_test([0.1] * 20, [6] + [3] * 19, m=19) == many, "whatever the unit"
    assert simulate_pooled_test([1.0] * 19 + [4.0], [6] + [3] * 19, m=19) > 4 * many
    for spreads, seeds in (([1.0], [6]), ([1.0, 1.0], [1, 1]), ([1.0, 1.0], [3, 0])):
        with pytest.raises(PlumblineError, match=r"reference.*method"):
            simulate_pooled_test(spreads, seeds, m=1)
