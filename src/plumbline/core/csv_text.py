"""Writes and reads CSV whose texts come from outside (labels, captions, messages, names): a spreadsheet that opens it
runs none of them.

A text that a spreadsheet would take for a formula is written with an apostrophe before it, which spreadsheets take for
the mark of a text, and read without. Numbers stay as they are, and so does a text that begins as one and calls nothing
(`-0.3 to 0.1`).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

#: What begins a formula, in full width too; a tab, line end or byte order mark before it is skipped by some. A sign
#: begins none before a number or without a word, if what follows calls nothing.
_FORMULA = re.compile(r"[=@＝＠\t\r\n\ufeff]|[+＋－-](?!(?:\.?\d[^(!|=@'\"]*|inf|nan|[^\w(!|=@'\"]*)\Z)", re.IGNORECASE)
_MARK = "'"


def mark_formula(cell: Any) -> Any:
    """A cell as it is written: a text that would be a formula, or would be read as marked, has an apostrophe before
    it."""
    return _MARK + cell if isinstance(cell, str) and _FORMULA.match(cell.lstrip(_MARK)) else cell


def unmark_formula(text: str) -> str:
    """A cell as it was before `mark_formula`."""
    return text[1:] if text.startswith(_MARK) and _FORMULA.match(text.lstrip(_MARK)) else text


class _Lines(io.StringIO):
    """The text of a CSV. Its rows come with ``\\r\\n``, for which their writer quotes a cell with either of the two."""

    def write(self, row: str, /) -> int:
        return super().write(row.removesuffix("\r\n") + "\n")


def write_rows(rows: Iterable[Iterable[Any]]) -> str:
    """Write rows, the head first, as the text of a CSV."""
    lines = _Lines()
    csv.writer(lines).writerows([mark_formula(cell) for cell in row] for row in rows)
    return lines.getvalue()


def write_frame(frame: pd.DataFrame) -> str:
    """Write a frame without its index as the text of a CSV."""
    texts = frame.select_dtypes(exclude=["number", "bool", "datetime"]).columns
    marked = frame.assign(**{name: frame[name].astype(object).map(mark_formula) for name in texts})
    lines = _Lines()
    marked.rename(columns=mark_formula).to_csv(lines, index=False, lineterminator="\r\n")
    return lines.getvalue()


def read_cells(lines: Iterable[str]) -> Iterator[list[str]]:
    """Read the cells of each row of a CSV, the head first."""
    for row in csv.reader(lines):
        yield list(map(unmark_formula, row))


def read_rows(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Read the rows of a CSV by the names in its head; as `csv.DictReader`, cells beyond them are a list under None."""
    for row in csv.DictReader(lines):
        yield {
            unmark_formula(name) if name else name: unmark_formula(cell) if isinstance(cell, str) else cell
            for name, cell in row.items()
        }
