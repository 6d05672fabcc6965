"""Checks when a ReLU MLP absorbs the skip around it: W2 ReLU(W1 x) + x = V2 ReLU(V1 x) for all x, V shaped like W.

Source: query_free study, appendix 8.5. Theorem 8.4: for weights of full rank, W1 with rows that are not zero and not
collinear by pairs, W2 with columns that are not zero, there are such V1, V2 if and only if W2[:, J] W1[J, :] = -I for
some set J of hidden units (which then has h or more); V1 is W1 with the rows of J negated, V2 = W2. For any m >= h
(Remark 7). Points are rows here, weights as in the paper: W1 (m, h), W2 (h, m).

Corollary 8.4.1 has W2 ReLU(W1 x) + Z x, and says of almost all weights that no Z' with Z - Z' invertible gives the same
function. As quantified that is false of all of them: Z' = Z + W2[:, J] W1[J, :] with the rows of J negated does.

A set is looked for among all 2^m by exact algebra. For real b the conditions sum_j b_j W2[:, j] W1[j, :] = -I are
linear. Where they have no solution, the residual R of least squares proves it: every unit has W2[:, j]^t R W1[j, :]^t =
0, but -I does not. Where they have some, all but m - rank of the b follow from the others, which are tried one by one.

Shapes: N points, h width (the paper's letter), m hidden units.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
from scipy import linalg

from plumbline.core.errors import PlumblineError

from .theorem_check import ResidualWithoutPremise, TheoremCheck

#: Free units beyond which the sets are not gone through: 2^20 of them take seconds.
MOST_FREE = 20

#: How far from 0 or 1 a unit may be, and how much of the conditions may be left, relatively, to count as rounding.
ROUNDING = 1e-8


def absorb(w1: np.ndarray, w2: np.ndarray, units: Iterable[int]) -> tuple[np.ndarray, np.ndarray]:
    """V1 and V2 that absorb the skip, by the theorem's first half, for a set J of hidden units."""
    sign_m = np.ones(len(w1), dtype=w1.dtype)
    sign_m[list(units)] = -1
    return sign_m[:, None] * w1, w2.copy()


def residual(w1: np.ndarray, w2: np.ndarray, v1: np.ndarray, v2: np.ndarray, x_Nh: np.ndarray) -> float:
    """Relative residual |V2 ReLU(V1 x) - W2 ReLU(W1 x) - x| / |W2 ReLU(W1 x) + x| (Frobenius, over the points)."""
    stated_Nh = np.maximum(x_Nh @ w1.T, 0) @ w2.T + x_Nh
    return float(np.linalg.norm(np.maximum(x_Nh @ v1.T, 0) @ v2.T - stated_Nh) / np.linalg.norm(stated_Nh))


def product(w1: np.ndarray, w2: np.ndarray, units: Iterable[int]) -> np.ndarray:
    """The product W2[:, J] W1[J, :] (h, h) of a set J of hidden units."""
    chosen = list(units)
    return w2[:, chosen] @ w1[chosen]


def with_absorbing_set(w1: np.ndarray, w2: np.ndarray, units: Iterable[int]) -> np.ndarray:
    """The W2 nearest to `w2` for which J = `units` meets W2[:, J] W1[J, :] = -I.

    Raises:
        PlumblineError: the rows of W1 in J do not span everything (fewer than h of them, say).
    """
    chosen, width = sorted(units), w1.shape[1]
    if np.linalg.matrix_rank(w1[chosen]) < width:
        raise PlumblineError(
            f"skip_absorption: rows {chosen} of W1 have rank {np.linalg.matrix_rank(w1[chosen])}; a set that absorbs a "
            f"skip of width {width} needs rows of that rank"
        )
    changed = w2.copy()
    changed[:, chosen] -= (product(w1, w2, chosen) + np.eye(width, dtype=w1.dtype)) @ np.linalg.pinv(w1[chosen])
    return changed


def find_absorbing_set(w1: np.ndarray, w2: np.ndarray) -> tuple[int, ...] | None:
    """Search for a set J with W2[:, J] W1[J, :] = -I, in float64; None: there is none.

    Raises:
        PlumblineError: the conditions leave more units open than can be tried.
    """
    units_m, width = len(w1), w1.shape[1]
    # One column for each unit: the product of its column of W2 and its row of W1, flattened.
    columns = np.einsum("am,mb->abm", w2.astype(np.float64), w1.astype(np.float64)).reshape(-1, units_m)
    _, triangle, order = linalg.qr(columns, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(triangle))
    rank = int((pivots > ROUNDING * pivots[0]).sum())
    bound, free = order[:rank], order[rank:]
    inverse = np.linalg.pinv(columns[:, bound])
    target, size = -np.eye(width).ravel(), math.sqrt(width)
    if np.linalg.norm(target - columns[:, bound] @ (inverse @ target)) > ROUNDING * size:
        return None  # not even any real numbers in the place of 0 and 1 meet the conditions
    if len(free) > MOST_FREE:
        raise PlumblineError(
            f"skip_absorption: the conditions leave {len(free)} of {units_m} units open; at most {MOST_FREE} can "
            "be gone through: take fewer hidden units or a larger width"
        )
    for block_Cf in _candidates(len(free)):
        solved_Cb = (target - block_Cf @ columns[:, free].T) @ inverse.T
        members_Cm = np.zeros((len(block_Cf), units_m))
        members_Cm[:, free], members_Cm[:, bound] = block_Cf, solved_Cb > 0.5
        off_C = np.linalg.norm(members_Cm @ columns.T - target, axis=1) / size
        best = int(off_C.argmin())
        if off_C[best] <= ROUNDING:
            return tuple(int(unit) for unit in np.flatnonzero(members_Cm[best]))
    return None


