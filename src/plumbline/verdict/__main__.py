"""Judges numbers from any program, with the power of the comparison and the ledger: `plumbline verdict results.csv`.

Reads .csv, .tsv, .jsonl and .json: a table (method, seed, metric; or, as printed: method, metric, std, n), or the log
of a sequential search (commit, metric, status); a folder of submission.json files; or two folders of lm-eval
--log_samples. Writes a page next to them, with its numbers (.json) and its picture (.svg), and enters what was tried in
the ledger. See docs/verdict.md.

Exit codes with --exit-code-of: 0 keep (it improves; with --as-good-as, it is as good), 10 discard (the gain that would
be worth having is ruled out), 11 not decided, 12 the method crashed or diverged, 14 implausible (it would be kept for a
gain that no modification ever had); always: 13 cannot be judged, 1 an error, 2 a wrong command line. Without
--exit-code-of: 0 when a page was made.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.command_line import Parser, comma_list, run
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.escape_sequences import strip_escapes
from plumbline.core.files import format_path
from plumbline.core.foreign_rows import read_ordinary_text
from plumbline.core.formats import format_count
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparison_terms import ALPHA, LOOP, ComparisonTerms
from plumbline.verdict.evidence import parse_measures
from plumbline.verdict.numbers import numbers_verdict
from plumbline.verdict.numbers.numbers_request import NumbersRequest
from plumbline.verdict.outcome import CannotBeJudgedError, Outcome
from plumbline.verdict.sources.printed_spreads import SEM, STD, PrintedSpread
from plumbline.verdict.sources.row_files import ColumnNames
from plumbline.verdict.sources.run_statuses import parse_status_map


def arguments() -> Parser:
    """Build the command-line parser of `plumbline verdict`."""
    parser = Parser(__doc__, usage="%(prog)s RESULTS (--higher-is-better|--lower-is-better) [...]")
    add, columns = parser.add_argument, ColumnNames()
    add("results", type=Path, nargs="?", metavar="RESULTS", help="file of numbers, or a folder")
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--higher-is-better", dest="higher", action="store_true", default=None)
    direction.add_argument("--lower-is-better", dest="higher", action="store_false", default=None)
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
    text = "whether a method is as good: worse by less than 0.01, in the metric's units, or 1sigma of one run"
    add("--as-good-as", metavar="MARGIN", help=text)
    add("--claimed-gain", type=float, metavar="GAIN", help="a claimed gain, to be ruled out or not")
    add("--target-gain", type=float, metavar="GAIN", help="the gain that would be worth having; default: 2 sigma")
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
        "--planned-tries",
        type=int,
        default=0,
        metavar="TRIES",
        help="number of tries against this baseline that are planned, or that a paper made: corrected for from the "
        "first on, unless the ledger has more",
    )
    text = "measures of a run in which the methods may not differ, or there is no verdict: seconds, step, tokens, ..."
    add("--equal", type=comma_list, default=[], metavar="MEASURE[,MEASURE]", help=text)
    text = "keep a gain that no modification ever had: you have looked at what it does (else exit code 14)"
    add("--accept-implausible", action="store_true", help=text)
    help_text = (
        "how large the models are and how long they were trained, as the sentence is to say it: '124M, 3,000 steps'"
    )
    add("--size", default="", metavar="WORDS", help=help_text)
    add("--ledger", type=Path, metavar="LEDGER.jsonl", help="default: ledger.jsonl next to the results")
    add("--out", type=Path, metavar="PAGE.md", help="default: RESULTS.verdict.md, with a PAGE.json next to it")
    add("--check-page", type=Path, metavar="PAGE.md", help="check a page against its ledger, and judge nothing")
    return parser


def main(command_line: Sequence[str] | None = None) -> int:
    """Run `plumbline verdict` with a command line (default: this process's) and return the exit code."""
    command_line = sys.argv[1:] if command_line is None else command_line
    parser = arguments()
    # Names are matched as files are read: without what steers a terminal.
    options = parser.parse_args([*map(_strip_name, command_line)])
    if options.check_page is not None:
        return check_page(options.check_page, options.ledger)
    if options.results is not None and not options.results.exists():
        raise PlumblineError(f"{options.results}: there is no such file or folder; name the one with your numbers")
    try:
        request = make_request(options, f"plumbline verdict {shlex.join(map(_format_argument, command_line))}")
    except PlumblineError as error:
        parser.error(str(error))
    if options.exit_code_of is not None and options.exit_code_of == options.baseline:
        parser.error(f"--exit-code-of {options.exit_code_of!r} is the baseline: name what is compared with it")
    try:
        verdict = numbers_verdict.write(request)
    except CannotBeJudgedError as error:
        undecidable = Outcome.CANNOT_BE_JUDGED
        if options.json:
            print(json.dumps({"verdict": undecidable, "exit_code": undecidable.exit_code, "sentence": str(error)}))
        print(f"cannot be judged: {error}", file=sys.stderr)
        return undecidable.exit_code
    outcome = None if options.exit_code_of is None else verdict.outcomes[options.exit_code_of]
    code = 0 if outcome is None else outcome.exit_code
    if options.json:
        fields = {"verdict": outcome, "exit_code": code, "sentence": verdict.sentence, "page": str(request.page)}
        print(json.dumps(fields | verdict.numbers))
    else:
        first = "\n".join([verdict.sentence, *verdict.told])
        print(visible(f"{first}\n\n{request.page}\n{request.page.with_suffix('.json')}"))
    return code


def _strip_name(argument: str) -> str:
    """An argument without escape sequences, unless it is a file's name."""
    if (plain := strip_escapes(argument)) == argument or os.path.exists(argument) or os.sep in argument:
        return argument
    return plain


def _format_argument(argument: str) -> str:
    """A word of the command line as the page repeats it, which may be published."""
    flag, is_, path = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    return f"{flag}{is_}{format_path(path)}" if path.startswith("/") else argument


def _resolve_name(results: Path) -> Path:
    """Return a path whose last part is a name: `.` and `..` are the folder that they stand for."""
    return results if results.name not in ("", "..") else results.resolve()


def make_request(options: argparse.Namespace, repeat: str) -> NumbersRequest:
    """Turn the flags of the command line into a request.

    Raises:
        PlumblineError: no file is named, it is not said which direction is better, or a value is out of range.
    """
    if options.results is None:
        raise PlumblineError("name a file of numbers, as in: plumbline verdict results.csv")
    if options.higher is None:
        raise PlumblineError("give --higher-is-better or --lower-is-better: it is not guessed from a name")
    if options.goal is not None and not math.isfinite(options.goal):
        raise PlumblineError(f"--goal {options.goal}: must be a finite number")
    if options.equal and options.goal is not None:
        raise PlumblineError("--equal compares what runs took, and a goal has no runs; leave out one of the two")
    if options.seeds is not None and options.seeds < 2:
        raise PlumblineError(f"--seeds {options.seeds}: a standard deviation is of two runs or more")
    margin = None
    if options.as_good_as is not None:
        from plumbline.verdict.decision.as_good_as import parse_margin  # with the designs of tries, a tenth of a second

        margin = parse_margin(options.as_good_as)
    in_units = 0.0 if margin is None or margin.in_sigmas else -margin.size
    terms = ComparisonTerms(
        higher=options.higher,
        alpha=options.alpha,
        minimum_gain=options.minimum_gain or in_units,
        as_good_as="" if margin is None else str(margin),
        margin_sigmas=margin.size if margin is not None and margin.in_sigmas else None,
        claimed_gain=options.claimed_gain,
        target_gain=options.target_gain,
        allow_diverged=options.allow_diverged,
        sigma=options.sigma,
        sigma_runs=options.sigma_runs,
        paired=options.paired,
    )
    columns = ColumnNames(
        method=options.method_column,
        seed=options.seed_column,
        step=options.step_column,
        metric=options.metric,
        value=options.value_column,
        commit=options.commit_column,
        status=options.status_column,
        status_map=parse_status_map(options.status_map),
    )
    results = _resolve_name(options.results)
    return NumbersRequest(
        path=options.results,
        terms=terms,
        columns=columns,
        ledger=options.ledger or results.with_name("ledger.jsonl"),
        page=options.out or results.with_name(f"{results.stem}.verdict.md"),
        baseline=options.baseline,
        goal=options.goal,
        candidate=options.exit_code_of,
        chain=options.compare_with_previous,
        at_step=options.at_step,
        kind=options.results_shape,
        spread_options=PrintedSpread(options.seeds, options.spread or ""),
        planned_tries=options.planned_tries,
        equal=parse_measures(options.equal, "--equal"),
        accept_implausible=options.accept_implausible,
        size=options.size.strip(" ."),
        repeat=repeat,
    )


def check_page(page: Path, ledger: Path | None) -> int:
    """Compare a page with its ledger; exit code 0 if it still holds, 1 if more was tried since and it has to be made
    again.

    Raises:
        PlumblineError: there is no such page, or the ledger is not what it was made with.
    """
    state = ledgers.read_statement(page)
    if state is None:
        raise PlumblineError(f"{page} is not a page of a verdict: it names no ledger, or does not exist")
    current = ledgers.read(ledger or page.parent / state.name)
    added = ledgers.count_new_entries(current, page, state)
    if added and (families := _read_families(page)) is not None:
        against = {baseline for baseline, _ in families}  # in another metric too: `Ledger.count_tries`
        added = sum(entry.is_try and entry.baseline in against for entry in current.entries[state.length :])
    length = format_count(len(current), "entry", "entries")
    print(visible(f"{current.path}: {length}, the chain is intact and contains the {state.length} of {page}"))
    if added:
        new_entries = format_count(added, "entry", "entries")
        print(f"{new_entries} came since: make the page again, its p-values may be corrected for too few tries")
    return int(bool(added))


def _read_families(page: Path) -> set[tuple[str, str]] | None:
    """What a page's tries are counted in, by its numbers next to it; None if they do not say."""
    try:
        numbers = json.loads(read_ordinary_text(page.with_suffix(".json"), ledgers.PAGE_BYTES))
        if "decides" in numbers:
            return {(baseline, numbers["decides"]) for baseline in numbers["tries"]}
        return {(baseline, metric) for baseline, metric in numbers["families"]}
    except (PlumblineError, ValueError, KeyError, TypeError, RecursionError):
        return None


if __name__ == "__main__":
    run(main)
