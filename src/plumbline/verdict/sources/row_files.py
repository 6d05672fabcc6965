"""Reads a file of rows (.csv, .tsv, .jsonl, .json), with the place of each cell.

Objects within objects have dotted names: ``{"metrics": {"loss": 3}}`` is the column ``metrics.loss``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.escape_sequences import strip_escapes
from plumbline.core.files import RepeatedKey, refuse_repeated_keys
from plumbline.core.foreign_rows import TAB, read_ordinary_text, split_rows
from plumbline.verdict.evidence import RunEvidence

SUFFIXES = {".csv": ",", ".tsv": TAB, ".jsonl": "", ".json": ""}
#: What stands between cells elsewhere: where a decimal comma is written, under another ending, in Markdown.
_OTHER_MARKS = ((";", "semicolons"), (TAB, "tabs"), (",", "commas"), ("|", "bars"))
#: Bytes of a file that is read, at most, and its rows.
MOST_BYTES, MOST_ROWS = 256 * 2**20, 2_000_000
#: What a program that prints its numbers as text leaves around them.
QUOTES = "'\""
#: Objects within objects that are read, at most.
DEEPEST = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnNames:
    """The names of the columns that are read.

    `metric` is a column of numbers, or a metric's name where each row has its own. `seed`, `step` and `status` of a
    table may be missing. `status_map`: words of statuses next to the known ones, in lower case -> what they say of a
    run.
    """

    method: str = "method"
    seed: str = "seed"
    metric: str = "metric"
    step: str = "step"
    value: str = "value"
    commit: str = "commit"
    status: str = "status"
    status_map: Mapping[str, str] = field(default_factory=dict)


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

    def fail(self, row: FileRow | RunEvidence, column: str, problem: str) -> NoReturn:
        """Raise the error about a cell, with file, line and column.

        Raises:
            PlumblineError: always.
        """
        raise PlumblineError(f"{self.path}, line {row.line}, column {column!r}: {problem}")

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

    def has_steps(self, columns: ColumnNames) -> bool:
        """Return whether there is a column of steps; one without a name, as pandas writes, is none."""
        return columns.step != "" and columns.step in self.columns

    def match_case(self, columns: ColumnNames) -> ColumnNames:
        """Return the names with those of seed and step as this file writes them, which may be ``Seed``.

        Raises:
            PlumblineError: one was named, and is not there.
        """
        names, defaults = {"seed": columns.seed, "step": columns.step}, ColumnNames()
        for kind, name in names.items():
            matches = [each for each in self.columns if each.lower() == name.lower()]
            if name and not matches and name != getattr(defaults, kind):
                self.require((name,), (f"--{kind}-column",))
            names[kind] = matches[0] if len(matches) == 1 else name
        return replace(columns, seed=names["seed"], step=names["step"])

    def read_text(self, row: FileRow, column: str) -> str:
        """Return the text of a cell.

        Raises:
            PlumblineError: the cell is empty.
        """
        if not (cell := row.cells[column]):
            lines = [each.line for each in self.rows if not each.cells[column]]
            hint = f" (as in {len(lines) - 1} more: {name_lines(lines)})" if len(lines) > 1 else ""
            self.fail(row, column, f"is empty{hint}; every row needs one: fill it in, or delete the row")
        return cell

    def read_number(self, row: FileRow, column: str) -> float:
        """Return the number in a cell; NaN or infinity where the run has none because it diverged.

        Raises:
            PlumblineError: the cell is empty, or holds no number.
        """
        cell = self.read_text(row, column)
        text = cell[1:-1] if cell[0] in QUOTES and cell[0] == cell[-1] else cell
        if "_" in text or (number := parse_float(text)) is None:
            self.fail(row, column, f"{cell!r} is not a number; write it as 0.123 or 1.23e-1, without units")
        return number


def parse_float(cell: Any) -> float | None:
    """The number that a cell of a table or a value of JSON is, which may be NaN or infinite; None of anything else."""
    try:
        return None if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return None


def is_non_finite(cell: str) -> bool:
    """Whether a cell is how a program writes that there is no finite number."""
    number = parse_float(cell)
    return number is not None and not math.isfinite(number)


def name_lines(lines: Sequence[int]) -> str:
    """Name the first lines of several: ``line 3``, ``lines 3, 4``."""
    return f"line{'s'[: len(lines) > 1]} {', '.join(map(str, lines[:8]))}{', ...' if lines[8:] else ''}"


def read_rows(path: Path) -> FileRows:
    """Read the rows of a .csv, .tsv, .jsonl or .json file.

    Raises:
        PlumblineError: another ending, no ordinary file, too large, not text, no header or rows, a column twice, a row
            of another length, or one that swallows others.
    """
    if path.suffix not in SUFFIXES:
        raise PlumblineError(f"{path} must end in one of {', '.join(SUFFIXES)}, which gives the format")
    text = read_ordinary_text(path, MOST_BYTES)
    readers = {".jsonl": _read_json_lines, ".json": _read_json_array}
    rows = readers.get(path.suffix, _read_delimited)(path, text)
    if not rows.rows:
        raise PlumblineError(f"{path} has no rows; it needs a header and a row for each run")
    return rows


def _read_delimited(path: Path, text: str) -> FileRows:
    separator = SUFFIXES[path.suffix]
    filled_rows: list[tuple[int, list[str]]] = []
    for line, row in split_rows(path, text, separator):
        cells = [strip_escapes(cell).strip() for cell in row]  # colours of a terminal, in a console that was saved
        if any(cells):
            filled_rows.append((line, cells))
            _refuse_too_many(path, len(filled_rows) - 1)
    columns = tuple(filled_rows[0][1]) if filled_rows else ()
    for mark, name in _OTHER_MARKS:
        if len(columns) == 1 and mark in columns[0]:
            raise PlumblineError(
                f"{path}, line {filled_rows[0][0]}: its cells are separated by {name}; write "
                f"{'tabs' if separator == TAB else 'commas'} between them, and numbers with a point"
            )
    if len(set(columns)) < len(columns):
        repeated_column = next(column for column in columns if columns.count(column) > 1)
        raise PlumblineError(
            f"{path}, line {filled_rows[0][0]}: the column {repeated_column!r} is there twice; rename one"
        )
    rows = []
    for line, cells in filled_rows[1:]:
        if len(cells) != len(columns):
            raise PlumblineError(
                f"{path}, line {line}: {len(cells)} cells under {len(columns)} columns; are cells separated by "
                f"{'tabs' if separator == TAB else 'commas, and those with one of them inside quoted'}?"
            )
        rows.append(FileRow(line, dict(zip(columns, cells, strict=True))))
    return FileRows(path, columns, tuple(rows))


def _read_json_lines(path: Path, text: str) -> FileRows:
    records = []
    for line, content in enumerate(text.split("\n"), start=1):
        if content.strip():
            record = _parse_json(f"{path}, line {line}", content)
            if not isinstance(record, dict):
                raise PlumblineError(f"{path}, line {line}: is not a JSON object on one line")
            records.append((line, record))
            _refuse_too_many(path, len(records))
    return make_rows(path, records)


def _read_json_array(path: Path, text: str) -> FileRows:
    """Rows of a .json file: its array of objects; a row's number is its place in the array."""
    content = _parse_json(str(path), text)
    if isinstance(content, dict):
        arrays = [value for value in content.values() if isinstance(value, list) and value]
        content = arrays[0] if len(arrays) == 1 else None
    if not isinstance(content, list) or not all(isinstance(record, dict) for record in content):
        raise PlumblineError(
            f"{path} is neither an array of objects, one a run, nor an object with one such array; write a line for "
            "each run as .jsonl"
        )
    _refuse_too_many(path, len(content))
    return make_rows(path, list(enumerate(content, start=1)))


