"""Reads records as the table of a README lists them: a row a record, its logs next to the one that the row names."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from plumbline.core.errors import PlumblineError, nearest
from plumbline.verdict.sources.bounded_reading import (
    LineForm,
    count_decimals,
    list_files_below,
    parse_number,
    read_text,
    resolve_inside,
)
from plumbline.verdict.sources.training_log import LogPart, TrainingLog, read_log


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as somebody printed it."""

    value: float
    decimals: int

    def fits(self, computed: float) -> bool:
        """Whether a computed number rounds to it, or lies on the edge between the two numbers next to it."""
        return abs(computed - self.value) <= self.edge

    @property
    def edge(self) -> float:
        """How far a number that rounds to it may lie from it."""
        return 0.5 * 10.0**-self.decimals * (1 + 1e-6) + 1e-12

    def __str__(self) -> str:
        return f"{self.value:.{self.decimals}f}"


@dataclass(kw_only=True)
class Record:
    """A record of a board.

    Attributes:
        name: as the board lists it; order: its place among the records, the oldest first.
        headline: what is claimed; step: the step at which it is claimed, where steps count.
        printed_n: the number of runs that are claimed.
        by_seed: printed values by seed.
        left_out: values of runs that were made and are not counted, as the record itself states.
        place: where its logs are; linked: the log that it names.
        logs, unread: what was read of it, and what could not be, with why.
        marked: whether it is one of the board's progress.
    """

    name: str
    order: int
    place: Path | None = None
    linked: Path | None = None
    headline: Printed | None = None
    step: int | None = None
    printed_n: int | None = None
    by_seed: Mapping[str, Printed] = field(default_factory=dict)
    left_out: Mapping[str, float] = field(default_factory=dict)
    date: str = ""
    description: str = ""
    marked: bool = True
    logs: list[TrainingLog] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def read_logs(self, part: LogPart, folder: Path) -> None:
        """Read the logs where it has them; `folder`: the board's, below which files are named."""
        assert self.place is not None
        try:
            for file in [self.place] if self.place.is_file() else list(list_files_below(self.place, part.names)):
                try:
                    log = read_log(file, part)
                except PlumblineError as error:
                    self.unread.append(str(error).replace(f"{folder.resolve()}/", "").replace(f"{folder}/", ""))
                    continue
                if log.runs:
                    self.logs.append(log)
        except PlumblineError as error:
            self.unread.append(str(error))


class TablePart(Struct, frozen=True, forbid_unknown_fields=True):
    """The table of a page that lists the records: the names of its columns.

    Attributes:
        page: below the folder; heading: the words of the heading under which the table stands, the first if empty.
        headline_form: what a cell of the headline looks like: words with `{value}` and, where it has it, `{n}`.
        shared: folders in which each file is a record of its own.
        marked: only rows whose cell of `step`, or else of the headline, has these words are records of the board's
            progress; all where empty.
    """

    page: str
    number: str
    headline: str
    headline_form: str
    heading: str = ""
    step: str = ""
    date: str = ""
    log: str = ""
    description: str = ""
    shared: tuple[str, ...] = ()
    marked: str = ""


#: A cell is read so far; rows of a table.
CELL, ROWS = 2_000, 5_000
_LINK = re.compile(r"\[([^\[\]]{1,80})\]\(([^()\s]{1,400})\)")
_WHOLE = re.compile(r"\s*\**(\d{1,9})")


