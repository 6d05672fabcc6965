"""Decides which documents are held out, and shuffles documents: both are functions of ids alone.

Held out: a document whose *group* (what its source puts together: the addresses of a year; else the id itself)
hashes below the given share. The group decides before a document is cut into pieces, so no piece of a held-out document
is trained on, and documents known to be near-identical (two messages of one year) fall on the same side. A corpus may
hold out by id instead, where groups are too few or too large to hold out whole.

Order: by the hash of the id, an unbiased shuffle that does not depend on how the source was listed. It is done outside
memory: documents go to files by the first byte of the hash, and each file that is not too large is sorted on its own.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from plumbline.core.errors import PlumblineError
from plumbline.core.files import fsync_directory, fsync_file, name_in_errors

#: What is held out together: a whole group, or each document by itself.
By = Literal["group", "id"]

#: How the folder of a job's shuffles begins, where nothing of them is kept; it lies where the documents will.
SHUFFLES = ".shuffle."

#: Bytes that wait in memory to be written, and bytes that are sorted in memory.
WRITE_BYTES, SORT_BYTES = 64_000_000, 256_000_000

#: Characters of a text that are written at once, and bytes of lines that are.
_PART, _BLOCK = 1_000_000, 1 << 20

#: Bytes of the hash by which texts are compared.
HASH_BYTES = 16

#: A line in a file begins with the hash, in so many hexadecimal digits.
_KEY = 64

#: What stands before a line's text, and behind it where the document has ids.
_BEFORE_TEXT, _BEFORE_TOKENS = b'", "text": "', b'", "tokens": '

#: Bytes and documents of each file, and the CRC-32 of its bytes, by its number.
Sizes = dict[int, list[int]]


def is_held_out(unit: str, percent: float) -> bool:
    """Whether the documents of a group or id named `unit` are validation data, for a share of `percent` (0-100)."""
    digest = hashlib.sha256(f"held out\n{unit}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < percent / 100 * 2**64


def describe_rule(percent: float, key: By) -> str:
    """The split rule as text, as manifests store it."""
    group = "; group: what its source says belongs together, else the id" if key == "group" else ""
    return (
        f"a document is held out if the first 8 bytes of sha256('held out\\n' + {key}), as a share of 2^64, are "
        f"below {percent / 100:g}{group}; decided before documents are cut into pieces; order: by "
        "sha256('order\\n' + id)"
    )


class DocumentShuffle:
    """Takes documents in any order and yields their lines in the order of the hash of their ids.

    Documents go to 256 files by the first byte of the hash. A file of more than `sort_bytes` is split again by the next
    byte, and so on; one that is small enough is sorted.

    Memory, whatever the size of the corpus: `write_bytes` while documents come; then `sort_bytes` of lines and what
    Python needs for each (some 60 bytes; the shortest line has a hundred). With the default sizes that is 64 MB, then
    at most 410 MB. A text is not held a second time while it is written; one that is longer than `sort_bytes` is held
    once while it is read.

    Disk: the documents once, in `folder`, until its owner removes it; while a file is split, that file once more. The
    file that the lines are written to takes as much again.
    """

    def __init__(self, folder: Path, *, write_bytes: int = 0, sort_bytes: int = 0, level: int = 0) -> None:
        """Sizes that are not given are `WRITE_BYTES` and `SORT_BYTES`; `level`: the byte of the hash that decides."""
        self._folder, self._level = folder, level
        self._write_bytes, self._sort_bytes = write_bytes or WRITE_BYTES, sort_bytes or SORT_BYTES
        self._waiting: dict[int, bytearray] = {}
        self._held = 0
        self._unsynced: set[int] = set()
        self._sizes: Sizes = {}
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def documents(self) -> int:
        """Number of documents taken so far."""
        return sum(count for _, count, _ in self._sizes.values())

    def save(self) -> Sizes:
        """Make the documents taken so far survive a power cut; returns the sizes that `restore` needs."""
        self._flush()
        for number in sorted(self._unsynced):
            fsync_file(self._path(number))
        fsync_directory(self._folder)
        self._unsynced.clear()
        return {number: list(size) for number, size in self._sizes.items()}

    def restore(self, sizes: Sizes) -> None:
        """Continue from a `save`: what was written after it is cut off.

        Args:
            sizes: what `save` returned.

        Raises:
            PlumblineError: the files hold less than was saved.
        """
        names = {self._path(number).name for number in sizes}
        for path in self._folder.iterdir():
            if path.is_dir():  # a file was being split
                shutil.rmtree(path)
            elif path.name not in names:
                path.unlink()
        for number, (size, _, _) in sizes.items():
            path = self._path(number)
            present = path.stat().st_size if path.exists() else 0
            if present < size:
                raise PlumblineError(
                    f"{path}: {present:,} bytes are left of the {size:,} that were written there, so that what was "
                    f"read before is incomplete; delete {self._folder.parent} to start again"
                )
            os.truncate(path, size)
        self._sizes = {number: list(size) for number, size in sizes.items()}

    def add(self, identity: str, source: str, text: str, tokens: dict[str, Any] | None = None) -> None:
        """Take one document.

        Args:
            tokens: where its token ids are, if it has some already.
        """
        self.put(*encode(identity, source, text, tokens))

    def lines(self, before: Path | None = None) -> Iterator[memoryview]:
        """Yield every document as a JSON line (with its line end), shuffled.

        Args:
            before: a file of such lines, already in this order, to merge with them.

        Raises:
            PlumblineError: two documents share an id.
        """
        keyed: Iterator[tuple[bytes, memoryview]]
        keyed = itertools.chain.from_iterable(file.sort() for file in self.files())
        if before is not None:
            keyed = heapq.merge(keyed, _read_keyed(before), key=lambda entry: entry[0])
        return _refuse_twice(keyed)

    def files(self, after: int = -1) -> list[ShuffleFile]:
        """List the files that the documents are in, in order, but for those up to number `after`."""
        self._flush()
        return [
            ShuffleFile(
                path=self._path(number),
                number=number,
                size=size,
                documents=count,
                crc=crc,
                level=self._level,
                write_bytes=self._write_bytes,
                sort_bytes=self._sort_bytes,
            )
            for number, (size, count, crc) in sorted(self._sizes.items())
            if number > after
        ]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:02x}"

    def put(self, number: int, parts: Iterable[bytes | bytearray]) -> None:
        """Append a document's hash and line, in parts, to a file."""
        size = self._sizes.setdefault(number, [0, 0, 0])
        size[1] += 1
        for part in parts:
            size[0] += len(part)
            if self._held + len(part) > self._write_bytes:
                self._flush()
            if len(part) > self._write_bytes:
                self._append(number, part)
            else:
                self._waiting.setdefault(number, bytearray()).extend(part)
                self._held += len(part)

    def _flush(self) -> None:
        for number in sorted(self._waiting):
            self._append(number, self._waiting.pop(number))
        self._held = 0

    def _append(self, number: int, content: bytes | bytearray) -> None:
        # Opened anew each time: more files than a process may hold open.
        path = self._path(number)
        with name_in_errors(path), open(path, "ab") as file:
            file.write(content)
        self._sizes[number][2] = zlib.crc32(content, self._sizes[number][2])
        self._unsynced.add(number)


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Lines that follow one another.

    Attributes:
        lines: with their line ends.
        documents: how many they are.
        hashes: of their texts, one after another.
        file: the number of the shuffle's file that they are from.
        last: whether they are its last.
    """

    lines: bytes | memoryview
    documents: int
    hashes: bytes
    file: int
    last: bool

    def __reduce__(self) -> tuple[type[LineBlock], tuple[Any, ...]]:
        """Go to another process, where a view cannot."""
        return LineBlock, (bytes(self.lines), self.documents, self.hashes, self.file, self.last)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShuffleFile:
    """A file of a shuffle, whose lines any process can sort; of `size` bytes it is split again beyond `sort_bytes`."""

    path: Path
    number: int
    size: int
    documents: int
    crc: int
    level: int
    write_bytes: int
    sort_bytes: int

    def results(self, report: Callable[[int], None]) -> Iterator[LineBlock]:
        """Yield its lines in order, a block at a time; `report` is told how many have come.

        Raises:
            PlumblineError: two documents share an id.
        """
        waiting, hashes, size, count = list[memoryview](), bytearray(), 0, 0
        for count, line in enumerate(_refuse_twice(self.sort()), 1):
            waiting.append(line)
            hashes += hash_text(line)
            size += len(line)
            report(count)
            if size >= _BLOCK:
                yield self._join(waiting, hashes, last=False)
                waiting, hashes, size = [], bytearray(), 0
        yield self._join(waiting, hashes, last=True)

    def _join(self, lines: list[memoryview], hashes: bytearray, *, last: bool) -> LineBlock:
        joined = lines[0] if len(lines) == 1 else b"".join(lines)  # a long line is not copied
        return LineBlock(joined, len(lines), bytes(hashes), self.number, last)

    def describe(self, count: int) -> str:
        """Name the file and the line after the first `count`."""
        return f"{self.path}, document {count + 1:,} of {self.documents:,} in order"

    def sort(self) -> Iterator[tuple[bytes, memoryview]]:
        """Hashes and lines, in order."""
        if self.size > self.sort_bytes and self.documents > 1:
            return self._split()
        return _sort_lines(self.path, self.crc)

    def _split(self) -> Iterator[tuple[bytes, memoryview]]:
        """The same of a file that is too large to be sorted."""
        level = self.level + 1
        folder = self.path.with_name(f"{self.path.name}.split")
        inner = DocumentShuffle(folder, write_bytes=self.write_bytes, sort_bytes=self.sort_bytes, level=level)
        for line in _read_written(self.path, self.crc):
            if 2 * level == _KEY:  # every hash in the file is the same
                raise _describe_twice(memoryview(line)[_KEY:])
            try:
                inner.put(int(line[2 * level : 2 * level + 2], 16), [line])
            except ValueError:
                continue  # of a file that was changed, which its end shows
        del line  # it may be long
        for file in inner.files():
            yield from file.sort()
        shutil.rmtree(folder)


def _refuse_twice(keyed: Iterable[tuple[bytes, memoryview]]) -> Iterator[memoryview]:
    """The lines, until one's hash is that of the line before it."""
    last = b""
    for key, line in keyed:
        if key == last:
            raise _describe_twice(line)
        last = key
        yield line


