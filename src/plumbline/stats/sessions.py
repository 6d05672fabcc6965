"""Controls the error of a session, in which many candidates are tried against one baseline.

- `each`: every candidate has the level alpha, and the session is told how many false keeps that makes.
- `fwer`: alpha is split over a number of candidates that is planned (Bonferroni): the chance of any false keep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.sequential.boundary import computed
from plumbline.stats.sequential.design import SequentialDesign
from plumbline.stats.sequential.simulation import ends, paths

#: Sessions that are drawn for `false_keeps`; a share of them has a standard error of at most 0.008.
SESSIONS = 4000


@dataclass(frozen=True, kw_only=True, slots=True)
class FalseKeeps:
    """How many candidates of a session are kept when none does anything.

    Attributes:
        mean: on average.
        low: the number has a chance of 1 in 20 at most to be below this.
        high: the number has a chance of 1 in 20 at most to be above this.
        shares: of the sessions with 0, 1, 2, .. false keeps.
    """

    mean: float
    low: int
    high: int
    shares: tuple[float, ...]

    def at_least(self, number: int) -> float:
        """Share of the sessions with so many false keeps or more."""
        return sum(self.shares[number:])


@cache
def false_keeps(
    design: SequentialDesign,
    candidates: int,
    *,
    sentinel_every: int = 0,
    fresh_runs: int = 0,
    sessions: int = SESSIONS,
    seed: int = 0,
) -> FalseKeeps:
    """Simulate sessions of candidates that do nothing, against one bank until one is kept, and count what is kept.

    A bank that happens to be bad makes many keeps at once, so that the number varies more than independent tests would;
    therefore it is made anew after each keep.

    Args:
        sentinel_every: the bank gains a run with every so many candidates; 0: never.
        fresh_runs: a keep counts only where so many fresh runs confirm it (`FRESH_LEVEL`); 0: at once.

    Raises:
        PlumblineError: no candidate, or a design whose bank is not shared.
    """
    if candidates < 1 or design.plan != "bank":
        raise PlumblineError(f"need a candidate and plan = 'bank'; got {candidates = }, plan = {design.plan!r}")
    rng = np.random.default_rng([seed, candidates, sentinel_every])
    sentinels = (candidates - 1) // sentinel_every if sentinel_every else 0
    bank_SB = rng.standard_normal((sessions, design.bank + sentinels))
    kept_S, size_S = np.zeros(sessions, dtype=int), np.full(sessions, design.bank)
    for number in range(candidates):
        if number and sentinel_every and number % sentinel_every == 0:
            size_S += 1
        own_SK, keep_S = rng.standard_normal((sessions, design.most)), np.zeros(sessions, dtype=bool)
        for size in np.unique(size_S):
            now, here_S = replace(design, bank=int(size)), size_S == size
            t_SK = paths(now, bank_SB[here_S, :size], own_SK[here_S])
            keep_S[here_S] = ends(computed(now)[0], t_SK)[0]
            if fresh_runs and (again_S := keep_S & here_S).any():
                fresh_SN = rng.standard_normal((int(again_S.sum()), fresh_runs))
                keep_S[again_S] = p_of_fresh_runs(bank_SB[again_S, :size], fresh_SN) <= FRESH_LEVEL
        kept_S += keep_S
        bank_SB[keep_S] = rng.standard_normal((int(keep_S.sum()), bank_SB.shape[1]))
        size_S[keep_S] = design.bank
    low, high = np.quantile(kept_S, [0.05, 0.95], method="inverted_cdf")
    shares = np.bincount(kept_S) / sessions
    return FalseKeeps(
        mean=float(kept_S.mean()), low=int(low), high=int(high), shares=tuple(float(share) for share in shares)
    )


def fwer_level(planned: int, *, alpha: float = 0.05) -> float:
    """Level of each candidate of a session for which so many are planned.

    Raises:
        PlumblineError: a number below 1.
    """
    _positive(planned, alpha)
    return alpha / planned


def metrics_level(looked_at: int, *, alpha: float = 0.05) -> float:
    """Level of a candidate whose metric was chosen after a look at so many of them (Bonferroni).

    The metric that was named before the runs costs nothing, however many stand beside it, as long as it decides.

    Raises:
        PlumblineError: a number below 1.
    """
    _positive(looked_at, alpha)
    return alpha / looked_at


def _positive(number: int, alpha: float) -> None:
    if number < 1 or not 0 < alpha < 1:
        raise PlumblineError(f"need a number from 1 on and alpha in (0, 1); got {number} and {alpha}")