def find_nearest_set(w1: np.ndarray, w2: np.ndarray) -> tuple[tuple[int, ...], float]:
    """Of all 2^m sets the one with the least |W2[:, J] W1[J, :] + I|_F, and that norm divided by |I|_F.

    Raises:
        PlumblineError: more hidden units than can be tried.
    """
    units_m = len(w1)
    if units_m > MOST_FREE:
        raise PlumblineError(
            f"skip_absorption: {units_m} hidden units have 2^{units_m} sets; take at most {MOST_FREE} "
            "units, or `find_absorbing_set`"
        )
    identity = np.eye(w1.shape[1])
    columns = np.einsum("am,mb->mab", w2, w1).reshape(units_m, -1)
    best: tuple[tuple[int, ...], float] = ((), np.inf)
    for block_Cm in _candidates(units_m):
        off_C = np.linalg.norm(block_Cm @ columns + identity.ravel(), axis=1) / np.linalg.norm(identity)
        at = int(off_C.argmin())
        if off_C[at] < best[1]:
            best = tuple(int(unit) for unit in np.flatnonzero(block_Cm[at])), float(off_C[at])
    return best


def collinear(width: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """W1, W2 with rows in opposite pairs, and V1, V2 that absorb the skip although there is no set J.

    They show what the theorem's premise on the rows is for: a ReLU(b x) + c ReLU(-b x) has the same kink for any a - c.
    """
    draw = np.random.default_rng([width, seed])
    basis_hh = draw.standard_normal((width, width))
    w1 = np.concatenate([basis_hh, -basis_hh])
    w2 = draw.standard_normal((width, 2 * width)) / np.sqrt(2 * width)
    inverse = np.linalg.inv(basis_hh)
    return w1, w2, w1, w2 + np.concatenate([inverse, -inverse], axis=1)


def draw_weights(width: int, hidden: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw W1 and W2 with entries N(0, 1/h) and N(0, 1/m)."""
    draw = np.random.default_rng([width, hidden, seed])
    w1 = draw.standard_normal((hidden, width)) / np.sqrt(width)
    return w1, draw.standard_normal((width, hidden)) / np.sqrt(hidden)


def units_that_show(w1: np.ndarray, v1: np.ndarray) -> tuple[int, ...]:
    """The set J that the theorem's second half reads off V1: units of W1 whose kink has the opposite sign in V1.

    Raises:
        PlumblineError: V1 does not have the kinks of W1, each once.
    """
    cosine_mm = _directions(w1) @ _directions(v1).T
    partner_m = np.abs(cosine_mm).argmax(axis=1)
    sign_m = cosine_mm[np.arange(len(w1)), partner_m]
    if len(set(partner_m)) < len(w1) or (np.abs(sign_m) < 1 - ROUNDING).any():
        raise PlumblineError("skip_absorption: V1 is not W1 with its rows scaled and in another order")
    return tuple(int(unit) for unit in np.flatnonzero(sign_m < 0))


def _directions(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _candidates(free: int, block: int = 1 << 14) -> Iterable[np.ndarray]:
    """All 0/1 vectors (C, free) of a length, some at a time."""
    bits = np.arange(free)
    for start in range(0, 1 << free, block):
        numbers_C = np.arange(start, min(start + block, 1 << free))
        yield (numbers_C[:, None] >> bits & 1).astype(np.float64)


#: Widths; the paper has four hidden units for each of them, and any number from h on does (Remark 7).
WIDTHS, POINTS = (2, 3, 4, 6, 16), 64
#: Widths at which all sets are gone through for the nearest one.
SMALL = 4


def checks(widths: Iterable[int] = WIDTHS, seeds: Iterable[int] = range(3)) -> list[TheoremCheck]:
    """Check both halves of Theorem 8.4 on random weights, and a counterexample to Corollary 8.4.1, in float64."""
    both = list(itertools.product(widths, seeds))
    tried = f"{len({width for width, _ in both})} widths x {len({seed for _, seed in both})} seeds, m = 4h, float64"
    planted = [_residuals_with_set(width, seed) for width, seed in both]
    generic = [_residual_of_random_weights(width, seed) for width, seed in both if width <= SMALL]
    moved = [_skip_residuals(width, seed) for width, seed in both]
    return [
        TheoremCheck(
            id="thm_8_4_if",
            statement="W₂ ReLU(W₁ x) + x = V₂ ReLU(V₁ x) if W₂[:, J] W₁[J, :] = −I",
            source="Thm 8.4, App 8.5",
            section="",
            residual=max(value for value, _, _ in planted),
            broken=(
                ResidualWithoutPremise(
                    premise="the set J: one unit of it left out", residual=min(less for _, less, _ in planted)
                ),
                ResidualWithoutPremise(premise="such a set: random weights, the nearest of all", residual=min(generic)),
            ),
            tried=tried,
        ),
        TheoremCheck(
            id="thm_8_4_only_if",
            statement="W₂[:, J] W₁[J, :] = −I for the J that V₁ shows, if V absorbs the skip",
            source="Thm 8.4, App 8.5",
            section="",
            residual=max(difference for _, _, difference in planted),
            broken=(
                ResidualWithoutPremise(
                    premise="rows of W₁ not collinear: opposite pairs, the nearest of all sets",
                    residual=min(_collinear(width, seed) for width, seed in both if width <= SMALL),
                ),
            ),
            tried=tried,
        ),
        TheoremCheck(
            id="cor_8_4_1_false",
            statement="φ is the same at Z + W₂[:, J] W₁[J, :], rows of J negated; Corollary 8.4.1: at no other Z",
            source="against Cor 8.4.1 as quantified, App 8.5",
            section="",
            residual=max(same for same, _ in moved),
            broken=(
                ResidualWithoutPremise(premise="Z moved along: Z kept", residual=min(value for _, value in moved)),
            ),
            tried=tried,
        ),
    ]


def _skip_residuals(width: int, seed: int) -> tuple[float, float]:
    """How far W1 with the rows of a drawn set J negated is from the same function of random weights, with the skip Z'
    that makes up for it (Z - Z' invertible, or there is no number), and with Z itself."""
    hidden = 4 * width
    w1, w2 = draw_weights(width, hidden, seed)
    draw = np.random.default_rng([width, seed, 3])
    skip_hh, x_Nh = draw.standard_normal((width, width)), draw.standard_normal((POINTS, width))
    units = draw.choice(hidden, size=int(draw.integers(width, hidden + 1)), replace=False)
    negated, shift = absorb(w1, w2, units)[0], product(w1, w2, units)
    if np.linalg.matrix_rank(shift) < width:
        return float("nan"), float("nan")

    def value(rows: np.ndarray, z_hh: np.ndarray) -> np.ndarray:
        return np.maximum(x_Nh @ rows.T, 0) @ w2.T + x_Nh @ z_hh.T

    stated_Nh = value(w1, skip_hh)
    apart = [np.linalg.norm(value(negated, z_hh) - stated_Nh) for z_hh in (skip_hh + shift, skip_hh)]
    same, unmoved = (float(norm / np.linalg.norm(stated_Nh)) for norm in apart)
    return same, unmoved


def _residuals_with_set(width: int, seed: int) -> tuple[float, float, float]:
    """For weights with a set J: residuals with the set that is found, with one unit of it left out, and of the set that
    shows in a V that absorbs the skip with its units scaled and in another order."""
    hidden = 4 * width
    w1, w2 = draw_weights(width, hidden, seed)
    draw = np.random.default_rng([width, seed, 1])
    w2 = with_absorbing_set(w1, w2, draw.choice(hidden, size=int(draw.integers(width, hidden + 1)), replace=False))
    units, x_Nh = find_absorbing_set(w1, w2) or (), draw.standard_normal((POINTS, width))
    v1, v2 = absorb(w1, w2, units)
    order_m, scale_m = draw.permutation(hidden), draw.uniform(0.1, 10.0, hidden)
    kink_units = units_that_show(w1, (scale_m[:, None] * v1)[order_m])
    return (
        residual(w1, w2, (scale_m[:, None] * v1)[order_m], (v2 / scale_m)[:, order_m], x_Nh),
        residual(w1, w2, *absorb(w1, w2, units[1:]), x_Nh),
        float(np.linalg.norm(product(w1, w2, kink_units) + np.eye(width)) / np.sqrt(width)),
    )


def _residual_of_random_weights(width: int, seed: int) -> float:
    """What the nearest set of random weights leaves of the statement; 0 if one is found."""
    w1, w2 = draw_weights(width, 4 * width, seed)
    if find_absorbing_set(w1, w2) is not None:
        return 0.0
    units, _ = find_nearest_set(w1, w2)
    x_Nh = np.random.default_rng([width, seed, 2]).standard_normal((POINTS, width))
    return residual(w1, w2, *absorb(w1, w2, units), x_Nh)


def _collinear(width: int, seed: int) -> float:
    """How far the nearest set stays from -I where the skip is absorbed all the same; no number where it is not."""
    w1, w2, v1, v2 = collinear(width, seed)
    x_Nh = np.random.default_rng(seed).standard_normal((POINTS, width))
    return find_nearest_set(w1, w2)[1] if residual(w1, w2, v1, v2, x_Nh) <= ROUNDING else float("nan")
