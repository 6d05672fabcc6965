"""Computes a counterexample to the premature study's Theorem 3 in exact fractions."""

from __future__ import annotations

from fractions import Fraction

#: W_Q and W_K of a head of width one on a stream of width two; the projector chooses the first coordinate.
QUERY, KEY = (Fraction(1), Fraction(-7, 4)), (Fraction(1), Fraction(0))


def step_and_constant(chosen: Fraction, adjoint: Fraction) -> tuple[Fraction, Fraction]:
    """Compute |dZ_P| over the rate, to first order, and C_t = bound / (rate R_P^2), at one token x = (chosen, 1).

    dZ_P = -rate E x_P^3 (k_P (x k) + q_P (x q)), and the bound has the absolute values of both terms.
    """
    along_key = chosen * KEY[0] + KEY[1]
    along_query = chosen * QUERY[0] + QUERY[1]
    step = abs(adjoint) * chosen**3 * abs(KEY[0] * along_key + QUERY[0] * along_query)
    bound = abs(adjoint) * chosen**3 * (abs(KEY[0] * along_key) + abs(QUERY[0] * along_query))
    return step, bound / chosen**4


def ratio_of_steps() -> Fraction:
    """Compute |dZ_P| at a quarter of the energy R_P and equal C_t, over rho^2 = 1/16 times the other's: at most 1 by
    Eq. 59.

    Raises:
        ValueError: the two heads do not have equal C_t.
    """
    single, single_constant = step_and_constant(Fraction(1), Fraction(1))
    gated, gated_constant = step_and_constant(Fraction(1, 2), Fraction(1, 2))
    if single_constant != gated_constant:
        raise ValueError(f"C_t is {single_constant} and {gated_constant}")
    return gated / (Fraction(1, 16) * single)
