"""Prints what experiments have left: the noise of a run, the log of decisions, a page again."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from plumbline.core.errors import PlumblineError, visible
from plumbline.core.terminal_lines import folded
from plumbline.operate.experiments.carry_out_experiment import page_of
from plumbline.operate.experiments.experiment_folders import ExperimentFolders
from plumbline.verdict import ledger
from plumbline.verdict.decision import decision_page, decision_records
from plumbline.verdict.decision.noise_of_a_run import SEEDS, noise
from plumbline.verdict.formatting import counted, fixed
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer.snapshot import Arm


def print_noise(given: argparse.Namespace, place: ExperimentFolders, beside: Mapping[str, int] | None = None) -> int:
    """Print the noise of every trainer and budget; `beside`: the baseline's runs of the next try, where it is known."""
    bank = place.bank()
    rows = noise(bank, beside or {})
    if given.json:
        print(json.dumps({"noise": rows}))
        return 0
    if not rows:
        raise PlumblineError(
            f"{place.lacking}{bank.path}: no two runs of one method are there yet; {place.first} makes some"
        )
    for row in rows:
        sigma, trainer = row["sigma"], row["group"].replace(" {flags}", "")
        said = (
            f"{visible(trainer)}: sigma {fixed(sigma, sigma)} (95 % interval {fixed(row['low'], sigma)} to "
            f"{fixed(row['high'], sigma)}), from {row['runs']} runs of {counted(row['arms'], 'arm')}. "
            f"Beside {row['bank']} runs of the baseline, a gain is found with 80 % chance at .05, one-sided:"
        )
        print(folded(said, sys.stdout))
        _print(["runs of a candidate", *SEEDS], [["gain", *(fixed(row["resolves"][str(k)], sigma) for k in SEEDS)]])
    return 0


def print_log(given: argparse.Namespace, place: ExperimentFolders, now: Arm | None = None) -> int:
    """Print every decision, and what was tried without one; `now`: what is the baseline, where that moves."""
    known = place.tried()
    decided = {(one.name, one.test): one for one in known.entries if one.verdict}
    tried = [one for one in known.entries if one.is_try]
    rows = [
        {"number": number} | _logged(one, decided.get((one.name, one.test)), place, now)
        for number, one in enumerate(tried, start=1)
    ]
    if given.json:
        print(json.dumps({"log": rows, "ledger": str(known.path), "length": len(known), "head": known.head}))
        return 0
    if not rows:
        raise PlumblineError(f"{place.lacking}{known.path}: nothing was tried yet; {place.first}")
    heads = ("#", "when (UTC)", "what was tried", "against", "runs", "gain", "verdict")
    _print(heads, [_cells(row) for row in rows], whole=("#", "when (UTC)", "runs", "gain", "verdict"))
    if any(row["page"] for row in rows):
        print(folded("The page of a row: plumbline page NUMBER", sys.stdout))
    if now is not None:
        print(folded(visible(f"* the baseline now: {now.words} ({now.commit[:7]})"), sys.stdout))
    if given.long:
        for row in rows:
            if row["sentence"]:
                print(folded(visible(f"{row['name']}: {row['sentence']}"), sys.stdout))
    return 0


def _cells(row: Mapping[str, Any]) -> list[str]:
    """A row as people read it: the time to the minute, and of the baseline's runs how many stand beside."""
    runs = f"{row['runs']} + {row['baseline_runs']}" if row["runs"] else ""
    when = row["at"][5:16].replace("T", " ")
    mark = "* " if row["is_baseline"] else ""
    verdict = row["verdict"] + ", claim" * row["claim"]
    return [str(row["number"]), when, mark + row["tried"], row["against"], runs, row["gain"], verdict]


def _logged(
    one: ledger.LedgerEntry, decided: ledger.LedgerEntry | None, place: ExperimentFolders, now: Arm | None
) -> dict[str, Any]:
    found = {
        "name": one.name,
        "kind": one.kind,
        "baseline": one.baseline,
        "metric": one.metric,
        "verdict": decided.verdict if decided else "no decision" if one.kind == "try" else one.kind,
        "exit_code": Outcome(decided.verdict).exit_code if decided else None,
        "commit": one.commit,
        "sentence": decided.sentence if decided else "",
        "at": decided.at if decided else "",
    }
    known: dict[str, Any] = {"tried": one.name, "against": "", "runs": 0, "baseline_runs": 0, "gain": ""}
    known |= {"claim": False, "is_baseline": False, "page": ""}
    path = page_of(place, one.name).with_suffix(".json")
    if one.kind == "try" and path.exists():
        decision = decision_records.read(path)
        terms, estimate = decision.terms, decision.estimate
        known |= {"tried": terms.candidate, "against": terms.baseline, "claim": terms.claim}
        known["page"] = str(path.with_suffix(".md"))
        if decision.sentence == found["sentence"]:  # else it is of another rule, whose page this was
            known |= {"runs": len(decision.candidate_values), "baseline_runs": len(decision.baseline_values)}
            known["gain"] = "" if estimate is None else fixed(estimate.median, decision.looks[-1].sigma)
            methods = decision.asked.get("methods", [""])
            made = now is not None and not terms.claim and methods[0] == now.method
            known["is_baseline"] = made and decision.verdict == Outcome.KEEP
    return found | known


def _print(heads: Sequence[object], rows: Sequence[Sequence[str]], whole: Sequence[str] = ()) -> None:
    table = Table(*map(str, heads), box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"  # names differ at their ends
        column.no_wrap = column.header in whole
    for row in rows:
        table.add_row(*map(visible, row))
    Console(markup=False, emoji=False, highlight=False).print(table)


def print_page(given: argparse.Namespace, place: ExperimentFolders) -> int:
    """Write a page again from its numbers, and print it."""
    decision = place.named(given.name)
    page = page_of(place, decision.terms.name)
    decision_page.write(decision, page)
    text = page.read_text(encoding="utf-8")
    print(json.dumps(decision_page.numbers(decision)) if given.json else folded(text, sys.stdout), end="\n")
    return 0


VIEWS: dict[str, Callable[[argparse.Namespace, ExperimentFolders], int]] = {
    "noise": print_noise,
    "log": print_log,
    "page": print_page,
}
