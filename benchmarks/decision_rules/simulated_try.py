"""The loop itself on drawn runs: what `plumbline try` does from its question to its verdict, with a bank in memory.

Sessions are independent; candidates of one session share its bank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from decision_rules.numbers_trainer import NumbersTrainer, Value
from decision_rules.rates_page import RatesPage, rng_of

from plumbline.stats.sequential import Plan
from plumbline.verdict.decision import loop
from plumbline.verdict.decision.bank import Bank, BankedRun
from plumbline.verdict.decision.experiment import BASELINE, ArmRun, ExperimentQuestion
from plumbline.verdict.decision.fix_design import (
    count_runs_at_last_keep,
    find_session_level,
    fix_design,
    require_announced,
    write_rule,
)
from plumbline.verdict.decision.loop import Experiment
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.outcome import Outcome

#: True gains of a session's candidates in sigma, in their order; the third brings a sentinel.
GAINS = (0.0, 1.0, 2.0, 0.0, 0.0)


class MemoryBank(Bank):
    """A bank that no disk keeps."""

    def __init__(self) -> None:
        self.path, self.runs, self._before = Path("memory"), [], 0

    def append(self, group: str, method: str, run: ArmRun, role: str = "loop", beside: tuple[int, ...] = ()) -> None:
        self.runs.append(BankedRun(group=group, method=method, run=run, role=role, beside=beside))


def draw_values(rng: np.random.Generator, gain: float) -> Value:
    """Values that are drawn: lower is better, one run spreads by 1."""
    return lambda arm, seed: float(rng.standard_normal()) - (gain if arm != BASELINE else 0.0)


def session(
    rng: np.random.Generator, base_question: ExperimentQuestion, gains: Sequence[float]
) -> list[tuple[bool, int]]:
    """Try a candidate of each gain: whether it was kept, and after how many runs."""
    bank, entries, decisions = MemoryBank(), list[LedgerEntry](), []
    for number, gain in enumerate(gains):
        trainer = NumbersTrainer(draw_values(rng, gain), f"c{number}")
        question = replace(base_question, candidate=trainer.name)
        entry = LedgerEntry(
            kind="try",
            name=trainer.name,
            fingerprint=trainer.name,
            baseline="b",
            metric="loss",
            test=write_rule(question),
        )
        ledger = Ledger(Path("memory"), tuple(entries), ())
        settled = replace(
            question,
            alpha=find_session_level(question, entry, ledger),
            bank_since=count_runs_at_last_keep(entry, ledger),
        )
        terms, plan = fix_design(settled, trainer, bank)
        require_announced(entry, plan, trainer, bank, ledger)
        decision = Experiment(terms=terms, plan=plan, trainer=trainer, bank=bank, tell=lambda line: None).conduct()
        entries += [entry, replace(entry, verdict=decision.verdict, sentence="s", runs=len(bank.runs))]
        decisions.append((decision.verdict == Outcome.KEEP, sum(arm != BASELINE for arm, _ in trainer.made)))
    return decisions


def the_loop(page: RatesPage) -> None:
    """Sessions of the loop by plan."""
    sessions, rows = max(50, page.worlds // 20), []
    # An estimate, the runs of a fixed design and words take their time, and change no run.
    none = patch.multiple(
        loop, estimate=lambda *_: None, count_fixed_runs=lambda *_: None, write_sentence=lambda *_, **__: ""
    )
    with none:
        for name, plan, least in (
            ("bank", "bank", 0.0),
            ("bank, minimum gain 1", "bank", 1.0),
            ("interleaved", "interleaved", 0.0),
            ("paired", "paired", 0.0),
        ):
            rows.append(_row(page, sessions, name, plan, least))  # type: ignore[arg-type]
    page.table(
        "The loop itself",
        f"{sessions:,} sessions a row of {len(GAINS)} candidates through `fix_design`, the announced rule, the "
        "session's level and `Experiment.conduct`, with runs that are drawn and a bank in memory: gains (beyond the "
        f"minimum) of {', '.join(f'{gain:g}' for gain in GAINS)} sigma in this order, the third with a sentinel, the "
        "bank made anew after a keep.",
        ["plan", "nulls kept", "1 sigma kept", "2 sigma kept", "runs at 0 / 1 / 2"],
        rows,
    )


def _row(page: RatesPage, sessions: int, name: str, plan: Plan, least: float) -> tuple[str, ...]:
    rng = rng_of("loop", name)
    question = ExperimentQuestion(
        name="x",
        baseline="base",
        candidate="",
        metric="loss",
        higher=False,
        plan=plan,
        minimum_gain=least,
        session="each",
    )
    gains = [gain + least for gain in GAINS]
    sessions_run = [session(rng, question, gains) for _ in range(sessions)]
    kept_SN, runs_SN = (np.array([[candidate[part] for candidate in each] for each in sessions_run]) for part in (0, 1))
    null_N = np.array(GAINS) == 0
    null_S = kept_SN[:, null_N].mean(axis=1)
    error = float(null_S.std()) / math.sqrt(sessions)
    page.note(f"the loop, {name}", float(null_S.mean()), error, question.alpha)
    of = [int(np.flatnonzero(np.array(GAINS) == gain)[0]) for gain in (1.0, 2.0)]
    runs = [f"{runs_SN[:, null_N].mean():.1f}", *(f"{runs_SN[:, at].mean():.1f}" for at in of)]
    shares = [page.share(kept_SN[:, at]) for at in of]
    return (name, f"{null_S.mean():.4f} ± {error:.4f}", *shares, " / ".join(runs))
