"""Reads what a paper prints of runs: units after numbers, and means with their standard deviations.

A spread is a column of its own next to the metric (`std`, `sd`, `stdev`; `sem`), or in the metric's cells, as in
``55.2 ± 0.4``. Neither the number of runs nor what a bare ± means is guessed: a wrong guess is a wrong verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from plumbline.core.errors import PlumblineError
from plumbline.verdict.evidence import Evidence, RunsSummary
from plumbline.verdict.formatting import quote
from plumbline.verdict.sources.bounded_reading import count_places
from plumbline.verdict.sources.row_files import ColumnNames, FileRow, FileRows, is_non_finite, parse_float

#: What a spread may be: the standard deviation of the runs, or the standard error of their mean.
STD, SEM = "std", "sem"
#: Names of columns, in lower case -> what their numbers are. A column `stderr` is none: in logs it is that of items.
SPREADS = {"std": STD, "sd": STD, "stdev": STD, "sem": SEM}
COUNTS = ("n", "seeds", "runs")

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_PLUS_MINUS = re.compile(rf"([+-]?{_NUMBER})\s*(?:±|\+/?-|\\pm)\s*({_NUMBER})")
#: 55.2(4) is 55.2 ± 0.4, as physics writes it; 55.2 (0.4) is its own spread. 55.2 (4) and 55.2(40) could be either.
_BRACKET = re.compile(r"([+-]?\d+(?:\.\d+)?)(?:\((\d)\)|\s*\((\d*\.\d+)\))")
#: What LaTeX and Markdown put around a number and mean nothing by.
_DRESS = re.compile(r"\\(?:textbf|mathbf|bm|underline|scriptstyle|scriptsize|tiny|small)\b|\\[,;! ]|[${}_^*~]")
#: The unit after a number.
_UNIT = re.compile(r"(?<=[\d.)])\s*\\?%")


@dataclass(frozen=True, slots=True)
class PrintedSpread:
    """What the command line states of printed spreads, if anything: runs behind each, and what a bare ± is."""

    seeds: int | None = None
    spread: str = ""


def drop_units(
    rows: FileRows, column: str, chosen_rows: Sequence[FileRow]
) -> tuple[FileRows, tuple[FileRow, ...], str]:
    """Drop a % after every value of a column, and say so in a sentence; unchanged, without one, where there is none.

    Raises:
        PlumblineError: some values have it and others have not.
    """
    filled_rows = [row for row in chosen_rows if row.cells[column] and not is_non_finite(row.cells[column])]
    bare_rows = [row for row in filled_rows if "%" not in row.cells[column]]
    if not filled_rows or len(bare_rows) == len(filled_rows):
        return rows, tuple(chosen_rows), ""
    if bare_rows:
        unit_row = next(row for row in filled_rows if row not in bare_rows)
        rows.fail(
            bare_rows[0],
            column,
            f"{bare_rows[0].cells[column]!r} has no %, and {unit_row.cells[column]!r} in line {unit_row.line} has one; "
            "write all of them in one unit",
        )
    plain_rows = {
        row.line: replace(row, cells=row.cells | {column: _UNIT.sub("", row.cells[column])}) for row in chosen_rows
    }
    all_rows = tuple(plain_rows.get(row.line, row) for row in rows.rows)
    note = f"Every value in column {quote(column)} ends in %, which is a unit and was dropped: gains are in its points."
    return replace(rows, rows=all_rows), tuple(plain_rows.values()), note


def read_summaries(
    rows: FileRows,
    columns: ColumnNames,
    metric: str,
    column: str,
    chosen_rows: Sequence[FileRow],
    spread_options: PrintedSpread,
    *,
    unit: bool,
) -> Evidence | None:
    """Read means, standard deviations and numbers of runs by method; None if the file has a row for each run.

    `unit`: whether the means had one, which their spreads may then have too.

    Raises:
        PlumblineError: some means have a spread and others have not; a method is there twice; the number of runs, or
            what the spread is, is said nowhere or twice.
    """
    filled_rows = [row for row in chosen_rows if row.cells[column] and not is_non_finite(row.cells[column])]
    spread_rows = [row for row in filled_rows if _split_spread(row.cells[column]) is not None]
    is_stated = spread_options != PrintedSpread()
    if columns.seed in rows.columns:
        if spread_rows or is_stated:
            problem = (
                f"line {spread_rows[0].line} has {spread_rows[0].cells[column]!r}"
                if spread_rows
                else "of means and spreads"
            )
            raise PlumblineError(
                f"{rows.path}: by its column {columns.seed!r} a row is one run, which has one value; {problem}. Take "
                "that column out if rows are means of several runs, or leave out --seeds and --spread"
            )
        return None
    spread_column = _find_spread_column(rows, column)
    if not spread_rows and spread_column is None:
        if is_stated:
            raise PlumblineError(
                f"{rows.path}: --seeds and --spread are about means with their standard deviations, and {column!r} has "
                "none: write cells as '55.2 ± 0.4', or add a column std beside it; or leave them out"
            )
        return None
    if spread_rows and spread_column is not None:
        rows.fail(
            spread_rows[0],
            column,
            f"{spread_rows[0].cells[column]!r} has a spread, and so has column {spread_column!r}",
        )
    if spread_rows and (bare_rows := [row for row in filled_rows if row not in spread_rows]):
        rows.fail(
            bare_rows[0],
            column,
            f"{bare_rows[0].cells[column]!r} is no mean with its spread, and {spread_rows[0].cells[column]!r} in line "
            f"{spread_rows[0].line} is one; write all of them as '55.2 ± 0.4', or one row a run with its seed",
        )
    if columns.step in rows.columns:
        raise PlumblineError(
            f"{rows.path} has means with spreads, and steps ({columns.step!r}); keep the rows of one step and leave "
            "out that column"
        )
    if unit and spread_column is not None:
        rows, chosen_rows, _ = drop_units(rows, spread_column, chosen_rows)
    counts = _find_column(rows, column, COUNTS)
    _require_stated_once(rows, spread_options, counts, spread_column)
    kind = spread_options.spread or SPREADS[_strip_metric_name(spread_column or "", column)]
    summaries, empty_lines = dict[str, RunsSummary](), dict[str, tuple[int, ...]]()
    lines = dict[str, int]()
    for row in chosen_rows:
        method = rows.read_text(row, columns.method)
        if method in lines:
            rows.fail(
                row,
                columns.method,
                f"{method!r} has a mean with its spread in line {lines[method]} already; keep one row a method (if "
                f"rows are runs, a column {columns.seed!r} says so)",
            )
        lines[method] = row.line
        if not row.cells[column]:
            empty_lines[method] = (row.line,)
            continue
        n = spread_options.seeds if counts is None else _read_run_count(rows, row, counts)
        assert n is not None
        parts = _split_spread(row.cells[column])
        mean, spread = parts or (row.cells[column], rows.read_text(row, spread_column or column))
        summaries[method] = _make_summary(rows, row, column, mean, spread, kind, n)
    notes = tuple(_write_notes(column, spread_column, counts, kind, spread_rows))
    return Evidence(metric=metric, summaries=summaries, files=(rows.path,), without=empty_lines, notes=notes)


def _require_stated_once(
    rows: FileRows, spread_options: PrintedSpread, counts: str | None, spread_column: str | None
) -> None:
    """Refuse what nobody said, and what was said twice."""
    if spread_options.seeds is not None and counts is not None:
        raise PlumblineError(f"{rows.path} has the column {counts!r}; leave out --seeds, or take that column out")
    if spread_options.seeds is None and counts is None:
        raise PlumblineError(
            f"{rows.path} has means with spreads, and nothing says of how many runs: add --seeds N, or a column n "
            "(seeds, runs) where methods differ. It is never assumed"
        )
    if spread_options.spread and spread_column is not None:
        raise PlumblineError(f"{rows.path}: the name of column {spread_column!r} says what it is; leave out --spread")
    if not spread_options.spread and spread_column is None:
        raise PlumblineError(
            f"{rows.path} has a ± that may be the standard deviation of the runs or the standard error of their mean: "
            f"say --spread {STD} or --spread {SEM}, as the paper does"
        )


def _write_notes(
    column: str, spread_column: str | None, counts: str | None, kind: str, spread_rows: Sequence[FileRow]
) -> Sequence[str]:
    runs = "what --seeds says" if counts is None else f"column {quote(counts)}"
    spread = f"{kind}, as --spread says" if spread_column is None else f"column {quote(spread_column)}"
    notes = [f"From means and standard deviations of n runs, as printed (n: {runs}; the spread: {spread})."]
    if kind == SEM:
        notes.append("Standard errors of the mean are printed: each was multiplied by the root of its n.")
    bracketed_cell = next((row.cells[column] for row in spread_rows if "(" in row.cells[column]), "")
    if parts := _split_spread(bracketed_cell):
        notes.append(f"{quote(bracketed_cell)} was read as {' ± '.join(parts)}.")
    return notes


def _strip_metric_name(name: str, column: str) -> str:
    """The bare word of a column's name, ``std`` of ``acc_std`` where the metric is ``acc``."""
    lower_name = name.lower().strip()
    match = re.fullmatch(rf"{re.escape(column.lower())}[\s_.:-]+(.+)", lower_name)
    return match[1] if match else lower_name


