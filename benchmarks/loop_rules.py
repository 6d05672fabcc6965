"""Loops of 60 proposals, of which six have a gain: what each rule keeps, where it ends, and how many runs that takes.

    python benchmarks/loop_rules.py                     # 6 minutes of one quiet core; loop_rules.md
    python benchmarks/loop_rules.py --sessions 100 --no-real --out /tmp/quick.md

Nothing is trained. In the tables runs are drawn, with a fixed seed; a proposal is a change of what was kept last, and
its gain adds to those that were kept. `--no-real` leaves out the session that `plumbline try` itself decides, told by
nothing but its exit codes (`driven_loop.py`).

Shapes: S sessions, N proposals, B runs of the baseline, K of a proposal. More is better; one run spreads by 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from decision_rules.candidates import design, in_use
from decision_rules.page import rng_of
from decision_rules.sessions import squares_of
from tabulate import tabulate

from plumbline.core.files import atomic_write_text
from plumbline.stats.e_value import e_values
from plumbline.stats.sentinel import EVERY
from plumbline.stats.sequential import Boundary, SequentialDesign
from plumbline.stats.sequential.boundary import computed
from plumbline.stats.sequential.simulation import ends, paths
from plumbline.stats.sessions import fdr_level

PROPOSALS, REAL = 60, 6
#: The worlds: the gain of a real proposal, and the share of the others that make a run worse by 1 sigma.
WORLDS = ((1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (2.0, 0.5))
#: Degrees of freedom of history for which boundaries are made; between them the next smaller ones are taken.
STEPS = np.array([*range(25), 30, 40, 60, 90, 140, 200, 300])
#: Kept, and runs that were made, of every session.
Ends = tuple[np.ndarray, np.ndarray]


@dataclass
class Loop:
    """What a rule knows of its sessions as they go.

    Attributes:
        bank_SB: values of the baseline's runs; only the first `banked_S` of each session are there.
        squares_S, df_S: what the runs of past proposals and baselines say of sigma.
        kept_S: proposals that were kept.
    """

    bank_SB: np.ndarray
    banked_S: np.ndarray
    squares_S: np.ndarray
    df_S: np.ndarray
    kept_S: np.ndarray
    number: int = 0


@dataclass(frozen=True, kw_only=True)
class LoopRule:
    """A way to go through a session.

    Attributes:
        bank: runs of the baseline before the first proposal; `most` runs of a proposal at most.
        decide: the loop, the runs of a proposal (S, K) -> ends.
        rebase: the loop, kept, the runs of the proposal and fresh ones of the kept arm: sets the new baseline's runs.
        rerun: runs of a kept arm that are made before it is the baseline.
        sentinels: whether every fifth proposal brings a run of the baseline.
    """

    name: str
    bank: int
    most: int
    decide: Callable[[Loop, np.ndarray], Ends]
    rebase: Callable[[Loop, np.ndarray, np.ndarray, np.ndarray], None]
    rerun: int = 0
    sentinels: bool = False

    def run(self, gains_SN: np.ndarray, rng: np.random.Generator) -> Session:
        """Go through sessions."""
        sessions, proposals = gains_SN.shape
        level_S, zero_S = np.zeros(sessions), np.zeros(sessions)
        bank_SB = np.full((sessions, self.bank + proposals // EVERY + 1), np.nan)
        bank_SB[:, : self.bank] = rng.standard_normal((sessions, self.bank))
        loop = Loop(bank_SB, np.full(sessions, self.bank), zero_S.copy(), zero_S.copy(), zero_S.copy())
        shown_S, runs_S = self.shown(loop), np.full(sessions, float(self.bank))
        kept = []
        for number, gain_S in enumerate(gains_SN.T, start=1):
            loop.number = number
            if self.sentinels and number % EVERY == 0:
                loop.bank_SB[np.arange(sessions), loop.banked_S] = level_S + rng.standard_normal(sessions)
                loop.banked_S, runs_S = loop.banked_S + 1, runs_S + 1
            values_SK = (level_S + gain_S)[:, None] + rng.standard_normal((sessions, self.most))
            kept_S, used_S = self.decide(loop, values_SK)
            level_S = level_S + gain_S * kept_S
            fresh_SB = level_S[:, None] + rng.standard_normal((sessions, max(1, self.rerun)))
            self.rebase(loop, kept_S, values_SK, fresh_SB)
            runs_S = runs_S + used_S + self.rerun * kept_S
            loop.kept_S = loop.kept_S + kept_S
            kept.append(kept_S)
        return Session(np.stack(kept, axis=1), gains_SN, level_S, self.shown(loop) - shown_S, runs_S)

    def shown(self, loop: Loop) -> np.ndarray:
        """The baseline as the rule knows it: the mean of its runs."""
        return np.nanmean(loop.bank_SB, axis=1)


@dataclass(frozen=True)
class Session:
    """How sessions ended: what was kept of which gains, the true and the shown gain of the end, and all runs."""

    kept_SN: np.ndarray
    gains_SN: np.ndarray
    level_S: np.ndarray
    shown_S: np.ndarray
    runs_S: np.ndarray

    def row(self) -> list[str]:
        """The columns of a table."""
        real_SN, kept = self.gains_SN > 0, self.kept_SN.sum(axis=1).mean()
        true = (self.kept_SN & real_SN).sum(axis=1)
        worse = (self.kept_SN & (self.gains_SN < 0)).sum(axis=1)
        none = self.kept_SN.sum(axis=1) - true - worse
        error = self.level_S.std() / np.sqrt(len(self.level_S))
        parts = f"{true.mean():.1f} / {none.mean():.1f} / {worse.mean():.1f}"
        ended = f"{self.level_S.mean():.2f} ± {error:.2f}"
        share = true.sum() / max(1, self.kept_SN.sum())
        return [f"{kept:.1f}", parts, f"{share:.2f}", ended, f"{self.shown_S.mean():.2f}", f"{self.runs_S.mean():.0f}"]


def own_values(loop: Loop, kept_S: np.ndarray, values_SK: np.ndarray, _: np.ndarray) -> None:
    """The runs that made a proposal win are the baseline's from then on, as the rules in use have it."""
    there = int(loop.banked_S[0])
    loop.bank_SB[kept_S, :there] = values_SK[kept_S][:, :there]


