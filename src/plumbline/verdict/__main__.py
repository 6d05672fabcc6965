"""Judges numbers from any program, with the power of the comparison and the ledger: `plumbline verdict results.csv`.

Reads .csv, .tsv, .jsonl and .json: a table (method, seed, metric; or, as printed: method, metric, std, n), or the log
of a sequential search (commit, metric, status); a folder of submission.json files; or two folders of lm-eval
--log_samples. Writes a page and its numbers beside them, and enters what was tried in the ledger. See docs/verdict.md.

Exit codes with --exit-code-of: 0 keep (it improves), 10 discard (the gain that would be worth having is ruled out), 11
not decided, 12 the method crashed or diverged, 13 cannot be judged; always: 1 an error, 2 a wrong command line. Without
--exit-code-of: 0 when a page was made.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.command_line import described, prog, run
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import shown
from plumbline.core.foreign_rows import read_ordinary_text
from plumbline.core.formats import format_count
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparison_terms import ALPHA, LOOP, ComparisonTerms
from plumbline.verdict.numbers import numbers_verdict
from plumbline.verdict.numbers.numbers_request import NumbersRequest
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.seed_values import CannotBeJudgedError
from plumbline.verdict.sources.printed_spreads import SEM, STD, PrintedSpread
from plumbline.verdict.sources.row_files import ColumnNames
from plumbline.verdict.sources.run_statuses import status_map


def arguments() -> argparse.ArgumentParser:
    """Build the command-line parser of `plumbline verdict`."""
    parser = argparse.ArgumentParser(
        prog=prog("python -m plumbline.verdict"),
        usage="%(prog)s RESULTS (--higher-is-better|--lower-is-better) [...]",
        description=described(__doc__),
    )
    add, columns = parser.add_argument, ColumnNames()
    add("results", type=Path, nargs="?", metavar="RESULTS", help="file of numbers, or a folder")
    better = parser.add_mutually_exclusive_group()
    better.add_argument("--higher-is-better", dest="higher", action="store_true", default=None)
    better.add_argument("--lower-is-better", dest="higher", action="store_false", default=None)
    against = parser.add_mutually_exclusive_group()
    against.add_argument("--baseline", metavar="METHOD", help="the method (or folder of samples) to compare with")
    against.add_argument("--goal", type=float, metavar="VALUE", help="a fixed value to compare with instead")
    against.add_argument(
        "--compare-with-previous", action="store_true", help="compare each method with the one before it in the file"
    )
    add("--exit-code-of", metavar="METHOD", help="the exit code is the verdict on this one")
    add("--json", action="store_true", help="print one JSON object instead of sentences")
    add("--metric", default=columns.metric, help="the column of numbers, or a metric's name in the column 'metric'")
    for column in ("method", "seed", "step", "value", "commit", "status"):
        add(f"--{column}-column", metavar="COLUMN", default=getattr(columns, column), help="default: %(default)s")
    add(
        "--status-map",
        action="append",
        default=[],
        metavar="WORD=MEANING",
        help="what a word of the statuses says of a run: stopped=crashed; for each word again",
    )
    add(
        "--results-shape",
        choices=["table", "search", "submissions", "items"],
        help="default: as the columns or files say",
    )
    add("--at-step", default="", metavar="STEP", help="the step whose value counts: a number, last, or best (of a run)")
    add(
        "--alpha",
        type=float,
        default=ALPHA,
        help="promised error rate, one-sided, over all tries against this baseline in the ledger, in other metrics "
        "too (unless this metric was named in it before there were values); default: %(default)s, a claim's; a loop "
        f"that runs again what it keeps may take {LOOP:g}",
    )
    add("--minimum-gain", type=float, default=0.0, metavar="GAIN", help="a gain must exceed this; default: 0")
    add("--claimed-gain", type=float, metavar="GAIN", help="a claimed gain, to be ruled out or not")
    add("--useful-gain", type=float, metavar="GAIN", help="the gain that would be worth having; default: 2 sigma")
    add("--allow-diverged", type=int, default=0, metavar="N", help="seeds of the baseline that may diverge; default: 0")
    add("--sigma", type=float, help="standard deviation of one run, from other runs")
    add(
        "--sigma-runs",
        type=int,
        metavar="N",
        help="number of runs behind --sigma; without it --sigma is taken as exact",
    )
    add("--seeds", type=int, metavar="N", help="number of runs behind each printed mean, where no column n says it")
    add(
        "--spread",
        choices=[STD, SEM],
        help="what the ± of cells such as '55.2 ± 0.4' is: the standard deviation of the runs, or the standard error "
        "of their mean; no default",
    )
    add("--paired", action="store_true", help="decide by the differences at the same seed")
    add(
        "--comparisons",
        type=int,
        default=0,
        metavar="TRIES",
        help="number of tries against this baseline that are planned, or that a paper made: corrected for from the "
        "first on, unless the ledger has more",
    )
    words = "how large the models are and how long they were trained, as the sentence is to say it: '124M, 3,000 steps'"
    add("--size", default="", metavar="WORDS", help=words)
    add("--ledger", type=Path, metavar="LEDGER.jsonl", help="default: ledger.jsonl next to the results")
    add("--out", type=Path, metavar="PAGE.md", help="default: RESULTS.verdict.md, with a PAGE.json next to it")
    add("--check-page", type=Path, metavar="PAGE.md", help="check a page against its ledger, and judge nothing")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run `plumbline verdict` with the command line `words` (default: this process's), and return the exit code."""
    words = sys.argv[1:] if words is None else words
    parser = arguments()
    given = parser.parse_args(words)
    if given.check_page is not None:
        return check(given.check_page, given.ledger)
    if given.results is not None and not given.results.exists():
        raise PlumblineError(f"{given.results}: there is no such file or folder; name the one with your numbers")
    try:
        asked = request(given, f"plumbline verdict {shlex.join(map(_shown, words))}")
    except PlumblineError as error:
        parser.error(str(error))
    if given.exit_code_of is not None and given.exit_code_of == given.baseline:
        parser.error(f"--exit-code-of {given.exit_code_of!r} is the baseline: name what is compared with it")
    try:
        made = numbers_verdict.write(asked)
    except CannotBeJudgedError as error:
        lost = Outcome.CANNOT_BE_JUDGED
        if given.json:
            print(json.dumps({"verdict": lost, "exit_code": lost.exit_code, "sentence": str(error)}))
        if given.exit_code_of is None and not given.json:
            raise
        print(f"cannot be judged: {error}", file=sys.stderr)
        return lost.exit_code if given.exit_code_of is not None else 1
    found = None if given.exit_code_of is None else made.outcomes[given.exit_code_of]
    code = 0 if found is None else found.exit_code
    if given.json:
        said = {"verdict": found, "exit_code": code, "sentence": made.sentence, "page": str(asked.page)}
        print(json.dumps(said | made.numbers))
    else:
        print(visible(f"{made.sentence}\n\n{asked.page}\n{asked.page.with_suffix('.json')}"))
    return code


