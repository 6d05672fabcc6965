"""Reads files that somebody else wrote: a text within a limit of size, and the rows of a .csv or .tsv.

What is no ordinary file is refused before it is opened, since a named pipe would wait for ever. What cannot be meant as
rows is refused with its lines, since a reader of CSV takes rows after a stray quote for the text of one cell.
"""

from __future__ import annotations

import csv
import io
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from plumbline.core.errors import PlumblineError

TAB = "\t"
#: What a file is that holds no bytes of its own.
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
#: How a file begins that is no text, or text in another encoding.
_BEGINNINGS = (
    (b"\x1f\x8b", "compressed (gzip); unpack it"),
    (b"PK\x03\x04", "a zip archive, as .xlsx is; save its table as .csv"),
    (b"PAR1", "Parquet; save its table as .csv"),
    (b"\xff\xfe", "UTF-16 text; save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text; save it as UTF-8"),
)


def read_ordinary_file(path: Path, most_bytes: int) -> bytes:
    """Read an ordinary file; it is looked at before it is opened.

    Raises:
        PlumblineError: it is a folder, a pipe or a device, is larger than `most_bytes`, or cannot be read.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = next((name for test, name in _KINDS if test(mode)), "no file")
            raise PlumblineError(f"{path} is {kind}, and no ordinary file; copy its content into one")
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise PlumblineError(f"{path} cannot be read ({error.strerror})") from None
    if len(content) > most_bytes:
        raise PlumblineError(f"{path} has more than {most_bytes / 2**20:.0f} MiB, and is not read; keep what counts")
    return content


def read_ordinary_text(path: Path, most_bytes: int) -> str:
    """Read an ordinary file as UTF-8, without the mark that Excel begins it with.

    Raises:
        PlumblineError: as `read_ordinary_file`; or it is no such text.
    """
    content = read_ordinary_file(path, most_bytes)
    for beginning, description in _BEGINNINGS:
        if content.startswith(beginning):
            raise PlumblineError(f"{path} is {description}")
    if (zero := content.find(0)) >= 0:
        raise PlumblineError(f"{path} is no text (byte {zero} is zero); save its rows as UTF-8 text")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlumblineError(f"{path} is not UTF-8 text (byte {error.start}); save it as that") from None


def split_rows(path: Path, text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Split a text into rows: the number of the line that each begins at, and its cells. A line of nothing has none.

    Between tabs there is no quoting: a quote is a letter, but a pair of quotes around a whole cell is taken off.
    Between other separators a cell in quotes may hold line ends, but no rows.

    Args:
        path: what errors name.

    Raises:
        PlumblineError: quotes are not closed or stand within a cell, or a cell holds lines with as many separators as
            the first row.
    """
    lines: list[str] = []

    def lines_of_a_row() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            lines.append(line)
            yield line

    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == TAB else csv.QUOTE_MINIMAL
    reader = csv.reader(lines_of_a_row(), delimiter=separator, strict=True, quoting=quoting)
    begin, separators = 1, 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            where = f"line {begin}" if len(lines) < 2 else f"lines {begin} to {begin + len(lines) - 1}"
            if "unexpected end" in str(error):
                raise PlumblineError(
                    f"{path}, {where}: a quote that begins a cell in line {begin} is closed nowhere: take it out, or "
                    "close it"
                ) from None
            raise PlumblineError(
                f"{path}, {where}: {error}: a cell is either in quotes as a whole, each quote within written twice, or "
                "does not begin with one; fix its quotes"
            ) from None
        separators = separators or len(cells) - 1
        if len(lines) > 1:
            _refuse_swallowed_rows(path, begin, lines, cells, separators, separator)
        yield begin, [_unquote(cell) for cell in cells] if separator == TAB else cells
        begin += len(lines)
        lines.clear()


def _refuse_swallowed_rows(
    path: Path, begin: int, lines: list[str], cells: list[str], separators: int, separator: str
) -> None:
    """Refuse a row of several lines that were rows: by what a cell holds, or since each line could be one."""
    if separators < 1:
        return
    holds_rows = any(line.count(separator) >= separators for cell in cells for line in cell.splitlines()[1:])
    if holds_rows or all(line.count(separator) == separators for line in lines):
        raise PlumblineError(
            f"{path}, lines {begin} to {begin + len(lines) - 1}: a cell in quotes holds lines with as many separators "
            f"as the first row, which are rows after a stray quote: take the quote out of line {begin}, or write that "
            "cell on one line"
        )


def _unquote(cell: str) -> str:
    is_quoted = len(cell) > 1 and cell[0] == cell[-1] == '"' and '"' not in cell[1:-1]
    return cell[1:-1] if is_quoted else cell
