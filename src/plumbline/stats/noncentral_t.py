"""Computes noncentral t from one integral over sigma's law, without scipy.stats.

With R a chi variable of df + 1 degrees of freedom and r = t / sqrt(df + t^2), noncentral over central density of t is
E exp(ncp r R - ncp^2 / 2). The integrand is smooth in log R, so that an even sum converges faster than any power.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special


def log_ratio(r: np.ndarray, df: float, ncp: float) -> np.ndarray:
    """Logarithm of noncentral over central density of t with df degrees of freedom, at r = t / sqrt(df + t^2)."""
    n, y = df + 1, ncp * np.asarray(r, dtype=float)[..., None]
    mode = (y + np.sqrt(y * y + 4 * n)) / 2
    width = 1 / np.sqrt(2 * mode * mode - y * mode)
    steps = np.arange(-(8 + 24 * math.sqrt(1 / n)), 8, 0.3)
    at = np.log(mode) + width * steps
    big = np.exp(at)
    log_constant = (1 - n / 2) * math.log(2) - special.gammaln(n / 2)
    terms = special.logsumexp(n * at - big * big / 2 + y * big + np.log(width * 0.3), axis=-1)
    return terms + log_constant - ncp * ncp / 2


def upper_tail(t: float, df: float, ncp: float) -> float:
    """P(T >= t) for noncentral t: the mean over sigma's law of the normal tail."""
    sigma, weight = sigma_law(df)
    return float(weight @ special.ndtr(ncp - t * sigma))


def sigma_law(df: float) -> tuple[np.ndarray, np.ndarray]:
    """Estimates of a sigma of 1 with df degrees of freedom, and weights with which to take means over them."""
    step = 0.1 / math.sqrt(2 * df)
    logs = math.log(df) / 2 + step * np.arange(-(90 + 300 / math.sqrt(df)), 90)
    chi = np.exp(logs)
    constant = (1 - df / 2) * math.log(2) - special.gammaln(df / 2)
    return chi / math.sqrt(df), np.exp(df * logs - chi * chi / 2 + constant) * step
