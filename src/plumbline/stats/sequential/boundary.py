"""Spends the error over the looks: above one boundary a candidate is kept, below another it is discarded.

Keep: the error spent up to look k is alpha k / K (Lan and DeMets 1983, "Discrete sequential boundaries for clinical
trials", with their linear spending function; Jennison and Turnbull 2000, chapter 7). Discard: the error of the second
kind at `target_gain_sigmas` is spent alike (Pampallona, Tsiatis and Kim 2001; Anderson 2008), and not bindingly: the
boundary of keeps is made as if nobody ever discarded, so that the promised error holds for whoever runs on after one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from plumbline.stats.distributions import log_ratio
from plumbline.stats.sequential.design import SequentialDesign
from plumbline.stats.sequential.t_path_law import (
    NODES,
    POINTS,
    IntegrationGrid,
    RunArrival,
    list_arrivals,
    null_density,
    r_of,
    t_of_z,
    z_of_t,
)


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where a candidate is kept and discarded, one value for each look; NaN if a look cannot do it.

    Attributes:
        keep: keep if t is at least this.
        discard: discard if t is at most this; never above `keep`.
        df: degrees of freedom of sigma at each look.
        error: by how much a boundary may be off through its computation: the most that a grid twice as coarse moves it.
    """

    keep: tuple[float, ...]
    discard: tuple[float, ...]
    df: tuple[float, ...]
    error: float


@dataclass(frozen=True, slots=True)
class PathsToLooks:
    """The paths of t that lead to each look, as a boundary's computation has integrated them.

    Attributes:
        grid: the points z.
        state: information and degrees of freedom at each look with an estimate of sigma.
        still: chance, for a path that is at z then, of having stopped at no earlier look.
        still_kept: the same when only keeps stop.
    """

    grid: IntegrationGrid
    state: tuple[RunArrival, ...]
    still: tuple[np.ndarray, ...]
    still_kept: tuple[np.ndarray, ...]

    @staticmethod
    def look(state: RunArrival) -> int:
        """The number of a state's look."""
        assert state.look is not None  # only states with one are kept here
        return state.look


@cache
def boundary(design: SequentialDesign) -> Boundary:
    """Compute the boundaries of a design: some 0.1 s for eight looks."""
    fine, _ = integrate_paths(design)
    coarse, _ = integrate_paths(design, POINTS // 2 + 1, NODES // 2)
    pairs = zip(fine.keep + fine.discard, coarse.keep + coarse.discard, strict=True)
    error = max(
        (abs(fine_value - coarse_value) for fine_value, coarse_value in pairs if math.isfinite(fine_value)), default=0.0
    )
    return Boundary(fine.keep, fine.discard, fine.df, error)


@lru_cache(maxsize=64)
def integrate_paths(
    design: SequentialDesign, points: int = POINTS, nodes: int = NODES
) -> tuple[Boundary, PathsToLooks]:
    """Integrate the boundaries on one grid; return them and the paths that lead to each look."""
    grid, kept_error, discard_error = IntegrationGrid.of(points, nodes), 0.0, 0.0
    keep, discard = [math.nan] * design.most, [math.nan] * design.most
    entries: list[tuple[RunArrival, np.ndarray, np.ndarray]] = []
    both = keeps = np.ones(points)
    last_state, high, low = None, math.inf, -math.inf
    for state in list_arrivals(design):
        if last_state is not None:
            keeps = grid.advance(keeps, -math.inf, high, last_state, state)
            both = grid.advance(both, low, high, last_state, state) if design.target_gain_sigmas is not None else keeps
        last_state, high, low = state, math.inf, -math.inf
        if state.look is None:
            continue
        density = null_density(grid.z, state.df)
        if state.look >= design.first_keep:
            upper = grid.integrate_above(density * keeps)
            z = grid.find_quantile(upper, design.alpha * state.look / design.most - kept_error)
            kept_error += float(grid.interpolate(z, upper))
            high = keep[state.look - 1] = t_of_z(z, state.df)
        if design.target_gain_sigmas is not None:
            real = density * np.exp(
                log_ratio(r_of(grid.z, state.df), state.df, design.target_gain_sigmas * math.sqrt(state.information))
            )
            lower = grid.integrate_above((real * both)[::-1])[::-1]
            z = -grid.find_quantile(lower[::-1], design.futility * state.look / design.most - discard_error)
            z = min(z, float(z_of_t(high, state.df)))
            discard_error += float(grid.interpolate(z, lower))
            low = discard[state.look - 1] = t_of_z(z, state.df)
        entries.append((state, both, keeps))
    df = tuple(design.df(look) for look in range(1, design.most + 1))
    state_of, still, still_kept = zip(*entries, strict=True)
    return Boundary(tuple(keep), tuple(discard), df, math.nan), PathsToLooks(grid, state_of, still, still_kept)
