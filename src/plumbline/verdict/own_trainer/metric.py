"""Reads the metric of a run from its log or its rows: the last one that is there. Keeps the begin and the end of a log.

Files are read from their end, line by line (a carriage return ends a line too, and a line has at most `LONGEST`
characters), and reading is stopped by an alarm: neither a log of gigabytes nor a pattern that backtracks for ever holds
up whoever reads. To be called in a process's main thread, as alarms are.

While a run writes to its log, the middle is read for the metric and taken out of the file as a hole, which takes no
room, each time that it has grown by `HOLE_AFTER`; when the run has ended, the hole is closed. A file system without
holes has the whole log until then.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Struct

from plumbline.core.errors import PlumblineError
from plumbline.core.escape_sequences import LINE_END, decode
from plumbline.verdict.own_trainer.trainer_file import MetricPart

#: Characters of a line that are read, and seconds that a whole reading may take.
LONGEST, SECONDS = 16_384, 60.0
#: Bytes from the end of a running log that are read.
TAIL = 2**18
_BLOCK = 2**20
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*(e[-+]?[0-9]+)?|\.[0-9]+(e[-+]?[0-9]+)?|nan|inf(inity)?)", re.IGNORECASE)
#: A comma within a number, and the rest of a number that a match ends before.
_COMMA, _REST = re.compile(r"\d,\d"), re.compile(r",\d[\d.,]*")
#: A line that gives a metric by its name, whatever else is printed.
METRIC_LINE = re.compile(r"^\s*METRIC\s+([\w./@-]+)\s*[=:]\s*(\S+)")
#: Bytes of a log that are kept: of its begin, and of its end.
KEPT_HEAD, KEPT_TAIL = 2**22, 2**24
#: Bytes of the middle after which it is taken out, and seconds that reading them may take.
HOLE_AFTER, HOLE_SECONDS = 2**24, 2.0
_PAGE = 4096
#: Of fallocate: keep the size, make a hole.
_HOLE = 0x01 | 0x02


class LoggedMetric(Struct, frozen=True):
    """What a log contains.

    Attributes:
        value: the primary metric; None if it is not there.
        text: the primary metric as it was written: with how many digits a trainer prints.
        others: further metrics that are there.
    """

    value: float | None = None
    text: str = ""
    others: dict[str, float] = {}


class LeftOut(Struct):
    """The part of a log that is no longer there.

    Attributes:
        begin, end: the bytes that it had.
        texts: what was read in it before, by the metric's name ("" for the primary one).
        unread: bytes of it in which nothing was read, as that took too long, and behind which the primary metric was
            not read: what was printed before them is not its last value.
    """

    begin: int = 0
    end: int = 0
    texts: dict[str, str] = {}
    unread: int = 0


def read(
    metric: MetricPart,
    log: Path,
    folder: Path,
    *,
    most: int | None = None,
    seconds: float = SECONDS,
    left_out: LeftOut | None = None,
) -> LoggedMetric:
    """Read a run's metrics: `log` is what it printed, and `folder` where it ran.

    Args:
        most: bytes from the end that are read; all by default.
        left_out: what of the log is not there.

    Raises:
        PlumblineError: what was found is not a number, or the reading took longer than it may.
    """
    with alarm(seconds):
        if metric.json:
            keys = {"": metric.json, **metric.others}
            texts = _read_rows(keys, folder, most)
        elif metric.file:
            texts = read_texts(metric, backwards(folder / metric.file, most))
        else:
            gap = left_out or LeftOut()
            texts = read_texts(metric, backwards(log, most, begin=gap.end))
            if gap.end:
                earlier_texts = {} if gap.unread else read_texts(metric, backwards(log, end=gap.begin))
                texts = earlier_texts | gap.texts | texts
    primary = texts.pop("", "")
    values = {name: number(text) for name, text in texts.items()}
    other_values = {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
    if not primary:
        return LoggedMetric(others=other_values)
    value = number(primary)
    if value is None:
        raise PlumblineError(f"{metric.called} is {primary[:60]!r}, {explain_no_number(primary)}")
    return LoggedMetric(value=value, text=primary, others=other_values)


def split_at_value(metric: MetricPart, line: str) -> tuple[str, str, str] | None:
    """The last value of the primary metric in a line of a log, with what stands before and behind it, or in a row, with
    its key before it; None without one.
    """
    if metric.json:
        key = metric.json.rpartition(":")[2]
        value = find_below(read_row(line), key)
        return None if value is None else (key, str(value), "")
    if not read_texts(metric, iter([line])).get(""):
        return None
    *_, match = re.compile(metric.pattern or METRIC_LINE).finditer(line)
    begin, end = match.span(match.re.groups)
    return line[:begin], line[begin:end], line[end:]


def last_lines(path: Path, count: int = 12, width: int = 300) -> list[str]:
    """The last lines of a log that are not empty, each cut to a width."""
    lines: list[str] = []
    for line in backwards(path, TAIL):
        if line.strip():
            lines.append(line.rstrip()[:width])
        if len(lines) == count:
            break
    return lines[::-1]


def backwards(path: Path, most: int | None = None, begin: int = 0, end: int | None = None) -> Iterator[str]:
    """Give a file's lines without escape sequences, the last first, of all or of a part of its bytes; nothing of a
    file that is not there.
    """
    if not path.is_file():
        return
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        end = size if end is None else min(size, end)
        start = max(begin, end - most) if most else begin
        partial_line = b""
        while end > start:
            at = max(start, end - _BLOCK)
            file.seek(at)
            lines = LINE_END.split(file.read(end - at) + partial_line)
            partial_line = lines[0][:LONGEST]
            for line in reversed(lines[1:]):
                yield decode(line[:LONGEST])
            end = at
        if partial_line:
            yield decode(partial_line)


def read_texts(metric: MetricPart, lines: Iterator[str]) -> dict[str, str]:
    """Read the metrics of lines, by name, each as the first of them has it; "" is the primary metric."""
    if not metric.pattern:
        values = _read_metric_lines(lines)
        return values | ({"": values.pop(metric.name)} if metric.name in values else {})
    patterns = {"": re.compile(metric.pattern)}
    return _match_lines(patterns | {name: re.compile(pattern) for name, pattern in metric.others.items()}, lines)


def _match_lines(patterns: dict[str, re.Pattern[str]], lines: Iterator[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for line in lines:
        for name in patterns.keys() - texts.keys():
            every = list(patterns[name].finditer(line))
            if every and every[-1][1]:
                texts[name] = every[-1][1] + _find_rest(every[-1])
        if len(texts) == len(patterns):
            break
    return texts


def _find_rest(match: re.Match[str]) -> str:
    """What follows a whole number that ends at a comma before digits (`1` of `1,248.04`), which is a part of a number;
    empty where the pattern, or the line before the match, says that commas separate numbers.
    """
    rest_match = _REST.match(match.string, match.end(1))
    is_column = "," in match.re.pattern or match.string[: match.start(1)].endswith(",")
    return rest_match[0] if rest_match and match[1].lstrip("+-").isdigit() and not is_column else ""


def _read_metric_lines(lines: Iterator[str]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for line in lines:
        if match := METRIC_LINE.match(line):
            texts.setdefault(match[1], match[2])
    return texts


def _read_rows(names: dict[str, str], folder: Path, most: int | None) -> dict[str, str]:
    texts: dict[str, str] = {}
    files: dict[str, dict[str, str]] = {}
    for name, place in names.items():
        file, _, key = place.rpartition(":")
        files.setdefault(file, {})[name] = key
    for file, keys in files.items():
        rows = (read_row(line) for line in backwards(folder / file, most))
        for row in read_whole_file(folder / file) or rows:
            for name in keys.keys() - texts.keys():
                value = find_below(row, keys[name])
                if value is not None:
                    texts[name] = str(value)
            if keys.keys() <= texts.keys():
                break
    return texts


def read_whole_file(path: Path) -> list[Any]:
    """A file that is one JSON value over any number of lines: its object, or its rows, the last first."""
    try:
        if path.stat().st_size > 2**24:
            return []
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    return [value] if isinstance(value, dict) else list(reversed(value)) if isinstance(value, list) else []


def read_row(line: str) -> Any:
    """Read a line of JSON; None of anything else."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def find_below(row: Any, key: str) -> Any:
    """Find the number below a key of a row, or below a path of keys with dots; None if there is none."""
    if isinstance(row, dict) and key in row:
        value = row[key]
        is_plain = isinstance(value, int | float | str) and not isinstance(value, bool)
        return value if is_plain else None
    for at, letter in enumerate(key):
        if letter == "." and isinstance(row, dict) and key[:at] in row:
            return find_below(row[key[:at]], key[at + 1 :])
    return None