def shifted(loop: Loop, kept_S: np.ndarray, values_SK: np.ndarray, _: np.ndarray) -> None:
    """The winning run is the baseline's; how far two baselines are apart was measured once."""
    loop.bank_SB[kept_S] += (values_SK[:, 0] - loop.bank_SB[:, 0])[kept_S, None]


def fresh_values(loop: Loop, kept_S: np.ndarray, _: np.ndarray, fresh_SB: np.ndarray) -> None:
    """Fresh runs of what was kept are the bank; the old bank still says something of sigma."""
    if not kept_S.any():
        return
    own_S = np.nanvar(loop.bank_SB, axis=1) * loop.banked_S
    loop.squares_S = np.where(kept_S, loop.squares_S + own_S, loop.squares_S)
    loop.df_S = np.where(kept_S, loop.df_S + loop.banked_S - 1, loop.df_S)
    size = fresh_SB.shape[1]
    loop.bank_SB[kept_S] = np.nan
    loop.bank_SB[kept_S, :size] = fresh_SB[kept_S]
    loop.banked_S = np.where(kept_S, size, loop.banked_S)


def rule_in_use(name: str) -> Callable[[Loop, np.ndarray], Ends]:
    """One of the rules of `experiment_rules.md`, against the runs of what was kept last."""
    rule = next(each for each in in_use() if each.name == name)
    fixed = "fixed value" in name

    def decide(loop: Loop, values_SK: np.ndarray) -> Ends:
        there = int(loop.banked_S[0])
        base_SB = loop.bank_SB[:, :there]
        own_SK = values_SK - base_SB.mean(axis=1, keepdims=True) if fixed else values_SK
        return rule.decide(rule, np.empty(0), base_SB, own_SK)

    return decide


def stopping(own: SequentialDesign, *, by_e: bool = False) -> Callable[[Loop, np.ndarray], Ends]:
    """The rule of `plumbline try`: sigma is pooled over all past runs of the session."""

    def decide(loop: Loop, values_SK: np.ndarray) -> Ends:
        kept_S, used_S = np.zeros(len(values_SK), dtype=bool), np.zeros(len(values_SK), dtype=int)
        for here_S, stated in groups(own, loop):
            bank_SB = loop.bank_SB[here_S, : stated.bank]
            # `paths` divides by the degrees of freedom of the design: squares are scaled to those.
            scale_S = stated.history_df / np.maximum(loop.df_S[here_S], 1)
            t_SK = paths(stated, bank_SB, values_SK[here_S], loop.squares_S[here_S] * scale_S)
            if by_e:
                level_S = fdr_level(loop.number, 0) * (loop.kept_S[here_S] + 1)
                kept_S[here_S], used_S[here_S] = e_ends(stated, t_SK, level_S)
            else:
                kept_S[here_S], _, used_S[here_S] = ends(edges(stated), t_SK)
        loop.squares_S = loop.squares_S + squares_of(values_SK, used_S)
        loop.df_S = loop.df_S + used_S - 1
        return kept_S, used_S

    return decide


def fixed_n(level: float) -> Callable[[Loop, np.ndarray], Ends]:
    """One t test after as many runs as the baseline has, without history."""
    from scipy import special

    def decide(loop: Loop, values_SK: np.ndarray) -> Ends:
        most = values_SK.shape[1]
        own = design(most, most)
        t_SK = paths(own, loop.bank_SB[:, :most], values_SK)
        return t_SK[:, -1] >= special.stdtrit(own.df(most), 1 - level), np.full(len(t_SK), most)

    return decide