def encode(identity: str, source: str, text: str, tokens: dict[str, Any] | None = None) -> tuple[int, Iterator[bytes]]:
    """The file of a shuffle that a document goes to, and its hash and line in parts, as `DocumentShuffle.put` takes
    them; `tokens`: where its token ids are, if it has some already.
    """
    key = _key_of(identity)
    return key[0], itertools.chain([key.hex().encode()], _encode_line(identity, source, text, tokens))


def _key_of(identity: str) -> bytes:
    return hashlib.sha256(f"order\n{identity}".encode()).digest()


def _encode_line(identity: str, source: str, text: str, tokens: dict[str, Any] | None) -> Iterator[bytes]:
    """A document as JSON, in parts, so that a long text is not copied as a whole."""
    empty = json.dumps({"id": identity, "source": source, "text": ""}, ensure_ascii=False)
    yield empty[:-2].encode()
    for start in range(0, len(text), _PART):
        yield json.dumps(text[start : start + _PART], ensure_ascii=False)[1:-1].encode()
    yield b'"'
    if tokens:
        yield f', "tokens": {json.dumps(tokens, ensure_ascii=False)}'.encode()
    yield b"}\n"


def hash_text(line: bytes | bytearray | memoryview) -> bytes:
    """Hash the text of a document's line: texts are compared by it."""
    return hashlib.blake2b(text_of(line), digest_size=HASH_BYTES).digest()


