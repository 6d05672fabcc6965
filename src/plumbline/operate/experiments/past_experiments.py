"""Names where experiments lie that are compared with each other, and prints what they have left: noise, log, pages."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from plumbline.core import process_record
from plumbline.core.errors import PlumblineError, nearest, visible
from plumbline.core.formats import format_count
from plumbline.core.terminal_lines import fold_lines
from plumbline.stats.pooling import pool_spreads
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparison_terms import POWER
from plumbline.verdict.decision import budget_page, decision_page
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.decision_sentences import write_sentence
from plumbline.verdict.decision.experiment import Decision, read_decision
from plumbline.verdict.formatting import format_value
from plumbline.verdict.ledger import BUDGETS, IN_SCREEN, SCREEN, Ledger
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer.snapshot import Arm
from plumbline.verdict.power import ComparisonDesign, compute_sigma_interval
from plumbline.verdict.screen import screen_page

#: Candidate runs for which `plumbline noise` states what they resolve.
SEEDS = (2, 3, 5, 8, 12)


@dataclass(frozen=True, kw_only=True)
class ExperimentFolders:
    """Where experiments lie that are compared with each other: a preset's, or those of a trainer of one's own.

    Attributes:
        pages: the folder of pages.
        work: the folder of the bank, which one process at a time holds.
        ledger: the ledger, one for everything that is compared here.
        where: which place it is, as the end of a sentence: `at preset demo`.
        first: the command that makes the first experiment here.
        lacking: what is not here, as the begin of an error where nothing was tried yet; empty if all is.
    """

    pages: Path
    work: Path
    ledger: Path
    where: str
    first: str
    lacking: str = ""

    def page(self, name: str) -> Path:
        """Name the page of an experiment."""
        return self.pages / f"{name}.md"

    def bank(self) -> Bank:
        """Read the bank."""
        return Bank(self.work / "runs.jsonl")

    def read_ledger(self) -> Ledger:
        """Read the ledger."""
        return ledgers.read(self.ledger)

    def decisions(self) -> list[Path]:
        """List the decisions of tries at one budget, the newest last: in the order of the ledger, which no clock can
        change.
        """
        names = [
            entry.name for entry in self.read_ledger().entries if entry.verdict and entry.kind not in (BUDGETS, SCREEN)
        ]
        newest = reversed(dict.fromkeys(reversed(names)))
        return [path for name in newest if (path := self.pages / f"{name}.json").exists()]

    def find_budgets(self, name: str | None) -> Path | None:
        """Find the numbers of a try at several budgets: by its number in the log, its name, or what was tried, unless a
        try at one budget has these words; without a name, where it is the newest of all.
        """
        decided = [entry for entry in self.read_ledger().entries if entry.verdict]
        if name is None:
            decided = decided[-1:]
        paths = {
            e.name: path for e in decided if e.kind == BUDGETS and (path := self.pages / f"{e.name}.json").exists()
        }
        if name is None or name in paths:
            return paths.get(name) if name is not None else next(iter(paths.values()), None)
        if name.isdecimal() and name in (by_number := self._by_number(paths)):
            return by_number[name]
        by_candidate = {budget_page.read(path).terms.candidate: path for path in paths.values()}
        return by_candidate.get(name) if name not in self._by_words(self.decisions(), claims=True) else None

    def find_screen(self, name: str | None) -> Path | None:
        """Find the numbers of a screen: by its name, the number in the log or the name of one of its tries, or its
        words, unless a try has these; without a name, where it is the newest of all.
        """
        entries = self.read_ledger().entries
        of_screens = [entry for entry in entries if entry.kind == SCREEN and entry.verdict]
        paths = {entry.page_name: self.pages / f"{entry.page_name}.json" for entry in of_screens}
        paths = {page: path for page, path in paths.items() if path.exists()}
        if name is None:
            decided = [entry for entry in entries if entry.verdict][-1:]
            return next((paths[entry.page_name] for entry in decided if entry.page_name in paths), None)
        tried = [entry for entry in entries if entry.is_try]
        pages = {entry.name: entry.page_name for entry in of_screens} | {page: page for page in paths}
        pages |= {str(number): entry.page_name for number, entry in enumerate(tried, start=1) if entry.kind == SCREEN}
        return paths.get(pages.get(name, ""))

    def withdraw(self, name: str, why: str) -> None:
        """Take a keep back that was a mistake, in its page and in the ledger."""
        decision, entries = read_decision(self.pages / f"{name}.json"), self.read_ledger().entries
        entry = next(each for each in reversed(entries) if each.name == name and each.verdict)
        decision = replace(decision, verdict=Outcome.CANNOT_BE_JUDGED, estimate=None, p=None, at=process_record.now())
        decision = replace(decision, sentence=write_sentence(decision, reason=why))
        withdrawal = replace(entry, verdict=decision.verdict, sentence=decision.sentence, at=decision.at)
        with ledgers.append_provisionally(self.ledger, [withdrawal]) as ledger:
            decision = replace(decision, ledger=ledgers.write_statement(ledger, self.pages))
            decision_page.write(decision, self.page(name))

    def read_decision(self, name: str | None, *, only_kept: bool = False, claims: bool = True) -> Decision:
        """Read a decision by its name, the message of what was tried or its number in the log, or the newest one.

        `only_kept`: refuse one that was not kept.

        Without `claims` words mean the try, not what `plumbline confirm` made of it.

        Raises:
            PlumblineError: there is none.
        """
        decisions = self.decisions()
        if name is not None:
            paths_by_name = {path.stem: path for path in decisions}
            by_words = {} if name in paths_by_name else self._by_words(decisions, claims=claims and not only_kept)
            if name.isdecimal() and name not in by_words:
                by_words = self._by_number(paths_by_name)
            if name not in {**paths_by_name, **by_words}:
                like = nearest(name, [*paths_by_name, *by_words]) or "; plumbline log lists them"
                raise PlumblineError(f"there is no experiment {name!r} {self.where}{like}")
            decision = read_decision({**paths_by_name, **by_words}[name])
            if only_kept and (not decision.verdict.is_kept or decision.terms.claim):
                reason = "is a claim" if decision.terms.claim else f"ended as '{decision.verdict}'"
                raise PlumblineError(
                    f"{name} {reason}, and only what a try kept is run again for a claim: fresh seeds for what was not "
                    "kept are a second chance that nothing paid for"
                )
            return decision
        for path in reversed(decisions):
            decision = read_decision(path)
            if not only_kept or (decision.verdict.is_kept and not decision.terms.claim):
                return decision
        kind = "that was kept" if only_kept else "yet"
        raise PlumblineError(f"{self.lacking}there is no experiment {kind} {self.where}: {self.first}")

    def _by_number(self, paths: Mapping[str, Path]) -> dict[str, Path]:
        """Find the decisions by the numbers of their tries, which a ledger never changes."""
        tried = (entry for entry in self.read_ledger().entries if entry.is_try)
        return {str(number): paths[entry.name] for number, entry in enumerate(tried, start=1) if entry.name in paths}

    @staticmethod
    def _by_words(paths: list[Path], *, claims: bool) -> dict[str, Path]:
        """Find the newest decision by the message of what was tried."""
        decisions = ((path, read_decision(path).terms) for path in paths)
        return {terms.candidate: path for path, terms in decisions if claims or not terms.claim}


def noise(bank: Bank, baseline_runs: Mapping[str, int]) -> list[dict[str, Any]]:
    """Compute what the bank shows of sigma: for each trainer and budget, on each machine, and what seeds resolve.

    `baseline_runs`: trainer and budget -> the baseline's runs that the next candidate is compared with, if that is
    known; else it is those of the newest candidate.
    """
    rows = []
    for group in sorted({run.group for run in bank.runs}):
        for fingerprint, values in sorted(bank.group_values(group).items()):
            runs = baseline_runs.get(group) or _count_beside_newest(bank, group) or max(map(len, values))
            rows.append(_summarize_noise(group, fingerprint, values, runs))
    return [row for row in rows if row is not None]


def _count_beside_newest(bank: Bank, group: str) -> int:
    return next((len(run.beside) for run in reversed(bank.runs) if run.group == group and run.beside), 0)


def _summarize_noise(group: str, fingerprint: str, values: list[list[float]], runs: int) -> dict[str, Any] | None:
    spread = pool_spreads(values)
    if not (spread.sigma > 0 and spread.df > 0):
        return None
    low, high = compute_sigma_interval(spread.sigma, spread.df)
    return {
        "group": group,
        "fingerprint": fingerprint,
        "arms": len(values),
        "runs": sum(map(len, values)),
        "sigma": spread.sigma,
        "low": low,
        "high": high,
        "bank": runs,
        "resolves": {
            str(k): spread.sigma * design.find_smallest_gain(POWER)
            for k in SEEDS
            for design in [ComparisonDesign(math.sqrt(1 / runs + 1 / k), runs + k - 2, 0.05)]
        },
    }


def print_noise(
    options: argparse.Namespace,
    place: ExperimentFolders,
    baseline_runs: Mapping[str, int] | None = None,
    reruns: Sequence[Mapping[str, Any]] = (),
) -> int:
    """Print the noise of every trainer and budget.

    Args:
        options: the command line.
        place: where the experiments lie.
        baseline_runs: those of the next try, by trainer and budget, if they are known.
        reruns: the seeds of which a run was made twice, each with both values.
    """
    bank = place.bank()
    rows = noise(bank, baseline_runs or {})
    if options.json:
        print(json.dumps({"noise": rows} | ({"reruns": reruns} if reruns else {})))
        return 0
    if not rows:
        raise PlumblineError(
            f"{place.lacking}{bank.path}: no two runs of one method are there yet; {place.first} makes some"
        )
    for row in rows:
        sigma, trainer = row["sigma"], row["group"].replace(" {flags}", "")
        text = (
            f"{visible(trainer)}: sigma {format_value(sigma, sigma)} (95 % interval {format_value(row['low'], sigma)} "
            f"to {format_value(row['high'], sigma)}), from {row['runs']} runs of {format_count(row['arms'], 'arm')}. "
            f"Beside {row['bank']} runs of the baseline, a gain is found with 80 % chance at .05, one-sided:"
        )
        print(fold_lines(text, sys.stdout))
        _print(
            ["runs of a candidate", *SEEDS], [["gain", *(format_value(row["resolves"][str(k)], sigma) for k in SEEDS)]]
        )
    for rerun in reruns:
        first, second = rerun["values"]
        differ = f"differs by {abs(first - second):.2g}" if first != second else "gives the same number"
        print(fold_lines(f"Seed {rerun['seed']}, run twice, {differ}.", sys.stdout))
    return 0


def print_log(options: argparse.Namespace, place: ExperimentFolders, now: Arm | None = None) -> int:
    """Print every decision, and what was tried without one; `now`: what is the baseline, where that moves."""
    ledger = place.read_ledger()
    decided = {(entry.name, entry.test): entry for entry in ledger.entries if entry.verdict}
    tried = [entry for entry in ledger.entries if entry.is_try]
    rows = [
        {"number": number} | _make_row(entry, decided.get((entry.name, entry.test)), place, now)
        for number, entry in enumerate(tried, start=1)
    ]
    if options.json:
        print(json.dumps({"log": rows, "ledger": str(ledger.path), "length": len(ledger), "head": ledger.head}))
        return 0
    if not rows:
        raise PlumblineError(f"{place.lacking}{ledger.path}: nothing was tried yet; {place.first}")
    heads = ("#", "when (UTC)", "what was tried", "against", "runs", "gain", "verdict")
    _print(heads, [_format_cells(row) for row in rows], whole_columns=("#", "when (UTC)", "runs", "gain", "verdict"))
    if any(row["page"] for row in rows):
        print(fold_lines("The page of a row: plumbline page NUMBER", sys.stdout))
    if now is not None:
        print(fold_lines(visible(f"* the baseline now: {now.words} ({now.commit[:7]})"), sys.stdout))
    if options.long:
        for row in rows:
            if row["sentence"]:
                print(fold_lines(visible(f"{row['name']}: {row['sentence']}"), sys.stdout))
    return 0


def _format_cells(row: Mapping[str, Any]) -> list[str]:
    """A row as people read it: the time to the minute, and of the baseline's runs how many were made with it."""
    runs = f"{row['runs']} + {row['baseline_runs']}" if row["runs"] else ""
    when = row["at"][5:16].replace("T", " ")
    mark = "* " if row["is_baseline"] else ""
    verdict = row["verdict"] + ", claim" * row["claim"]
    return [str(row["number"]), when, mark + row["tried"], row["against"], runs, row["gain"], verdict]


