"""Keeps a log that is only ever appended to: one JSON object a line, each bound to the one before by its hash.

What is noticed: a line that was edited, removed from the middle, repeated or put in (the chain breaks there, and the
line is named). What the file alone cannot tell is a cut tail, or a chain that was computed anew.

Appends take the kernel's lock (flock) on the file itself, and are on the disk before anybody acts on them. A last line
that a power cut tore is put aside, for nobody acted on it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core import locks
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_bytes, canonical_json, free_name, fsync_directory, sha256_text

#: What the first line names as the hash before it.
NO_HEAD = "0" * 64
#: The keys of a line that bind it to the one before.
CHAIN = ("entry", "previous", "hash")


class BrokenLogError(PlumblineError):
    """A log that something else than its writers changed: a line is no entry, or does not follow the one before."""


@dataclass(frozen=True)
class LogContent:
    """A log as it was read: the record of each line without its `CHAIN`, and the line's hash."""

    records: tuple[dict[str, Any], ...]
    hashes: tuple[str, ...]

    @property
    def head(self) -> str:
        """The hash of the last line; `NO_HEAD` if there is none."""
        return self.hashes[-1] if self.hashes else NO_HEAD


@dataclass(frozen=True, kw_only=True)
class AppendOnlyLog:
    """The file of a log.

    Attributes:
        noun: what the file is, in messages.
        remedy: how another file is named, in messages.
        require: raises a ValueError, KeyError or TypeError for a record that is no entry of this log.
    """

    path: Path
    noun: str
    remedy: str
    require: Callable[[Mapping[str, Any]], Any]

    def read(self) -> LogContent:
        """Read and check every line; empty if there is no file. A torn last line is put aside, as by `append`.

        Raises:
            PlumblineError: a line is broken, or does not follow the one before; it is named. Or a torn last line
                cannot be put aside.
        """
        self._refuse_pipe()
        try:
            with open(self.path, "rb") as file:
                with contextlib.suppress(OSError):  # without locks here, a line being written looks torn: see below
                    locks.lock(file, wait=True, shared=True)
                content = file.read()
        except FileNotFoundError:
            content = b""
        except OSError as error:
            raise PlumblineError(f"{self.path} cannot be read ({error.strerror}); {self.remedy}") from None
        if _find_torn_line(content):
            with self._lock() as descriptor:  # refuses where there are no locks
                content = self._without_torn_line(descriptor)
        return self._parse(content)

    def read_unchanged(self) -> tuple[LogContent, int]:
        """Read and check every line as `read` does, but write nothing: a torn last line stays where it is.

        Returns:
            The content, and the number of bytes of the torn line.

        Raises:
            PlumblineError: the file cannot be read, or a line is broken or does not follow the one before.
        """
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise PlumblineError(f"{self.path} cannot be read ({error.strerror})") from None
        torn = len(_find_torn_line(content))
        return self._parse(content[: len(content) - torn]), torn

    @contextmanager
    def append(self, choose: Callable[[LogContent], Sequence[Mapping[str, Any]]]) -> Iterator[LogContent]:
        """Append the records that `choose` returns for what is there, and take them back if the ``with`` block fails.

        The file is locked meanwhile, so that the block reads the log from what it is given, and not from the file. A
        process that is killed in the block leaves the records there.

        Raises:
            PlumblineError: as `read`; or the file cannot be written or locked. Nothing is appended to a broken log.
        """
        with self._lock() as descriptor:
            content = self._without_torn_line(descriptor)
            log = self._parse(content)
            head, lines = log.head, list[str]()
            for record in choose(log):
                bound = {"entry": len(log.records) + len(lines) + 1, "previous": head, **record}
                head = sha256_text(canonical_json(bound))
                lines.append(canonical_json({**bound, "hash": head}))
            if not lines:
                yield log
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
                    f"{self.path}: nothing was entered ({error.strerror}); free disk space and repeat"
                ) from None
            if written != len(added):
                os.ftruncate(descriptor, len(content))
                raise PlumblineError(f"{self.path}: nothing was entered (the disk is full); free disk space and repeat")
            try:
                yield self._parse(content + added)
            except BaseException:
                os.ftruncate(descriptor, len(content))
                os.fsync(descriptor)
                raise

    def _parse(self, content: bytes) -> LogContent:
        records, hashes = list[dict[str, Any]](), [NO_HEAD]
        for number, line in enumerate(content.removesuffix(b"\n").split(b"\n") if content else [], start=1):
            try:
                record = json.loads(line)
                bound = {key: value for key, value in record.items() if key != "hash"}
                head = record["hash"]
                fields = {key: value for key, value in record.items() if key not in CHAIN}
                self.require(fields)
                written = canonical_json({**fields, "entry": number, "previous": hashes[-1], "hash": head})
                is_intact = line.decode() == written and head == sha256_text(canonical_json(bound))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                raise BrokenLogError(
                    f"{self.path}, line {number} is not an entry; restore it. A {self.noun} is only ever appended to"
                ) from None
            if not is_intact:
                raise BrokenLogError(
                    f"{self.path}, line {number}: the chain of hashes is broken here: this line was edited, or one "
                    f"before it was removed, inserted or moved. A {self.noun} is only ever appended to; restore the "
                    "file"
                )
            records.append(fields)
            hashes.append(head)
        return LogContent(tuple(records), tuple(hashes[1:]))

    def _refuse_pipe(self) -> None:
        """A named pipe would wait for ever for its writer."""
        if self.path.is_fifo():
            raise PlumblineError(f"{self.path} is a named pipe, and no {self.noun}; {self.remedy}")

    @contextmanager
    def _lock(self) -> Iterator[int]:
        self._refuse_pipe()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = not self.path.exists()
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise PlumblineError(f"{self.path} cannot be written ({error.strerror}); {self.remedy}") from None
        try:
            try:
                locks.lock(descriptor, wait=True)
            except OSError as error:
                raise PlumblineError(
                    f"{self.path} cannot be locked on this file system ({error.strerror}); {self.remedy}"
                ) from None
            if new:
                fsync_directory(self.path.parent)
            yield descriptor
        finally:
            os.close(descriptor)

    def _without_torn_line(self, descriptor: int) -> bytes:
        """The file's bytes; what follows the last newline is put aside if it is no entry."""
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read()
        torn = _find_torn_line(content)
        if not torn:
            return content
        begin = len(content) - len(torn)
        aside = free_name(self.path, "torn")
        atomic_write_bytes(aside, torn)
        os.ftruncate(descriptor, begin)
        os.fsync(descriptor)
        number = content.count(b"\n") + 1
        print(
            f"{self.path}, line {number} is incomplete, as after a power cut before its page was made: its {len(torn)} "
            f"bytes are in {aside}, and the {number - 1} entries before it hold",
            file=sys.stderr,
        )
        return content[:begin]


def _find_torn_line(content: bytes) -> bytes:
    """What follows the last newline and is no entry; nothing where only a newline was lost."""
    tail = content[content.rfind(b"\n") + 1 :]
    try:
        json.loads(tail)  # a part of a line never is JSON
    except (ValueError, RecursionError):
        return tail
    return b""
