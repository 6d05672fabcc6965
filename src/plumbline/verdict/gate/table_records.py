"""Reads records as the table of a README lists them: a row a record, its logs beside the one that the row names."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError, nearest
from plumbline.verdict.gate.bounded_reading import LineForm, decimals, files_below, inside, number, read_text
from plumbline.verdict.gate.records import Printed, Record
from plumbline.verdict.gate.rules import Rules, TablePart
from plumbline.verdict.gate.training_log import read_log

#: A cell is read so far; rows of a table.
CELL, ROWS = 2_000, 5_000
_LINK = re.compile(r"\[([^\[\]]{1,80})\]\(([^()\s]{1,400})\)")
_WHOLE = re.compile(r"\s*\**(\d{1,9})")


def read_table(folder: Path, rules: Rules) -> list[Record]:
    """Read the records of a table.

    Raises:
        PlumblineError: the page has no such table, or lacks a column.
    """
    part = rules.table
    assert part is not None
    page = folder / part.page
    if not page.resolve().is_relative_to(folder.resolve()):
        raise PlumblineError(f"{page}: leads out of {folder}; table.page of the rules names a file below it, no link")
    if not page.is_file():
        raise PlumblineError(f"{page}: no such file; the rules read their table from it (table.page)")
    columns, rows = _table(read_text(page), part, page)
    form = LineForm(part.headline_form)
    records = []
    for order, row in enumerate(rows):
        cells = dict(zip(columns, row))
        record = _record(cells, part, form, order)
        link = next((path for words, path in _LINK.findall(cells.get(part.log, "")) if words == "log"), "")
        record.linked = inside(page.parent, link)
        _place(record, page.parent, part, rules, link)
        records.append(record)
    names: dict[str, int] = {}
    for record in records:
        names[record.name] = names.get(record.name, 0) + 1
        if names[record.name] > 1:
            record.name = f"{record.name} ({names[record.name]})"
    for record in records:
        _read_logs(record, folder, rules)
    return records


def _table(text: str, part: TablePart, page: Path) -> tuple[list[str], list[list[str]]]:
    wanted = [name for name in (part.number, part.headline, part.step, part.date, part.log, part.description) if name]
    begun, nearby = not part.heading, list[str]()
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.startswith("#"):
            begun = begun or line.strip("# \t") == part.heading
            continue
        if not begun or "|" not in line or at + 1 == len(lines) or not _rule(lines[at + 1]):
            continue
        columns = _cells(line)
        if set(wanted) <= set(columns):
            rows = []
            for each in lines[at + 2 : at + 2 + ROWS]:
                if "|" not in each:
                    break
                rows.append(_cells(each))
            return columns, rows
        nearby += columns
    missing = [name for name in wanted if name not in nearby]
    words = f"{missing[0]!r}{nearest(missing[0], nearby)}" if missing else "its columns"
    raise PlumblineError(f"{page}: no table{f' below {part.heading!r}' if part.heading else ''} has the column {words}")


def _rule(line: str) -> bool:
    return "-" in line and "|" in line and not line[:CELL].strip("|-: \t")


def _cells(line: str) -> list[str]:
    line = line[: 20 * CELL].strip()
    line = line.removeprefix("|")
    return [cell.strip()[:CELL].replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.removesuffix("|"))]


def _record(cells: dict[str, str], part: TablePart, form: LineForm, order: int) -> Record:
    record = Record(name=cells.get(part.number, "") or f"row {order + 1}", order=order)
    claimed = cells.get(part.headline, "")
    read = form.read(claimed)
    value = number(read[1]["value"]) if read is not None else None
    if read is not None and value is not None and math.isfinite(value):
        record.headline = Printed(value, decimals(read[1]["value"]))
        record.printed_n = int(read[1]["n"]) if "n" in read[1] else None
    else:
        record.unread.append(f"the headline {claimed[:60]!r} has not the form {form.words!r}")
    if part.step:
        step = _WHOLE.match(cells.get(part.step, ""))
        record.step = int(step[1]) if step else None
    record.date, record.description = cells.get(part.date, ""), cells.get(part.description, "")
    record.marked = part.marked in cells.get(part.step or part.headline, "")
    return record


def _place(record: Record, root: Path, part: TablePart, rules: Rules, link: str) -> None:
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
    if record.linked is not None and not record.linked.name.endswith(rules.log.names):
        record.linked = None  # a README, say


def _read_logs(record: Record, folder: Path, rules: Rules) -> None:
    if record.place is None:
        return
    files: Sequence[Path] = [record.place] if record.place.is_file() else []
    try:
        files = files or list(files_below(record.place, rules.log.names))
    except PlumblineError as error:
        record.unread.append(str(error))
    for file in files:
        try:
            log = read_log(file, rules.forms, rules.other_forms)
        except PlumblineError as error:
            record.unread.append(str(error).replace(f"{folder.resolve()}/", "").replace(f"{folder}/", ""))
            continue
        if log.runs:
            record.logs.append(log)
    if not record.logs and not record.unread:
        record.unread.append("no file beside the named log holds an evaluation")
