"""Writes the shuffled documents of one side, shard by shard; a killed process's shards are verified and kept.

A shard is a file of the shuffle, a 256th of the documents. The lines go to `<name>.part` in the folder that keeps what
was read; after a shard, and `SAVE_BYTES` at least, `<name>.written.json` states how far they go: the shard, bytes,
documents, and the SHA-256 of all bytes so far. The next process reads these bytes again, compares, and goes on after
that shard; where they are others, it begins with the first shard and reports it. The result is the same to the byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import IO, Any

from plumbline.core.files import atomic_write_json, fsync_directory, name_in_errors
from plumbline.data import read_cache
from plumbline.data.split import DocumentShuffle

_BLOCK = 1 << 20


class _ShardWriter:
    """How far the lines of one side are written."""

    def __init__(self, folder: Path, name: str) -> None:
        """Find what is written, and verify it."""
        self.part, self.progress = folder / f"{name}.part", folder / f"{name}.written.json"
        self.shard, self.bytes, self.documents, self.digest = -1, 0, 0, hashlib.sha256()
        self._saved = 0
        try:
            record = json.loads(self.progress.read_text(encoding="utf-8"))
            digest, size = self._hash(int(record["bytes"]))
            if (size, digest.hexdigest()) != (record["bytes"], record["sha256"]):
                raise ValueError(f"the sha256 of its first {record['bytes']:,} bytes is not {record['sha256']}")
            self.shard, self.documents = int(record["shard"]), int(record["documents"])
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError) as error:
            print(f"{self.part}: not what was written there ({error}); it is written again", file=sys.stderr)
            return
        self.bytes = self._saved = size
        self.digest = digest
        print(
            f"{self.part}: {size / 1e6:,.1f} MB ({self.documents:,} documents) were written before and have their "
            "sha256; writing continues from there",
            file=sys.stderr,
        )

    def _hash(self, size: int) -> tuple[Any, int]:
        """The SHA-256 of the first `size` bytes, or of fewer where there are no more, and their number."""
        digest, unread = hashlib.sha256(), size
        with open(self.part, "rb") as file:
            while unread and (block := file.read(min(unread, _BLOCK))):
                digest.update(block)
                unread -= len(block)
        return digest, size - unread

    def take(self, line: memoryview, file: IO[bytes]) -> None:
        """Write a line."""
        file.write(line)
        self.digest.update(line)
        self.bytes += len(line)
        self.documents += 1

    def finish_shard(self, shard: int, file: IO[bytes], *, now: bool = False) -> None:
        """Note that a shard is written, and make it survive a kill and a power cut, where there is enough of it."""
        self.shard = max(shard, self.shard)
        if now or self.bytes - self._saved >= read_cache.SAVE_BYTES:
            file.flush()
            os.fsync(file.fileno())
            facts = {"shard": self.shard, "bytes": self.bytes, "documents": self.documents}
            atomic_write_json(self.progress, facts | {"sha256": self.digest.hexdigest()})
            self._saved = self.bytes


def write(shuffle: DocumentShuffle, folder: Path, name: str) -> dict[str, Any]:
    """Write the lines of a shuffle below `folder`, from where an earlier process came to.

    Returns:
        The file's name, the number of its documents and its checksum; `move` puts it where it belongs.
    """
    state = _ShardWriter(folder, name)
    with name_in_errors(state.part), open(state.part, "r+b" if state.bytes else "wb") as file:
        file.truncate(state.bytes)
        file.seek(state.bytes)
        for line in shuffle.lines(after=state.shard, ended=lambda shard: state.finish_shard(shard, file)):
            state.take(line, file)
        state.finish_shard(255, file, now=True)
    return {"file": name, "documents": state.documents, "sha256": state.digest.hexdigest()}


def move(folder: Path, path: Path) -> None:
    """Put a file that `write` has finished in its place; nothing happens where it wrote none."""
    part = folder / f"{path.name}.part"
    if part.exists():
        os.replace(part, path)
        fsync_directory(path.parent)
    (folder / f"{path.name}.written.json").unlink(missing_ok=True)
