"""Watches a bank of baseline runs for drift: of the machine, of the data, of anything that moves all runs with time.

A sentinel is a run of the baseline, with a fresh seed, among the candidates. It joins the bank, and with its place in
the order of runs shows whether the baseline has moved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from plumbline.core.errors import PlumblineError
from plumbline.stats.sample_spread import require_finite

#: A sentinel with every so many candidates. With every fifth one 2 sigma are found in .890 where a session begins
#: and in .868 late in it, since a bank that is good by luck stays for longer; with every third in .88, for 3 % more
#: runs (benchmarks/evidence_rates.md).
EVERY = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineDrift:
    """How a baseline moves with time.

    Attributes:
        total: from its first run to its last, by a straight line, in the metric's units.
        p: chance that so much is seen, up or down, where nothing drifts.
    """

    total: float
    p: float


def is_due(candidate: int) -> bool:
    """Return whether a sentinel is run with the candidate of this number (from 1)."""
    return candidate % EVERY == 0


def measure_drift(values: Sequence[float], when: Sequence[float]) -> BaselineDrift:
    """Test whether a baseline's runs lie on a line that rises or falls: t of the slope.

    Args:
        values: of the baseline's runs.
        when: their places in the order of all runs, or their times.

    Raises:
        PlumblineError: values that are not finite, all runs at one time, or nothing to take sigma from.
    """
    y, x = require_finite("the baseline", values), require_finite("the order of the baseline's runs", when)
    if len(x) != len(y) or np.ptp(x) == 0:
        raise PlumblineError("drift needs a time for each run of the baseline, and two times at least")
    scale = float(np.abs(y).max()) or 1.0
    y, x = y / scale, (x - x.mean()) / np.ptp(x)
    slope = float(x @ y / (x @ x))
    residuals = y - y.mean() - slope * x
    df = len(y) - 2
    if df <= 0:
        raise PlumblineError("drift needs three runs of the baseline: two always lie on a line")
    variance = float(residuals @ residuals) / df
    t = slope * math.sqrt(float(x @ x) / variance) if variance else math.copysign(math.inf, slope)
    return BaselineDrift(total=slope * scale, p=float(2 * special.stdtr(df, -abs(t))) if slope else 1.0)
