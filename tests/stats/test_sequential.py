"""The stopping rule: its boundary by integration against the design's known values, against drawn runs and against
textbook t tests."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from benchmarks.decision_rules.pooled_design import PooledDesign
from plumbline.core.errors import PlumblineError
from plumbline.stats.sequential import SequentialDesign, boundary, compute_characteristics, statistic
from plumbline.stats.sequential.simulation import find_ends, simulate_paths

DEFAULT = SequentialDesign(bank=5, most=8)

#: Of two simulations of 6e6 paths that were made independently of this code: by past degrees of freedom, which no rule
#: of ours has, and the first look that keeps.
KNOWN = {
    (20, 2): [np.nan, 2.385, 2.379, 2.282, 2.184, 2.095, 2.012, 1.935],
    (20, 1): [2.700, 2.557, 2.422, 2.306, 2.199, 2.106, 2.020, 1.943],
    (0, 1): [4.315, 3.549, 3.101, 2.806, 2.587, 2.415, 2.275, 2.155],
}

GRID = [
    DEFAULT,
    SequentialDesign(bank=3, most=3),
    SequentialDesign(bank=1, most=5, alpha=0.1),
    SequentialDesign(bank=30, most=4, alpha=0.025, first_keep=1),
    SequentialDesign(bank=2, most=6, plan="interleaved"),
    SequentialDesign(bank=5, most=8, plan="interleaved"),
    SequentialDesign(bank=0, most=8, plan="paired"),
    SequentialDesign(bank=0, most=6, plan="paired", target_gain_sigmas=None),
]


def draw_paths(design: SequentialDesign, worlds: int, gain: float = 0.0, seed: int = 0) -> np.ndarray:
    """T of every look of so many drawn comparisons; in pairs the spread of a difference is 1."""
    rng = np.random.default_rng([seed, design.most])
    spread = np.sqrt(0.5) if design.plan == "paired" else 1.0
    baseline = spread * rng.standard_normal((worlds, design.baseline_runs(design.most)))
    candidate = spread * rng.standard_normal((worlds, design.most)) + gain
    return simulate_paths(design, baseline, candidate)


@pytest.mark.parametrize(("df", "first_keep"), KNOWN)
def test_the_boundary_has_the_known_values(df: float, first_keep: int) -> None:
    result = boundary(PooledDesign(bank=5, most=8, past_df=df, first_keep=first_keep))
    np.testing.assert_allclose(result.keep, KNOWN[df, first_keep], atol=0.01)
    assert result.error < 0.01


@pytest.mark.parametrize("design", GRID)
def test_what_is_integrated_is_what_drawn_runs_do(design: SequentialDesign) -> None:
    worlds, edges = 40_000, boundary(design)
    null = draw_paths(design, worlds)
    crossed = (null >= np.array(edges.keep)).any(axis=1).mean()
    assert abs(crossed - design.alpha) < 4 * np.sqrt(design.alpha / worlds), "non-binding: whoever never discards"
    for gain, t in ((0.0, null), (1.5, draw_paths(design, worlds, 1.5, seed=1))):
        theory = compute_characteristics(design, gain)
        keeps, discarded, runs = find_ends(edges, t)
        for share, expected in ((keeps.mean(), theory.kept), (discarded.mean(), sum(theory.discard))):
            assert abs(share - expected) < 4 * np.sqrt(0.25 / worlds)
        assert abs(runs.mean() - theory.runs) < 4 * runs.std() / np.sqrt(worlds)


@pytest.mark.slow
@pytest.mark.parametrize("design", [DEFAULT, SequentialDesign(bank=3, most=3)])
def test_the_boundary_by_drawn_runs_is_the_integrated_one(design: SequentialDesign) -> None:
    """The whole rule made again from drawn paths: the second derivation."""
    t = np.concatenate([draw_paths(design, 400_000, seed=seed) for seed in range(5)])
    worlds, spent, edges = len(t), 0, [np.nan] * design.most
    for look in range(design.first_keep, design.most + 1):
        share = round(design.alpha * look / design.most * worlds) - spent
        edges[look - 1] = float(-np.partition(-t[:, look - 1], share)[share])
        t, spent = t[t[:, look - 1] <= edges[look - 1]], spent + share
    np.testing.assert_allclose(edges, boundary(design).keep, atol=0.01)


def test_a_null_change_costs_some_two_runs_and_gains_are_found() -> None:
    assert 2.0 < compute_characteristics(DEFAULT, 0).runs < 2.6
    assert sum(compute_characteristics(DEFAULT, 2).discard) <= DEFAULT.futility + 1e-6
    alone = PooledDesign(bank=5, most=8, past_df=20, target_gain_sigmas=None)
    assert compute_characteristics(alone, 0).runs > 7
    np.testing.assert_allclose(
        [compute_characteristics(alone, gain).kept for gain in (1, 2, 3)], [0.49, 0.95, 1.0], atol=0.01
    )


def test_the_statistic_is_students() -> None:
    rng = np.random.default_rng(3)
    base, own = rng.normal(3, 0.1, 6), rng.normal(2.9, 0.1, 4)
    look = statistic(base, own, higher=False, minimum_gain=0.02)
    expected = stats.ttest_ind(base - 0.02, own)
    assert (look.k, look.df) == (4, 8)
    assert look.t == pytest.approx(expected.statistic)
    assert statistic(base[:4], own, higher=True, plan="paired").t == pytest.approx(
        stats.ttest_rel(own, base[:4]).statistic
    )


def test_a_wider_candidate_has_the_stricter_of_students() -> None:
    rng, stricter = np.random.default_rng(5), 0
    design = SequentialDesign(bank=5, most=8, allow_wider=True)
    for width in (0.3, 1.0, 4.0):
        base_WB, own_WK = rng.standard_normal((40, 5)), 1 + width * rng.standard_normal((40, 8))
        t_WK = simulate_paths(design, base_WB, own_WK)
        for world, look in itertools.product(range(40), range(1, 8)):
            base, own = base_WB[world], own_WK[world, : look + 1]
            of_arms = statistic(base, own, higher=True, allow_wider=True)
            assert of_arms.t == pytest.approx(t_WK[world, look])
            assert of_arms.t == pytest.approx(of_arms.gain / of_arms.standard_error)
            student, welch = (stats.ttest_ind(own, base, equal_var=equal, alternative="greater") for equal in (1, 0))
            median = stats.f.ppf(0.5, look, 4)
            if own.var(ddof=1) / base.var(ddof=1) > median and student.pvalue < min(0.5, welch.pvalue):
                assert stats.t.sf(of_arms.t, look + 4) == pytest.approx(welch.pvalue)
                stricter += 1
            else:
                assert of_arms.t == pytest.approx(student.statistic) and of_arms.allowance == 1
    assert stricter > 100


def test_what_a_wider_candidate_is_allowed_costs_little() -> None:
    """A change that does nothing and spreads twice as widely; without the allowance it is kept in .08."""
    design = SequentialDesign(bank=5, most=8, allow_wider=True)
    rng, edges = np.random.default_rng(0), boundary(design)
    own_WK = rng.standard_normal((40_000, 8))
    base_WB = rng.standard_normal((40_000, 5))
    assert find_ends(edges, simulate_paths(design, base_WB, 2 * own_WK))[0].mean() < 0.06
    for gain in (0.0, 2.0):
        keep_rate = find_ends(edges, simulate_paths(design, base_WB, own_WK + gain))[0].mean()
        assert compute_characteristics(design, gain).kept == pytest.approx(keep_rate, abs=0.006)
        assert keep_rate == pytest.approx(compute_characteristics(DEFAULT, gain).kept, abs=0.01)


def test_values_of_any_size_have_a_statistic() -> None:
    base, own = [1.0, 2.0, 3.0], [4.0, 6.0]
    expected = statistic(base, own, higher=True).t
    for size in (1e-300, 1e200):
        scaled = statistic([size * value for value in base], [size * value for value in own], higher=True)
        assert scaled.t == pytest.approx(expected)


@pytest.mark.parametrize(
    ("base", "own", "message"),
    [
        ([1.0, float("nan")], [2.0], "baseline.*no finite"),
        ([1.0, 2.0], [float("inf")], "candidate.*no finite"),
        ([], [1.0], "baseline has no runs"),
        ([1.0], [2.0], "nothing.*spread"),
        ([0.1, 0.1, 0.1], [0.3], "reach.*trainer"),
    ],
)
def test_what_no_statistic_is_of_is_refused(base: list[float], own: list[float], message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        statistic(base, own, higher=True)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"bank": 0}, "bank"),
        ({"most": 1}, "first_keep"),
        ({"alpha": 0.0}, "alpha"),
        ({"target_gain_sigmas": -1.0}, "target_gain_sigmas"),
        ({"futility": 1.0}, "futility"),
        ({"plan": "random"}, "plan"),
    ],
)
def test_a_design_without_a_boundary_is_refused(terms: dict[str, object], message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        SequentialDesign(**{"bank": 5, "most": 8, **terms})  # type: ignore[arg-type]


def test_the_rule_starts_without_heavy_libraries() -> None:
    lines = (
        "import sys, plumbline.stats.after_stopping, plumbline.stats.sentinel, plumbline.stats.sessions",
        "import plumbline.stats.pooling",
        "print([name for name in ('pandas', 'torch', 'scipy.stats', 'scipy.optimize') if name in sys.modules])",
    )
    process = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
