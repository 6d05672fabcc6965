"""Computes how often a gain is kept or discarded under a design, and after how many runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from plumbline.stats.distributions import log_ratio
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.design import SequentialDesign
from plumbline.stats.sequential.simulation import find_ends, simulate_paths
from plumbline.stats.sequential.t_path_law import IntegrationGrid, RunArrival, null_density, r_of, z_of_t

#: Paths that are drawn where integration cannot help: a chance has a standard error of at most 0.0016.
WORLDS = 100_000


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatingCharacteristics:
    """The chances of a candidate of one true gain under a design, if both boundaries are obeyed.

    Attributes:
        keep: chance of being kept at each look.
        discard: chance of being discarded at each look.
    """

    keep: tuple[float, ...]
    discard: tuple[float, ...]

    @property
    def kept(self) -> float:
        """Chance of being kept: the power, or without a gain the error."""
        return sum(self.keep)

    @property
    def runs(self) -> float:
        """Candidate runs on average."""
        stopped = np.add(self.keep, self.discard)
        most = len(self.keep)
        return float(stopped @ np.arange(1, most + 1) + (1 - stopped.sum()) * most)


def compute_characteristics(design: SequentialDesign, gain: float) -> OperatingCharacteristics:
    """Compute what happens to a candidate of a true gain, beyond the least one, in sigma, where both arms spread alike.

    By integration; of a design that allows for a wider candidate by `WORLDS` drawn paths.
    """
    if design.allow_wider:
        return _simulate_characteristics(design, gain)
    edges, paths = integrate_paths(design)
    keep, discard = [0.0] * design.most, [0.0] * design.most
    for state, still in zip(paths.state, paths.still, strict=True):
        look = paths.look(state)
        above = chance_above(paths.grid, state, still, gain)
        keep[look - 1] = float(chance_beyond(paths.grid, state, above, edges.keep[look - 1]))
        if math.isfinite(edges.discard[look - 1]):
            discard[look - 1] = float(above[0] - chance_beyond(paths.grid, state, above, edges.discard[look - 1]))
    return OperatingCharacteristics(keep=tuple(keep), discard=tuple(discard))


@cache
def _simulate_characteristics(design: SequentialDesign, gain: float) -> OperatingCharacteristics:
    rng, edges = np.random.default_rng(0), integrate_paths(design)[0]
    base_WB = rng.standard_normal((WORLDS, design.baseline_runs(design.most)))
    own_WK = gain + rng.standard_normal((WORLDS, design.most))
    keep_W, discard_W, runs_W = find_ends(edges, simulate_paths(design, base_WB, own_WK))
    keep, discard = (
        tuple(float((ended_W & (runs_W == look)).mean()) for look in range(1, design.most + 1))
        for ended_W in (keep_W, discard_W)
    )
    return OperatingCharacteristics(keep=keep, discard=discard)


def chance_reached(
    design: SequentialDesign, gain: float, look: int, t: np.ndarray | float, *, heeded: bool = True
) -> np.ndarray:
    """Compute the chance, at a true gain in sigma, of a keep before a look or at least so large a t at it.

    Args:
        t: one or many.
        heeded: whether a discard ends the runs; otherwise only keeps do.
    """
    edges, paths = integrate_paths(design)
    total = np.zeros(np.shape(t))
    for state, still in zip(paths.state, paths.still if heeded else paths.still_kept, strict=True):
        number = paths.look(state)
        if number <= look:
            above = chance_above(paths.grid, state, still, gain)
            total = total + chance_beyond(paths.grid, state, above, t if number == look else edges.keep[number - 1])
    return total


def chance_above(grid: IntegrationGrid, state: RunArrival, still: np.ndarray, gain: float) -> np.ndarray:
    """Compute the chance of coming to a look and lying above each point of the grid there."""
    ratio = log_ratio(r_of(grid.z, state.df), state.df, gain * math.sqrt(state.information))
    density = null_density(grid.z, state.df) * np.exp(ratio)
    beyond_grid = max(0.0, 1 - float(grid.integrate_above(density)[0])) if gain > 0 else 0.0
    return grid.integrate_above(density * still) + beyond_grid * still[-1]


def chance_beyond(grid: IntegrationGrid, state: RunArrival, above: np.ndarray, t: np.ndarray | float) -> np.ndarray:
    """Compute the chance of coming to a look and lying above each t there; 0 if that is NaN."""
    return np.zeros(()) if np.isnan(t).all() else grid.interpolate(z_of_t(t, state.df), above)
