"""Keeps the ledger of everything that was tried, one line an entry, each line bound to the one before by its hash.

An entry is one look: this method's numbers (or spec) beside this baseline's, in this metric, by this test. The same
look again is the same entry. What a p-value is corrected for is the number of different entries against a baseline, so
that trying twenty costs twenty, whether in one file or over a year; another metric of the same runs is another try.
Where the metric of the first entry was named before there were values (a spec that is about to be trained, or
`PRIMARY`), it is the primary one, and other metrics do not add to its tries. Announcing more tries than before is
written down too: the entry again with another `planned`, a line but no further try. What was decided stands beside
(`verdict`, `sentence`), and is no try.

What is noticed: a line that was edited, removed from the middle, repeated or put in (the chain breaks there, and the
line is named). What the file alone cannot tell, a cut tail or a chain that was computed anew, `ledger_pages` can.

Appends take the kernel's lock (flock) on the ledger itself, and are on the disk before a page is made of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_bytes, canonical_json, free_name, fsync_directory, sha256_text
from plumbline.core.operating_system import fcntl

#: What the first line names as the hash before it.
NO_HEAD = "0" * 64
#: The kind of an entry that names the primary metric against a baseline, and is no try.
PRIMARY = "primary"
#: Kinds whose metric was named before there were values.
_BEFOREHAND = (PRIMARY, "spec", "try")


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerEntry:
    """One entry of the ledger: a look at a method's numbers next to a baseline's, in one metric, by one test.

    Attributes:
        kind: what was tried: "numbers", "search", "spec" or "try"; or `PRIMARY`.
        name: as a reader knows it; a part of what makes two entries different.
        fingerprint: hash of the numbers, or of the spec, that were looked at.
        baseline: what it was compared with, by name: tries are counted against it.
        metric: in what; tries in another count too, unless this one is the primary one.
        test: what decided; another test of the same numbers is another try.
        planned: how many tries were announced, none if 0; not a part of what makes two entries different.
        commit: of the candidate, where it is one; not a part of what makes two entries different.
        verdict, sentence, at: of an entry that says what was decided of a try: how, in a sentence, and when (UTC).
        runs: of such an entry, how many runs the bank had then.
    """

    kind: str
    name: str
    fingerprint: str
    baseline: str
    metric: str
    test: str
    planned: int = 0
    commit: str = ""
    verdict: str = ""
    sentence: str = ""
    at: str = ""
    runs: int = 0

    @property
    def identity(self) -> tuple[str, ...]:
        """Everything that makes two entries different; equal ones are one try."""
        known = (self.kind, self.name, self.fingerprint, self.baseline, self.metric, self.test)
        return (*known, self.verdict, self.sentence) if self.verdict else known

    @property
    def is_try(self) -> bool:
        """Whether it counts as a try: what was decided of one, and the name of a primary metric, do not."""
        return not self.verdict and self.kind != PRIMARY

    @property
    def family(self) -> tuple[str, str]:
        """The baseline and the metric."""
        return (self.baseline, self.metric)


#: What stands in lines alone that say it, and in every line.
_SOMETIMES = ("commit", "verdict", "sentence", "at", "runs")
_NEEDED = tuple(each.name for each in fields(LedgerEntry) if each.name not in _SOMETIMES)


@dataclass(frozen=True)
class Ledger:
    """A ledger as it was read from its file: its entries, and the hash of each line."""

    path: Path
    entries: tuple[LedgerEntry, ...]
    hashes: tuple[str, ...]

    @property
    def head(self) -> str:
        """The hash of the last line; `NO_HEAD` where the ledger is empty."""
        return self.hashes[-1] if self.hashes else NO_HEAD

    def __len__(self) -> int:
        return len(self.entries)

    def tries(self, baseline: str, metric: str) -> int:
        """Count what a p-value is multiplied by: different entries against the baseline, or announced tries.

        The larger number counts. Numbers that were announced count from the first of them on, and stay: a plan is never
        made smaller. In the primary metric, entries in other metrics do not count.
        """
        return max(self.made(baseline, metric), self.planned(baseline, metric))

    def made(self, baseline: str, metric: str) -> int:
        """Count the different entries against the baseline that add to the tries in the metric."""
        return len({entry.identity for entry in self._counted(baseline, metric)})

    def by_metric(self, baseline: str, metric: str) -> dict[str, int]:
        """Count the entries of `made` by the metric in which they were, this one first."""
        different = {entry.identity: entry.metric for entry in self._counted(baseline, metric)}
        counted = Counter(different.values())
        return {one: counted[one] for one in sorted(counted, key=lambda one: (one != metric, one))}

    def planned(self, baseline: str, metric: str) -> int:
        """Find the most tries that were ever announced against the baseline; 0 if none were."""
        return max((entry.planned for entry in self._counted(baseline, metric)), default=0)

    def primary(self, baseline: str) -> str | None:
        """Name the metric against the baseline that was named before there were values; None where none was."""
        first = next(iter(self._by_baseline.get(baseline, ())), None)
        return first.metric if first is not None and first.kind in _BEFOREHAND else None

    def _counted(self, baseline: str, metric: str) -> list[LedgerEntry]:
        alone = self.primary(baseline) == metric
        tried = [entry for entry in self._by_baseline.get(baseline, ()) if entry.is_try]
        return [entry for entry in tried if not alone or entry.metric == metric]

    @cached_property
    def _by_baseline(self) -> dict[str, list[LedgerEntry]]:
        against: dict[str, list[LedgerEntry]] = {}
        for entry in self.entries:
            against.setdefault(entry.baseline, []).append(entry)
        return against


def read(path: Path) -> Ledger:
    """Read a ledger and check every line; empty where there is no file.

    A torn last line is put aside, as by `append`.

    Raises:
        PlumblineError: a line is broken, or does not follow the one before; it is named. Or a torn last line cannot
            be put aside.
    """
    _refuse_pipe(path)
    try:
        with open(path, "rb") as file:
            with contextlib.suppress(OSError):  # without locks here, a line being written looks torn: see below
                fcntl.flock(file, fcntl.LOCK_SH)
            content = file.read()
    except FileNotFoundError:
        content = b""
    except OSError as error:
        raise PlumblineError(f"{path} cannot be read ({error.strerror}); name another file with --ledger") from None
    if _torn(content):
        with _locked(path) as descriptor:  # refuses where there are no locks
            content = _without_torn_line(path, descriptor)
    return _parsed(path, content)


def read_unchanged(path: Path) -> tuple[Ledger, int]:
    """Read a ledger and check every line as `read` does, but write nothing: a torn last line stays where it is.

    Returns:
        The ledger, and the number of bytes of the torn line.

    Raises:
        PlumblineError: the file cannot be read, or a line is broken or does not follow the one before.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PlumblineError(f"{path} cannot be read ({error.strerror})") from None
    torn = len(_torn(content))
    return _parsed(path, content[: len(content) - torn]), torn