def _find_columns(rows: FileRows, column: str, known_names: Iterable[str]) -> list[str]:
    """The columns that may say something of the metric's: those of its own name, else those of a bare word."""
    columns = [each for each in rows.columns if each != column and _strip_metric_name(each, column) in known_names]
    return [each for each in columns if each.lower().strip() not in known_names] or columns


def _find_column(rows: FileRows, column: str, known_names: Iterable[str]) -> str | None:
    """The column that says something of the metric's; None if there is none.

    Raises:
        PlumblineError: there are two.
    """
    columns = _find_columns(rows, column, known_names)
    if len(columns) > 1:
        raise PlumblineError(f"{rows.path} has the columns {columns}, of which one counts; keep one")
    return columns[0] if columns else None


def _find_spread_column(rows: FileRows, column: str) -> str | None:
    """The column of the metric's spreads.

    Raises:
        PlumblineError: there are two, or a bare word may belong to another metric.
    """
    spread_column = _find_column(rows, column, SPREADS)
    if spread_column is None or spread_column.lower().strip() not in SPREADS:
        return spread_column
    names = [each for each in rows.columns[: rows.columns.index(spread_column)] if each.lower() not in COUNTS]
    if names[-1:] != [column]:
        raise PlumblineError(
            f"{rows.path}: column {spread_column!r} may be of another metric than {column!r}: put it right after "
            f"{column!r}, or name it '{column}_{spread_column}'"
        )
    return spread_column


