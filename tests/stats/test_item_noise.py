"""The sampling error of items: closed forms, coverage by simulation, seeds and items together, and the sentence."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.stats.item_noise import (
    MeanDifference,
    add_seed_error,
    compare_with_chance,
    item_distance,
    item_verdicts,
    mean_by_item,
    sampling_error,
    seeds_that_decide,
)
from plumbline.stats.noise_floor import NoiseFloor, noise_floor, two_sided_t
from plumbline.stats.pooling import combine_estimates, wider_power
from plumbline.stats.significance import significance


def answers(name: str, **tasks: list[float]) -> pd.Series:
    """A run's answers."""
    values = {(task, f"i{n}"): value for task, marks in tasks.items() for n, value in enumerate(marks)}
    return pd.Series(values, name=name, dtype=float).rename_axis(["task", "item"])


def cross_answers(rows: int, columns: int, right_rows: int, right_columns: int) -> tuple[list[float], list[float]]:
    """Two sides' answers that have nothing to do with each other, to the digit: one by the row of a grid of items, the
    other by the column."""
    grid = [(row, column) for row in range(rows) for column in range(columns)]
    return [float(row < right_rows) for row, _ in grid], [float(column < right_columns) for _, column in grid]


def test_unpaired_items_have_the_form_of_two_binomials() -> None:
    first, second = cross_answers(10, 10, 4, 3), cross_answers(5, 8, 1, 6)
    got = item_distance(answers("m", a=first[0], b=second[0]), [answers("r", a=first[1], b=second[1])])
    of_a, of_b = (0.4 * 0.6 + 0.3 * 0.7) / 99, (0.2 * 0.8 + 0.75 * 0.25) / 39  # n - 1: the variances are estimates
    assert got.delta == pytest.approx(((0.4 - 0.3) + (0.2 - 0.75)) / 2)
    assert got.se == pytest.approx(math.sqrt(of_a + of_b) / 2)
    assert got.df == pytest.approx((of_a + of_b) ** 2 / (of_a**2 / 99 + of_b**2 / 39))


def test_the_reference_is_the_mean_of_its_seeds_item_by_item() -> None:
    seeds = [answers("r1", a=[0, 0, 1, 1] * 4), answers("r2", a=[0, 1, 1, 1] * 4), answers("r3", a=[0, 0, 0, 1] * 4)]
    method = answers("m", a=[1, 0, 1, 1] * 4)[::-1]  # the order of items is nobody's business
    d = np.array([1, -1 / 3, 1 / 3, 0] * 4)
    got = item_distance(method, seeds)
    assert (got.delta, got.se) == pytest.approx((d.mean(), d.std(ddof=1) / 4))
    assert got.delta == pytest.approx(method.mean() - np.mean([seed.mean() for seed in seeds]))


def test_equal_answers_have_no_error_and_no_test() -> None:
    run = answers("m", a=[0, 1, 1, 0, 1, 0, 1, 1], b=[1, 0, 0, 0, 0, 0, 0, 1])
    got = item_distance(run, [run.rename("r"), run.rename("s")])
    assert got.delta == got.se == 0 and math.isnan(got.t) and math.isnan(got.p)
    assert add_seed_error(got, NoiseFloor(mean=0.5, sigma=0.01, n=3)).se == pytest.approx(0.01 * math.sqrt(4 / 3))


def test_other_items_are_refused_and_too_few_have_no_error() -> None:
    run = answers("m", a=[0.0, 1.0] * 4)
    with pytest.raises(PlumblineError, match=r"m and r .*: 1 .* i8 of a"):
        item_distance(run, [answers("r", a=[0.0, 1.0] * 4 + [1.0])])
    with pytest.raises(PlumblineError, match="one of them twice"):
        item_distance(run, [pd.concat([run, run[:1]]).rename("r")])
    with pytest.raises(PlumblineError, match="at least one run"):
        item_distance(run, [])
    few = answers("m", a=[0.0, 1.0] * 4, b=[0.0, 1.0])
    got = item_distance(few, [few * 0])
    assert got.delta == 0.5 and math.isnan(got.se) and math.isnan(got.p)
    assert math.isnan(add_seed_error(got, NoiseFloor(mean=0.0, sigma=0.1, n=3)).p)