def number(text: str) -> float | None:
    """Read a number as a log has it, which may stand in quotes and before a sign or two; None of anything else."""
    plain = text.lstrip("'\"").rstrip(",;%'\"}])")  # of a dict or an object that was printed, too
    return float(plain) if _NUMBER.fullmatch(plain) else None


def explain_no_number(text: str) -> str:
    """State of a text why it is not a number, and the remedy."""
    if _COMMA.search(text):
        return (
            "which is written with a comma: have the trainer print it with a point, and without one for thousands; "
            "where the comma ends the number, write it into the pattern under [metric], as in 'wins=(\\d+),'"
        )
    return "which is no number; mend the [metric] of plumbline.toml"


class _TooLongError(Exception):
    pass


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Stop a block that takes longer, in seconds of the processor, so that a busy machine stops none: the matcher of
    regular expressions looks for signals too.

    Raises:
        PlumblineError: it took longer.
    """

    def ring(number: int, frame: FrameType | None) -> None:
        raise _TooLongError

    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("a metric is read in the main thread, where an alarm rings")
    old_handler: Callable[..., Any] | int | None = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except _TooLongError:
        raise PlumblineError(
            f"the metric was not read in {seconds:g} s; give [metric] a pattern that is bound to the line's begin, "
            "such as '^val_loss: (\\S+)'"
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old_handler)


def bound(path: Path, metric: MetricPart, gap: LeftOut) -> LeftOut:
    """Take the middle out of a log that is written to; returns what is left out now."""
    begin = max(gap.end, KEPT_HEAD)
    try:
        end = path.stat().st_size - KEPT_TAIL
        if end - begin < HOLE_AFTER:
            return gap
        with open(path, "r+b") as file:
            file.seek(end - _BLOCK)
            end += _find_line_start(file.read(_BLOCK), last=True) - _BLOCK
            texts, unread_bytes = {}, 0
            try:
                with alarm(HOLE_SECONDS):
                    texts = {} if metric.files else read_texts(metric, backwards(path, begin=begin, end=end))
            except PlumblineError:
                unread_bytes = end - begin
            if not _make_hole(file.fileno(), begin // _PAGE * _PAGE if gap.end else begin, end // _PAGE * _PAGE):
                return gap
    except OSError:
        return gap
    if not unread_bytes:
        return LeftOut(
            begin=gap.begin or begin, end=end, texts=gap.texts | texts, unread=0 if "" in texts else gap.unread
        )
    return LeftOut(begin=gap.begin or begin, end=end, unread=gap.unread + unread_bytes)


def _make_hole(descriptor: int, begin: int, end: int) -> bool:
    """Give the room of a file's bytes back; False where the system or the file system cannot."""
    try:
        call = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return bool(call(descriptor, _HOLE, begin, end - begin) == 0)


def shorten(path: Path) -> None:
    """Leave out the middle of a log that is longer, and state there how much; in place, as the disk may be full."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    if size <= KEPT_HEAD + KEPT_TAIL + _BLOCK:
        return
    with open(path, "r+b") as file:
        begin = _find_line_start(file.read(KEPT_HEAD), last=True)
        file.seek(size - KEPT_TAIL)
        end = size - KEPT_TAIL + _find_line_start(file.read(_BLOCK), last=False)
        file.seek(begin)
        file.write(b"\n[plumbline left out %d bytes here]\n" % (end - begin))
        to = file.tell()
        while True:
            file.seek(end)
            block = file.read(_BLOCK)
            if not block:
                break
            file.seek(to)
            file.write(block)
            to, end = to + len(block), end + len(block)
        file.truncate(to)
        os.fsync(file.fileno())


def _find_line_start(block: bytes, *, last: bool) -> int:
    """Where a line begins in a block: after its last line end, or after its first; its end, or 0, without one."""
    at = block.rfind(b"\n") if last else block.find(b"\n")
    return at + 1 if at >= 0 else len(block) if last else 0
