"""Sessions of candidates as they are decided: looks against a bank, fresh runs, the order of runs, and the next bank.

A candidate goes through the looks against the bank, then, where the session has them, through fresh runs of both arms
in turn; the order of all runs is examined before and after (`plumbline.verdict.comparability.independence`). After a
keep its fresh runs are the bank; where they do not confirm it, the fresh runs of the baseline join the bank. After a
refusal the bank is made anew, as the refusal asks for.

Shapes: S sessions, N candidates of each, B runs of the bank, K of a candidate, F fresh ones. More is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from decision_rules.rates_page import rng_of
from decision_rules.rules_and_noise_laws import DEFAULT, Law, normal

from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.order_trend import count_rises, spend_level, tail_of_rises
from plumbline.stats.sentinel import EVERY
from plumbline.stats.sequential import SequentialDesign
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths

FRESH = 5
#: A trend is told at this p.
TOLD = 0.05


@dataclass(frozen=True, kw_only=True)
class SessionControl:
    """How a session is kept honest.

    Attributes:
        design: of each candidate.
        sentinels: whether every third candidate brings a run of the baseline.
        anew: whether the bank is made anew after each keep.
        fresh: a keep counts only where so many fresh runs of both arms confirm it; they are the next bank. 0: at once.
        trend: whether a trend with the order of runs is refused, only told, or not looked for.
    """

    name: str
    design: SequentialDesign = DEFAULT
    sentinels: bool = False
    anew: bool = False
    fresh: int = 0
    trend: Literal["refused", "told", "not looked for"] = "not looked for"


#: What a try in a folder does.
FOLDER = SessionControl(name="a folder's", sentinels=True, anew=True, fresh=FRESH, trend="refused")


@dataclass(frozen=True, kw_only=True)
class SessionRates:
    """What happened to the candidates of sessions (S, N), and the runs that each of them took, of all kinds.

    Attributes:
        looks: kept by the looks; keeps: by fresh runs too; refusals: a trend was refused; alarms: one was told.
        runs: of the candidate and of the baseline, from the one before on; the first bank is in none.
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
    control: SessionControl = FOLDER
    law: Law = normal
    drift: float = 0.0
    width: float = 1.0
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def __post_init__(self) -> None:
        self.candidates = 0
        self.clock_S = np.zeros(self.sessions, dtype=int)
        self.size_S = np.zeros(self.sessions, dtype=int)
        self.tries_S = np.zeros(self.sessions, dtype=int)
        self.bank_SB = np.full((self.sessions, self.control.design.bank), np.nan)
        self._take_bank(np.arange(self.sessions))

    def _draw(self, rows: np.ndarray, runs: int, gain: float, width: float, *, step: int = 1, ahead: int = 0):
        """Runs that are made one after the other, from where each session's clock is; `step` runs apart."""
        when = self.clock_S[rows, None] + ahead + step * np.arange(runs)
        return gain + width * self.law(self.rng, (len(rows), runs)) + self.drift * self.width * when

    def _take_bank(self, rows: np.ndarray) -> None:
        self.bank_SB[rows] = np.nan
        self._add_to_bank(rows, self._draw(rows, self.control.design.bank, 0.0, self.width))
        self.clock_S[rows] += self.control.design.bank

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
        """Take one candidate through each session: looks that keep, keeps, refusals, alarms, runs (S)."""
        control, every, began_S = self.control, np.arange(self.sessions), self.clock_S.copy()
        self.candidates += 1
        self.tries_S += 1
        if control.sentinels and self.candidates % EVERY == 0:
            self._add_to_bank(every, self._draw(every, 1, 0.0, self.width))
            self.clock_S += 1
        own_SK = self._draw(every, control.design.most, gain, own_width)
        looks_S, runs_S = np.zeros(self.sessions, dtype=bool), np.zeros(self.sessions, dtype=int)
        for size in np.unique(self.size_S):
            here, design = self.size_S == size, replace(control.design, bank=int(size))
            t_SK = simulate_paths(design, self.bank_SB[here, :size], own_SK[here])
            looks_S[here], _, runs_S[here] = find_ends(integrate_paths(design)[0], t_SK)
        self.clock_S += runs_S
        own_SK[np.arange(control.design.most) >= runs_S[:, None]] = np.nan
        p_S = self._measure_trend(every, [own_SK])
        refusals_S = self._refuse(p_S, self.tries_S)
        keeps_S = looks_S & ~refusals_S
        if control.fresh:
            rows = np.flatnonzero(keeps_S)
            base_SF = self._draw(rows, control.fresh, 0.0, self.width, step=2)
            fresh_SF = self._draw(rows, control.fresh, gain, own_width, step=2, ahead=1)
            self.clock_S[rows] += 2 * control.fresh
            self._add_to_bank(rows, base_SF)
            p_S[rows] = self._measure_trend(rows, [own_SK[rows], fresh_SF])
            refusals_S[rows] = self._refuse(p_S[rows], self.tries_S[rows], fresh=True)
            keeps_S[rows] = (p_of_fresh_runs(base_SF, fresh_SF) <= FRESH_LEVEL) & ~refusals_S[rows]
            self.bank_SB[keeps_S] = np.nan
            bank_SF = fresh_SF[keeps_S[rows]] - gain  # gains are over the baseline of the time
            self._add_to_bank(np.flatnonzero(keeps_S), bank_SF)
        elif control.anew:
            self._take_bank(np.flatnonzero(keeps_S))
        self.tries_S[keeps_S] = 0
        self._take_bank(np.flatnonzero(refusals_S))
        return looks_S, keeps_S, refusals_S, p_S < TOLD, self.clock_S - began_S

    def _refuse(self, p_S: np.ndarray, tries_S: np.ndarray, *, fresh: bool = False) -> np.ndarray:
        """Whether a trend is refused at the level that is left after so many tries."""
        if self.control.trend != "refused":
            return np.zeros(len(p_S), dtype=bool)
        return p_S <= np.array([spend_level(tries, fresh=fresh) for tries in tries_S])

    def _measure_trend(self, rows: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
        """The p of a trend within the bank and other arms; 1 where it is not looked for."""
        p_S = np.ones(len(rows))
        if self.control.trend == "not looked for" or not len(rows):
            return p_S
        arms = [self.bank_SB[rows], *others]
        rises_S = sum(count_rises(arm) for arm in arms)
        sizes_SA = np.stack([(~np.isnan(arm)).sum(axis=1) for arm in arms], axis=1)
        for sizes in np.unique(sizes_SA, axis=0):
            here_S = (sizes_SA == sizes).all(axis=1)
            p_S[here_S] = tail_of_rises(tuple(sorted(map(int, sizes))))[np.abs(rises_S[here_S])]
        return p_S


def run_sessions(
    sessions: int,
    gains: Sequence[float],
    control: SessionControl = FOLDER,
    *,
    law: Law = normal,
    own_widths: Sequence[float] | None = None,
    width: float = 1.0,
    drift: float = 0.0,
) -> SessionRates:
    """Go through sessions of candidates with these gains, each as wide as the baseline unless said; in its sigmas."""
    rng = rng_of("sessions", control.name, law.__name__, gains, own_widths, width, drift)
    loop = WatchedSessions(sessions, control, law, drift, width, rng)
    widths = own_widths or [1.0] * len(gains)
    ends = [loop.try_candidate(gain * width, own * width) for gain, own in zip(gains, widths, strict=True)]
    looks, keeps, refusals, alarms, runs = (np.stack(each, axis=1) for each in zip(*ends))
    return SessionRates(looks=looks, keeps=keeps, refusals=refusals, alarms=alarms, runs=runs)
