"""Rules that go through a session of proposals, each of which changes what was kept last.

Shapes: S sessions, N proposals, B runs of the baseline, K of a proposal. More is better; one run spreads by 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from decision_rules.rules_and_noise_laws import Ends, design, in_use
from scipy import special

from plumbline.stats.fresh_runs import FRESH_LEVEL, p_of_fresh_runs
from plumbline.stats.sentinel import EVERY
from plumbline.stats.sequential import Boundary, SequentialDesign
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths


@dataclass
class RunningSessions:
    """What a rule knows of its sessions as they go.

    Attributes:
        bank_SB: values of the baseline's runs; only the first `banked_S` of each session are there.
        first: the first run of the baseline and of every proposal.
    """

    bank_SB: np.ndarray
    banked_S: np.ndarray
    first: list[np.ndarray] = field(default_factory=list)

    def add(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Let runs of the baseline join those of these sessions."""
        runs = values.shape[1]
        short = int(self.banked_S[rows].max(initial=0)) + runs - self.bank_SB.shape[1]
        if short > 0:
            more = np.full((len(self.bank_SB), short), np.nan)
            self.bank_SB = np.concatenate([self.bank_SB, more], axis=1)
        self.bank_SB[rows[:, None], self.banked_S[rows, None] + np.arange(runs)] = values
        self.banked_S[rows] += runs


@dataclass(frozen=True, kw_only=True)
class LoopRule:
    """A way to go through a session.

    Attributes:
        bank: runs of the baseline before the first proposal; `most` runs of a proposal at most.
        decide: the loop, the runs of a proposal (S, K) -> ends.
        rebase: the loop, kept, the runs of the proposal and fresh ones of the kept arm: sets the new baseline's runs.
        rerun: runs of a kept arm that are made before it is the baseline.
        confirmed: whether those runs have to beat as many fresh ones of the baseline, which join its runs where they
            do not.
        sentinels: whether every third proposal brings a run of the baseline.
    """

    name: str
    bank: int
    most: int
    decide: Callable[[RunningSessions, np.ndarray], Ends]
    rebase: Callable[[RunningSessions, np.ndarray, np.ndarray, np.ndarray], None]
    rerun: int = 0
    confirmed: bool = False
    sentinels: bool = False

    def run(self, gains_SN: np.ndarray, rng: np.random.Generator) -> EndedSessions:
        """Go through sessions."""
        sessions = len(gains_SN)
        level_S = np.zeros(sessions)
        bank_SB = rng.standard_normal((sessions, self.bank))
        loop = RunningSessions(bank_SB, np.full(sessions, self.bank))
        loop.first.append(bank_SB[:, 0].copy())
        shown_S, runs_S = self.baseline_mean(loop), np.full(sessions, float(self.bank))
        all_kept = []
        for number, gain_S in enumerate(gains_SN.T, start=1):
            if self.sentinels and number % EVERY == 0:
                loop.add(np.arange(sessions), (level_S + rng.standard_normal(sessions))[:, None])
                runs_S = runs_S + 1
            values_SK = (level_S + gain_S)[:, None] + rng.standard_normal((sessions, self.most))
            loop.first.append(values_SK[:, 0])
            kept_S, used_S = self.decide(loop, values_SK)
            runs_S = runs_S + used_S + self.rerun * kept_S
            fresh_SB = (level_S + gain_S)[:, None] + rng.standard_normal((sessions, max(1, self.rerun)))
            if self.confirmed:
                base_SB = level_S[:, None] + rng.standard_normal((sessions, self.rerun))
                confirmed_S = p_of_fresh_runs(base_SB, fresh_SB) <= FRESH_LEVEL
                runs_S = runs_S + self.rerun * kept_S
                loop.add(np.flatnonzero(kept_S & ~confirmed_S), base_SB[kept_S & ~confirmed_S])
                kept_S = kept_S & confirmed_S
            level_S = level_S + gain_S * kept_S
            self.rebase(loop, kept_S, values_SK, fresh_SB)
            all_kept.append(kept_S)
        return EndedSessions(np.stack(all_kept, axis=1), gains_SN, level_S, self.baseline_mean(loop) - shown_S, runs_S)

    def baseline_mean(self, loop: RunningSessions) -> np.ndarray:
        """The baseline as the rule knows it: the mean of its runs."""
        return np.nanmean(loop.bank_SB, axis=1)


