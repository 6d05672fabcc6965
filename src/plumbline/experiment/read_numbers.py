"""Reads numbers of any program: a file of rows, the place of each, and which of two shapes it has.

- a table: method, seed and a metric (or method, seed, metric, value, with a metric's name in each row);
- the log of a sequential search: commit, a metric, status (keep, discard, crash), one run each, in the order of time.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

from plumbline.core.errors import PlumblineError, nearest

SUFFIXES = {".csv": ",", ".tsv": "\t", ".jsonl": ""}
STATUSES = ("keep", "discard", "crash")


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnNames:
    """The names of the columns that are read.

    `metric` is a column of numbers, or a metric's name where each row has its own.
    """

    method: str = "method"
    seed: str = "seed"
    metric: str = "metric"
    value: str = "value"
    commit: str = "commit"
    status: str = "status"


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row of a file: the number of its line, and its cells by column, as text."""

    line: int
    cells: dict[str, str]


@dataclass(frozen=True, slots=True)
class FileRows:
    """A file as it was read: its columns, and a row for each line; all cells are text."""

    path: Path
    columns: tuple[str, ...]
    rows: tuple[FileRow, ...]

    def fail(self, row: FileRow, column: str, what: str) -> NoReturn:
        """Raise the error about a cell, with file, line and column.

        Raises:
            PlumblineError: always.
        """
        raise PlumblineError(f"{self.path}, line {row.line}, column {column!r}: {what}")

    def require(self, columns: Iterable[str], flags: Iterable[str]) -> None:
        """Check that the file has these columns.

        Raises:
            PlumblineError: naming the missing column, the nearest one, and the flag that names another.
        """
        for column, flag in zip(columns, flags, strict=True):
            if column not in self.columns:
                raise PlumblineError(
                    f"{self.path} has no column {column!r}; its columns are {list(self.columns)}: name the right "
                    f"one with {flag}{nearest(column, self.columns)}"
                )

    def text(self, row: FileRow, column: str) -> str:
        """Return the text of a cell.

        Raises:
            PlumblineError: the cell is empty.
        """
        if not (cell := row.cells[column]):
            self.fail(row, column, "is empty; every row needs one")
        return cell

    def number(self, row: FileRow, column: str) -> float:
        """Return the number in a cell.

        Raises:
            PlumblineError: the cell is empty, or holds no finite number.
        """
        cell = self.text(row, column)
        try:
            value = float(cell) if "_" not in cell else math.nan
        except ValueError:
            self.fail(row, column, f"{cell!r} is not a number; write it as 0.123 or 1.23e-1, without units")
        if not math.isfinite(value):
            self.fail(
                row,
                column,
                f"{cell!r} is not a finite number; a diverged run has none to compare: remove its row, and say in "
                "your text that it diverged, and how often",
            )
        return value


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoreTable:
    """The values of one metric: method -> seed -> value."""

    metric: str
    values: dict[str, dict[str, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchLogEntry:
    """One run in the log of a search; `value` is None where it crashed."""

    line: int
    commit: str
    value: float | None
    status: str
    description: str


def read_rows(path: Path) -> FileRows:
    """Read the rows of a .csv, .tsv or .jsonl file.

    Raises:
        PlumblineError: another ending, not text, no header or rows, a column twice, a row of another length.
    """
    if path.suffix not in SUFFIXES:
        raise PlumblineError(f"{path} must end in one of {', '.join(SUFFIXES)}, which gives the format")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PlumblineError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{path} is not UTF-8 text (byte {error.start}); save it as that") from None
    rows = _json_lines(path, text) if path.suffix == ".jsonl" else _delimited(path, text)
    if not rows.rows:
        raise PlumblineError(f"{path} has no rows; it needs a header and a row for each run")
    return rows


def _delimited(path: Path, text: str) -> FileRows:
    try:
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=SUFFIXES[path.suffix], strict=True)
        read = [(lines.line_num, [cell.strip() for cell in cells]) for cells in lines]
    except csv.Error as error:
        raise PlumblineError(f"{path}, line {lines.line_num}: {error}; fix its quotes") from None
    filled = [(line, cells) for line, cells in read if any(cells)]
    columns = tuple(filled[0][1]) if filled else ()
    for column in columns:
        if columns.count(column) > 1:
            raise PlumblineError(f"{path}, line {filled[0][0]}: the column {column!r} is there twice; rename one")
    rows = []
    for line, cells in filled[1:]:
        if len(cells) != len(columns):
            raise PlumblineError(
                f"{path}, line {line}: {len(cells)} cells under {len(columns)} columns; are cells separated by "
                f"{'tabs' if path.suffix == '.tsv' else 'commas'}, and those with one of them inside quoted?"
            )
        rows.append(FileRow(line, dict(zip(columns, cells, strict=True))))
    return FileRows(path, columns, tuple(rows))


def _json_lines(path: Path, text: str) -> FileRows:
    rows: list[FileRow] = []
    columns: dict[str, None] = {}
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            record = json.loads(content, parse_constant=str)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise PlumblineError(f"{path}, line {line}: is not a JSON object on one line")
        row = FileRow(line, {key: _cell(path, line, key, value) for key, value in record.items()})
        columns |= dict.fromkeys(row.cells)
        rows.append(row)
    return FileRows(
        path, tuple(columns), tuple(replace(row, cells=dict.fromkeys(columns, "") | row.cells) for row in rows)
    )


def _cell(path: Path, line: int, key: str, value: Any) -> str:
    if isinstance(value, bool | dict | list):
        raise PlumblineError(f"{path}, line {line}, column {key!r}: {json.dumps(value)} is neither text nor a number")
    text = "" if value is None else str(value).strip()
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise PlumblineError(f"{path}, line {line}, column {key!r}: holds half a character (a lone surrogate)")
    return text


def shape(rows: FileRows, columns: ColumnNames) -> Literal["table", "search"]:
    """Tell from a file's columns whether it is a table of methods and seeds or the log of a search.

    Raises:
        PlumblineError: both or neither.
    """
    found = {
        "table": {columns.method, columns.seed} <= set(rows.columns),
        "search": {columns.commit, columns.status} <= set(rows.columns),
    }
    if found["table"] == found["search"]:
        either = "both" if found["table"] else "neither"
        raise PlumblineError(
            f"{rows.path} has {either} of what distinguishes a table ({columns.method!r} and {columns.seed!r}) from "
            "a search's "
            f"log ({columns.commit!r} and {columns.status!r}); its columns are {list(rows.columns)}: name columns "
            "with --method-column and --seed-column, or --commit-column and --status-column, or say --shape"
        )
    return "table" if found["table"] else "search"


def read_table(rows: FileRows, columns: ColumnNames) -> ScoreTable:
    """Read a table's values by method and seed.

    Raises:
        PlumblineError: a missing column, a cell that is no finite number, two metrics, a (method, seed) twice.
    """
    rows.require((columns.method, columns.seed), ("--method-column", "--seed-column"))
    names, metric, chosen, column = "metric", columns.metric, rows.rows, columns.metric
    if columns.value in rows.columns and names in rows.columns:
        there = sorted({rows.text(row, names) for row in rows.rows})
        if metric == names and len(there) > 1:
            raise PlumblineError(f"{rows.path} mixes the metrics {there}; choose one with --metric")
        metric = there[0] if metric == names else metric
        if metric not in there:
            raise PlumblineError(f"{rows.path}: --metric {metric!r} is none of {there}{nearest(metric, there)}")
        chosen, column = tuple(row for row in rows.rows if row.cells[names] == metric), columns.value
    rows.require((column,), ("--metric",))
    values: dict[str, dict[str, float]] = {}
    lines: dict[tuple[str, str], int] = {}
    for row in chosen:
        method, seed = rows.text(row, columns.method), rows.text(row, columns.seed)
        if (method, seed) in lines:
            rows.fail(
                row,
                columns.seed,
                f"{method!r} has seed {seed!r} already in line {lines[method, seed]}; a run counts once: give a "
                "repeat another seed",
            )
        lines[method, seed] = row.line
        values.setdefault(method, {})[seed] = rows.number(row, column)
    return ScoreTable(metric=metric, values=values)


def read_search(rows: FileRows, columns: ColumnNames) -> list[SearchLogEntry]:
    """Read the runs of a search's log, in its order.

    Raises:
        PlumblineError: a missing column, a status that is none, a kept or discarded run without a finite number.
    """
    rows.require((columns.commit, columns.metric, columns.status), ("--commit-column", "--metric", "--status-column"))
    steps = []
    for row in rows.rows:
        status = rows.text(row, columns.status)
        if status not in STATUSES:
            rows.fail(row, columns.status, f"{status!r} is none of {', '.join(STATUSES)}{nearest(status, STATUSES)}")
        steps.append(
            SearchLogEntry(
                line=row.line,
                commit=rows.text(row, columns.commit),
                value=None if status == "crash" else rows.number(row, columns.metric),
                status=status,
                description=row.cells.get("description", ""),
            )
        )
    return steps