def text_of(line: bytes | bytearray | memoryview) -> memoryview:
    """The text of a document's line, as `DocumentShuffle` writes lines, in the JSON that it stands there in: the same
    for the same text, and for no other one. What begins and ends it has a bare quotation mark, which no string has.

    `line` may be a view of bytes that end with it, and have nothing but a hash before it.
    """
    whole: Any = line.obj if isinstance(line, memoryview) else line
    start = whole.index(_BEFORE_TEXT) + len(_BEFORE_TEXT)
    end = whole.find(_BEFORE_TOKENS, start)
    return memoryview(whole)[start : len(whole) - len(b'"}\n') if end < 0 else end]


def _sort_lines(path: Path, crc: int) -> Iterator[tuple[bytes, memoryview]]:
    """Hashes and lines of a file of them, in order. A generator of its own: it ends before the next file is read."""
    lines = sorted(_read_written(path, crc))
    for line in lines:
        yield bytes(line[:_KEY]), memoryview(line)[_KEY:]


def read_lines(file: IO[bytes]) -> Iterator[bytes | bytearray]:
    """The lines of a file; a long one is not held twice while it is read, as the library would."""
    while line := file.readline(_PART):
        if line.endswith(b"\n"):
            yield line
            continue
        long = bytearray(line)
        while part := file.readline(_PART):
            long += part
            if part.endswith(b"\n"):
                break
        yield long


def _read_written(path: Path, crc: int) -> Iterator[bytes | bytearray]:
    """The lines of a file of the shuffle; at its end, what was read is compared with what was written.

    Raises:
        PlumblineError: they differ. It may have lain there for weeks, between two parts of a fetch.
    """
    computed = 0
    with open(path, "rb") as file:
        for line in read_lines(file):
            computed = zlib.crc32(line, computed)
            yield line
    if computed != crc:
        raise PlumblineError(
            f"{path}: its CRC-32 is {computed:08x}, and was {crc:08x} when it was written: the disk corrupted it; "
            f"delete {path.parent.parent} to start again"
        )


def _read_keyed(path: Path) -> Iterator[tuple[bytes, memoryview]]:
    with open(path, "rb") as file:
        for line in read_lines(file):
            yield _key_of(json.loads(line)["id"]).hex().encode(), memoryview(line)


def _describe_twice(line: memoryview) -> PlumblineError:
    return PlumblineError(f"two documents have the id {json.loads(bytes(line))['id']!r}: ids must differ")