def _make_row(
    entry: ledgers.LedgerEntry, decided: ledgers.LedgerEntry | None, place: ExperimentFolders, now: Arm | None
) -> dict[str, Any]:
    row = {
        "name": entry.name,
        "kind": entry.kind,
        "baseline": entry.baseline,
        "metric": entry.metric,
        "verdict": decided.verdict if decided else "no decision" if entry.kind == "try" else entry.kind,
        "exit_code": Outcome(decided.verdict).exit_code if decided else None,
        "commit": entry.commit,
        "sentence": decided.sentence if decided else "",
        "at": decided.at if decided else "",
    }
    facts: dict[str, Any] = {"tried": entry.name, "against": "", "runs": 0, "baseline_runs": 0, "gain": ""}
    facts |= {"claim": False, "is_baseline": False, "page": ""}
    path = place.page(entry.name).with_suffix(".json")
    if entry.kind == "try" and path.exists():
        decision = read_decision(path)
        terms, estimate = decision.terms, decision.estimate
        facts |= {"tried": terms.candidate, "against": terms.baseline, "claim": terms.claim}
        facts["page"] = str(path.with_suffix(".md"))
        if decision.sentence == row["sentence"]:  # else it is of another rule, whose page this was
            facts |= {"runs": len(decision.candidate_values), "baseline_runs": len(decision.baseline_values)}
            facts["gain"] = "" if estimate is None else format_value(estimate.median, decision.looks[-1].sigma)
            methods = decision.asked.get("methods", [""])
            is_baseline = now is not None and not terms.claim and methods[0] == now.method
            facts["is_baseline"] = is_baseline and decision.verdict.is_kept
    if entry.kind == SCREEN:
        path = place.page(entry.page_name).with_suffix(".json")
        facts["tried"] = entry.name.partition(IN_SCREEN)[0]
        if path.exists():
            facts |= screen_page.describe_try(screen_page.read(path), facts["tried"])
            facts["page"] = str(path.with_suffix(".md"))
    if entry.kind == BUDGETS and path.exists():
        budgets = budget_page.read(path)
        labels = ", ".join(budgets.terms.labels)
        facts |= {"tried": f"{budgets.terms.candidate} at {labels}", "against": budgets.terms.baseline}
        for key, is_baseline in (("runs", False), ("baseline_runs", True)):
            facts[key] = sum(len(each.list_values(baseline=is_baseline)) for each in budgets.at_budgets)
        facts["page"] = str(path.with_suffix(".md"))
    return row | facts