@dataclass(frozen=True)
class EndedSessions:
    """How sessions ended: what was kept of which gains, the true and the shown gain of the end, and all runs."""

    kept_SN: np.ndarray
    gains_SN: np.ndarray
    level_S: np.ndarray
    shown_S: np.ndarray
    runs_S: np.ndarray

    def row(self) -> list[str]:
        """The columns of a table."""
        real_SN, keeps = self.gains_SN > 0, self.kept_SN.sum(axis=1).mean()
        true = (self.kept_SN & real_SN).sum(axis=1)
        worse = (self.kept_SN & (self.gains_SN < 0)).sum(axis=1)
        none = self.kept_SN.sum(axis=1) - true - worse
        error = self.level_S.std() / np.sqrt(len(self.level_S))
        parts = f"{true.mean():.1f} / {none.mean():.1f} / {worse.mean():.1f}"
        ended = f"{self.level_S.mean():.2f} ± {error:.2f}"
        share = true.sum() / max(1, self.kept_SN.sum())
        return [f"{keeps:.1f}", parts, f"{share:.2f}", ended, f"{self.shown_S.mean():.2f}", f"{self.runs_S.mean():.0f}"]


def own_values(loop: RunningSessions, kept_S: np.ndarray, values_SK: np.ndarray, _: np.ndarray) -> None:
    """The runs that made a proposal win are the baseline's from then on, as the rules in use have it."""
    there = int(loop.banked_S[0])
    loop.bank_SB[kept_S, :there] = values_SK[kept_S][:, :there]


def shift_bank(loop: RunningSessions, kept_S: np.ndarray, values_SK: np.ndarray, _: np.ndarray) -> None:
    """The winning run is the baseline's; how far two baselines are apart was measured once."""
    loop.bank_SB[kept_S] += (values_SK[:, 0] - loop.bank_SB[:, 0])[kept_S, None]


def fresh_values(loop: RunningSessions, kept_S: np.ndarray, _: np.ndarray, fresh_SB: np.ndarray) -> None:
    """Fresh runs of what was kept are the bank."""
    size = fresh_SB.shape[1]
    loop.bank_SB[kept_S] = np.nan
    loop.bank_SB[kept_S, :size] = fresh_SB[kept_S]
    loop.banked_S = np.where(kept_S, size, loop.banked_S)


def rule_in_use(name: str) -> Callable[[RunningSessions, np.ndarray], Ends]:
    """One of the rules of `experiment_rules.md`, against the runs of what was kept last."""
    rule = next(each for each in in_use() if each.name == name)
    fixed = "fixed value" in name

    def decide(loop: RunningSessions, values_SK: np.ndarray) -> Ends:
        there = int(loop.banked_S[0])
        base_SB = loop.bank_SB[:, :there]
        own_SK = values_SK - base_SB.mean(axis=1, keepdims=True) if fixed else values_SK
        return rule.decide(rule, np.empty(0), base_SB, own_SK)

    return decide


def decide_green(loop: RunningSessions, values_SK: np.ndarray) -> Ends:
    """pi-autoresearch, heeded: better than the best, and two median distances of all runs better than the first."""
    every_SN = np.stack(loop.first, axis=1)
    away_S = np.median(np.abs(every_SN - np.median(every_SN, axis=1, keepdims=True)), axis=1)
    better_S = values_SK[:, 0] > loop.bank_SB[:, 0]
    sure_S = values_SK[:, 0] - every_SN[:, 0] >= 2 * away_S
    return better_S & sure_S & (every_SN.shape[1] >= 3), np.ones(len(values_SK))


def stopping(own: SequentialDesign) -> Callable[[RunningSessions, np.ndarray], Ends]:
    """The rule of `plumbline try`."""

    def decide(loop: RunningSessions, values_SK: np.ndarray) -> Ends:
        kept_S, used_S = np.zeros(len(values_SK), dtype=bool), np.zeros(len(values_SK), dtype=int)
        for here_S, stated in groups(own, loop):
            t_SK = simulate_paths(stated, loop.bank_SB[here_S, : stated.bank], values_SK[here_S])
            kept_S[here_S], _, used_S[here_S] = find_ends(edges(stated), t_SK)
        return kept_S, used_S

    return decide


def test_once(level: float) -> Callable[[RunningSessions, np.ndarray], Ends]:
    """One t test after as many runs as the baseline has."""

    def decide(loop: RunningSessions, values_SK: np.ndarray) -> Ends:
        most = values_SK.shape[1]
        own = design(most, most)
        t_SK = simulate_paths(own, loop.bank_SB[:, :most], values_SK)
        return t_SK[:, -1] >= special.stdtrit(own.df(most), 1 - level), np.full(len(t_SK), most)

    return decide


def groups(own: SequentialDesign, loop: RunningSessions) -> Iterator[tuple[np.ndarray, SequentialDesign]]:
    """Sessions whose banks are of one size, with their design."""
    for bank in sorted(set(loop.banked_S.tolist())):
        yield loop.banked_S == bank, replace(own, bank=bank)


@cache
def edges(own: SequentialDesign) -> Boundary:
    """The boundary of a design, by the fine grid alone."""
    return integrate_paths(own)[0]