def _shown(word: str) -> str:
    """A word of the command line as the page repeats it, which may be published."""
    flag, is_, path = word.partition("=") if word.startswith("--") else ("", "", word)
    return f"{flag}{is_}{shown(path)}" if path.startswith("/") else word


def default_page(results: Path) -> Path:
    """Name the page of a file of numbers: ``results.verdict.md`` beside ``results.csv``."""
    return _beside(results, f"{_named(results).stem}.verdict.md")


def _named(results: Path) -> Path:
    """A path whose last part is a name: `.` and `..` are the folder that they stand for."""
    return results if results.name not in ("", "..") else results.resolve()


def _beside(results: Path, name: str) -> Path:
    return _named(results).with_name(name)


def request(given: argparse.Namespace, repeat: str) -> NumbersRequest:
    """Turn the flags of the command line into a request.

    Raises:
        PlumblineError: no file is named, it is not said which direction is better, or a value is out of range.
    """
    if given.results is None:
        raise PlumblineError("name a file of numbers, as in: plumbline verdict results.csv")
    if given.higher is None:
        raise PlumblineError("give --higher-is-better or --lower-is-better: it is not guessed from a name")
    if given.goal is not None and not math.isfinite(given.goal):
        raise PlumblineError(f"--goal {given.goal}: must be a finite number")
    if given.seeds is not None and given.seeds < 2:
        raise PlumblineError(f"--seeds {given.seeds}: a standard deviation is of two runs or more")
    terms = ComparisonTerms(
        higher=given.higher,
        alpha=given.alpha,
        minimum_gain=given.minimum_gain,
        claimed_gain=given.claimed_gain,
        worth=given.useful_gain,
        may_diverge=given.allow_diverged,
        sigma=given.sigma,
        sigma_runs=given.sigma_runs,
        paired=given.paired,
    )
    columns = ColumnNames(
        method=given.method_column,
        seed=given.seed_column,
        step=given.step_column,
        metric=given.metric,
        value=given.value_column,
        commit=given.commit_column,
        status=given.status_column,
        status_map=status_map(given.status_map),
    )
    return NumbersRequest(
        path=given.results,
        terms=terms,
        columns=columns,
        ledger=given.ledger or _beside(given.results, "ledger.jsonl"),
        page=given.out or default_page(given.results),
        baseline=given.baseline,
        goal=given.goal,
        candidate=given.exit_code_of,
        chain=given.compare_with_previous,
        at_step=given.at_step,
        kind=given.results_shape,
        told=PrintedSpread(given.seeds, given.spread or ""),
        planned=given.comparisons,
        size=given.size.strip(" ."),
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
    length = format_count(len(held), "entry", "entries")
    print(visible(f"{held.path}: {length}, the chain is intact and contains the {said.length} of {page}"))
    if came:
        more = format_count(came, "entry", "entries")
        print(f"{more} came since: make the page again, its p-values may be corrected for too few tries")
    return int(bool(came))


def _families(page: Path) -> set[tuple[str, str]] | None:
    """What a page's tries are counted in, by its numbers beside it; None where they do not say."""
    try:
        numbers = json.loads(read_ordinary_text(page.with_suffix(".json"), ledgers.PAGE_BYTES))
        if "decides" in numbers:
            return {(baseline, numbers["decides"]) for baseline in numbers["tries"]}
        return {(baseline, metric) for baseline, metric in numbers["families"]}
    except (PlumblineError, ValueError, KeyError, TypeError, RecursionError):
        return None


if __name__ == "__main__":
    run(main)
