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
from plumbline.experiment import ledger
from plumbline.experiment.decision import decision_page
from plumbline.experiment.decision.noise_of_a_run import SEEDS, noise
from plumbline.experiment.decision.outcome import EXIT_CODES
from plumbline.experiment.formatting import counted, fixed
from plumbline.operate.experiments.carry_out_experiment import page_of
from plumbline.operate.experiments.experiment_folders import ExperimentFolders


def print_noise(given: argparse.Namespace, place: ExperimentFolders, beside: Mapping[str, int] | None = None) -> int:
    """Print the noise of every trainer and budget; `beside`: the baseline's runs of the next try, where it is known."""
    bank = place.bank()
    rows = noise(bank, beside or {})
    if given.json:
        print(json.dumps({"noise": rows}))
        return 0
    if not rows:
        raise PlumblineError(f"{bank.path}: no two runs of one method are there yet; {place.first} makes some")
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


def print_log(given: argparse.Namespace, place: ExperimentFolders) -> int:
    """Print every decision, and what was tried without one."""
    known = place.tried()
    decided = {(one.name, one.test): one for one in known.entries if one.verdict}
    tried = [one for one in known.entries if one.is_try]
    rows = [_logged(one, decided.get((one.name, one.test))) for one in tried]
    if given.json:
        print(json.dumps({"log": rows, "ledger": str(known.path), "length": len(known), "head": known.head}))
        return 0
    if not rows:
        raise PlumblineError(f"{known.path}: nothing was tried yet; {place.first}")
    _print(["when", "what", "verdict"], [[row["at"], row["name"], row["verdict"]] for row in rows])
    for row in rows:
        if row["sentence"]:
            print(visible(f"{row['name']}: {row['sentence']}"))
    return 0


def _logged(one: ledger.LedgerEntry, decided: ledger.LedgerEntry | None) -> dict[str, Any]:
    return {
        "name": one.name,
        "kind": one.kind,
        "baseline": one.baseline,
        "metric": one.metric,
        "verdict": decided.verdict if decided else "no decision" if one.kind == "try" else one.kind,
        "exit_code": next((code for said, code in EXIT_CODES.items() if decided and decided.verdict == said), None),
        "commit": one.commit,
        "sentence": decided.sentence if decided else "",
        "at": decided.at if decided else "",
    }


def _print(heads: Sequence[object], rows: Sequence[Sequence[str]]) -> None:
    table = Table(*map(str, heads), box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"  # names differ at their ends
    for row in rows:
        table.add_row(*map(visible, row))
    Console(markup=False, emoji=False, highlight=False).print(table)


def print_page(given: argparse.Namespace, place: ExperimentFolders) -> int:
    """Write a page again from its numbers, and print it."""
    decision = place.named(given.name)
    page = page_of(place, decision.terms.name)
    decision_page.write(decision, page)
    print(json.dumps(decision_page.numbers(decision)) if given.json else page.read_text(encoding="utf-8"), end="\n")
    return 0


VIEWS: dict[str, Callable[[argparse.Namespace, ExperimentFolders], int]] = {
    "noise": print_noise,
    "log": print_log,
    "page": print_page,
}
