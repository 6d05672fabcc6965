"""Estimates every effect of a screen from its runs, chooses what gains, and names the levels that crash.

A gain counts upwards, whichever way the metric does. What was lost, crashed or is not there yet has no value: it leaves
the model, and the other runs stand as they are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import t_isf
from plumbline.stats.factor_effects import (
    EffectFit,
    fit_effects,
    p_of_crashes,
    p_of_gains,
    pool_residuals,
    trend_p,
)
from plumbline.stats.half_normal import LenthMargins, compute_lenth_margins, half_normal_quantiles
from plumbline.stats.interactions import estimate_interactions, make_interactions
from plumbline.stats.multiplicity import adjust
from plumbline.stats.pooling import SigmaEstimate, pool_spreads, wider_spread_p
from plumbline.verdict.screen.screen_design import Level, ScreenDesign
from plumbline.verdict.screen.screen_terms import Rule

#: Where sigma is from: the residuals of the design, past runs of the baseline, or both.
RESIDUALS, PAST, POOLED = "residuals", "past runs", "residuals and past runs"
#: The level of the intervals on the page.
INTERVAL = 0.9
#: Interactions that stand out, and levels that crash, are told at this error over all of them together.
INTERACTION_LEVEL, CRASH_LEVEL = 0.05, 0.03


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """What a level does against its factor's baseline, as an average over the levels of all others.

    Attributes:
        gain, error: in the metric's units, upwards is better; NaN if the runs do not tell it apart.
        p_gain, p_harm: one-sided.
        adjusted: p_gain corrected for all effects, by the rule.
        low, high: the interval at `INTERVAL`.
        selected: whether `adjusted` is at most the level.
        chosen: whether it is in the set that is confirmed: of a factor's levels, and of a forbidden pair, only the one
            that gains more, and none that was dropped.
    """

    level: Level
    gain: float
    error: float
    df: float
    p_gain: float
    p_harm: float
    adjusted: float
    low: float
    high: float
    selected: bool
    chosen: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Interaction:
    """What two levels gain together beyond their sum, where that stands out.

    Attributes:
        aliases: other pairs of the very same runs; it may be any of them.
        adjusted: two-sided p, times the number of those that were tested.
    """

    pair: tuple[Level, Level]
    aliases: tuple[tuple[Level, Level], ...]
    gain: float
    error: float
    adjusted: float


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenEffects:
    """Everything that the runs of a design say.

    Attributes:
        effects: one for each level but a factor's first, in the order of the factors.
        baseline: the mean of the baseline by the model, in the metric's units.
        sigma, df, source: of one run, and where it is from (`RESIDUALS`, `PAST`, `POOLED`).
        residual_sigma, residual_df: by the residuals alone.
        past_sigma, wider_p: sigma of the past runs, and the chance that residuals spread so much wider where they do
            not (F test); NaN without either.
        rule, level: what chooses.
        lenth: margins of Lenth, of gains over their unit errors.
        half_normal: for each effect that is estimated its quantile and its absolute gain over its unit error, the
            smallest first.
        interactions: those that stand out, and `interactions_tested` how many could.
        residuals: of each row what its effects leave of its value, upwards is better; None without a value.
        trend_p: chance that residuals follow the order of the runs so closely where nothing drifts.
        runs: with values.
    """

    effects: tuple[Effect, ...]
    baseline: float
    sigma: float
    df: float
    source: str
    residual_sigma: float
    residual_df: int
    past_sigma: float
    wider_p: float
    rule: Rule
    level: float
    lenth: LenthMargins
    half_normal: tuple[tuple[Level, float, float], ...]
    interactions: tuple[Interaction, ...]
    interactions_tested: int
    residuals: tuple[float | None, ...]
    trend_p: float
    runs: int


def estimate_effects(
    design: ScreenDesign,
    values: Sequence[float | None],
    *,
    higher: bool,
    past: Sequence[float] = (),
    rule: Rule = "bh",
    level: float = 0.1,
    dropped: Collection[Level] = (),
) -> ScreenEffects:
    """Estimate every effect, and choose those that gain.

    Args:
        values: of each row; None of a run that crashed, diverged or is not there yet.
        higher: whether higher values are better.
        past: values of the baseline's other runs, for sigma alone.
        level: false discovery rate (Benjamini and Hochberg) or family-wise error (Bonferroni), over all effects.
        dropped: levels that make runs crash, none of which is chosen.

    Raises:
        PlumblineError: another number of values than rows, one that is not finite, or none at all.
    """
    used = [place for place, value in enumerate(values) if value is not None]
    values_N = np.array([values[place] for place in used], dtype=float)
    if len(values) != len(design.rows) or not used or not np.isfinite([*values_N, *past]).all():
        raise PlumblineError(
            f"effects need a finite value, or None, for each of {len(design.rows)} rows, and one at least; got "
            f"{len(values)}, {len(used)} with a value"
        )
    sign = 1.0 if higher else -1.0
    x_NP = design.space.model_matrix(design.levels_NF[used])
    fit = fit_effects(x_NP, sign * values_N)
    pooled = pool_residuals(fit.squares_W, fit.df, sign * np.array([past], dtype=float))
    sigma, df = float(pooled.sigma_W[0]), float(pooled.df_W[0])
    source = POOLED if pooled.with_past_W[0] and fit.df else PAST if pooled.with_past_W[0] else RESIDUALS
    residual_sigma = math.sqrt(fit.squares_W[0] / fit.df) if fit.df else math.nan
    past_spread = pool_spreads([past] if len(past) else [])
    gains_Q, units_Q = fit.effects_WP[0, 1:], fit.unit_errors_P[1:]
    residuals = dict(zip(used, fit.residuals_WN[0].tolist(), strict=True))
    interactions, tested = _find_interactions(design, used, fit)
    return ScreenEffects(
        effects=tuple(_judge_effects(design, gains_Q, units_Q * sigma, df, rule, level, dropped)),
        baseline=sign * float(fit.effects_WP[0, 0]),
        sigma=sigma,
        df=df,
        source=source,
        residual_sigma=residual_sigma,
        residual_df=fit.df,
        past_sigma=past_spread.sigma if past_spread.df else math.nan,
        wider_p=wider_spread_p(SigmaEstimate(residual_sigma, fit.df), past_spread),
        rule=rule,
        level=level,
        lenth=compute_lenth_margins((gains_Q / units_Q).tolist()),
        half_normal=_place_half_normal(design, gains_Q / units_Q),
        interactions=interactions,
        interactions_tested=tested,
        residuals=tuple(residuals.get(place) for place in range(len(values))),
        trend_p=trend_p(x_NP, fit, used),
        runs=len(used),
    )


def _judge_effects(
    design: ScreenDesign,
    gains_Q: np.ndarray,
    errors_Q: np.ndarray,
    df: float,
    rule: Rule,
    level: float,
    dropped: Collection[Level],
) -> list[Effect]:
    p_gain_Q, p_harm_Q = p_of_gains(gains_Q, errors_Q, df), p_of_gains(-gains_Q, errors_Q, df)
    adjusted_Q = adjust(p_gain_Q, rule, m=len(gains_Q))
    selected_Q = adjusted_Q <= level  # never of NaN
    chosen_set = choose_set(design, gains_Q, selected_Q & [each not in dropped for each in design.effects])
    margin_Q = errors_Q * (float(t_isf((1 - INTERVAL) / 2, df)) if df else math.nan)
    return [
        Effect(
            level=each,
            gain=float(gain),
            error=float(error),
            df=df,
            p_gain=float(p_gain),
            p_harm=float(p_harm),
            adjusted=float(adjusted),
            low=float(gain - margin),
            high=float(gain + margin),
            selected=bool(selected),
            chosen=each in chosen_set,
        )
        for each, gain, error, p_gain, p_harm, adjusted, margin, selected in zip(
            design.effects, gains_Q, errors_Q, p_gain_Q, p_harm_Q, adjusted_Q, margin_Q, selected_Q, strict=True
        )
    ]


def choose_set(design: ScreenDesign, gains_Q: np.ndarray, selected_Q: np.ndarray) -> set[Level]:
    """Choose the levels of one run: those that were selected, the largest gain first, each if the run may have it."""
    levels = dict[str, str]()
    for place in sorted(np.flatnonzero(selected_Q), key=lambda place: -gains_Q[place]):
        name, level = design.effects[place]
        run = {*levels.items(), (name, level)}
        if name not in levels and not any(first in run and second in run for first, second in design.forbidden):
            levels[name] = level
    return set(levels.items())


def _place_half_normal(design: ScreenDesign, sizes_Q: np.ndarray) -> tuple[tuple[Level, float, float], ...]:
    places = [int(place) for place in np.argsort(np.abs(sizes_Q), kind="stable") if not math.isnan(sizes_Q[place])]
    quantiles = half_normal_quantiles(len(places))
    return tuple(
        (design.effects[place], float(quantile), float(abs(sizes_Q[place])))
        for place, quantile in zip(places, quantiles)
    )


def _find_interactions(
    design: ScreenDesign, used: Sequence[int], fit: EffectFit
) -> tuple[tuple[Interaction, ...], int]:
    """The interactions that stand out by t over all that can be tested (Bonferroni), the surest first."""
    if fit.df < 2:
        return (), 0
    columns = make_interactions(design.space, design.levels_NF[list(used)])
    tests = estimate_interactions(columns, fit.residuals_WN[0], fit.df)
    adjusted_I = adjust(tests.p_values, "bonferroni") if len(tests.groups) else np.empty(0)

    def pair_levels(place: int) -> tuple[Level, Level]:
        first, second = columns.pairs[place]
        return design.effects[first], design.effects[second]

    interactions = [
        Interaction(
            pair=pair_levels(group[0]),
            aliases=tuple(map(pair_levels, group[1:])),
            gain=float(gain),
            error=float(error),
            adjusted=float(adjusted),
        )
        for group, gain, error, adjusted in zip(tests.groups, tests.gains, tests.errors, adjusted_I, strict=True)
        if adjusted <= INTERACTION_LEVEL
    ]
    return tuple(sorted(interactions, key=lambda each: each.adjusted)), len(tests.groups)


def blame_crashes(
    design: ScreenDesign, crashed: Sequence[bool], causes: Collection[tuple[Level, ...]] = ()
) -> list[tuple[Level, ...]]:
    """Name what makes runs crash beside what is known: two levels that do so together, or one level.

    One after the other: the runs of what is known, or was named, leave before the rest is tested, since they would
    accuse what happened to be with it. Two come before one, which would be blamed for what it does with the other.

    Args:
        crashed: of the rows that were made, in their order; the others are not there yet.
        causes: levels and pairs of levels.
    """
    has_NQ = design.space.model_matrix(design.levels_NF[: len(crashed)])[:, 1:].astype(bool)
    there_N, crashed_N = np.ones(len(crashed), dtype=bool), np.asarray(crashed, dtype=bool)
    blamed = [tuple(map(design.effects.index, levels)) for levels in causes]
    for places in blamed:
        there_N &= ~has_NQ[:, places].all(axis=1)
    while crashed_N[there_N].any():
        own_NQ, own_N = has_NQ[there_N], crashed_N[there_N]
        places = _blame_pair(design, own_NQ, own_N) or _blame_level(own_NQ, own_N)
        if not places:
            break
        blamed.append(places)
        there_N &= ~has_NQ[:, places].all(axis=1)
    return [tuple(design.effects[place] for place in places) for places in blamed[len(causes) :]]


def _blame_level(has_NQ: np.ndarray, crashed_N: np.ndarray) -> tuple[int, ...]:
    """The level whose runs crash more than those without, by Fisher's exact test over all levels together."""
    runs, crashes = len(crashed_N), int(crashed_N.sum())
    hits_Q = has_NQ[crashed_N].sum(axis=0)
    p_values = [p_of_crashes(int(hits), int(count), crashes, runs) for hits, count in zip(hits_Q, has_NQ.sum(axis=0))]
    worst = int(np.argmin(p_values))
    return (worst,) if p_values[worst] * len(p_values) <= CRASH_LEVEL else ()


def _blame_pair(design: ScreenDesign, has_NQ: np.ndarray, crashed_N: np.ndarray) -> tuple[int, ...]:
    """The pair of levels that is in all crashed runs and whose runs all crashed, by the same test over all pairs."""
    columns, crashes = design.space.columns, int(crashed_N.sum())
    pairs = [pair for pair in combinations(range(len(columns)), 2) if columns[pair[0]][0] != columns[pair[1]][0]]
    if len(pairs) * p_of_crashes(crashes, crashes, crashes, len(crashed_N)) > CRASH_LEVEL:
        return ()
    equal = [pair for pair in pairs if (has_NQ[:, pair[0]] & has_NQ[:, pair[1]] == crashed_N).all()]
    return equal[0] if len(equal) == 1 else ()
