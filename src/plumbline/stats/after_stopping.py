"""Estimates a candidate's gain after a stopping rule has ended its runs: the plain mean then flatters keeps.

- Interval: repeated confidence interval (Jennison and Turnbull 1989; 2000, chapter 9): all gains that the boundary of
  keeps would not reject. It holds whatever made the runs end, and excludes `minimum_gain` exactly where the rule keeps.
  Its upper end has a boundary of its own, which may act from the first look on, at the same level.
- Median: the gain at which a result so far out has the chance 1/2, in the stage-wise order: an earlier keep is farther
  out than a later one, and within one look results are ordered by (mean difference - gain) / sigma (Fairbanks and
  Madsen 1982; Tsiatis, Rosner and Mehta 1984). The chance of coming to a look needs the true sigma, for which the
  estimate stands: benchmarks/experiment_rules.md has how far the median is off for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import special

from plumbline.core.errors import PlumblineError
from plumbline.stats.distributions import sigma_law
from plumbline.stats.sequential.boundary import Boundary, boundary, integrate_paths
from plumbline.stats.sequential.design import SequentialDesign
from plumbline.stats.sequential.look import Look
from plumbline.stats.sequential.operating_characteristics import chance_above, chance_beyond, chance_reached
from plumbline.stats.sequential.t_path_law import z_of_t

#: What ended the runs; `undecided` where neither boundary did.
StoppedBy = Literal["keep", "discard", "undecided"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GainAfterStopping:
    """A gain after stopping, or of one test, in the metric's units, positive where the candidate is better.

    `minimum_gain` is in it.

    Attributes:
        median: too high in as many repeats as too low.
        low: the gain is above it; -inf where no keep was possible yet.
        high: the gain is below it.
        level: chance that the interval covers, at least, for normal runs.
        p: chance that a change of no gain beyond `minimum_gain` is as far out, in the stage-wise order.
    """

    median: float
    low: float
    high: float
    level: float
    p: float


def estimate(design: SequentialDesign, looks: Sequence[Look], stopped_by: StoppedBy) -> GainAfterStopping:
    """Estimate the gain of a candidate whose runs have ended.

    Args:
        design: what was fixed beforehand.
        looks: all looks that were taken, in their order.
        stopped_by: what ended the runs; the last look has to agree with it.

    Raises:
        PlumblineError: looks that are not of this design, or that went on after a keep, or another end than theirs.
    """
    edges = boundary(design)
    last = _check_looks(design, looks, edges, stopped_by)
    heeded = all(not look.t <= edges.discard[look.k - 1] for look in looks[:-1])

    def chance_at(gain: float) -> float:
        return float(chance_farther(design, gain, last.k, np.array([last.t]), heeded=heeded)[0])

    root = math.sqrt(last.information)
    standard = _find_crossing(chance_at, last.t / root, 1 / root)
    upper = boundary(replace(design, first_keep=1, target_gain_sigmas=None)).keep[last.k - 1]
    low = last.gain - _nan_to_infinite(edges.keep[last.k - 1]) * last.standard_error
    high = last.gain + _nan_to_infinite(upper) * last.standard_error
    median = min(max(last.minimum_gain + standard * root * last.standard_error, low), high)
    p = float(chance_reached(design, 0.0, last.k, last.t, heeded=heeded))
    return GainAfterStopping(median=median, low=low, high=high, level=1 - 2 * design.alpha, p=p)


def estimate_single_test(look: Look, alpha: float) -> GainAfterStopping:
    """Estimate the gain of a single test, in the metric's units: no look came before it, so that it is the mean.

    Args:
        look: the statistic of the test's runs.
        alpha: one-sided; the interval has the level 1 - 2 alpha.
    """
    half = float(special.stdtrit(look.df, 1 - alpha)) * look.standard_error
    p = float(special.stdtr(look.df, -look.t))
    return GainAfterStopping(median=look.gain, low=look.gain - half, high=look.gain + half, level=1 - 2 * alpha, p=p)


def chance_farther(
    design: SequentialDesign, gain: float, look: int, t_P: np.ndarray, *, heeded: bool = True
) -> np.ndarray:
    """Compute the chance of a result farther out than each of several t at one look, if a gain (in sigma) is true.

    Args:
        heeded: whether a discard ends the runs; else only keeps do.
    """
    edges, paths = integrate_paths(design)
    total_P = np.zeros(len(t_P))
    for state, still in zip(paths.state, paths.still if heeded else paths.still_kept, strict=True):
        number, shift = paths.look(state), gain * math.sqrt(state.information)
        if number < look:
            above = chance_above(paths.grid, state, still, gain)
            total_P += chance_beyond(paths.grid, state, above, edges.keep[number - 1])
        if number == look:
            sigma_S, weight_S = (part[::4] for part in sigma_law(state.df))
            low_PS = np.clip((t_P - shift)[:, None] * sigma_S, -9, 9)
            nodes_N, weight_N = np.polynomial.legendre.leggauss(48)
            half_PS = (9 - low_PS) / 2
            z_PSN = low_PS[..., None] + half_PS[..., None] * (nodes_N + 1)
            reached_PSN = paths.grid.interpolate(z_of_t((z_PSN + shift) / sigma_S[:, None], state.df), still)
            inner_PS = half_PS * ((np.exp(-(z_PSN**2) / 2) * reached_PSN) @ weight_N)
            total_P += inner_PS @ weight_S * 4 / math.sqrt(2 * math.pi)
    return total_P


def _check_looks(design: SequentialDesign, looks: Sequence[Look], edges: Boundary, stopped_by: StoppedBy) -> Look:
    """Return the last look; refuse looks that are not of the design or did not end by `stopped_by`."""
    if not looks:
        raise PlumblineError("no look was taken: there is nothing to estimate from")
    for look in looks:
        if not 1 <= look.k <= design.most:
            raise PlumblineError(f"look {look.k} is none of the design's {design.most}")
        if not np.allclose((look.df, look.information), (design.df(look.k), design.information(look.k)), rtol=1e-9):
            raise PlumblineError(
                f"look {look.k} has {look.df:g} degrees of freedom and the design {design.df(look.k):g}: "
                "the baseline's runs are not those that the design states"
            )
    for look in looks[:-1]:
        if look.t >= edges.keep[look.k - 1]:
            raise PlumblineError(f"look {look.k} kept the candidate, and runs were looked at after it")
    last = looks[-1]
    ended_by = "keep" if last.t >= edges.keep[last.k - 1] else "discard" if last.t <= edges.discard[last.k - 1] else ""
    if (ended_by or "undecided") != stopped_by and not (stopped_by == "undecided" and ended_by == "discard"):
        raise PlumblineError(f"stopped_by = {stopped_by!r}, but look {last.k} says {ended_by or 'undecided'!r}")
    return last


def _nan_to_infinite(bound: float) -> float:
    return math.inf if math.isnan(bound) else bound


def _find_crossing(chance_at: Callable[[float], float], start: float, step: float) -> float:
    """Find the gain at which a chance that grows with it is 1/2, to 1e-4 of a step; else the end of the search."""
    low, high = start - step, start + step
    at_low, at_high = chance_at(low) - 0.5, chance_at(high) - 0.5
    for _ in range(50):
        if at_low > 0:
            low, high, at_high = low - step, low, at_low
            at_low = chance_at(low) - 0.5
        elif at_high < 0:
            low, high, at_low = high, high + step, at_high
            at_high = chance_at(high) - 0.5
    if at_low > 0 or at_high < 0:
        return low if at_low > 0 else high
    for _ in range(40):  # the Illinois rule: a false position that never keeps one end
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        excess = chance_at(middle) - 0.5
        if abs(excess) < 1e-6 or high - low < 1e-4 * step:
            return middle
        if excess > 0:
            high, at_high, at_low = middle, excess, at_low / 2
        else:
            low, at_low, at_high = middle, excess, at_high / 2
    return (low + high) / 2
