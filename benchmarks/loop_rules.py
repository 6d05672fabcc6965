"""Loops of 60 proposals, of which six have a gain: what each rule keeps, where it ends, and how many runs that takes.

    python benchmarks/loop_rules.py                     # 6 minutes of one quiet core; loop_rules.md
    python benchmarks/loop_rules.py --sessions 100 --skip-real-session --out /tmp/quick.md

Nothing is trained. In the tables runs are drawn, with a fixed seed; a proposal is a change of what was kept last, and
its gain adds to those that were kept. `--skip-real-session` leaves out the session that `plumbline try` itself decides,
told by nothing but its exit codes (`try_by_exit_codes.py`). What is known is written as it comes: after
each table and each proposal.

Shapes: S sessions, N proposals, B runs of the baseline, K of a proposal. More is better; one run spreads by 1.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from decision_rules.proposal_sessions import (
    LoopRule,
    decide_green,
    fresh_values,
    own_values,
    rule_in_use,
    shift_bank,
    stopping,
    test_once,
)
from decision_rules.rates_page import rng_of
from decision_rules.rules_and_noise_laws import design, in_use
from machine_description import describe
from tabulate import tabulate
from try_by_exit_codes import SIGMA, drive

from plumbline.core.files import atomic_write_text

PROPOSALS, REAL = 60, 6
#: The worlds: the gain of a real proposal, and the share of the others that make a run worse by 1 sigma.
WORLDS = ((1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (2.0, 0.5))


def rules() -> list[LoopRule]:
    """The rules in use, then ours."""
    loop_rules = []
    for rule in in_use():
        if rule.name.startswith("the same"):
            continue
        rebase = shift_bank if rule.name.startswith("twice") else own_values
        bank = 20 if "fixed value" in rule.name else rule.design.bank
        decide = rule_in_use(rule.name)
        loop_rules.append(
            LoopRule(name=rule.name, bank=bank, most=max(rule.design.most, bank), decide=decide, rebase=rebase)
        )
    loop_rules.append(
        LoopRule(
            name="pi-autoresearch: keep if better and green", bank=1, most=1, decide=decide_green, rebase=own_values
        )
    )
    common = {"bank": 5, "rebase": fresh_values, "rerun": 5}
    own = common | {"most": 8, "sentinels": True, "confirmed": True}
    eight = design(5, 8)
    return [
        *loop_rules,
        LoopRule(name="fixed n: 5 against 5 at 0.05", most=5, decide=test_once(0.05), **common),
        LoopRule(name="`plumbline try`, `each`", decide=stopping(eight), **own),
        LoopRule(name="the same, fresh runs made and not read", decide=stopping(eight), **(own | {"confirmed": False})),
        LoopRule(
            name="`plumbline try`, `fwer` over 60", decide=stopping(replace(eight, alpha=0.05 / PROPOSALS)), **own
        ),
    ]


def gains(sessions: int, gain: float, worse: float, proposals: int = PROPOSALS) -> np.ndarray:
    """One proposal in ten has a gain, in an order of its own in each session; of the others a share does harm."""
    real = proposals * REAL // PROPOSALS
    row = np.zeros(proposals)
    row[:real] = gain
    row[real : real + round(worse * (proposals - real))] = -1.0
    return rng_of("gains", gain, worse, proposals).permuted(np.tile(row, (sessions, 1)), axis=1)


@dataclass
class LoopTables:
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


def real_session(gain: float) -> Iterator[str]:
    """Say after each proposal how the session goes that `plumbline try` itself decides, told by exit codes alone."""
    gains_N = gains(1, gain, 0.0)[0]
    with tempfile.TemporaryDirectory() as folder:
        for driven in drive(Path(folder) / "trainer", gains_N.tolist()):
            tried = len(driven.codes)
            before_N = gains_N[:tried]
            print(f"proposal {tried} of {PROPOSALS}: exit code {driven.codes[-1]}", flush=True)
            real_keeps = [gain_ > 0 for gain_, code in zip(gains_N, driven.codes) if code == 0]
            codes = ", ".join(f"{driven.codes.count(code)} ended with {code}" for code in sorted(set(driven.codes)))
            many = f"{PROPOSALS} proposals" if tried == PROPOSALS else f"{tried} of {PROPOSALS} proposals, not finished"
            yield (
                "## `plumbline try` itself\n\n"
                f"One session of {many}, {int((before_N > 0).sum())} of them with a gain of {gain:g} sigma, of a "
                "trainer that trains nothing (`examples/loop/train.py`), driven by `examples/loop/decide.sh`: what is "
                f"committed and what is taken back hangs on the exit codes alone. {codes}. Kept: {len(real_keeps)}, "
                f"of which {sum(real_keeps)} are real; the committed script is better by "
                f"{sum(driven.changes) / SIGMA:.1f} sigma, of {before_N.sum():g} possible. "
                f"{driven.runs} runs, and {driven.seconds:.0f} s for the {tried} commands, in which "
                f"the trainer itself takes next to none.{driven.ending}"
            )


WORDS = """\
A proposal changes what was kept last; six of sixty have a gain, which adds to those kept before. `try` and fixed n run
what they kept five times again, with fresh seeds, and compare with those runs from then on; `try` runs the baseline
five times again too, in turn, and keeps only what beats those runs (one-sided p of .25 at most), which join the
baseline's where it does not. The rules in use compare with the runs that won. Kept: real / nothing / worse is how many
had a gain, none, or did harm. True gain: of what the session ends with, over its start, in sigma of one run. Gain
shown: as the rule's own numbers have it. Runs: all of the session, the baseline's too. Left out is the check of the
order of runs, which refuses fewer than one try in a hundred where nothing drifts (`evidence_rates.md`).

What they say: a rule that keeps after one run ends with a gain that it overstates, and cannot name the changes that
made it: two of three that it kept do nothing. Of the same 60 ideas `try` finds as many gains of one sigma and more of
two and three, for three to four times the runs. Where ideas cost nothing, never run out and one in ten is real (the
second row), as many runs spent on more ideas find more: a loop that only wants a low number, and will not say why, may
do that. `fwer` keeps next to nothing that is not real, and pays with gains of one and two sigma."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulates loops of proposals")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument(
        "--skip-real-session", action="store_true", help="leave out the session of `plumbline try` itself"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    tables = LoopTables(options.sessions)
    head = (
        "# Loops of 60 proposals, where the truth is known\n\n"
        f"{describe(with_torch=False)}. {options.sessions:,} sessions a row. `python benchmarks/loop_rules.py`"
    )

    def write(*more: str) -> None:
        atomic_write_text(options.out, "\n\n".join([head, WORDS, *tables.parts, *more]) + "\n")

    for gain, worse in WORLDS:
        tables.world(gain, worse)
        print(tables.parts[-1], flush=True)
        write()
    for text in () if options.skip_real_session else real_session(2.0):
        write(text)
    print(options.out)


if __name__ == "__main__":
    main()
