"""Which documents are held out, and in which order documents stand: both are functions of ids alone.

Held out: a document whose *group* (what its source says belongs together: the addresses of a year; else the id itself)
hashes below the given share. The group decides before a document is cut into pieces, so no piece of a held-out document
is trained on, and documents known to be near-identical (two messages of one year) fall on the same side. A corpus may
hold out by id instead, where groups are too few or too large to hold out whole.

Order: by the hash of the id, an unbiased shuffle that does not depend on how the source was listed. It is done outside
memory: documents go to files by the first byte of the hash, and each file is sorted on its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

from plumbline.cli import PlumblineError

#: What is held out together: a whole group, or each document by itself.
By = Literal["group", "id"]

_BUCKETS = 128


def held_out(unit: str, percent: float) -> bool:
    """Whether what bears this name (a group or an id) is validation data, for a share of `percent` (0-100) of all."""
    digest = hashlib.sha256(f"held out\n{unit}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < percent / 100 * 2**64


def rule(percent: float, by: By) -> str:
    """The split rule in words, for manifests."""
    group = "; group: what its source says belongs together, else the id" if by == "group" else ""
    return (
        f"a document is held out if the first 8 bytes of sha256('held out\\n' + {by}), as a share of 2^64, are "
        f"below {percent / 100:g}{group}; decided before documents are cut into pieces; order: by "
        "sha256('order\\n' + id)"
    )


class Shuffle:
    """Takes documents in any order and yields their lines in the order of the hash of their ids.

    Memory: one of 128 buckets at a time, so a corpus of 250 GB needs about 2 GB. Use as a context manager;
    `folder` holds the buckets meanwhile.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[IO[bytes] | None] = [None] * _BUCKETS

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        for file in self._files:
            if file is not None:
                file.close()

    def add(self, identity: str, source: str, text: str, tokens: dict[str, Any] | None = None) -> None:
        """Take one document, with where its ids lie if it has some."""
        key = hashlib.sha256(f"order\n{identity}".encode()).digest()
        bucket = key[0] * _BUCKETS // 256
        file = self._files[bucket]
        if file is None:
            file = self._files[bucket] = open(self._folder / f"{bucket:03d}", "wb")  # noqa: SIM115
        row = {"id": identity, "source": source, "text": text} | ({"tokens": tokens} if tokens else {})
        line = json.dumps(row, ensure_ascii=False)
        file.write(key.hex().encode() + line.encode() + b"\n")

    def lines(self) -> Iterator[bytes]:
        """Every document as a JSON line (with its line end), shuffled.

        Raises:
            PlumblineError: two documents share an id.
        """
        self._close()
        for bucket, file in enumerate(self._files):
            if file is None:
                continue
            before = b""
            for line in sorted((self._folder / f"{bucket:03d}").read_bytes().splitlines(keepends=True)):
                if line[:64] == before:
                    raise PlumblineError(f"two documents have the id {json.loads(line[64:])['id']!r}: ids must differ")
                before = line[:64]
                yield line[64:]