def append(path: Path, entries: Sequence[LedgerEntry]) -> Ledger:
    """Append entries that are not there yet, or that announce more tries, and return the ledger as it then is.

    A last line that was torn by a power cut is put aside beside the ledger, with a word on stderr: whoever wrote it
    made no page of it.

    Raises:
        PlumblineError: as `read`; or the file cannot be written or locked. Nothing is appended to a broken ledger.
    """
    with entered(path, entries) as ledger:
        return ledger


@contextmanager
def entered(path: Path, entries: Sequence[LedgerEntry]) -> Iterator[Ledger]:
    """Append entries as `append` does, and take them back if the ``with`` block fails: with the page, or not at all.

    The ledger is locked meanwhile, so that the block reads it from what it is given, and not from the file. A process
    that is killed in the block leaves the entries there, which costs a try and hides none.

    Raises:
        PlumblineError: as `append`.
    """
    with _locked(path) as descriptor:
        content = _without_torn_line(path, descriptor)
        ledger = _parsed(path, content)
        lines = _new_lines(ledger, entries)
        if not lines:
            yield ledger
            return
        # A newline alone may have been lost: the last line is whole then, and stays.
        begin = "\n" if content and not content.endswith(b"\n") else ""
        added = (begin + "".join(f"{line}\n" for line in lines)).encode()
        try:
            written = os.write(descriptor, added)
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, len(content))
            raise PlumblineError(
                f"{path}: nothing was entered ({error.strerror}); free disk space and repeat"
            ) from None
        if written != len(added):
            os.ftruncate(descriptor, len(content))
            raise PlumblineError(f"{path}: nothing was entered (the disk is full); free disk space and repeat")
        try:
            yield _parsed(path, content + added)
        except BaseException:
            os.ftruncate(descriptor, len(content))
            os.fsync(descriptor)
            raise


