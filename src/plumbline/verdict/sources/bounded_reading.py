"""Reads files that somebody else wrote within limits: of their size, of their lines, and of the time a search takes.

No pattern comes from a log, and none of those that are searched for repeats a repetition: a line costs time in
proportion to its length, which has a limit.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.foreign_rows import read_ordinary_file

#: Bytes of a file; characters of a line; entries of a folder.
FILE_BYTES, LINE, FILES = 16 * 2**20, 4096, 50_000
#: What is in the folder of a report.
REPORT_FILES = frozenset({"report.css", "report.js"})
#: Evaluations and runs of one file.
EVALUATIONS, RUNS = 50_000, 500
#: A number above it is infinite; decimals of one that count, for a float has no more.
LARGEST, DECIMALS = 1e100, 17

_PLACES = {
    "value": r"([-+.\w]{1,40})",
    "step": r"(\d{1,9})",
    "steps": r"(\d{1,9})",
    "time": r"(\d{1,12}(?:\.\d{1,9})?)",
    "n": r"(\d{1,6})",
    "...": r".{0,80}?",
}
_NUMBER = re.compile(
    r"[-+]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,3})?|[-+]?(?:nan|inf)", re.IGNORECASE
)


class LineForm:
    """The form of a line: words that stand there as they are, and `{places}` that are read from it.

    A colon may be followed by spaces, and spaces are as many as there are.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parts = re.split(r"\{([^{}]{1,10})\}", text)
        if unknown := sorted({part for part in parts[1::2] if part not in _PLACES}):
            raise PlumblineError(f"{text!r}: unknown place {unknown[0]!r} (known: {sorted(_PLACES)})")
        self.places = tuple(part for part in parts[1::2] if part != "...")
        if len(set(self.places)) < len(self.places):
            raise PlumblineError(f"{text!r} has a place twice")
        if parts[1::2].count("...") > 1:
            raise PlumblineError(f"{text!r} has {{...}} twice, which can take very long; write the words between")
        self._parts = parts

    @cached_property
    def anchor(self) -> str:
        """A word of every line that fits, by which most lines are passed over."""
        candidates = re.findall(r"[^\s:]+", " ".join(self._parts[::2]))
        return max(candidates, key=len) if candidates else ""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        written = "".join(
            _PLACES[part] if number % 2 else re.escape(part).replace(":", r":[ \t]{0,8}").replace(r"\ ", r"[ \t]{1,8}")
            for number, part in enumerate(self._parts)
        )
        return re.compile(written)

    def read(self, line: str) -> tuple[str, dict[str, str]] | None:
        """Read a line: what stands before the form, and its places; None of one without it, or without a number."""
        if self.anchor not in line or (match := self._pattern.search(line[:LINE])) is None:
            return None
        places = dict(zip(self.places, match.groups(), strict=True))
        return None if parse_number(places["value"]) is None else (line[: match.start()], places)


def parse_number(text: str) -> float | None:
    """Read a decimal number, which may be nan or inf, as one beyond 1e100 is; None of anything else."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return math.copysign(math.inf, value) if abs(value) > LARGEST else value


def count_decimals(text: str) -> int:
    """Count the decimals of a printed number."""
    return min(len(text.partition(".")[2]), DECIMALS) if re.fullmatch(r"[-+]?\d*\.\d*", text) else 0


def count_places(number: str) -> int:
    """Count the places behind the point of a printed number: 1 of ``55.2``, 3 of ``1.2e-2``, -3 of ``5e3``."""
    digits, _, power = number.lower().partition("e")
    return len(digits.partition(".")[2]) - int(power or 0)


def read_text(path: Path) -> str:
    """Read a file as text, whatever bytes it holds.

    Raises:
        PlumblineError: it is too large, cannot be read, or is not an ordinary file.
    """
    text = read_ordinary_file(path, FILE_BYTES).decode("utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def list_files_below(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """List the files below a folder whose name has one of these ends, in order; links are not followed, and pages of
    `plumbline report` are passed over, which have copies of what they show.

    Raises:
        PlumblineError: there are too many entries.
    """
    count = 0
    for root, folders, files in os.walk(folder, followlinks=False):
        if set(files) >= REPORT_FILES and Path(root) != folder:
            folders.clear()
            continue
        folders.sort()
        count += len(folders) + len(files)
        if count > FILES:
            raise PlumblineError(f"{folder} has more than {FILES:,} entries, and is not read")
        for name in sorted(files):
            path = Path(root) / name
            if name.endswith(tuple(names)) and not path.is_symlink() and path.is_file():
                yield path


def resolve_inside(folder: Path, link: str) -> Path | None:
    """The path that a link names inside a folder; None of an address, of nothing, and of what leads out of it."""
    if not link or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]{0,20}:|[/\\#]", link) or "\0" in link:
        return None
    try:
        path, root = (folder / link.partition("#")[0]).resolve(), folder.resolve()
    except (OSError, RuntimeError):
        return None
    return path if path != root and path.is_relative_to(root) else None
