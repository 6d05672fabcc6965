"""Premature study: named formulas of its own. Importing this registers them."""

from __future__ import annotations

from mpmath import iv

from plumbline.audit.formulas import Intervals, between, formula, largest, total
from plumbline.audit.interval import Interval, high, low, over_corners, span
from plumbline.theory.gated_energy import energy_ratio


@formula("release checkpoint", "100 round(0.005 k S) / S, S = tokens // batch, k = 200 start + patience - 1")
def release(start_pct: Interval, patience: Interval, tokens: Interval, batch: Interval) -> Interval:
    steps = int(low(tokens) // low(batch))
    evaluation = round(2 * low(start_pct) + low(patience) - 1)
    return iv.mpf(100) * round(0.005 * evaluation * steps) / steps


@formula("nearest evaluation", "the evaluation (0.5 % grid of whole steps) next to the printed share")
def nearest_evaluation(share_pct: Interval, tokens: Interval, batch: Interval) -> Interval:
    steps = int(low(tokens) // low(batch))
    evaluation = round((low(share_pct) + high(share_pct)) / 2 / 0.5)
    return iv.mpf(100) * round(0.005 * evaluation * steps) / steps


@formula("one of n runs", "mean -+ (n - 1) sd / sqrt(n): no further from its mean can one of n lie", spans=True)
def one_of_runs(mean: Interval, sd: Interval, n: Interval) -> Interval:
    reach = (n - 1) * sd / iv.sqrt(n)
    return between(mean - reach, mean + reach)


@formula("sd of a mean of tasks", "from max(0, 2 max x - sum x) / n to sum x / n", spans=True)
def sd_of_mean(x: Intervals) -> Interval:
    everything = total(*x)
    least = max(0.0, low(2 * largest(x) - everything))
    return span(least, high(everything)) / len(x)


@formula("energy ratio at init, GEGLU", "(r / m) nu E gelu(G)^2 / E gelu(G)^2 = (r / m) nu, G ~ N(0, nu)")
def rho_geglu(m: Interval, r: Interval, nu: Interval) -> Interval:
    return over_corners(lambda *x: energy_ratio(*x, gate="gelu"), m, r, nu)


@formula("energy ratio at init, SwiGLU", "(r / m) nu E silu(G)^2 / E gelu(G)^2, G ~ N(0, nu), by quadrature")
def rho_swiglu(m: Interval, r: Interval, nu: Interval) -> Interval:
    return over_corners(lambda *x: energy_ratio(*x, gate="silu"), m, r, nu)
