"""Writes the shuffled documents of one side, shard by shard; a killed process's shards are verified and kept.

A shard is a file of the shuffle, a 256th of the documents. The lines go to `<name>.part` in the folder that keeps what
was read; after a shard, and `SAVE_BYTES` at least, `<name>.written.json` states how far they go: the shard, bytes,
documents, and the SHA-256 of all bytes so far. The next process reads these bytes again, compares, and goes on after
that shard; where they are others, it begins with the first shard and reports it. The result is the same to the byte.

Shards are sorted by as many processes as there are, and written here, in order. With the lines come the hashes of their
texts, by which copies are counted; those of bytes that are read again are made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import IO, Any

from plumbline.core.files import atomic_write_json, fsync_directory, name_in_errors
from plumbline.core.formats import format_megabytes
from plumbline.data import read_cache
from plumbline.data.split import DocumentShuffle, LineBlock, hash_text, read_lines
from plumbline.data.workers import Workers


class _ShardWriter:
    """How far the lines of one side are written."""

    def __init__(self, folder: Path, name: str, hashes: IO[bytes]) -> None:
        """Find what is written, and verify it; the hashes of the texts in it go to `hashes`."""
        self.part, self.progress = folder / f"{name}.part", folder / f"{name}.written.json"
        self.shard, self.bytes, self.documents, self.digest = -1, 0, 0, hashlib.sha256()
        self._saved, self._hashes = 0, hashes
        try:
            record = json.loads(self.progress.read_text(encoding="utf-8"))
            digest, size = self._hash(int(record["bytes"]))
            if (size, digest.hexdigest()) != (record["bytes"], record["sha256"]):
                raise ValueError(f"the sha256 of its first {record['bytes']:,} bytes is not {record['sha256']}")
            self.shard, self.documents = int(record["shard"]), int(record["documents"])
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError) as error:
            hashes.seek(0)
            hashes.truncate()
            print(f"{self.part}: not what was written there ({error}); it is written again", file=sys.stderr)
            return
        self.bytes = self._saved = size
        self.digest = digest
        print(
            f"{self.part}: {format_megabytes(size)} ({self.documents:,} documents) were written before and have their "
            "sha256; writing continues from there",
            file=sys.stderr,
        )

    def _hash(self, size: int) -> tuple[Any, int]:
        """The SHA-256 of the lines in the first `size` bytes, or of fewer where there are no more, and their bytes."""
        digest, count = hashlib.sha256(), 0
        with open(self.part, "rb") as file:
            for line in read_lines(file):
                if count + len(line) > size:
                    break
                digest.update(line)
                self._hashes.write(hash_text(line))
                count += len(line)
        return digest, count

    def take(self, block: LineBlock, file: IO[bytes]) -> None:
        """Write some lines, and the hashes of their texts."""
        file.write(block.lines)
        self.digest.update(block.lines)
        self._hashes.write(block.hashes)
        self.bytes += len(block.lines)
        self.documents += block.documents
        if block.last:
            self.finish_shard(block.file, file)

    def finish_shard(self, shard: int, file: IO[bytes], *, now: bool = False) -> None:
        """Note that a shard is written, and make it survive a kill and a power cut, where there is enough of it."""
        self.shard = max(shard, self.shard)
        if now or self.bytes - self._saved >= read_cache.SAVE_BYTES:
            file.flush()
            os.fsync(file.fileno())
            facts = {"shard": self.shard, "bytes": self.bytes, "documents": self.documents}
            atomic_write_json(self.progress, facts | {"sha256": self.digest.hexdigest()})
            self._saved = self.bytes


def write(shuffle: DocumentShuffle, folder: Path, name: str, hashes: IO[bytes], workers: Workers) -> dict[str, Any]:
    """Write the lines of a shuffle below `folder`, from where an earlier process came to.

    Args:
        hashes: where the hashes of all texts go, in the order of the lines.
        workers: the processes that sort.

    Returns:
        The file's name, the number of its documents and its checksum; `move` puts it where it belongs.
    """
    state = _ShardWriter(folder, name, hashes)
    with name_in_errors(state.part), open(state.part, "r+b" if state.bytes else "wb") as file:
        file.truncate(state.bytes)
        file.seek(state.bytes)
        for block in workers.run(shuffle.files(after=state.shard)):
            state.take(block, file)
        state.finish_shard(255, file, now=True)
    return {"file": name, "documents": state.documents, "sha256": state.digest.hexdigest()}


def move(folder: Path, path: Path) -> None:
    """Put a file that `write` has finished in its place; nothing happens where it wrote none."""
    part = folder / f"{path.name}.part"
    if part.exists():
        os.replace(part, path)
        fsync_directory(path.parent)
    (folder / f"{path.name}.written.json").unlink(missing_ok=True)
