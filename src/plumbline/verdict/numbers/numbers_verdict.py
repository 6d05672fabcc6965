"""Makes a verdict from numbers of any program: reads them, judges, and makes the page and the ledger's entry together.

What is there of each shape: `table_verdict`, `search_verdict`, `items_verdict`. A shape's modules are loaded once the
numbers have it: a tenth of a verdict's time is the loading of this package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Literal

from plumbline.core import files
from plumbline.core.errors import PlumblineError, nearest
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.numbers import table_verdict
from plumbline.verdict.numbers.numbers_request import NumbersRequest
from plumbline.verdict.numbers.verdict_texts import Draft, VerdictTexts
from plumbline.verdict.sources.lm_eval_items import find_samples
from plumbline.verdict.sources.row_files import ColumnNames, FileRows, read_rows
from plumbline.verdict.sources.run_rows import read_search, read_table
from plumbline.verdict.sources.run_statuses import RunStatuses

#: Tries that can be announced: beyond them no p-value is small enough to be told from 0.
MOST_TRIES = 1_000_000


def judge_numbers(request: NumbersRequest, keep: Callable[[VerdictTexts], None] = lambda _: None) -> VerdictTexts:
    """Judge numbers, and enter them in the ledger; nothing is entered where they cannot be judged.

    `keep` is given the verdict before it is entered: what it raises leaves the ledger as it was.

    Raises:
        CannotBeJudgedError: there is no noise floor, or the baseline diverged.
        PlumblineError: the file, its terms or the ledger are at fault; or the page to be replaced was made with a
            ledger that this one is not a continuation of.
    """
    if not 0 <= request.planned_tries <= MOST_TRIES:
        raise PlumblineError(f"--planned-tries must be a number of tries, from 1 to {MOST_TRIES:,}")
    entries, draft = _choose_source(request)
    verdicts: list[VerdictTexts] = []

    def prepare(ledger: Ledger) -> None:
        verdicts.append(draft(ledger))
        if (candidate := request.candidate) is not None and candidate not in (outcomes := verdicts[0].outcomes):
            raise PlumblineError(
                f"--exit-code-of {candidate!r} is none of what was judged, {sorted(outcomes)} (of a search, the last "
                f"kept change){nearest(candidate, outcomes)}"
            )
        keep(verdicts[0])

    _enter(request, entries, prepare)
    return verdicts[0]


def write(request: NumbersRequest) -> VerdictTexts:
    """Judge numbers as `judge_numbers` does, and write the page and, next to it, its numbers as .json.

    Page and entry are made together: both files are on the disk before the entry is, and are named after it; where
    either fails, also for a full disk, neither is there. So is the picture, as .svg, where there is one.

    Raises:
        PlumblineError: as `judge_numbers`; or the page's name does not end in .md, or is that of another file.
    """
    if request.page.suffix != ".md":
        raise PlumblineError(
            f"--out {request.page} must end in .md; the numbers go next to it, in a file ending in .json"
        )
    for flag, path in (("--out", request.page), ("--ledger", request.ledger)):
        if path.exists() and not path.is_file():  # a named pipe would wait for ever
            raise PlumblineError(f"{flag} {path} is no ordinary file; name another one")
    if request.page.exists() and ledgers.read_statement(request.page) is None:
        raise PlumblineError(f"{request.page} exists and is not a page of a verdict; name another file with --out")
    try:
        with ExitStack() as stack:
            numbers = stack.enter_context(files.open_atomically(request.page.with_suffix(".json")))
            page = stack.enter_context(files.open_atomically(request.page))

            def keep(texts: VerdictTexts) -> None:
                contents = [(numbers, files.pretty_json(texts.numbers)), (page, texts.page)]
                if texts.picture is not None:
                    picture = stack.enter_context(files.open_atomically(request.page.with_suffix(".svg")))
                    contents.append((picture, texts.picture.svg()))
                for file, text in contents:
                    file.write(text.encode())
                    file.flush()
                    os.fsync(file.fileno())

            return judge_numbers(request, keep)
    except FileNotFoundError as error:
        raise PlumblineError(f"--out {request.page} cannot be written ({error.strerror}); name another place") from None


def _choose_source(request: NumbersRequest) -> tuple[Sequence[LedgerEntry], Draft]:
    """What is to be entered, and the verdict once it is."""
    kind, path, terms = request.kind, request.path, request.terms
    if kind is None and find_samples(path):
        kind = "items"
    if kind == "items":
        from plumbline.verdict.numbers import items_verdict

        _refuse_margin(request, kind)
        _refuse_spread_options(request, kind)
        return items_verdict.draft(request)
    if kind == "submissions" or (kind is None and (path.is_dir() or path.suffix == ".json")):
        from plumbline.verdict.sources.submissions import find_submissions, read_submissions

        if kind is not None or find_submissions(path):
            _refuse_spread_options(request, "submissions")
            message = "Submissions (submission.json, by their folder) were read"
            return table_verdict.draft(request, read_submissions(path, request.columns), message)
    if path.is_dir():
        raise PlumblineError(
            f"{path} is a folder without samples_<task>_<date>.jsonl (lm-eval --log_samples) or submission.json; name "
            "a file of numbers"
        )
    rows = read_rows(path)
    kind = kind or _choose_shape(rows, request.columns)
    if kind == "search":
        from plumbline.verdict.numbers import search_verdict

        _refuse_margin(request, kind)
        _refuse_spread_options(request, kind)
        return search_verdict.draft(request, read_search(rows, request.columns))
    table = read_table(
        rows, request.columns, higher=terms.higher, at_step=request.at_step, spread_options=request.spread_options
    )
    contents = "means and standard deviations" if table.summaries else "methods and seeds"
    return table_verdict.draft(request, table, f"A table of {contents} was read")


def _choose_shape(rows: FileRows, columns: ColumnNames) -> Literal["table", "search"]:
    """Tell from a file's columns whether it is a table of methods or the log of a search.

    Raises:
        PlumblineError: both or neither.
    """
    statuses = RunStatuses(rows, columns)
    says_how = columns.status in statuses.columns or statuses.keeps()
    table, search = columns.method in rows.columns, columns.commit in rows.columns and says_how
    if table == search:
        raise PlumblineError(
            f"{rows.path} has {'both' if table else 'neither'} of what distinguishes a table ({columns.method!r}) from "
            f"a search's log ({columns.commit!r} and {columns.status!r}); its columns are {list(rows.columns)}: name "
            "columns with --method-column and --seed-column, or --commit-column and --status-column, or say "
            "--results-shape"
        )
    return "table" if table else "search"


def _refuse_margin(request: NumbersRequest, kind: str) -> None:
    if request.terms.as_good_as:
        raise PlumblineError(
            f"{request.path} is read as {kind}; --as-good-as is about methods and their seeds: leave it out, or name a "
            "table"
        )


def _refuse_spread_options(request: NumbersRequest, kind: str) -> None:
    if request.spread_options.seeds is not None or request.spread_options.spread:
        raise PlumblineError(
            f"{request.path} is read as {kind}; --seeds and --spread are about a table of means with their spreads: "
            "leave them out"
        )


def _enter(request: NumbersRequest, entries: Sequence[LedgerEntry], prepare: Callable[[Ledger], None]) -> None:
    # Path.resolve raises at a link to itself, which opening it reports by its name.
    if os.path.realpath(request.ledger) in map(os.path.realpath, (request.path, request.page)):
        raise PlumblineError(f"--ledger {request.ledger} is the file of numbers or the page; name a file of its own")
    ledgers.require_continued(request.ledger, request.page)
    with ledgers.append_provisionally(request.ledger, entries) as ledger:
        prepare(ledger)
