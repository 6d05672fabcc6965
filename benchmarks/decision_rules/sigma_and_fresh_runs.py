"""What fresh runs do to a keep, and what sigma of past runs would: both arms may spread wider than the past did.

Shapes: W worlds, B runs of the baseline, K of the candidate, N fresh ones of an arm. More is better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from decision_rules.pooled_design import PooledDesign
from decision_rules.rates_page import RatesPage, rng_of
from decision_rules.rules_and_noise_laws import DEFAULT, GAINS
from scipy import special

from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.sequential import SequentialDesign
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths

#: Fresh runs of a keep; how much wider than past runs both arms spread; past degrees of freedom.
FRESH, WIDTHS, PAST_DF = 5, (0.5, 1.0, 1.5, 2.0, 3.0), (20, 60)


@dataclass(frozen=True, kw_only=True)
class DrawnKeeps:
    """Worlds: which the looks keep (W), which of those the fresh runs confirm, candidate runs, and the fresh gain."""

    kept: np.ndarray
    confirmed: np.ndarray
    runs: np.ndarray
    gain: np.ndarray
    reach: np.ndarray


def draw_keeps(
    design: PooledDesign, worlds: int, *, gain: float = 0.0, wide: float = 1.0, own: float = 1.0
) -> DrawnKeeps:
    """Draw worlds: both arms spread by `wide`, the candidate by `own` times that; past runs spread by 1."""
    rng = rng_of("fresh", design.past_df, gain, wide, own)
    base_WB = wide * rng.standard_normal((worlds, design.bank))
    arms = [gain * wide + own * wide * rng.standard_normal((worlds, runs)) for runs in (design.most, FRESH)]
    t_WK = simulate_paths(SequentialDesign(bank=design.bank, most=design.most), base_WB, arms[0])
    if design.past_df:  # T by the sigma of these runs alone, turned into T by that of past runs too
        gain_WK = arms[0].cumsum(axis=1) / np.arange(1, design.most + 1) - base_WB.mean(axis=1, keepdims=True)
        information_K = np.array([design.information(look) for look in range(1, design.most + 1)])
        own_df_K = np.array([design.df(look) - design.past_df for look in range(1, design.most + 1)])
        squares_WK = own_df_K * information_K * (gain_WK / t_WK) ** 2 + rng.chisquare(design.past_df, (worlds, 1))
        t_WK = gain_WK / np.sqrt(squares_WK / (own_df_K + design.past_df)) * np.sqrt(information_K)
    kept_W, _, runs_W = find_ends(integrate_paths(design)[0], t_WK)
    fresh_base_WN = wide * rng.standard_normal((worlds, FRESH))
    confirmed_W = kept_W & (p_of_fresh_runs(fresh_base_WN, arms[1]) <= FRESH_LEVEL)
    df = 2 * FRESH - 2
    squares_W = sum(((arm - arm.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for arm in (fresh_base_WN, arms[1]))
    reach_W = special.stdtrit(df, 1 - design.alpha) * np.sqrt(squares_W / df * 2 / FRESH)
    shown_W = arms[1].mean(axis=1) - fresh_base_WN.mean(axis=1)
    return DrawnKeeps(kept=kept_W, confirmed=confirmed_W, runs=runs_W, gain=shown_W, reach=reach_W)


def fresh_runs(page: RatesPage) -> None:
    """What the looks keep, and what of it stays kept; whose sigma; what is told of the gain."""
    rows = []
    for past_df in (0, *PAST_DF):
        design = PooledDesign(bank=DEFAULT.bank, most=DEFAULT.most, past_df=past_df)
        cells = []
        for wide in WIDTHS if past_df else (1.0,):
            keeps = draw_keeps(design, page.worlds, wide=wide)
            cells.append(_format_keeps(keeps))
            if wide == 1.0:
                page.share(keeps.kept, 0.05, f"nulls of the looks, {past_df} past df")
        cells = cells if past_df else [f"{cells[0]}, at any width", "", "", "", ""]
        real = [draw_keeps(design, page.worlds, gain=gain) for gain in GAINS[1:]]
        runs = [draw_keeps(design, page.worlds).runs, real[1].runs]
        of = f"and of past runs, {past_df} df" if past_df else "of the bank and the candidate (ours)"
        rows.append((of, *cells, *map(_format_keeps, real), " / ".join(f"{each.mean():.1f}" for each in runs)))
    page.table(
        "Fresh runs after a keep, and whose sigma decides",
        f"What the looks keep, and what {FRESH} fresh runs of each arm confirm (one-sided p of a t test of these runs "
        f"alone at most {FRESH_LEVEL:g}). Nulls: both arms spread so much wider than the past runs. "
        "Past runs buy next to nothing of 2 sigma, and keep nulls where arms are wider.",
        [
            "sigma",
            *(f"null, {wide:g} times as wide" for wide in WIDTHS),
            *(f"{gain:g} sigma" for gain in GAINS[1:]),
            "candidate runs at 0 / 2 sigma",
        ],
        rows,
    )
    own, rows = PooledDesign(bank=DEFAULT.bank, most=DEFAULT.most), []
    for title, design, gain, wide in (
        *(("5 and at most 8", own, gain, 1.0) for gain in GAINS),
        *(("3 and at most 3", replace(own, bank=3, most=3), gain, 1.0) for gain in GAINS),
        ("5 and at most 8, candidate 2x as wide", own, 0.0, 2.0),
    ):
        keeps = draw_keeps(design, page.worlds, gain=gain, own=wide)
        gains = keeps.gain[keeps.confirmed]
        covered = np.abs(gains - gain) <= keeps.reach[keeps.confirmed]
        every = np.abs(keeps.gain - gain) <= keeps.reach
        rows.append(
            (title, f"{gain:g}", _format_keeps(keeps), f"{gains.mean():.2f}", page.share(covered), page.share(every))
        )
    page.table(
        "The gain that fresh runs tell",
        f"The mean of {FRESH} fresh runs less that of as many fresh ones of the baseline, with an interval of 90 %. "
        "They are chosen for nothing, but only what they confirm is kept: of changes that do nothing, those whose "
        "fresh runs look well by chance.",
        ["runs", "true gain", "kept, confirmed", "gain told of a keep, mean", "covered, of keeps", "covered, of all"],
        rows,
    )


def _format_keeps(keeps: DrawnKeeps) -> str:
    return f"{keeps.kept.mean():.3f}, {keeps.confirmed.mean():.3f}"