def _refuse_too_many(path: Path, rows: int) -> None:
    if rows > MOST_ROWS:
        raise PlumblineError(f"{path} has more than {MOST_ROWS:,} rows, and is not read; keep what counts")


def _parse_json(place: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=str, object_pairs_hook=refuse_repeated_keys)
    except RepeatedKey as error:
        raise PlumblineError(f"{place}: {error}") from None
    except (json.JSONDecodeError, RecursionError):
        return None
    except ValueError as error:
        raise PlumblineError(f"{place}: {error}") from None


def make_rows(path: Path, records: list[tuple[int, dict[str, Any]]]) -> FileRows:
    """Make rows of the objects of a file, each with its line, or its place in an array.

    Raises:
        PlumblineError: a key is there twice or too deep, or a cell holds half a character.
    """
    columns: dict[str, None] = {}
    rows = []
    for line, record in records:
        cells: dict[str, str] = {}
        for key, value in _flatten({strip_escapes(key): value for key, value in record.items()}):
            if key in cells or key.count(".") > DEEPEST:
                raise PlumblineError(f"{path}, line {line}: {key[:80]!r} is there twice, or too deep within objects")
            cells[key] = strip_escapes(_format_cell(path, line, key, value))
        columns |= dict.fromkeys(cells)
        rows.append(FileRow(line, cells))
    return FileRows(
        path, tuple(columns), tuple(replace(row, cells=dict.fromkeys(columns, "") | row.cells) for row in rows)
    )


def _flatten(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if isinstance(value, dict) and prefix.count(".") <= DEEPEST:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _format_cell(path: Path, line: int, key: str, value: Any) -> str:
    text = json.dumps(value) if isinstance(value, bool | list) else "" if value is None else str(value).strip()
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise PlumblineError(f"{path}, line {line}, column {key!r}: holds half a character (a lone surrogate)")
    return text
