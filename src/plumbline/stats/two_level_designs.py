"""Makes the standard designs of factors with two levels: orthogonal, so that each effect is a difference of two means.

Plackett and Burman (Biometrika 1946): orthogonal designs of N - 1 factors in N runs. Box, Hunter and Hunter
(Statistics for Experimenters, 2005): regular fractions, and folding over, by which every main effect is clear of
two-factor interactions. The matrices are `pydoe`'s.

Shapes: N runs, F factors; levels are -1 and 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

#: Names of the constructions, as a page has them.
FULL, FRACTION, FOLDED, BURMAN = "full factorial", "regular fraction", "folded over", "Plackett and Burman"


@dataclass(frozen=True)
class StandardDesign:
    """An orthogonal design.

    Attributes:
        levels_NF: -1 and 1; of a folded design the second half is the mirror of the first.
        construction: which one it is, as the page has it.
        clear: whether every main effect is clear of interactions of two factors.
    """

    levels_NF: np.ndarray
    construction: str
    clear: bool


def list_orders(most: int) -> list[int]:
    """List the numbers of runs, up to one, of which `pydoe` has a Plackett and Burman design: 2^k, 12 2^k, 20 2^k."""
    orders = {base * 2**power for base in (1, 12, 20) for power in range(most.bit_length())}
    return sorted(order for order in orders if 4 <= order <= most)


@cache
def make_burman(order: int) -> np.ndarray:
    """Make the design of Plackett and Burman in so many runs, (N, N - 1), of an order that `list_orders` has."""
    import pydoe

    return np.asarray(pydoe.pbdesign(order - 1), dtype=int)


@cache
def make_fraction(factors: int) -> np.ndarray:
    """Make the smallest fraction of 2^F runs in which no two interactions of two factors share a column.

    Up to four factors it is the full factorial, in which all interactions are clear.
    """
    import pydoe

    design = pydoe.ff2n(factors) if factors < 5 else pydoe.fracfact_by_res(factors, 5)
    return np.asarray(design, dtype=int)


def list_standard_designs(factors: int, runs: int, rng: np.random.Generator) -> Iterator[StandardDesign]:
    """List the orthogonal designs of up to so many runs, the clearest of interactions first.

    Which column a factor gets, and which of its levels is 1, is drawn: no factor is the one that interactions of the
    others fall on by its place in a file.
    """
    if factors <= 11:
        fraction_NF = make_fraction(factors)
        times = runs // len(fraction_NF)
        if times:
            name = FULL if factors < 5 else FRACTION
            repeated = f"{name}, {times} times" if times > 1 else name
            yield StandardDesign(_shuffle(np.tile(fraction_NF, (times, 1)), rng), repeated, True)
    orders = [order for order in list_orders(runs // 2) if order >= factors]
    if orders:
        order = orders[-1]
        half_NF = make_burman(order)
        if factors == order:  # the mirror tells a factor apart that is the same in all runs of its half
            half_NF = np.concatenate([half_NF, np.ones((order, 1), dtype=int)], axis=1)
        half_NF = _shuffle(half_NF[:, rng.choice(half_NF.shape[1], factors, replace=False)], rng)
        yield StandardDesign(np.concatenate([half_NF, -half_NF]), f"{BURMAN}, {FOLDED}", True)
    orders = [order for order in list_orders(runs) if order > factors]
    if orders:
        yield StandardDesign(_choose_columns(orders[-1], factors, rng), BURMAN, False)


def cut_larger_design(factors: int, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Make a start for a number of runs that has no orthogonal design: the next larger one, without some of its runs.

    What is cut are runs of its own choice at random, so that it may be singular: a start, and not a design.
    """
    order = next(order for order in list_orders(4 * max(runs, factors + 1, 4)) if order > max(factors, runs - 1))
    return rng.permutation(_choose_columns(order, factors, rng))[:runs]


def _choose_columns(order: int, factors: int, rng: np.random.Generator) -> np.ndarray:
    return _shuffle(make_burman(order)[:, rng.choice(order - 1, factors, replace=False)], rng)


def _shuffle(levels_NF: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw which level of each factor is 1."""
    return levels_NF * rng.choice([-1, 1], levels_NF.shape[1])
