"""How far apart the scores of a row of attention must lie for one key to take most of it.

Source: premature study, appendix B.4, Eqs. 63-67. If one of N keys has weight at least 1 - eps, then
max z - min z >= log((N - 1)(1 - eps) / eps), with equality where the others share eps alike.
"""

from __future__ import annotations

import math

import numpy as np

from plumbline.cli import PlumblineError


def needed_range(keys: int, epsilon: float) -> float:
    """The least range of scores over `keys` at which one key can have weight 1 - `epsilon`.

    Raises:
        PlumblineError: fewer than two keys, or an epsilon that is no share.
    """
    if keys < 2 or not 0 < epsilon < 1:
        raise PlumblineError(f"a range needs two keys or more and a share between 0 and 1; got {keys} and {epsilon}")
    return math.log((keys - 1) * (1 - epsilon) / epsilon)


def slack(scores_K: np.ndarray) -> float:
    """The range of a row's scores less the least that its largest weight needs: never below zero, but for rounding.

    The rest's share is summed from the other keys, so that it is no difference of numbers near one.
    """
    z = np.asarray(scores_K, dtype=np.float64)
    top = int(z.argmax())
    others = np.exp(np.delete(z, top) - z[top]).sum()
    epsilon = float(others / (1 + others))
    return float(z.max() - z.min()) - needed_range(len(z), epsilon)
