"""Sessions in which the evidence is examined: arms of other spread, a drift, wild candidates; what is kept and refused.

A candidate goes through the looks against the bank, then through fresh runs of both arms in turn; the order of all runs
is examined before and after (`plumbline.verdict.comparability.independence`). After a keep its fresh runs are the bank;
after a refusal the bank is made anew, as the refusal asks for.

Shapes: S sessions, N candidates of each, B runs of the bank, K of a candidate, F fresh ones. More is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from decision_rules.rates_page import rng_of
from decision_rules.rules_and_noise_laws import DEFAULT

from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.order_trend import count_rises, spend_level, tail_of_rises
from plumbline.stats.sentinel import EVERY
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths

FRESH = 5
#: A trend is told at this p.
TOLD = 0.05


@dataclass(frozen=True, kw_only=True)
class SessionRates:
    """What happened to the candidates of sessions (S, N), and the runs of each session.

    Attributes:
        looks: kept by the looks; keeps: by fresh runs too; refusals: a trend was refused; alarms: one was told.
    """

    looks: np.ndarray
    keeps: np.ndarray
    refusals: np.ndarray
    alarms: np.ndarray
    runs: np.ndarray


@dataclass
class WatchedSessions:
    """Sessions as they go on.

    Attributes:
        drift: by how many sigma each run is better than the one before it.
        width: how wide the baseline's runs spread.
    """

    sessions: int
    drift: float = 0.0
    width: float = 1.0
    watched: bool = True
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def __post_init__(self) -> None:
        self.clock_S = np.zeros(self.sessions, dtype=int)
        self.size_S = np.zeros(self.sessions, dtype=int)
        self.tries_S = np.zeros(self.sessions, dtype=int)
        self.bank_SB = np.full((self.sessions, DEFAULT.bank), np.nan)
        self._take_bank(np.arange(self.sessions))

    def _draw(self, rows: np.ndarray, runs: int, gain: float, width: float, *, step: int = 1, ahead: int = 0):
        """Runs that are made one after the other, from where each session's clock is; `step` runs apart."""
        when = self.clock_S[rows, None] + ahead + step * np.arange(runs)
        return gain + width * self.rng.standard_normal((len(rows), runs)) + self.drift * self.width * when

    def _take_bank(self, rows: np.ndarray) -> None:
        self.bank_SB[rows] = np.nan
        self._add_to_bank(rows, self._draw(rows, DEFAULT.bank, 0.0, self.width))
        self.clock_S[rows] += DEFAULT.bank

    def _add_to_bank(self, rows: np.ndarray, values: np.ndarray) -> None:
        runs = values.shape[1]
        self.size_S[rows] = np.where(np.isnan(self.bank_SB[rows]).all(axis=1), 0, self.size_S[rows])
        most = int(self.size_S[rows].max(initial=0)) + runs
        if most > self.bank_SB.shape[1]:
            more = np.full((self.sessions, most - self.bank_SB.shape[1]), np.nan)
            self.bank_SB = np.concatenate([self.bank_SB, more], axis=1)
        self.bank_SB[rows[:, None], self.size_S[rows, None] + np.arange(runs)] = values
        self.size_S[rows] += runs

    def try_candidate(self, gain: float, own_width: float) -> tuple[np.ndarray, ...]:
        """Take one candidate through each session: looks that keep, keeps, refusals, alarms (S)."""
        every = np.arange(self.sessions)
        self.tries_S += 1
        due = every[self.tries_S % EVERY == 0]
        self._add_to_bank(due, self._draw(due, 1, 0.0, self.width))
        self.clock_S[due] += 1
        own_SK = self._draw(every, DEFAULT.most, gain, own_width)
        looks_S, runs_S = np.zeros(self.sessions, dtype=bool), np.zeros(self.sessions, dtype=int)
        for size in np.unique(self.size_S):
            here, design = self.size_S == size, replace(DEFAULT, bank=int(size))
            t_SK = simulate_paths(design, self.bank_SB[here, :size], own_SK[here])
            looks_S[here], _, runs_S[here] = find_ends(integrate_paths(design)[0], t_SK)
        self.clock_S += runs_S
        own_SK[np.arange(DEFAULT.most) >= runs_S[:, None]] = np.nan
        p_S = self._measure_trend(every, self.bank_SB, [own_SK])
        refusals_S = self.watched & (p_S <= [spend_level(tries) for tries in self.tries_S])
        alarms_S = p_S < TOLD
        rows = np.flatnonzero(looks_S & ~refusals_S)
        keeps_S = np.zeros(self.sessions, dtype=bool)
        base_SF = self._draw(rows, FRESH, 0.0, self.width, step=2)
        fresh_SF = self._draw(rows, FRESH, gain, own_width, step=2, ahead=1)
        self.clock_S[rows] += 2 * FRESH
        runs_S[rows] += 2 * FRESH
        self._add_to_bank(rows, base_SF)
        if len(rows):
            p_S[rows] = self._measure_trend(rows, self.bank_SB[rows], [own_SK[rows], fresh_SF])
            level = [spend_level(tries, fresh=True) for tries in self.tries_S[rows]]
            refusals_S[rows] = self.watched & (p_S[rows] <= level)
            alarms_S[rows] = p_S[rows] < TOLD
            keeps_S[rows] = (p_of_fresh_runs(base_SF, fresh_SF) <= FRESH_LEVEL) & ~refusals_S[rows]
        keepers = np.flatnonzero(keeps_S)
        self.bank_SB[keepers] = np.nan
        self._add_to_bank(keepers, fresh_SF[keeps_S[rows]] - gain)  # gains are over the baseline of the time
        self.tries_S[keepers] = 0
        self._take_bank(np.flatnonzero(refusals_S))
        return looks_S, keeps_S, refusals_S, alarms_S

    def _measure_trend(self, rows: np.ndarray, bank_SB: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
        """The p of a trend within the arms."""
        arms = [bank_SB, *others]
        rises_S = sum(count_rises(arm) for arm in arms)
        sizes_SA = np.stack([(~np.isnan(arm)).sum(axis=1) for arm in arms], axis=1)
        p_S = np.ones(len(rows))
        for sizes in np.unique(sizes_SA, axis=0):
            here_S = (sizes_SA == sizes).all(axis=1)
            p_S[here_S] = tail_of_rises(tuple(sorted(map(int, sizes))))[np.abs(rises_S[here_S])]
        return p_S


def run_sessions(
    sessions: int,
    gains: Sequence[float],
    *,
    own_widths: Sequence[float] | None = None,
    width: float = 1.0,
    drift: float = 0.0,
    watched: bool = True,
) -> SessionRates:
    """Go through sessions of candidates with these gains, each as wide as the baseline unless said; in its sigmas.

    `watched`: whether a trend is refused.
    """
    rng = rng_of("watched", gains, own_widths, width, drift, watched)
    loop = WatchedSessions(sessions, drift, width, watched, rng)
    widths = own_widths or [1.0] * len(gains)
    ends = [loop.try_candidate(gain * width, own * width) for gain, own in zip(gains, widths, strict=True)]
    looks, keeps, refusals, alarms = (np.stack(each, axis=1) for each in zip(*ends))
    return SessionRates(looks=looks, keeps=keeps, refusals=refusals, alarms=alarms, runs=loop.clock_S)
