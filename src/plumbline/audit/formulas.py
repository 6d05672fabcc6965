"""The named formulas of the audit. Each takes intervals (or lists of them) and returns one interval.

A formula uses each input once wherever it can, so that its interval is the exact range of what the printed
inputs can stand for; see `audit.interval`. A study registers formulas of its own in its module `audit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mpmath import iv

from plumbline.audit.interval import Interval, high, low, monotone, span
from plumbline.core.errors import PlumblineError

Intervals = list[Interval]


@dataclass(frozen=True, kw_only=True, slots=True)
class Formula:
    """A formula's expression, for the reader, and the function on intervals.

    `whole`: it counts something. `spans`: it says between which ends the number lies, even from exact inputs.
    """

    expression: str
    function: Callable[..., Any]
    whole: bool = False
    spans: bool = False


FORMULAS: dict[str, Formula] = {}


def formula(
    name: str, expression: str, *, whole: bool = False, spans: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function on intervals under the name that the audit's rows use.

    Raises:
        PlumblineError: the name is taken, by a formula of the audit's or of another study's.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if name in FORMULAS:
            raise PlumblineError(f"two audit formulas are called {name!r}; rename that of {function.__module__}")
        FORMULAS[name] = Formula(expression=expression, function=function, whole=whole, spans=spans)
        return function

    return register


@formula("same number", "x")
def same(x: Interval) -> Interval:
    return iv.mpf(x)


@formula("magnitude", "|x|")
def magnitude(x: Interval) -> Interval:
    return abs(x)


@formula("difference", "a - b")
def difference(a: Interval, b: Interval) -> Interval:
    return a - b


@formula("difference in points", "100 (a - b)")
def points(a: Interval, b: Interval) -> Interval:
    return 100 * (a - b)


@formula("relative difference", "100 (a / b - 1) %")
def relative(a: Interval, b: Interval) -> Interval:
    return 100 * (a / b - 1)


def relative_gap(a: Interval, b: Interval) -> Interval:
    """Magnitude of `relative`."""
    return abs(relative(a, b))


@formula("reduction", "100 (1 - a / b) %")
def reduction(a: Interval, b: Interval) -> Interval:
    return 100 * (1 - a / b)


@formula("share", "100 a / b %")
def share(a: Interval, b: Interval) -> Interval:
    return 100 * a / b


@formula("ratio", "a / b")
def ratio(a: Interval, b: Interval) -> Interval:
    return a / b


@formula("product", "product of x")
def product(*x: Interval) -> Interval:
    total = iv.mpf(1)
    for factor in x:
        total = total * factor
    return total


@formula("sum", "sum of x")
def total(*x: Interval) -> Interval:
    result = iv.mpf(0)
    for term in x:
        result = result + term
    return result


@formula("square root", "sqrt(x)")
def square_root(x: Interval) -> Interval:
    return iv.sqrt(x)


@formula("inverse", "1 / x")
def inverse(x: Interval) -> Interval:
    return 1 / x


@formula("inverse square root", "1 / sqrt(x)")
def inverse_root(x: Interval) -> Interval:
    return 1 / iv.sqrt(x)


@formula("mean", "sum(x) / n")
def mean(x: Intervals) -> Interval:
    return total(*x) / len(x)


@formula("largest", "max(x)")
def largest(x: Intervals) -> Interval:
    return span(max(low(value) for value in x), max(high(value) for value in x))


@formula("smallest", "min(x)")
def smallest(x: Intervals) -> Interval:
    return span(min(low(value) for value in x), min(high(value) for value in x))


@formula("largest magnitude", "max |x|")
def largest_magnitude(x: Intervals) -> Interval:
    return largest([abs(value) for value in x])


@formula("range", "max(x) - min(x)")
def value_range(x: Intervals) -> Interval:
    return largest(x) - smallest(x)


@formula("range in points", "100 (max(x) - min(x))")
def range_in_points(x: Intervals) -> Interval:
    return 100 * value_range(x)


@formula("sd of a paired difference", "between |sd a - sd b| and sd a + sd b", spans=True)
def paired_sd(a: Interval, b: Interval) -> Interval:
    return span(max(0.0, low(abs(a - b))), high(a + b))


@formula("dot product", "sum_i a_i b_i")
def dot(a: Intervals, b: Intervals) -> Interval:
    return total(*(first * second for first, second in zip(a, b, strict=True)))


@formula("norm", "sqrt(sum_i x_i^2)")
def norm(x: Intervals) -> Interval:
    return iv.sqrt(total(*(value**2 for value in x)))


@formula("logistic", "1 / (1 + exp(-x))")
def logistic(x: Interval) -> Interval:
    return 1 / (1 + iv.exp(-x))


@formula("softmax", "exp(z_i) / sum_j exp(z_j)")
def softmax(i: Interval, z: Intervals) -> Interval:
    return 1 / total(*(iv.exp(other - z[round(low(i))]) for other in z))


@formula("softplus plus offset", "log(1 + exp(x)) + c")
def softplus_offset(x: Interval, c: Interval) -> Interval:
    return iv.log(1 + iv.exp(x)) + c


@formula("natural logarithm", "log(x)")
def logarithm(x: Interval) -> Interval:
    return iv.log(x)


@formula("orders of magnitude", "log10 |x|")
def orders(x: Interval) -> Interval:
    return iv.log(abs(x)) / iv.log(10)


@formula("triangular number", "n (n + 1) / 2")
def triangular(n: Interval) -> Interval:
    return n * (n + 1) / 2


@formula("angle", "arccos(x) in degrees")
def angle(x: Interval) -> Interval:
    return monotone(lambda cosine: math.degrees(math.acos(cosine)), x)


@formula("cosine distance of an angle", "1 - cos(x), x in degrees")
def angular_distance(x: Interval) -> Interval:
    return monotone(lambda degrees: 1 - math.cos(math.radians(degrees)), x)


@formula("complement", "1 - x")
def complement(x: Interval) -> Interval:
    return 1 - x


@formula("between", "anything from the smallest to the largest x", spans=True)
def between(*x: Interval) -> Interval:
    return span(min(low(value) for value in x), max(high(value) for value in x))


@formula("span over range", "(hi - lo) / (max(s) - min(s))")
def span_over_range(hi: Interval, lo: Interval, *s: Interval) -> Interval:
    return (hi - lo) / value_range(list(s))


@formula("span over four sigma", "(hi - lo) / (4 sigma)")
def span_over_four_sigma(hi: Interval, lo: Interval, sigma: Interval) -> Interval:
    return (hi - lo) / (4 * sigma)


@formula("sd of a paired difference in points", "100 x (between |sd a - sd b| and sd a + sd b)", spans=True)
def paired_sd_points(a: Interval, b: Interval) -> Interval:
    return 100 * paired_sd(a, b)


@formula("cross ratio", "denominator r / m")
def cross_ratio(m: Interval, r: Interval, denominator: Interval) -> Interval:
    return denominator * r / m


@formula("ratio of two ranges", "from lo a / hi b to hi a / lo b", spans=True)
def range_ratio(low_a: Interval, high_a: Interval, low_b: Interval, high_b: Interval) -> Interval:
    return between(low_a / high_b, high_a / low_b)


@formula("geometric middle", "sqrt(lo hi)")
def geometric_middle(lo: Interval, hi: Interval) -> Interval:
    return iv.sqrt(lo * hi)
