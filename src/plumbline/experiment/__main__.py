"""Judges numbers from any program, with the power of the comparison and the ledger: `plumbline verdict results.csv`.

Reads .csv, .tsv and .jsonl: a table (method, seed, metric), or the log of a sequential search (commit, metric, status).
Writes a page and its numbers beside the file, and enters what was tried in the ledger. See docs/verdict.md.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.command_line import described, prog, run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import shown
from plumbline.experiment import ledger as ledgers
from plumbline.experiment import numbers
from plumbline.experiment.comparison_terms import ALPHA, ComparisonTerms
from plumbline.experiment.formatting import counted
from plumbline.experiment.read_numbers import ColumnNames


def arguments() -> argparse.ArgumentParser:
    """Build the command-line parser of `plumbline verdict`."""
    parser = argparse.ArgumentParser(prog=prog("python -m plumbline.experiment"), description=described(__doc__))
    add, columns = parser.add_argument, ColumnNames()
    add("results", type=Path, nargs="?", metavar="RESULTS", help="file of numbers: .csv, .tsv or .jsonl")
    better = parser.add_mutually_exclusive_group()
    better.add_argument("--higher-is-better", dest="higher", action="store_true", default=None)
    better.add_argument("--lower-is-better", dest="higher", action="store_false", default=None)
    add("--baseline", metavar="METHOD", help="the method to compare with")
    add("--metric", default=columns.metric, help="the column of numbers, or a metric's name in the column 'metric'")
    for column in ("method", "seed", "value", "commit", "status"):
        add(f"--{column}-column", metavar="COLUMN", default=getattr(columns, column), help="default: %(default)s")
    add("--shape", choices=["table", "search"], help="default: as the columns say")
    add(
        "--alpha",
        type=float,
        default=ALPHA,
        help="promised error rate over all tries against this baseline in this metric; default: %(default)s",
    )
    add("--minimum-gain", type=float, default=0.0, metavar="GAIN", help="a gain must exceed this; default: 0")
    add("--claimed-gain", type=float, metavar="GAIN", help="a claimed gain, to be ruled out or not")
    add("--sigma", type=float, help="standard deviation of one run, from other runs")
    add(
        "--sigma-runs",
        type=int,
        metavar="N",
        help="number of runs behind --sigma; without it --sigma is taken as exact",
    )
    add("--paired", action="store_true", help="decide by the differences at the same seed")
    add(
        "--comparisons",
        type=int,
        default=0,
        metavar="TRIES",
        help="planned number of tries, corrected for from the first on",
    )
    add("--ledger", type=Path, metavar="LEDGER.jsonl", help="default: ledger.jsonl next to the results")
    add("--out", type=Path, metavar="PAGE.md", help="default: RESULTS.verdict.md, with a PAGE.json next to it")
    add("--check-page", type=Path, metavar="PAGE.md", help="check a page against its ledger, and judge nothing")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run `plumbline verdict` with the command line `words` (default: this process's), and return the exit code."""
    words = sys.argv[1:] if words is None else words
    given = arguments().parse_args(words)
    if given.check_page is not None:
        return check(given.check_page, given.ledger)
    made = numbers.write(request(given, f"python -m plumbline.experiment {shlex.join(map(_shown, words))}"))
    page = given.out or default_page(given.results)
    print(f"{made.sentence}\n\n{page}\n{page.with_suffix('.json')}")
    return 0


def _shown(word: str) -> str:
    """A word of the command line as the page repeats it, which may be published."""
    flag, is_, path = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{flag}{is_}{shown(path)}" if path.startswith("/") else word


def default_page(results: Path) -> Path:
    """Name the page of a file of numbers: ``results.verdict.md`` beside ``results.csv``."""
    return results.with_name(f"{results.stem}.verdict.md")


def request(given: argparse.Namespace, repeat: str) -> numbers.NumbersRequest:
    """Turn the flags of the command line into a request.

    Raises:
        PlumblineError: no file is named, it is not said which direction is better, or a value is out of range.
    """
    if given.results is None:
        raise PlumblineError("name a file of numbers, as in: python -m plumbline.experiment results.csv")
    if given.higher is None:
        raise PlumblineError("give --higher-is-better or --lower-is-better: it is not guessed from a name")
    terms = ComparisonTerms(
        higher=given.higher,
        alpha=given.alpha,
        minimum_gain=given.minimum_gain,
        claimed_gain=given.claimed_gain,
        sigma=given.sigma,
        sigma_runs=given.sigma_runs,
        paired=given.paired,
    )
    columns = ColumnNames(
        method=given.method_column,
        seed=given.seed_column,
        metric=given.metric,
        value=given.value_column,
        commit=given.commit_column,
        status=given.status_column,
    )
    return numbers.NumbersRequest(
        path=given.results,
        terms=terms,
        columns=columns,
        ledger=given.ledger or given.results.with_name("ledger.jsonl"),
        page=given.out or default_page(given.results),
        baseline=given.baseline,
        kind=given.shape,
        planned=given.comparisons,
        repeat=repeat,
    )


def check(page: Path, ledger: Path | None) -> int:
    """Compare a page with its ledger; exit code 0 if it still holds, 1 if more was tried since and it has to be made
    again.

    Raises:
        PlumblineError: there is no such page, or the ledger is not what it was made with.
    """
    said = ledgers.stated(page)
    if said is None:
        raise PlumblineError(f"{page} is not a page of a verdict: it names no ledger, or does not exist")
    held = ledgers.read(ledger or page.parent / said.name)
    came = ledgers.compare(held, page, said)
    if came and (families := _families(page)) is not None:
        against = {baseline for baseline, _ in families}  # in another metric too: `Ledger.tries`
        came = sum(entry.is_try and entry.baseline in against for entry in held.entries[said.length :])
    length = counted(len(held), "entry", "entries")
    print(f"{held.path}: {length}, the chain is intact and contains the {said.length} of {page}")
    if came:
        more = counted(came, "entry", "entries")
        print(f"{more} came since: make the page again, its p-values may be corrected for too few tries")
    return int(bool(came))


def _families(page: Path) -> set[tuple[str, str]] | None:
    """What a page's tries are counted in, by its numbers beside it; None where they do not say."""
    try:
        numbers = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
        if "decides" in numbers:
            return {(baseline, numbers["decides"]) for baseline in numbers["tries"]}
        return {(numbers["baseline"], numbers["metric"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


if __name__ == "__main__":
    run(main)