def test_sixteen_items_task_cover_truth_as_often_as_they_say() -> None:
    """Trained runs held fixed: of each kind of item it is known who answers it, and items are drawn anew."""
    rng = np.random.default_rng(3)
    who_KR = np.array([[(kind >> run) & 1 for run in range(4)] for kind in range(16)])  # the method, and three seeds
    shares_TK = rng.dirichlet(np.where(who_KR.sum(axis=1) % 4 == 0, 3.0, 0.4), size=12)  # alike on most items
    gap_K = who_KR[:, 0] - who_KR[:, 1:].mean(axis=1)
    truth = float((shares_TK @ gap_K).mean())
    worlds = 1500
    kinds_TWN = [rng.choice(16, size=(worlds, 16), p=shares_K) for shares_K in shares_TK]
    got = [sampling_error([gap_K[kinds_WN[world]] for kinds_WN in kinds_TWN]) for world in range(worlds)]
    off_W = np.array([abs(gap.delta - truth) for gap in got])
    reach_W = stats.t.isf(0.025, [gap.df for gap in got]) * [gap.se for gap in got]
    assert np.mean(off_W <= reach_W) == pytest.approx(0.95, abs=4 * math.sqrt(0.05 * 0.95 / worlds))
    sides = [who_KR[kinds_WN] @ side for kinds_WN in kinds_TWN for side in ([1, 0, 0, 0], [0, 1 / 3, 1 / 3, 1 / 3])]
    unpaired_W = np.sqrt(sum(side_WN.var(axis=1, ddof=1) / 16 for side_WN in sides)) / 12
    assert np.mean(off_W <= 1.96 * unpaired_W) > 0.98, "errors that are not paired are too wide"


@pytest.mark.parametrize(("u", "e", "h"), [(0.0, 0.4, 0.0), (0.05, 0.4, 0.0), (0.03, 0.3, 0.5)])
def test_seeds_and_items_add_up_as_derived(u: float, e: float, h: float) -> None:
    """Worlds of other seeds and other items: the variance of delta, and what the two estimates are on average."""
    rng = np.random.default_rng(4)
    n, tasks, items, worlds = 3, 2, 10, 2500
    deltas, sums, seeds = [], [], []
    for _ in range(worlds):
        runs_RTN = u * rng.standard_normal((n + 1, 1, 1)) + e * rng.standard_normal((n + 1, tasks, items))
        runs_RTN += rng.standard_normal((tasks, items))  # how easy an item is
        runs_RTN[0] += h * rng.standard_normal((tasks, items))
        floor = noise_floor(runs_RTN[1:].mean(axis=(1, 2)))
        got = sampling_error(list(runs_RTN[0] - runs_RTN[1:].mean(axis=0)))
        deltas.append(got.delta)
        sums.append(add_seed_error(got, floor).se ** 2)
        seeds.append(floor.sigma**2 * (1 + 1 / n))
    luck, method = e**2 / items / tasks, h**2 / items / tasks
    truth = (1 + 1 / n) * (u**2 + luck) + method
    assert np.var(deltas) == pytest.approx(truth, rel=0.1)
    assert np.mean(seeds) == pytest.approx(truth - method, rel=0.1)
    assert np.mean(sums) == pytest.approx(truth + (1 + 1 / n) * luck, rel=0.1)


def test_the_smaller_degrees_of_freedom_hold_the_level() -> None:
    rng = np.random.default_rng(5)
    worlds, n, level = 200_000, 3, 0.05 / 19
    seeds = 0.9 * rng.chisquare(n - 1, worlds) / (n - 1)  # estimates of 0.9 and 0.1, of a variance of 1
    items = 0.1 * rng.chisquare(150, worlds) / 150
    t = np.abs(rng.standard_normal(worlds)) / np.sqrt(seeds + items)
    more = (seeds + items) ** 2 / (seeds**2 / (n - 1) + items**2 / 150)
    assert np.mean(two_sided_t(t, more) < level) > 6 * level
    assert np.mean(two_sided_t(t, n - 1) < level) < level
    for i in range(20):
        floor = NoiseFloor(mean=0.0, sigma=math.sqrt(seeds[i] / (1 + 1 / n)), n=n)
        alone = MeanDifference(delta=t[i], se=math.sqrt(items[i]), df=150.0)
        both = add_seed_error(alone, floor)
        assert both.df == 2 and both.p >= max(alone.p, float(two_sided_t(floor.prediction(t[i]), n - 1)))


def test_verdicts_count_the_methods_without_one() -> None:
    distances = {
        "a": MeanDifference(delta=0.03, se=0.01, df=90.0),
        "b": MeanDifference(delta=0.03, se=math.nan, df=math.nan),
    }
    frame = item_verdicts(distances, NoiseFloor(mean=0.5, sigma=0.005, n=6), m=19)
    assert frame.loc["a", "p_items_bonferroni"] == pytest.approx(19 * two_sided_t(3.0, 90))
    total = 0.03 / math.sqrt(0.01**2 + 0.005**2 * 7 / 6)
    assert frame.loc["a", "p_seeds_and_items"] == pytest.approx(two_sided_t(total, 5)) and frame.loc["b"].isna().all()
    without = item_verdicts(distances, NoiseFloor(mean=0.5, sigma=math.nan, n=1), m=19).loc["a"]
    assert without[["t_seeds_and_items", "p_seeds_and_items_bonferroni"]].isna().all()
    assert without["p_items"] == frame.loc["a", "p_items"]
    assert item_verdicts({}, NoiseFloor(mean=0.5, sigma=0.1, n=3), m=19).empty


