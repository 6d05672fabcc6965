"""Corrects p-values for many tests at once, and computes the family-wise error rate.

Source: transfer study, sections 3.3, 4.1 and 6 (R7).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np

from plumbline.core.errors import PlumblineError

Correction = Literal["bonferroni", "holm", "bh"]


def adjust(p_values: Iterable[float], correction: Correction, *, m: int | None = None) -> np.ndarray:
    """Adjusted p-values: reject at level alpha where the adjusted p is at most alpha.

    Bonferroni m p; Holm's step-down max over k <= i of (m - k + 1) p_(k); Benjamini and Hochberg's step-up
    min over k >= i of m p_(k) / k (controls the false discovery rate). All capped at 1.

    Args:
        p_values: NaN for a test without a result; it stays NaN.
        m: size of the family, default the number of p-values that are there. Where it is larger, the tests
            without a result count with p = 1, the choice that can only make the others harder to pass.

    Raises:
        PlumblineError: an unknown correction, p outside [0, 1], or m below the number of p-values there.
    """
    if correction not in get_args(Correction):
        raise PlumblineError(f"unknown correction {correction!r}; known are {sorted(get_args(Correction))}")
    p = np.asarray(list(p_values), dtype=float)
    has_p = ~np.isnan(p)
    tests = int(has_p.sum())
    if ((p[has_p] < 0) | (p[has_p] > 1)).any():
        raise PlumblineError("a p-value lies outside [0, 1]")
    family = tests if m is None else m
    if family < tests:
        raise PlumblineError(f"a family of m = {m} tests cannot hold {tests} p-values; raise m")
    adjusted = np.full(p.shape, math.nan)
    if tests:
        padded = np.concatenate([p[has_p], np.ones(family - tests)])
        adjusted[has_p] = np.minimum(_correct(padded, correction), 1)[:tests]
    return adjusted


def _correct(p: np.ndarray, correction: Correction) -> np.ndarray:
    m = len(p)
    if correction == "bonferroni":
        return p * m
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    if correction == "holm":
        corrected[order] = np.maximum.accumulate(p[order] * np.arange(m, 0, -1))
    else:
        shares = p[order] / (np.arange(1, m + 1) / m)
        corrected[order] = np.minimum.accumulate(shares[::-1])[::-1]
    return corrected


def family_wise_error_rate(alpha: float, m: int) -> float:
    """1 - (1 - alpha)^m: the chance of at least one false rejection among m independent true nulls.

    Raises:
        PlumblineError: alpha outside [0, 1] or m negative.
    """
    if not 0 <= alpha <= 1 or m < 0:
        raise PlumblineError(f"alpha must lie in [0, 1] and m be at least 0; got alpha={alpha}, m={m}")
    return -math.expm1(m * math.log1p(-alpha)) if alpha < 1 else float(m > 0)