def groups(own: SequentialDesign, loop: Loop) -> Iterator[tuple[np.ndarray, SequentialDesign]]:
    """Sessions whose bank and degrees of freedom are alike, with their design."""
    stated_S = STEPS[np.searchsorted(STEPS, loop.df_S, side="right") - 1]
    for bank, df in sorted(set(zip(loop.banked_S.tolist(), stated_S.tolist(), strict=True))):
        yield (loop.banked_S == bank) & (stated_S == df), replace(own, bank=bank, history_df=float(df))


def e_ends(own: SequentialDesign, t_SK: np.ndarray, level_S: np.ndarray) -> Ends:
    """Kept where the e-value reaches 1 / the level; a discard ends the runs as ever."""
    looks = range(1, own.most + 1)
    e_SK = np.stack([e_values(t_SK[:, k - 1], own.df(k), own.information(k)) for k in looks], axis=1)
    keep_SK, discard_SK = e_SK >= 1 / level_S[:, None], t_SK <= np.array(edges(own).discard)
    stopped_SK = keep_SK | discard_SK
    stopped_SK[:, -1] = True
    last_S = stopped_SK.argmax(axis=1)
    return keep_SK[np.arange(len(last_S)), last_S], last_S + 1


@cache
def edges(own: SequentialDesign) -> Boundary:
    """The boundary of a design, by the fine grid alone."""
    return computed(own)[0]


def rules() -> list[LoopRule]:
    """The rules in use, then ours."""
    found = []
    for rule in in_use():
        if rule.name.startswith("the same"):
            continue
        rebase = shifted if rule.name.startswith("twice") else own_values
        bank = 20 if "fixed value" in rule.name else rule.design.bank
        decide = rule_in_use(rule.name)
        found.append(
            LoopRule(name=rule.name, bank=bank, most=max(rule.design.most, bank), decide=decide, rebase=rebase)
        )
    common = {"bank": 5, "rebase": fresh_values, "rerun": 5}
    eight = design(5, 8)
    return [
        *found,
        LoopRule(name="fixed n: 5 against 5 at 0.05", most=5, decide=fixed_n(0.05), **common),
        LoopRule(name="`plumbline try`, `each`", most=8, decide=stopping(eight), sentinels=True, **common),
        LoopRule(
            name="`plumbline try`, `fwer` over 60",
            most=8,
            decide=stopping(replace(eight, alpha=0.05 / PROPOSALS)),
            sentinels=True,
            **common,
        ),
        LoopRule(name="`plumbline try`, `fdr`", most=8, decide=stopping(eight, by_e=True), sentinels=True, **common),
    ]


def gains(sessions: int, gain: float, worse: float, proposals: int = PROPOSALS) -> np.ndarray:
    """One proposal in ten has a gain, in an order of its own in each session; of the others a share does harm."""
    real = proposals * REAL // PROPOSALS
    row = np.zeros(proposals)
    row[:real] = gain
    row[real : real + round(worse * (proposals - real))] = -1.0
    return rng_of("gains", gain, worse, proposals).permuted(np.tile(row, (sessions, 1)), axis=1)


@dataclass
class Tables:
    """The tables of all worlds."""

    sessions: int
    parts: list[str] = field(default_factory=list)

    def world(self, gain: float, worse: float) -> None:
        rows, last = [], 0
        gains_SN = gains(self.sessions, gain, worse)
        for rule in rules():
            session = rule.run(gains_SN, rng_of(rule.name, gain, worse))
            rows.append([rule.name, *session.row()])
            if rule.name.endswith("`each`"):
                last = round(float(session.runs_S.mean()))
        greedy = rules()[0]
        many = greedy.run(gains(self.sessions, gain, worse, last), rng_of("as many", gain, worse))
        rows.insert(1, [f"{greedy.name}, {last} proposals", *many.row()])
        harm = f", {round(100 * worse)} % of the others lose 1 sigma" if worse else ", the others do nothing"
        head = ["rule", "kept", "real / nothing / worse", "real share", "true gain", "gain shown", "runs"]
        text = tabulate(rows, headers=head, tablefmt="pipe", disable_numparse=True)
        self.parts.append(f"## Six gains of {gain:g} sigma{harm}\n\n{text}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulates loops of proposals")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--no-real", action="store_true", help="leave out the session of `plumbline try` itself")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    tables = Tables(arguments.sessions)
    for gain, worse in WORLDS:
        tables.world(gain, worse)
        print(tables.parts[-1], flush=True)
    head = "x"
    atomic_write_text(arguments.out, "\n\n".join([head, *tables.parts]) + "\n")


if __name__ == "__main__":
    main()