def list_unread_columns(rows: FileRows, columns: ColumnNames, column: str) -> list[str]:
    """State which columns about several runs were not read, of a file with a row for each run."""
    names = [*_find_columns(rows, column, SPREADS), *_find_columns(rows, column, COUNTS)]
    has_seeds = columns.seed in rows.columns
    reason = f"column {quote(columns.seed)} says" if has_seeds else "no column of spreads says otherwise"
    return [f"Not read, since each row is one run ({reason} so): {', '.join(map(quote, names))}."] * bool(names)


def _split_spread(cell: str) -> tuple[str, str] | None:
    """Mean and spread of a cell, as text with their digits; None if it has no spread."""
    text = re.sub(r"\s+", " ", _DRESS.sub(" ", cell.replace("−", "-"))).strip()
    if match := _PLUS_MINUS.fullmatch(text):
        return match[1], match[2]
    if not (match := _BRACKET.fullmatch(text)):
        return None
    mean, digit, spread = match[1], match[2], match[3]
    if spread is not None:
        return mean, spread
    places = count_places(mean)
    return mean, f"{int(digit) / 10**places:.{places}f}"


def _compute_rounding(number: str) -> float:
    return float(f"5e{-count_places(number) - 1}")


def _read_run_count(rows: FileRows, row: FileRow, column: str) -> int:
    text = rows.read_text(row, column)
    if not re.fullmatch(r"\d{1,9}(\.0*)?", text) or (n := int(text.partition(".")[0])) < 2:
        rows.fail(row, column, f"{text!r} is no number of runs, two or more, of which a standard deviation could be")
    return n


def _make_summary(rows: FileRows, row: FileRow, column: str, mean: str, spread: str, kind: str, n: int) -> RunsSummary:
    for text, least in ((mean, -math.inf), (spread, 0.0)):
        number = None if "_" in text else parse_float(text)
        if number is None or not math.isfinite(number) or number < least:
            rows.fail(
                row,
                column,
                f"{mean!r} with the spread {spread!r}: both are finite numbers, the spread 0 or more. A run that "
                "diverged has no mean with others; give its runs one by one",
            )
    factor = math.sqrt(n) if kind == SEM else 1.0
    return RunsSummary(
        mean=float(mean),
        std=factor * float(spread),
        n=n,
        mean_rounding=_compute_rounding(mean),
        std_rounding=factor * _compute_rounding(spread),
    )
