"""What a screen says of its runs: effects, what is chosen, interactions, and levels that crash."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.core.errors import PlumblineError
from plumbline.verdict.picture import PicturedGain
from plumbline.verdict.screen.screen_design import WITH, Factor, ScreenDesign, make_design
from plumbline.verdict.screen.screen_effects import (
    PAST,
    POOLED,
    RESIDUALS,
    ScreenEffects,
    blame_crashes,
    estimate_effects,
)
from plumbline.verdict.screen_picture import ScreenPicture

TWELVE = make_design([Factor(f"idea-{number}") for number in range(12)], runs=32, seed=3)
NOISE = np.random.default_rng(1).normal(0, 0.1, 32)


def has(design: ScreenDesign, number: int) -> np.ndarray:
    return design.levels_NF[:, number] == 1


def list_chosen(effects: ScreenEffects) -> dict[str, str]:
    return dict(each.level for each in effects.effects if each.chosen)


def gains_of(effects: ScreenEffects) -> dict[str, float]:
    return {effect.level[0]: effect.gain for effect in effects.effects}


@pytest.mark.parametrize("higher", [True, False])
def test_what_gains_is_chosen_whichever_way_the_metric_goes(higher: bool) -> None:
    sign = 1 if higher else -1
    values = 3.0 + sign * (0.5 * has(TWELVE, 0) - 0.4 * has(TWELVE, 1)) + NOISE
    effects = estimate_effects(TWELVE, values.tolist(), higher=higher, past=[3.0, 3.1, 2.9])
    assert list_chosen(effects) == {"idea-0": WITH} and effects.source == POOLED and effects.df == 21
    best, worst = effects.effects[0], effects.effects[1]
    assert best.gain == pytest.approx(0.5, abs=0.1) and best.low < 0.5 < best.high and best.p_gain < 1e-6
    assert worst.gain == pytest.approx(-0.4, abs=0.1) and worst.p_harm < 1e-6 and not worst.selected
    assert effects.baseline == pytest.approx(3.0, abs=0.1) and effects.sigma == pytest.approx(0.1, rel=0.5)
    values_left = [left for left in effects.residuals if left is not None]
    assert len(values_left) == 32 and sum(values_left) == pytest.approx(0, abs=1e-9)
    assert effects.half_normal[-1][0] == ("idea-0", WITH) and effects.lenth.simultaneous < effects.half_normal[-1][2]


@settings(max_examples=30, deadline=None)
@given(st.sets(st.integers(0, 31), max_size=14))
def test_runs_that_were_lost_shift_nothing(lost: set[int]) -> None:
    truth = 3.0 + sum(0.1 * number * has(TWELVE, number) for number in range(12))
    values = [None if row in lost else float(value) for row, value in enumerate(truth)]
    effects = estimate_effects(TWELVE, values, higher=True)
    for number, effect in enumerate(effects.effects):
        assert math.isnan(effect.gain) or effect.gain == pytest.approx(0.1 * number, abs=1e-9)
    assert effects.runs == 32 - len(lost) and [left is None for left in effects.residuals] == [
        row in lost for row in range(32)
    ]


def test_sigma_is_of_what_is_there() -> None:
    saturated = make_design([Factor(f"idea-{number}") for number in range(11)], runs=12, seed=1)
    values = np.random.default_rng(2).normal(size=12).tolist()
    alone = estimate_effects(saturated, values, higher=True)
    assert alone.df == 0 and math.isnan(alone.sigma) and not list_chosen(alone)
    past = estimate_effects(saturated, values, higher=True, past=[1.0, 2.0, 4.0])
    assert past.source == PAST and past.df == 2 and past.residual_df == 0
    wide = estimate_effects(TWELVE, (3 + 50 * NOISE).tolist(), higher=True, past=[3.0, 3.001, 2.999])
    assert wide.source == RESIDUALS and wide.df == 19


def test_residuals_wider_than_the_baselines_are_named() -> None:
    past = [3.0, 3.1, 2.9, 3.05, 2.95]
    beside = estimate_effects(TWELVE, (3 + NOISE).tolist(), higher=True, past=past)
    assert beside.wider_p > 0.05 and beside.past_sigma == pytest.approx(0.079, abs=1e-3)
    wide = estimate_effects(TWELVE, (3 + 10 * NOISE).tolist(), higher=True, past=past)
    assert wide.wider_p < 0.01 and wide.source == RESIDUALS
    assert math.isnan(estimate_effects(TWELVE, (3 + NOISE).tolist(), higher=True).wider_p)


def test_the_larger_gain_is_chosen_of_levels_and_forbidden_pairs() -> None:
    factors = [Factor("mixer", tuple("abc")), Factor("norm"), Factor("gate")]
    forbidden = ((("norm", WITH), ("gate", WITH)),)
    design = make_design(factors, forbidden=forbidden, runs=30, seed=1)
    gains = {("mixer", "b"): 1.0, ("mixer", "c"): 2.0, ("norm", WITH): 1.0, ("gate", WITH): 1.5}
    values = [
        sum(gains.get(level, 0.0) for level in design.settings(row).items()) + noise
        for row, noise in enumerate(NOISE[:30])
    ]
    effects = estimate_effects(design, values, higher=True)
    assert list_chosen(effects) == {"mixer": "c", "gate": WITH}
    assert all(effect.selected for effect in effects.effects)


@pytest.mark.parametrize(("rule", "least"), [("bh", 0.05), ("bonferroni", 0.0)])
def test_rules_keep_their_promise_where_nothing_gains(rule: str, least: float) -> None:
    rng, any_chosen = np.random.default_rng(4), []
    for _ in range(150):
        values = rng.standard_normal(32).tolist()
        effects = estimate_effects(TWELVE, values, higher=True, rule=rule, level=0.2)  # type: ignore[arg-type]
        any_chosen.append(any(each.chosen for each in effects.effects))
    assert least <= np.mean(any_chosen) <= 0.2 + 3 * math.sqrt(0.16 / 150)


def test_an_interaction_is_named_with_those_of_the_same_runs() -> None:
    values = 3.0 + 0.6 * (has(TWELVE, 4) & has(TWELVE, 7)) + NOISE
    effects = estimate_effects(TWELVE, values.tolist(), higher=True)
    (largest, *_) = effects.interactions
    pairs = {frozenset(name for name, _ in pair) for pair in (largest.pair, *largest.aliases)}
    assert frozenset(("idea-4", "idea-7")) in pairs and effects.interactions_tested >= 10
    assert abs(largest.gain) == pytest.approx(0.6, abs=0.2) and largest.adjusted < 0.01
    assert gains_of(effects)["idea-4"] == pytest.approx(0.3, abs=0.1)  # half of it
    assert estimate_effects(TWELVE, (3 + NOISE).tolist(), higher=True).interactions == ()


def test_values_that_drift_are_told() -> None:
    drift = estimate_effects(TWELVE, (3 + NOISE + 0.05 * np.arange(32)).tolist(), higher=True)
    assert drift.trend_p < 0.001 < estimate_effects(TWELVE, (3 + NOISE).tolist(), higher=True).trend_p


@pytest.mark.parametrize("values", [[1.0] * 31, [None] * 32, [math.nan] * 32])
def test_values_that_are_none_are_refused(values: Sequence[float | None]) -> None:
    with pytest.raises(PlumblineError, match="32 rows"):
        estimate_effects(TWELVE, values, higher=True)


@pytest.mark.parametrize(
    ("crashes", "blamed"),
    [
        (lambda design: has(design, 5), ["idea-5"]),
        (lambda design: has(design, 5) | (np.arange(32) == 3), ["idea-5"]),
        (lambda design: has(design, 5) | has(design, 9), ["idea-5", "idea-9"]),
        (lambda design: np.isin(np.arange(32), [4, 9, 20]), []),
        (lambda design: np.zeros(32, dtype=bool), []),
        (lambda design: np.ones(32, dtype=bool), []),
    ],
    ids=["one", "one, and one by chance", "two", "by chance", "none", "all"],
)
def test_levels_whose_runs_crash_are_named(crashes: Callable[[ScreenDesign], np.ndarray], blamed: list[str]) -> None:
    assert sorted(name for ((name, _),) in blame_crashes(TWELVE, crashes(TWELVE).tolist())) == blamed


def test_levels_are_seldom_blamed_for_what_crashes_by_chance() -> None:
    rng = np.random.default_rng(7)
    assert np.mean([bool(blame_crashes(TWELVE, (rng.random(32) < 0.2).tolist())) for _ in range(300)]) <= 0.05


def test_a_pair_is_named_only_if_it_explains_every_crash() -> None:
    pair, level = (("idea-2", WITH), ("idea-3", WITH)), (("idea-5", WITH),)
    both = has(TWELVE, 2) & has(TWELVE, 3)
    assert blame_crashes(TWELVE, both.tolist()) == [pair]
    assert blame_crashes(TWELVE, has(TWELVE, 2).tolist()) == [(("idea-2", WITH),)]
    assert blame_crashes(TWELVE, [True] + [False] * 31) == []
    either = (both | has(TWELVE, 5)).tolist()
    assert blame_crashes(TWELVE, either, [pair]) == [level]
    assert blame_crashes(TWELVE, either, [pair, level]) == []


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_half_normal_plot_is_of_four_effects_or_says_why_there_is_none(count: int) -> None:
    gains = [PicturedGain(name=f"idea-{number}", middle=0.1, low=0.0, high=0.2) for number in range(count)]
    picture = ScreenPicture(
        title="",
        metric="loss",
        interval="95 %",
        gains=gains,
        chosen=frozenset(),
        half_normal=[(gain.name, number + 0.5, 1.0) for number, gain in enumerate(gains)],
        pseudo_error=3.6,
        simultaneous=230.0,
    ).svg()
    assert ("margin: 230" in picture) == (count >= 4) != ("No half-normal plot" in picture)
    lowest = max(float(y) for y in re.findall(r' y="([\d.]+)"', picture))
    assert lowest < float(re.findall(r'height="([\d.]+)" role', picture)[0]), "within the picture"
