"""Recomputes printed numbers of query_free: appendix 8, score scales at init and basis transfer."""

from __future__ import annotations

import math
import random
from itertools import product
from operator import mul

from plumbline.audit.audit_rows import AuditRows
from plumbline.audit.math_functions import arccos, between, cos, sqrt
from plumbline.published.printed_number import exact

from . import decoder_sizes


def audit(ledger: AuditRows) -> None:
    """Rows of appendices 8.2 to 8.4."""
    check_scores(ledger)
    check_basis_transfer(ledger)
    check_statements(ledger)


def check_scores(ledger: AuditRows) -> None:
    """Appendix 8.2: standard deviation of scores at init."""
    check, prose = ledger.check, ledger.prose
    size = decoder_sizes.decoder(ledger.settings)
    sigma, d_k, h = prose("score_sigma"), exact(size.head_width, "d_k"), exact(size.heads, "h")
    standard, reduced, ratio = prose("score_std_standard"), prose("score_std_reduced"), prose("score_ratio")
    check("score_std_standard", "std of scores, learned query", "App 8.2", standard, sigma**2 * sqrt(d_k))
    check("score_std_reduced", "std of scores, identity query", "App 8.2", reduced, sigma / sqrt(h))
    check("score_ratio", "ratio of the two", "sec 5.1, App 8.2", ratio, reduced / standard)
    label = "the same from its settings: 1 / (sigma sqrt(h d_k))"
    check("score_ratio_exact", label, "App 8.2", ratio, 1 / (sigma * sqrt(h * d_k)))
    check("score_ratio_inverse", "its inverse", "App 8.2", prose("score_ratio_inverse"), 1 / ratio)


def check_basis_transfer(ledger: AuditRows) -> None:
    """Appendix 8.3 and 8.4."""
    check, prose = ledger.check, ledger.prose
    linear, mlp = ({end: prose(f"transfer_{kind}_{end}_pct") for end in ("low", "high")} for kind in ("linear", "mlp"))
    label = "linear error over MLP error, from their printed ranges"
    factor = between(linear["low"] / mlp["high"], linear["high"] / mlp["low"])
    check("transfer_factor", label, "App 8.4", prose("transfer_factor"), factor, refuses="1")
    cosine, angle, distance = (prose(f"transfer_{it}") for it in ("cosine", "angle_deg", "cosine_distance"))
    check("transfer_angle", "angle of the printed cosine, degrees", "App 8.4", angle, arccos(cosine))
    label = "cosine distance in the caption against the {} in the text"
    check("transfer_distance", label.format("cosine"), "App 8.4, fig 2", distance, 1 - cosine)
    check("transfer_angle_distance", label.format("angle"), "App 8.4, fig 2", distance, 1 - cos(angle))
    label = "largest singular value of an N(0, 1/d) matrix, from the printed range of its square"
    check("sigma_max", label, "App 8.3.1", prose("sigma_max"), sqrt(prose("singular_squared_high")))


def check_statements(ledger: AuditRows) -> None:
    """Statements of appendix 8 that are false as they are quantified or worded, by counterexamples."""
    check = ledger.check
    label = f"of {DRAWS} drawn weights, those with the same function at another Z, Z - Z' invertible"
    count = exact(same_function_at_another_skip(), "same_functions")
    check("corollary_8_4_1", label, "App 8.5, corollary 8.4.1", exact(0), count)
    label = f"of {len(SHARES)} multiples other than lambda0, those that satisfy Eq. 10 as well"
    count = exact(other_multiples(), "other_multiples")
    check("theorem_8_3_must", label, "App 8.3, theorem 8.3", exact(0), count)
    label = "entries of v that are zero, so that D~ has no inverse, though Eq. 10 has a solution"
    count = exact(solutions_without_an_inverse(), "zero_entries")
    check("theorem_8_3_inverse", label, "App 8.3, theorem 8.3", exact(0), count)


#: Weights that are drawn for the corollary: width h, hidden units m = 4 h, and the corners of the grid of points.
WIDTH, HIDDEN, CORNER, DRAWS = 2, 8, 3, 20

#: Multiples of lambda0 that are tried in addition to it, and what counts as equal in floating point.
SHARES, ROUNDING = (0.9, 0.5, -0.5, -1.0), 1e-9

#: The epsilon of the norm.
EPSILON = 1e-2

Matrix = list[list[int]]


def same_function_at_another_skip() -> int:
    """Count draws of (W1, W2, Z) with phi = phi' at another Z', Z - Z' invertible: Corollary 8.4.1 has none.

    W1' is W1 with the rows of a set J negated, W2' = W2 and Z' = Z + W2[:, J] W1[J, :], since ReLU(a) - ReLU(-a) = a.
    Compared at all whole points of a square, with whole weights, so that nothing is rounded.
    """
    draw, count = random.Random(0), 0
    for _ in range(DRAWS):
        w1, w2, z = (_draw_matrix(draw, *shape) for shape in ((HIDDEN, WIDTH), (WIDTH, HIDDEN), (WIDTH, WIDTH)))
        units = draw.sample(range(HIDDEN), WIDTH + 1)
        shift = [[sum(w2[i][j] * w1[j][k] for j in units) for k in range(WIDTH)] for i in range(WIDTH)]
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
    return [[draw.randint(-50, 50) for _ in range(columns)] for _ in range(rows)]


def _value(w1: Matrix, w2: Matrix, z: Matrix, x: tuple[int, ...]) -> list[int]:
    hidden = [max(sum(map(mul, row, x)), 0) for row in w1]
    return [sum(map(mul, w2[i], hidden)) + sum(map(mul, z[i], x)) for i in range(WIDTH)]