def _new_lines(ledger: Ledger, entries: Sequence[LedgerEntry]) -> list[str]:
    """The lines of those entries that are not there yet, or that announce more tries."""
    known, head = {entry.identity for entry in ledger.entries}, ledger.head
    planned, lines = dict[tuple[str, str], int](), list[str]()
    for entry in entries:
        if entry.family not in planned:
            planned[entry.family] = ledger.planned(entry.baseline, entry.metric)
        plan = planned[entry.family]
        if entry.identity not in known or entry.planned > plan:
            known.add(entry.identity)
            planned[entry.family] = max(plan, entry.planned)
            line = _line(len(ledger) + len(lines) + 1, head, entry)
            head = json.loads(line)["hash"]
            lines.append(line)
    return lines


def fingerprint(value: Any) -> str:
    """Hash a value that was looked at, by its canonical JSON."""
    return sha256_text(canonical_json(value))


def _line(number: int, previous: str, entry: LedgerEntry) -> str:
    said = {key: value for key, value in asdict(entry).items() if value or key not in _SOMETIMES}
    record = {"entry": number, "previous": previous, **said}
    return canonical_json({**record, "hash": sha256_text(canonical_json(record))})


def _parsed(path: Path, content: bytes) -> Ledger:
    entries, hashes = [], [NO_HEAD]
    for number, line in enumerate(content.removesuffix(b"\n").split(b"\n") if content else [], start=1):
        try:
            record = json.loads(line)
            needed = {key: record[key] for key in _NEEDED}
            entry = LedgerEntry(**needed, **{key: record[key] for key in _SOMETIMES if key in record})
            whole = line.decode() == _line(number, hashes[-1], entry)
            head = record["hash"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise PlumblineError(
                f"{path}, line {number} is not an entry; restore it. A ledger is only ever appended to"
            ) from None
        if not whole:
            raise PlumblineError(
                f"{path}, line {number}: the chain of hashes is broken here: this line was edited, or one before it "
                "was removed, inserted or moved. A ledger is only ever appended to; restore the file"
            )
        entries.append(entry)
        hashes.append(head)
    return Ledger(path, tuple(entries), tuple(hashes[1:]))


def _refuse_pipe(path: Path) -> None:
    """A named pipe would wait for ever for its writer."""
    if path.is_fifo():
        raise PlumblineError(f"{path} is a named pipe, and no ledger; name another file with --ledger")


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    _refuse_pipe(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise PlumblineError(f"{path} cannot be written ({error.strerror}); name another file with --ledger") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise PlumblineError(
                f"{path} cannot be locked ({error.strerror}); name a file on another file system with --ledger"
            ) from None
        if new:
            fsync_directory(path.parent)
        yield descriptor
    finally:
        os.close(descriptor)


def _without_torn_line(path: Path, descriptor: int) -> bytes:
    """The ledger's bytes; what follows the last newline is put aside if it is no entry."""
    with open(descriptor, "rb", closefd=False) as file:
        content = file.read()
    torn = _torn(content)
    if not torn:
        return content
    begin = len(content) - len(torn)
    aside = free_name(path, "torn")
    atomic_write_bytes(aside, torn)
    os.ftruncate(descriptor, begin)
    os.fsync(descriptor)
    number = content.count(b"\n") + 1
    print(
        f"{path}, line {number} is incomplete, as after a power cut before its page was made: its {len(torn)} bytes "
        "are in "
        f"{aside}, and the {number - 1} entries before it hold",
        file=sys.stderr,
    )
    return content[:begin]


def _torn(content: bytes) -> bytes:
    """What follows the last newline and is no entry; nothing where only a newline was lost."""
    tail = content[content.rfind(b"\n") + 1 :]
    try:
        json.loads(tail)  # a part of a line never is JSON
    except (ValueError, RecursionError):
        return tail
    return b""
