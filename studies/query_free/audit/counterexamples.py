"""Counts counterexamples to statements of query_free's appendix 8, in exact arithmetic or by hand in two dimensions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

#: Weights that are drawn for the corollary: width h, hidden units m = 4 h, and the corners of the grid of points.
WIDTH, HIDDEN, CORNER, DRAWS = 2, 8, 3, 20

#: Multiples of lambda0 that are tried in addition to it, and what counts as equal in floating point.
SHARES, ROUNDING = (0.9, 0.5, -0.5, -1.0), 1e-9

#: The epsilon of the norm.
EPSILON = 1e-2

Matrix = list[list[Fraction]]


def same_function_at_another_skip() -> int:
    """Count draws of (W1, W2, Z) with phi = phi' at another Z', Z - Z' invertible: Corollary 8.4.1 has none.

    W1' is W1 with the rows of a set J negated, W2' = W2 and Z' = Z + W2[:, J] W1[J, :], since ReLU(a) - ReLU(-a) = a.
    Compared at all whole points of a square, in exact fractions.
    """
    draw, count = random.Random(0), 0
    for _ in range(DRAWS):
        w1, w2, z = (_draw_matrix(draw, *shape) for shape in ((HIDDEN, WIDTH), (WIDTH, HIDDEN), (WIDTH, WIDTH)))
        units = draw.sample(range(HIDDEN), WIDTH + 1)
        shift = [[sum((w2[i][j] * w1[j][k] for j in units), Fraction()) for k in range(WIDTH)] for i in range(WIDTH)]
        negated = [[-entry for entry in row] if j in units else row for j, row in enumerate(w1)]
        moved = [[z[i][k] + shift[i][k] for k in range(WIDTH)] for i in range(WIDTH)]
        points = list(product(range(-CORNER, CORNER + 1), repeat=WIDTH))
        same = all(_value(w1, w2, z, x) == _value(negated, w2, moved, x) for x in points)
        count += same and shift[0][0] * shift[1][1] != shift[0][1] * shift[1][0]
    return count


def other_multiples() -> int:
    """Count multiples lambda other than lambda0 whose D' and MLP' satisfy Eq. 10 too: Theorem 8.3 says "must" be.

    In two dimensions L(x) = s (1, -1) with |s| < 1, and A = Theta D takes it to s (A00 - A01, A10 - A11). v is along
    A^-t 1, so that Diag(v) A keeps (1, -1) up to a factor, and lambda0 makes that factor 1. MLP is zero here, and
    x + MLP'(x) is L^-1(lambda Diag(v) A L(x)).
    """
    (a, b), (c, d) = (2.0, 1.0), (-1.0, 3.0)
    v = (d - c, a - b)  # A^-t 1 up to a factor
    turned = (a - b, c - d)  # A (1, -1)
    factor = v[0] * turned[0]
    assert math.isclose(factor, -v[1] * turned[1])
    count = 0
    for share in SHARES:
        scale = share / abs(factor)
        worst = 0.0
        for x in ((0.3, -1.2), (5.0, 4.0), (-0.01, 0.02)):
            s = _norm(x)
            moved = s * scale * factor  # lambda Diag(v) A L(x) = moved (1, -1)
            y = moved * math.sqrt(2 * EPSILON / (2 - 2 * moved**2))
            image = _norm((y, -y))
            worst = max(worst, *(abs(sign * image / (scale * v[i]) - s * turned[i]) for i, sign in ((0, 1), (1, -1))))
        count += worst <= ROUNDING
    return count


def solutions_without_an_inverse() -> int:
    """Count entries of v that are zero where Eq. 10 has a solution all the same: Theorem 8.3's D' is then no inverse.

    A = [[1, 0], [1, 1]] has v along A^-t 1 = (0, 1), so that Diag(v) has no inverse. A L(x) = (s, 0) for
    L(x) = s (1, -1), and D' = Diag(1, 0) with x + MLP'(x) = x gives the same.
    """
    (a, b), (c, d) = (1.0, 0.0), (1.0, 1.0)
    v = (d - c, a - b)
    for x in ((0.3, -1.2), (5.0, 4.0), (-0.01, 0.02)):
        s = _norm(x)
        assert ((a - b) * s, (c - d) * s) == (1.0 * s, 0.0 * -s)
    return sum(entry == 0 for entry in v)


def _norm(x: tuple[float, float]) -> float:
    """Compute s of L(x) = s (1, -1)."""
    half = (x[0] - x[1]) / 2
    return half / math.sqrt(half**2 + EPSILON)


def _draw_matrix(draw: random.Random, rows: int, columns: int) -> Matrix:
    return [[Fraction(draw.randint(-50, 50), 7) for _ in range(columns)] for _ in range(rows)]


def _value(w1: Matrix, w2: Matrix, z: Matrix, x: tuple[int, ...]) -> list[Fraction]:
    hidden = [max(sum((entry * x[k] for k, entry in enumerate(row)), Fraction()), Fraction()) for row in w1]
    return [
        sum((entry * hidden[j] for j, entry in enumerate(w2[i])), Fraction())
        + sum((entry * x[k] for k, entry in enumerate(z[i])), Fraction())
        for i in range(WIDTH)
    ]