@pytest.mark.parametrize(
    ("delta", "p_items", "p_both", "p_z", "word"),
    [
        (0.1, 0.01, 0.01, 0.001, "better"),
        (-0.1, 0.01, 0.05, 0.001, "worse"),
        (0.1, 0.06, 0.9, 1e-9, "not significant (item sampling)"),
        (0.0, math.nan, 1.0, 1.0, "not significant (item sampling)"),
        (0.1, 0.01, 0.9, 0.06, "not significant (seed variance)"),
        (0.1, 0.01, 0.06, 0.05, "inconclusive (baseline seeds)"),
        (0.1, 0.01, math.nan, math.nan, "inconclusive (baseline seeds)"),
        (0.1, math.nan, math.nan, 1e-9, "inconclusive (no item error)"),
    ],
)
def test_the_rule(delta: float, p_items: float, p_both: float, p_z: float, word: str) -> None:
    assert significance(delta, p_items=p_items, p_both=p_both, p_z=p_z) == word


def test_what_is_at_chance_below_it_or_above_it() -> None:
    right = [1.0, 0.0, 0.0, 0.0] * 4
    odd = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0] * 2
    seeds = [answers("r", guess=right, known=[1.0] * 15 + [0.0], never=[0.0] * 16, odd=odd, few=[0.0, 1.0])] * 2
    chance = {"guess": 0.25, "known": 0.25, "never": 0.0, "odd": 0.5, "few": 0.5}
    # Two of sixteen against a half: 0.375 below, and the standard error is 0.085.
    assert compare_with_chance(mean_by_item(seeds), chance) == {
        "guess": "at", "known": "above", "never": "at", "odd": "below"
    }  # fmt: skip


def test_what_a_floor_can_resolve() -> None:
    floor = noise_floor([0.48196, 0.48153, 0.48532])
    smallest = floor.smallest_called(m=19)
    assert 19 * two_sided_t(floor.prediction(floor.mean + smallest), 2) == pytest.approx(0.05)
    assert smallest / floor.sigma == pytest.approx(22.465, abs=0.001)
    assert floor.sigma_range() == pytest.approx((0.5207, 6.2847), abs=1e-4)
    assert math.isnan(noise_floor([0.5]).smallest_called()) and math.isnan(noise_floor([0.5]).sigma_range()[0])


def test_a_pooled_sigma_decides_what_three_seeds_cannot() -> None:
    """Table 2's own numbers: 2 degrees of freedom need a t of 19.5 after Bonferroni, 6 need 4.6."""
    qknorm = {"qknorm": MeanDifference(delta=0.05, se=0.003, df=5000.0)}
    floor, pooled = NoiseFloor(mean=0.4835, sigma=0.0021, n=3), combine_estimates((0.0021, 2), (0.0015, 2), (0.0013, 2))
    row = item_verdicts(qknorm, floor, m=19, pooled=pooled).loc["qknorm"]
    assert pooled.df == 6 and pooled.sigma == pytest.approx(math.sqrt((0.0021**2 + 0.0015**2 + 0.0013**2) / 3))
    assert row["p_seeds_and_items_bonferroni"] > 0.05 > row["p_pooled_seeds_and_items_bonferroni"]
    seeds = seeds_that_decide(qknorm["qknorm"], floor, 0.05 / 19)
    assert seeds is not None and seeds > 3
    for n in (seeds - 1, seeds):
        p = add_seed_error(qknorm["qknorm"], NoiseFloor(mean=0.0, sigma=0.0021, n=n)).p
        assert (p <= 0.05 / 19) == (n == seeds)
    assert seeds_that_decide(MeanDifference(delta=1e-4, se=0.003, df=5000.0), floor, 0.05 / 19) is None


def test_an_f_test_sees_half_of_threefold_spreads() -> None:
    draws = np.random.default_rng(0).standard_normal((20_000, 9))
    here = 9 * draws[:, :3].var(axis=1, ddof=1)
    elsewhere = (draws[:, 3:6].var(axis=1, ddof=1) + draws[:, 6:].var(axis=1, ddof=1)) / 2
    share = float(np.mean(stats.f.sf(here / elsewhere, 2, 4) <= 0.05))
    assert wider_power(2, 4, times=3) == pytest.approx(share, abs=0.01) and round(share, 2) == 0.52
    assert wider_power(2, 4, times=1) == pytest.approx(0.05)
