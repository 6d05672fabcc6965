"""Integrates the law of the path of t statistics, one number at a time.

Let r = Z / sqrt(Q), where Z is the standardised difference of the arms and Q = Z^2 + (sum of squares of sigma's
estimate): t = r sqrt(df) / sqrt(1 - r^2). Where there is no gain, all residuals are one vector of df + 1 dimensions
whose direction is uniform, and r is the cosine between it and the arms' contrast. Two facts make the path easy:

- The past given the present: (r_1 .. r_k) given r_{k+1} is a Markov chain backwards, since one run more adds one
  dimension. With s = r_{k+1} and a^2 = information_k / information_{k+1}, c^2 = 1 - a^2, and eta distributed as r_k is:
  r_k = (a s + c sqrt(1 - s^2) eta) / sqrt(1 - (c s - a sqrt(1 - s^2) eta)^2).
- The law of the path given the present depends on no gain, for (means, sigma) are sufficient (Hall, Wijsman and Ghosh
  1965: t is sufficient among what is free of location and scale). So what is integrated once without a gain, the
  chance of having stopped at no earlier look, serves every gain: the density of t at a gain is the
  noncentral one, and the chance of stopping there is its integral times that.

This is the recursion of Armitage, McPherson and Rowe (1969) for t with any number of degrees of freedom (see Jennison
and Turnbull, Group Sequential Methods, 2000, chapter 11, where the same is done in two dimensions).

States are kept on a grid of z, which is nearly a normal score: |r| = sqrt(1 - exp(-z^2 / df)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from plumbline.stats.sequential.design import SequentialDesign, information

#: The grid ends here; how good boundaries are with so many points and nodes says `Boundary.error`.
WIDEST, POINTS, NODES = 16.0, 1201, 6


@dataclass(frozen=True, slots=True)
class RunArrival:
    """The state after one more run: the look that is taken then (None if there is none), information and df."""

    look: int | None
    information: float
    df: float


def list_arrivals(design: SequentialDesign) -> list[RunArrival]:
    """List all states from the first one at which sigma has an estimate."""
    arrivals = []
    for look in range(1, design.most + 1):
        if design.plan == "interleaved" and look > 1:  # the baseline's run comes between two looks
            between = information(design.baseline_runs(look), look - 1, design.plan)
            arrivals.append(RunArrival(None, between, design.df(look) - 1))
        arrivals.append(RunArrival(look, design.information(look), design.df(look)))
    return [state for state in arrivals if state.df >= 1]


@dataclass(frozen=True, slots=True)
class IntegrationGrid:
    """Points of z, and how finely integrals between them are taken."""

    z: np.ndarray
    nodes: int

    @classmethod
    def of(cls, points: int = POINTS, nodes: int = NODES) -> IntegrationGrid:
        """An even grid."""
        return cls(np.linspace(-WIDEST, WIDEST, points), nodes)

    def integrate_above(self, density: np.ndarray) -> np.ndarray:
        """Integral of a density from each point of the grid on, by cubics through four points."""
        padded = np.concatenate([[0.0], density, [0.0]])
        cells = 13 * (padded[1:-2] + padded[2:-1]) - padded[:-3] - padded[3:]
        return np.concatenate([np.cumsum(cells[::-1])[::-1], [0.0]]) * (self.z[1] - self.z[0]) / 24

    def interpolate(self, z: np.ndarray | float, values: np.ndarray) -> np.ndarray:
        """Interpolate values of the grid's points, by cubics through four of them; those at its ends beyond them."""
        place = (np.clip(z, self.z[0], self.z[-1]) - self.z[0]) / (self.z[1] - self.z[0])
        first = np.clip(place.astype(np.int64) - 1, 0, len(self.z) - 4)
        x = place - first
        w, u, v = x - 1, x - 2, x - 3
        value_0, value_1, value_2, value_3 = (values[first + i] for i in range(4))
        return (-value_0 * w * u * v + value_2 * (-3) * x * w * v + 3 * value_1 * x * u * v + value_3 * x * w * u) / 6

    def find_quantile(self, above: np.ndarray, share: float) -> float:
        """The z above which a share lies; `above` falls along z."""
        index = int(np.clip(np.searchsorted(-above, -share), 1, len(self.z) - 1))
        low, high = float(self.z[index - 1]), float(self.z[index])
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.interpolate(middle, above) > share else (low, middle)
        return (low + high) / 2

    def advance(
        self, still: np.ndarray, low: float, high: float, old_state: RunArrival, new_state: RunArrival
    ) -> np.ndarray:
        """Chance, at each z of `new_state`, of having stopped neither before `old_state` nor there.

        Args:
            still: the same chance at each z of `old_state`, of having stopped at none of the looks before it.
            low: those at or below this t have stopped at `old_state` (-inf: none).
            high: those at or above have.
        """
        s, cosine = r_of(self.z, new_state.df)[:, None], np.exp(-(self.z**2) / (2 * new_state.df))[:, None]
        a = math.sqrt(old_state.information / new_state.information)
        c = math.sqrt(1 - a * a)
        ends = [np.full(len(self.z), end) for end in (-9.0, -3.0, 0.0, 3.0, 9.0)]
        ends += [
            np.clip(z_of_r(root, old_state.df), -9, 9)
            for bound in (low, high)
            if math.isfinite(bound)
            for root in _roots(bound / math.hypot(bound, math.sqrt(old_state.df)), s[:, 0], cosine[:, 0], a, c)
        ]
        edges = np.sort(np.stack(ends, axis=1), axis=1)
        nodes, weights = np.polynomial.legendre.leggauss(self.nodes)
        half = (edges[:, 1:] - edges[:, :-1])[:, :, None] / 2
        y = (edges[:, :-1, None] + half * (nodes + 1)).reshape(len(self.z), -1)
        weight = (half * weights).reshape(y.shape) * null_density(y, old_state.df)
        along = a * s + c * cosine * (eta := r_of(y, old_state.df))
        across = 1 - (c * s - a * cosine * eta) ** 2
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # 1 - r^2 = cosine^2 (1 - eta^2) / across, by logarithms since it may be tiny.
            logs = np.log(across) + self.z[:, None] ** 2 / new_state.df + y**2 / old_state.df
            z = np.sign(along) * np.sqrt(np.maximum(old_state.df * logs, 0))
        z = np.nan_to_num(z, nan=0.0, posinf=WIDEST, neginf=-WIDEST)
        inside = (z > z_of_t(low, old_state.df)) & (z < z_of_t(high, old_state.df))
        return (weight * inside * self.interpolate(z, still)).sum(axis=1) / weight.sum(axis=1)