def read_table(folder: Path, part: TablePart, log: LogPart) -> list[Record]:
    """Read the records of a table.

    Raises:
        PlumblineError: the page has no such table, or lacks a column.
    """
    page = folder / part.page
    if not page.resolve().is_relative_to(folder.resolve()):
        raise PlumblineError(f"{page}: leads out of {folder}; table.page of the rules names a file below it, no link")
    if not page.is_file():
        raise PlumblineError(f"{page}: no such file; the rules read their table from it (table.page)")
    columns, rows = _find_table(read_text(page), part, page)
    form = LineForm(part.headline_form)
    records = []
    for order, row in enumerate(rows):
        cells = dict(zip(columns, row))
        record = _read_record(cells, part, form, order)
        link = next((path for text, path in _LINK.findall(cells.get(part.log, "")) if text == "log"), "")
        record.linked = resolve_inside(page.parent, link)
        _find_logs(record, page.parent, part, log, link)
        records.append(record)
    names = Counter[str]()
    for record in records:
        names[record.name] += 1
        if names[record.name] > 1:
            record.name = f"{record.name} ({names[record.name]})"
        if record.place is not None:
            record.read_logs(log, folder)
            if not record.logs and not record.unread:
                record.unread.append("no file beside the named log holds an evaluation")
    return records


def _find_table(text: str, part: TablePart, page: Path) -> tuple[list[str], list[list[str]]]:
    required_columns = [
        name for name in (part.number, part.headline, part.step, part.date, part.log, part.description) if name
    ]
    is_below_heading, nearby_columns = not part.heading, list[str]()
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if line.startswith("#"):
            is_below_heading = is_below_heading or line.strip("# \t") == part.heading
            continue
        if not is_below_heading or "|" not in line or place + 1 == len(lines) or not _is_rule(lines[place + 1]):
            continue
        columns = _split_cells(line)
        if set(required_columns) <= set(columns):
            rows = []
            for each in lines[place + 2 : place + 2 + ROWS]:
                if "|" not in each:
                    break
                rows.append(_split_cells(each))
            return columns, rows
        nearby_columns += columns
    missing_columns = [name for name in required_columns if name not in nearby_columns]
    missing_text = (
        f"{missing_columns[0]!r}{nearest(missing_columns[0], nearby_columns)}" if missing_columns else "its columns"
    )
    raise PlumblineError(
        f"{page}: no table{f' below {part.heading!r}' if part.heading else ''} has the column {missing_text}"
    )


def _is_rule(line: str) -> bool:
    return "-" in line and "|" in line and not line[:CELL].strip("|-: \t")


def _split_cells(line: str) -> list[str]:
    line = line[: 20 * CELL].strip()
    line = line.removeprefix("|")
    return [cell.strip()[:CELL].replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.removesuffix("|"))]


def _read_record(cells: dict[str, str], part: TablePart, form: LineForm, order: int) -> Record:
    record = Record(name=cells.get(part.number, "") or f"row {order + 1}", order=order)
    headline = cells.get(part.headline, "")
    match = form.read(headline)
    value = parse_number(match[1]["value"]) if match is not None else None
    if match is not None and value is not None and math.isfinite(value):
        record.headline = Printed(value, count_decimals(match[1]["value"]))
        record.printed_n = int(match[1]["n"]) if "n" in match[1] else None
    else:
        record.unread.append(f"the headline {headline[:60]!r} has not the form {form.text!r}")
    if part.step:
        step = _WHOLE.match(cells.get(part.step, ""))
        record.step = int(step[1]) if step else None
    record.date, record.description = cells.get(part.date, ""), cells.get(part.description, "")
    record.marked = part.marked in cells.get(part.step or part.headline, "")
    return record


def _find_logs(record: Record, root: Path, part: TablePart, log: LogPart, link: str) -> None:
    """Find a record's logs: its own folder, or the one file that it names in a folder of many."""
    path = record.linked
    if path is None or not path.exists():
        record.unread.append(f"the log {link[:120]!r} is not in the folder" if link else "no log is named")
        record.linked = None
    elif path.is_dir():
        record.place, record.linked = path, None
    elif path.parent in {(root / each).resolve() for each in part.shared}:
        record.place = path
    else:
        record.place = path.parent
    if record.linked is not None and not record.linked.name.endswith(log.names):
        record.linked = None  # a README, say
