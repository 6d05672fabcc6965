"""Controls the error of a session, in which many candidates are tried against one baseline.

- `each`: every candidate has the level alpha; `false_keeps` estimates how many false keeps that makes.
- `fwer`: alpha is split over a number of candidates that is planned (Bonferroni): the chance of any false keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.design import SequentialDesign
from plumbline.stats.sequential.simulation import find_ends, simulate_paths

#: Sessions that are drawn for `false_keeps`; a share of them has a standard error of at most 0.008.
SESSIONS = 4000


@dataclass(frozen=True, kw_only=True, slots=True)
class FalseKeeps:
    """How many candidates of a session are kept when none does anything.

    Attributes:
        mean: on average.
        low: the number has a chance of 1 in 20 at most to be below this.
        high: the number has a chance of 1 in 20 at most to be above this.
    """

    mean: float
    low: int
    high: int


@cache
def false_keeps(design: SequentialDesign, candidates: int, *, fresh_runs: int = 0) -> FalseKeeps:
    """Simulate sessions of candidates that do nothing, against one bank until one is kept, and count what is kept.

    A bank that happens to be bad makes many keeps at once, so that the number varies more than independent tests would;
    therefore it is made anew after each keep.

    Args:
        fresh_runs: a keep counts only if so many fresh runs of both arms confirm it (`FRESH_LEVEL`); 0: at once.

    Raises:
        PlumblineError: no candidate, or a design whose bank is not shared.
    """
    if candidates < 1 or design.plan != "bank":
        raise PlumblineError(f"need a candidate and plan = 'bank'; got {candidates = }, plan = {design.plan!r}")
    rng = np.random.default_rng([0, candidates, 0])
    bank_SB, kept_S = rng.standard_normal((SESSIONS, design.bank)), np.zeros(SESSIONS, dtype=int)
    for _ in range(candidates):
        t_SK = simulate_paths(design, bank_SB, rng.standard_normal((SESSIONS, design.most)))
        keep_S = find_ends(integrate_paths(design)[0], t_SK)[0]
        if fresh_runs and keep_S.any():
            places = np.flatnonzero(keep_S)
            base_SN, fresh_SN = rng.standard_normal((2, len(places), fresh_runs))
            keep_S[places] = p_of_fresh_runs(base_SN, fresh_SN) <= FRESH_LEVEL
        kept_S += keep_S
        bank_SB[keep_S] = rng.standard_normal((int(keep_S.sum()), design.bank))
    low, high = np.quantile(kept_S, [0.05, 0.95], method="inverted_cdf")
    return FalseKeeps(mean=float(kept_S.mean()), low=int(low), high=int(high))


def fwer_level(planned: int, *, alpha: float = 0.05) -> float:
    """Compute the level of each candidate of a session with `planned` candidates.

    Raises:
        PlumblineError: a number below 1, or alpha outside (0, 1).
    """
    if planned < 1 or not 0 < alpha < 1:
        raise PlumblineError(f"need a number from 1 on and alpha in (0, 1); got {planned} and {alpha}")
    return alpha / planned
