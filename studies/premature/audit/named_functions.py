"""Computes what audit rows of the premature study call by name."""

from __future__ import annotations

from mpmath import iv

from plumbline.audit.math_functions import Intervals
from plumbline.published.expression import audit_function
from plumbline.published.interval_arithmetic import Interval, high, low, over_corners, span

from ..gated_energy import energy_ratio


def _share_of_steps(evaluation: int, tokens: Interval, batch: Interval) -> Interval:
    """Where an evaluation of the 0.5 % grid lies in whole steps, in per cent."""
    steps = int(low(tokens) // low(batch))
    return iv.mpf(100) * round(0.005 * evaluation * steps) / steps


@audit_function("100 round(0.005 k S) / S, S = tokens // batch, k = 200 start + patience - 1")
def release_checkpoint(start_pct: Interval, patience: Interval, tokens: Interval, batch: Interval) -> Interval:
    """Compute the share of training at which a rule releases whose score is reached from the window's start on."""
    return _share_of_steps(round(2 * low(start_pct) + low(patience) - 1), tokens, batch)


@audit_function("the evaluation (0.5 % grid of whole steps) next to the printed share")
def nearest_evaluation(share_pct: Interval, tokens: Interval, batch: Interval) -> Interval:
    """Compute the share of training of the evaluation that is nearest to a printed share."""
    return _share_of_steps(round((low(share_pct) + high(share_pct)) / 2 / 0.5), tokens, batch)


@audit_function("mean -+ (n - 1) sd / sqrt(n): no further from its mean can one of n lie", spans=True)
def one_of_runs(mean: Interval, sd: Interval, n: Interval) -> Interval:
    """Bound where one of n runs can lie whose mean and standard deviation are printed."""
    reach = (n - 1) * sd / iv.sqrt(n)
    return span(low(mean - reach), high(mean + reach))


@audit_function("from max(0, 2 max x - sum x) / n to sum x / n: sd of a mean of n tasks with these sd", spans=True)
def sd_of_mean(x: Intervals) -> Interval:
    """Bound the standard deviation of a mean over tasks from the tasks' own, whatever their correlations are."""
    everything = sum(x, start=iv.mpf(0))
    least = max(0.0, 2 * max(low(value) for value in x) - high(everything))
    return span(least, high(everything)) / len(x)


@audit_function("(r / m) nu E gelu(G)^2 / E gelu(G)^2 = (r / m) nu, G ~ N(0, nu): energy ratio of GEGLU at init")
def rho_geglu(m: Interval, r: Interval, nu: Interval) -> Interval:
    """Compute Theorem 2's energy ratio of GEGLU at the start from both widths and the variance of pre-activations."""
    return over_corners(lambda *x: energy_ratio(*x, gate="gelu"), m, r, nu)


@audit_function("(r / m) nu E silu(G)^2 / E gelu(G)^2, G ~ N(0, nu), by quadrature: energy ratio of SwiGLU at init")
def rho_swiglu(m: Interval, r: Interval, nu: Interval) -> Interval:
    """Compute Theorem 2's energy ratio of SwiGLU at the start from both widths and the variance of pre-activations."""
    return over_corners(lambda *x: energy_ratio(*x, gate="silu"), m, r, nu)


@audit_function(
    "how many of three differences a task can be above 0, summed over tasks, by their mean and sd", spans=True
)
def possible_wins(means: Intervals, sds: Intervals) -> Interval:
    """Bound how many paired differences are above zero, three a task, whose mean m and sample sd s are printed.

    With m > 0 all three can be where s < m sqrt(3), the sd of (3 m, 0, 0); one is not where s >= m sqrt(3) / 2, that of
    (3 m / 2, 3 m / 2, 0); two are not where s >= m sqrt(3). With m < 0 the signs change places.
    """
    least = most = 0
    for mean, sd in zip(means, sds, strict=True):
        lower, upper = low(sd), high(sd)
        size = max(abs(low(mean)), abs(high(mean))) * 3**0.5
        small = min(abs(low(mean)), abs(high(mean))) * 3**0.5
        possible = [wins for wins, can in ((3, lower < size), (2, upper >= small / 2), (1, upper >= small)) if can]
        if high(mean) < 0:
            possible = [3 - wins for wins in possible]
        least, most = least + min(possible), most + max(possible)
    return span(least, most)
