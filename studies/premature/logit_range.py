"""Computes how far apart the scores of a row of attention must lie for one key to take most of it.

Source: premature study, appendix B.4, Eqs. 63-67. If one of N keys has weight at least 1 - eps, then max z - min z >=
log((N - 1)(1 - eps) / eps), with equality where the others share eps equally.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from plumbline.core.errors import PlumblineError


def least_range(keys: int, log_odds: float) -> float:
    """The least range of scores over `keys` at which one key's weight w can have log(w / (1 - w)) = `log_odds`.

    For w = 1 - eps the log odds are log((1 - eps) / eps).

    Raises:
        PlumblineError: fewer than two keys.
    """
    if keys < 2:
        raise PlumblineError(f"a range of scores needs two keys or more; got {keys}")
    return math.log(keys - 1) + log_odds


def slack(scores_K: np.ndarray) -> float:
    """The range of a row's scores minus the least range that its largest weight needs; not below zero, up to rounding.

    The odds are taken in logarithms, so that they are known even where all other weights underflow.

    Raises:
        PlumblineError: fewer than two keys.
    """
    z = np.asarray(scores_K, dtype=np.float64)
    top = int(z.argmax())
    others = np.delete(z, top)
    if not others.size:
        raise PlumblineError("a range of scores needs two keys or more; got 1")
    return float(z.max() - z.min()) - least_range(len(z), float(z[top] - special.logsumexp(others)))
