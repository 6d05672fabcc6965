"""Computes how much output energy a gated feed-forward layer has at initialisation, relative to a single-branch one.

Source: premature study, Theorem 2 (Eqs. 41-44): with weights N(0, sigma^2), input norm such that the pre-activations
are N(0, nu), and equal output variances,

    rho = (r / m) nu E[psi(G)^2] / E[phi(G)^2],   G ~ N(0, nu),

for a gated layer of width r with gate psi and a single branch of width m with phi = GELU (erf).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy import integrate, special

from plumbline.core.errors import PlumblineError


def gelu(x: np.ndarray | float) -> np.ndarray | float:
    """GELU in its exact (erf) form: x Phi(x)."""
    return x * special.ndtr(x)


def silu(x: np.ndarray | float) -> np.ndarray | float:
    """SiLU: x / (1 + exp(-x))."""
    return x * special.expit(x)


def second_moment(function: Callable[[Any], Any], variance: float) -> float:
    """E[f(G)^2] for G ~ N(0, variance), by adaptive quadrature over 40 standard deviations."""
    scale = math.sqrt(variance)

    def integrand(t: float) -> float:
        return function(scale * t) ** 2 * math.exp(-t * t / 2) / math.sqrt(2 * math.pi)

    value, _ = integrate.quad(integrand, -40.0, 40.0, points=[-3.0, 0.0, 3.0], epsabs=1e-13, epsrel=1e-11, limit=200)
    return value


def energy_ratio(m: float, r: float, nu: float, *, gate: Literal["gelu", "silu"]) -> float:
    """Energy ratio rho of Theorem 2, for equal output variances.

    Args:
        m: width of the single-branch layer.
        r: width of the gated layer.
        nu: variance of the pre-activations, sigma^2 |x|^2.
        gate: "gelu" for GEGLU (then rho = r nu / m exactly), "silu" for SwiGLU.

    Raises:
        PlumblineError: an unknown gate, or a size that is not above 0.
    """
    if gate not in ("gelu", "silu"):
        raise PlumblineError(f"unknown gate {gate!r}; known are gelu and silu")
    if min(m, r, nu) <= 0:
        raise PlumblineError(f"widths and variance must be above 0; got m={m}, r={r}, nu={nu}")
    psi = gelu if gate == "gelu" else silu
    return r / m * nu * second_moment(psi, nu) / second_moment(gelu, nu)