def _print(heads: Sequence[object], rows: Sequence[Sequence[str]], whole_columns: Sequence[str] = ()) -> None:
    table = Table(*map(str, heads), box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.overflow = "fold"  # names differ at their ends
        column.no_wrap = column.header in whole_columns
    for row in rows:
        table.add_row(*map(visible, row))
    Console(markup=False, emoji=False, highlight=False).print(table)


def print_page(options: argparse.Namespace, place: ExperimentFolders) -> int:
    """Write a page again from its numbers, and print it."""
    if (path := place.find_budgets(options.name)) is not None:
        of_budgets, page = budget_page.read(path), path.with_suffix(".md")
        budget_page.write(of_budgets, page)
        numbers = budget_page.decision_to_json(of_budgets)
    elif (path := place.find_screen(options.name)) is not None:
        of_screen, page = screen_page.read(path), path.with_suffix(".md")
        screen_page.write(of_screen, page)
        numbers = screen_page.decision_to_json(of_screen)
    else:
        decision = place.read_decision(options.name)
        page = place.page(decision.terms.name)
        decision_page.write(decision, page)
        numbers = decision_page.decision_to_json(decision)
    print(json.dumps(numbers) if options.json else fold_lines(page.read_text(encoding="utf-8"), sys.stdout))
    return 0


VIEWS: dict[str, Callable[..., int]] = {"noise": print_noise, "log": print_log, "page": print_page}