def _roots(bound: float, s: np.ndarray, cosine: np.ndarray, a: float, c: float) -> list[np.ndarray]:
    """Find the eta at which |r| of before is that of the bound; 0 (a split without effect) if none is."""
    b2 = bound * bound
    square, linear = cosine**2 * (c * c + a * a * b2), a * c * s * cosine * (1 - b2)
    constant = s**2 * (a * a + b2 * c * c) - b2
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(linear**2 - square * constant)
        return [np.clip(np.nan_to_num((-linear + sign * root) / square), -1, 1) for sign in (-1, 1)]


def null_density(z: np.ndarray, df: float) -> np.ndarray:
    """Return the density of z without a gain."""
    x = np.maximum(np.abs(z) / math.sqrt(df), 1e-9)
    log_constant = special.gammaln((df + 1) / 2) - special.gammaln(df / 2) - math.log(math.pi * df) / 2
    return np.exp(log_constant - z**2 / 2) * x / np.sqrt(-np.expm1(-(x**2)))


def r_of(z: np.ndarray, df: float) -> np.ndarray:
    """r at z."""
    return np.sign(z) * np.sqrt(-np.expm1(-(z**2) / df))


def z_of_r(r: np.ndarray, df: float) -> np.ndarray:
    """z at r; infinite at -1 and 1."""
    with np.errstate(divide="ignore"):
        return np.sign(r) * np.sqrt(-df * np.log1p(-(r**2)))


def z_of_t(t: np.ndarray | float, df: float) -> np.ndarray:
    """z at t."""
    t = np.asarray(t, dtype=float)
    return np.sign(t) * np.sqrt(df * np.log1p(t * t / df))


def t_of_z(z: float, df: float) -> float:
    """t at z."""
    return math.copysign(math.sqrt(df * math.expm1(z * z / df)), z)
