"""Tests the fresh runs of a candidate that a stopping rule kept: the runs that made it look good overstate its gain."""

from __future__ import annotations

import numpy as np
from scipy import special

#: Fresh runs confirm a keep where they beat fresh runs of the baseline at this one-sided level: seldom by luck alone
#: after a keep; five of each arm lose 1 % of what the looks keep of 2 sigma (benchmarks/experiment_rules.md).
FRESH_LEVEL = 0.25


def p_of_fresh_runs(baseline_WB: np.ndarray, fresh_WN: np.ndarray) -> np.ndarray:
    """One-sided p of Student's t in each of W worlds, more being better: of N fresh runs against B of the baseline."""
    (_, bank), (_, runs) = baseline_WB.shape, fresh_WN.shape
    df = bank + runs - 2
    variance_W = ((bank - 1) * baseline_WB.var(axis=1, ddof=1) + (runs - 1) * fresh_WN.var(axis=1, ddof=1)) / df
    t_W = (fresh_WN.mean(axis=1) - baseline_WB.mean(axis=1)) / np.sqrt(variance_W * (1 / bank + 1 / runs))
    return np.asarray(special.stdtr(df, -t_W))
