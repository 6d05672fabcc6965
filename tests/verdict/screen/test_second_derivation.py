"""A screen's numbers against a second derivation, made from their description alone: sums, loops and scipy's laws."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from plumbline.stats.factor_effects import fit_effects
from plumbline.stats.fresh_runs import compare_means
from plumbline.stats.interactions import estimate_interactions, make_interactions
from plumbline.verdict.screen.screen_course import is_clear
from plumbline.verdict.screen.screen_design import Factor, Level, ScreenDesign
from plumbline.verdict.screen.screen_effects import blame_crashes, estimate_effects
from plumbline.verdict.screen.screen_terms import Rule

BURMAN = np.array([[int("11011100010"[column - row]) for column in range(11)] for row in range(11)] + [[0] * 11])
DESIGNS = ("saturated", "part", "folded", "unbalanced", "untold", "mixed")
#: Rows without a value; the last idea of the untold design is in no other row, and two more are in the same rows.
LOST = {"unbalanced": (3, 11, 20), "untold": (3,)}
near = partial(pytest.approx, rel=1e-9, abs=1e-14, nan_ok=True)
worlds = pytest.mark.parametrize(("name", "seed"), list(product(DESIGNS, range(8))))


def draw_design(name: str, rng: np.random.Generator) -> ScreenDesign:
    sizes, forbidden = [2] * 11, ()
    levels_NF = {"part": BURMAN[:, :7], "folded": np.concatenate([BURMAN, 1 - BURMAN])}.get(name, BURMAN)
    if name == "mixed":
        sizes, forbidden = [3, 2, 3, 2, 2], ((("f0", "1"), ("f1", "1")),)
        allowed = np.array([row for row in product(*map(range, sizes)) if row[:2] != (1, 1)])
        levels_NF = rng.permutation(allowed)[:20]
    if name in LOST:
        levels_NF = (rng.random((25, 8)) < rng.uniform(0.3, 0.7, 8)).astype(int)
    if name == "untold":
        levels_NF[:, 7], levels_NF[:, 6] = np.isin(np.arange(25), LOST[name]), levels_NF[:, 5]
    factors = tuple(Factor(f"f{place}", tuple("012"[: sizes[place]])) for place in range(levels_NF.shape[1]))
    rows = tuple(tuple(map(str, row)) for row in levels_NF.tolist())
    return ScreenDesign(factors=factors, forbidden=forbidden, rows=rows, construction="", looks=())


def has_levels(design: ScreenDesign) -> np.ndarray:
    settings = map(design.settings, range(len(design.rows)))
    return np.array([[row[factor] == level for factor, level in design.effects] for row in settings])


def draw_world(name: str, rng: np.random.Generator) -> SimpleNamespace:
    """Runs, the places of the effects that they tell, and these by least squares."""
    design = draw_design(name, rng)
    has_NQ = has_levels(design)
    truth_N = has_NQ[:, :3] @ rng.permutation([0.5, 0.4, 0.3]) + 0.4 * (has_NQ[:, 0] & has_NQ[:, 4])
    y_N = 2 + (rng.random() < 0.7) * truth_N + rng.normal(0, 0.1, len(has_NQ))
    values = [None if row in LOST.get(name, ()) else value for row, value in enumerate(y_N.tolist())]
    used = [value is not None for value in values]
    x_NP, y_N = np.column_stack([np.ones(sum(used)), has_NQ[used]]), y_N[used]
    rank, pseudo = int(np.linalg.matrix_rank(x_NP)), np.linalg.pinv(x_NP)
    rows = np.eye(x_NP.shape[1])[1:]
    told = [place for place, row in enumerate(rows) if np.linalg.matrix_rank(np.vstack([x_NP, row])) == rank]
    effects, units = (pseudo @ y_N)[1:], np.sqrt(np.diag(np.linalg.pinv(x_NP.T @ x_NP)))[1:]
    left_N = y_N - x_NP @ pseudo @ y_N
    fit = {"told": told, "gains": effects[told], "units": units[told], "left_N": left_N, "df": len(y_N) - rank}
    return SimpleNamespace(design=design, values=values, x_NP=x_NP, y_N=y_N, **fit)


@worlds
@pytest.mark.parametrize(("rule", "sign"), [("bh", 1), ("bonferroni", -1)])
def test_effects_what_is_chosen_and_the_plot(name: str, seed: int, rule: Rule, sign: int) -> None:
    rng = np.random.default_rng(seed)
    world = draw_world(name, rng)
    past = 2 + (0.02, 0.15)[seed % 2] * rng.standard_normal(5)
    squares, past_squares = world.left_N @ world.left_N, ((past - past.mean()) ** 2).sum()
    wider = stats.f.sf(squares / world.df / (past_squares / 4), world.df, 4) if world.df else math.nan
    df = world.df + (0 if wider < 0.01 else 4)
    sigma = math.sqrt((squares + (0 if wider < 0.01 else past_squares)) / df)
    errors = world.units * sigma
    p, margins = stats.t.sf(world.gains / errors, df), stats.t.ppf(0.95, df) * errors
    m = len(world.design.effects)  # an effect that the runs do not tell is a test as well, with a p of 1
    adjusted = [m * own if rule == "bonferroni" else min(m * q / sum(p <= q) for q in p if q >= own) for own in p]
    values = [None if value is None else sign * value for value in world.values]
    effects = estimate_effects(world.design, values, higher=sign > 0, past=(sign * past).tolist(), rule=rule)
    assert (effects.sigma, effects.df, effects.wider_p) == (near(sigma), df, near(wider))
    told = [effect for effect in effects.effects if not math.isnan(effect.gain)]
    assert [effect.level for effect in told] == [world.design.effects[place] for place in world.told]
    numbers = [(own.gain, own.error, own.p_gain, own.adjusted, own.low, own.high) for own in told]
    low, high = world.gains - margins, world.gains + margins
    assert numbers == list(map(near, zip(world.gains, errors, p, np.minimum(adjusted, 1), low, high)))

    chosen, least = list[Level](), math.inf
    for place in np.argsort(-world.gains):
        own = told[place].level
        pairs = list(map(set, world.design.forbidden))
        if adjusted[place] <= 0.1 and not any(own[0] == other[0] or {own, other} in pairs for other in chosen):
            chosen, least = [*chosen, own], world.gains[place]
    assert dict(each.level for each in effects.effects if each.chosen) == dict(chosen)
    clear = len(told) == m and all(end < least for end, q in zip(high, adjusted) if q > 0.1)
    assert is_clear(effects) == (clear and bool(chosen))

    sizes, m = sorted(abs(world.gains / world.units)), len(world.told)
    quantiles = stats.halfnorm.ppf((np.arange(m) + 0.5) / m)
    assert [own[1:] for own in effects.half_normal] == list(map(near, zip(quantiles, sizes)))
    pseudo = 1.5 * np.median([size for size in sizes if size < 2.5 * 1.5 * np.median(sizes)])
    margins = [pseudo * stats.t.ppf(level, m / 3) for level in (0.975, (1 + 0.95 ** (1 / m)) / 2)]
    assert (effects.lenth.pseudo_error, effects.lenth.margin, effects.lenth.simultaneous) == near((pseudo, *margins))


@worlds
def test_interactions(name: str, seed: int) -> None:
    world = draw_world(name, np.random.default_rng(seed))
    names, shares = world.design.effects, {own.name: 1 / len(own.levels) for own in world.design.factors}
    centered = world.x_NP[:, 1:] - [shares[factor] for factor, _ in names]
    tests, directions = dict[tuple[int, int], tuple[float, float, float]](), list[np.ndarray]()
    for a, b in combinations(range(len(names)), 2):
        z = centered[:, a] * centered[:, b]
        rest = z - world.x_NP @ np.linalg.pinv(world.x_NP) @ z
        if world.df < 2 or names[a][0] == names[b][0] or rest @ rest < 1e-9:
            continue
        slope, squares = world.left_N @ rest / (rest @ rest), rest @ rest
        error = math.sqrt((world.left_N @ world.left_N - slope**2 * squares) / (world.df - 1) / squares)
        tests[a, b] = slope, error, 2 * stats.t.sf(abs(slope) / error, world.df - 1)
        rest /= math.sqrt(squares)
        if not any(abs(rest @ other) > 1 - 1e-9 for other in directions):
            directions.append(rest)
    levels_NF = world.design.levels_NF[[value is not None for value in world.values]]
    columns, fit = make_interactions(world.design.space, levels_NF), fit_effects(world.x_NP, world.y_N)
    own = estimate_interactions(columns, fit.residuals_WN[0], fit.df)
    groups = [[tuple(columns.pairs[place].tolist()) for place in group] for group in own.groups]
    assert sorted(pair for group in groups for pair in group) == sorted(tests)
    assert list(zip(own.gains, own.errors, own.p_values)) == [near(tests[group[0]]) for group in groups]
    effects = estimate_effects(world.design, world.values, higher=True)
    assert effects.interactions_tested == len(directions)
    adjusted = sorted(tests[group[0]][2] * len(directions) for group in groups)
    assert [each.adjusted for each in effects.interactions] == [near(p) for p in adjusted if p <= 0.05]


@pytest.mark.parametrize("sign", [1, -1])
def test_proof(sign: int) -> None:
    baseline, chosen = np.random.default_rng(5).normal([[2.0], [2.1]], [[0.1], [0.2]], (2, 5))
    test = stats.ttest_ind(sign * chosen, sign * baseline, alternative="greater")
    error = math.sqrt((chosen.var(ddof=1) + baseline.var(ddof=1)) / 2 * (1 / 5 + 1 / 5))
    own = compare_means(baseline.tolist(), chosen.tolist(), higher=sign > 0)
    assert (own.gain / own.error, own.error, own.df, own.p) == near((test.statistic, error, 8, test.pvalue))


def fisher(crashed_N: np.ndarray, has_N: np.ndarray) -> float:
    table = [[(crashed_N & has_N).sum(), (crashed_N & ~has_N).sum()], [(~crashed_N & has_N).sum(), 0]]
    table[1][1] = len(has_N) - sum(map(sum, table))
    return float(stats.fisher_exact(table, alternative="greater").pvalue)


@pytest.mark.parametrize("name", DESIGNS)
def test_levels_and_pairs_that_crash(name: str) -> None:
    rng = np.random.default_rng(6)
    for _ in range(80):
        design = draw_design(name, rng)
        has_NQ, names = has_levels(design)[: rng.integers(12, len(design.rows) + 1)], design.effects
        first_N, second_N, third_N = has_NQ[:, rng.permutation(len(names))[:3]].T
        crashed_N = [first_N & second_N, first_N | second_N, (first_N & second_N) | third_N][rng.integers(3)]
        crashed_N &= rng.random(len(crashed_N)) < rng.choice([1.0, 0.9])
        pairs = [(a, b) for a, b in combinations(range(len(names)), 2) if names[a][0] != names[b][0]]
        there_N, blamed = np.ones(len(crashed_N), dtype=bool), list[tuple[Level, ...]]()
        while crashed_N[there_N].any():
            own_N, own_NQ = crashed_N[there_N], has_NQ[there_N]
            p_values = [round(fisher(own_N, has_N), 12) for has_N in own_NQ.T]  # so that ties are ties
            same = [pair for pair in pairs if (own_NQ[:, pair].all(axis=1) == own_N).all()]
            worst: tuple[int, ...] = (int(np.argmin(p_values)),)
            if len(same) == 1 and fisher(own_N, own_N) * len(pairs) <= 0.03:
                worst = same[0]
            elif min(p_values) * len(names) > 0.03:
                break
            blamed.append(tuple(names[place] for place in worst))
            there_N &= ~has_NQ[:, worst].all(axis=1)
        assert blame_crashes(design, crashed_N.tolist()) == blamed
        assert blame_crashes(design, crashed_N.tolist(), blamed[:1]) == blamed[1:]
