"""What luck alone gives a series of tries, against a quadrature and against tries that the package's own rule ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special

from plumbline.stats.luck_band import HIGH, LOW, WORLDS, StoppingRule, draw_bands
from plumbline.stats.sequential import SequentialDesign, boundary, statistic

#: Four standard errors of a quantile's level, as so many worlds give it.
LEVELS = {level: 4 * math.sqrt(level * (1 - level) / WORLDS) for level in (LOW, HIGH)}


def chance_of_best(x: float, runs: list[int], bank: int) -> float:
    """Chance that the best mean of tries of nothing with so many runs is at most x sigma above the baseline's mean:
    E_z prod Phi(sqrt(n) (x + z / sqrt(bank))), by a Gauss-Hermite sum."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    z_N = x + nodes / math.sqrt(bank)
    log_N = sum(special.log_ndtr(math.sqrt(each) * z_N) for each in runs)
    return float(weights @ np.exp(log_N)) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("runs, bank", [([4], 5), ([1] * 60, 5), ([2, 2, 8, 3, 5, 1] * 4, 3)])
def test_tries_of_a_fixed_length_are_those_of_the_quadrature(runs: list[int], bank: int) -> None:
    *_, bounds = draw_bands([StoppingRule.of_runs(each) for each in runs], bank)
    for (level, error), bound in zip(LEVELS.items(), bounds):
        assert chance_of_best(bound, runs, bank) == pytest.approx(level, abs=error)


def test_one_try_is_the_law_of_a_difference_of_two_means() -> None:
    error = math.sqrt(1 / 4 + 1 / 5)
    (bounds,) = draw_bands([StoppingRule.of_runs(4)], 5)
    exact = optimize.brentq(lambda x: chance_of_best(x, [4], 5) - HIGH, 0, 9)
    assert exact == pytest.approx(error * float(special.ndtri(HIGH)), abs=1e-9)
    assert bounds == pytest.approx((-exact, exact), abs=0.03)


def test_tries_of_nothing_that_the_rule_ends_lie_within() -> None:
    design = SequentialDesign(bank=12, most=6)
    edges, rng, tries, worlds, fresh = boundary(design), np.random.default_rng(5), 4, 800, 5
    best = []
    for _ in range(worlds):
        bank, means = rng.standard_normal(12), []
        for _ in range(tries):
            own = rng.standard_normal(6)
            for look in range(6):
                t = statistic(bank, own[: look + 1], higher=True).t
                if t >= edges.keep[look]:
                    means.append(rng.standard_normal(fresh).mean())
                    break
                if t <= edges.discard[look] or look == 5:
                    means.append(own[: look + 1].mean())
                    break
        best.append(max(means) - bank.mean())
    *_, (low, high) = draw_bands([StoppingRule(edges.keep, edges.discard, fresh)] * tries, 12)
    # Sigma is estimated there and known here.
    assert np.mean(np.asarray(best) <= high) == pytest.approx(HIGH, abs=0.03)
    assert np.mean(np.asarray(best) <= low) == pytest.approx(LOW, abs=0.03)


def test_stopping_bad_tries_early_leaves_less_luck() -> None:
    edges = boundary(SequentialDesign(bank=5, most=8))
    *_, (_, ruled) = draw_bands([StoppingRule(edges.keep, edges.discard, 5)] * 30, 5)
    *_, (_, single) = draw_bands([StoppingRule.of_runs(1)] * 30, 5)
    assert 0.5 < ruled < single / 1.5
