"""Verifies that large files are still the bytes that were written: a pack's shards (whose ids are checked as well)
before a node trains on them, the documents of a corpus before they are read.

A file is read and hashed, unless its inode, size, mtime and ctime are those that it had when it was last found right
on this machine. The record of that lies next to the manifest, in `.verified/<host name>.json`, and serves every pack
that shares the shards.

What this misses: bits that rot on the disk without the file being written (nothing of the inode changes), and rot of
bytes that are still in memory from being written. Delete the record to have everything read again.

Cost: SHA-256 runs at 1.6 GB/s on one core here (AMD EPYC with SHA instructions; measured with `hashlib.file_digest` on
1 GiB in memory). The demo's packs (2.1 MB) take 1.3 ms. The paper preset's large pack (58,637,625 sequences of 1,024
tokens of 2 bytes, 120 GB) takes 75 s of one core, its base pack (46.6 GB) 29 s, or as long as the disk needs to read
them; once a node.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from plumbline.core import locks
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_json, name_in_errors, parse_json
from plumbline.data.manifest import read_documents
from plumbline.data.progress import ProgressCounter

FOLDER = ".verified"
_PIECE = 1 << 20

#: What the file next to documents that has their checksums is called.
DOCUMENTS = "documents.json"

#: What is known of files, by their names in the manifest.
Record = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ChecksumList:
    """Files by their names with their SHA-256 (`expected`), as the file `manifest` in their folder lists them.

    `kind` (shard, file) and `rule`, which makes them, are for messages. Of files of token ids: the ids' `dtype`, and
    the entries of their `vocabulary`.
    """

    manifest: Path
    expected: dict[str, str]
    kind: str
    rule: str
    dtype: np.dtype | None = None
    vocabulary: int | None = None


def verify_documents(path: Path) -> str | None:
    """Verify a file of documents by the documents.json next to it, as `verify_files` does; returns its SHA-256.

    None for a file by itself, next to which there is none.

    Raises:
        PlumblineError: its bytes are not those that were written, or documents.json is damaged.
    """
    manifest = path.with_name(DOCUMENTS)
    if not manifest.is_file():
        return None
    try:
        sha256: str = read_documents(manifest)["splits"][path.stem]["sha256"]
    except (KeyError, TypeError) as error:
        raise PlumblineError(f"{manifest} has no sha256 of {path.name}: rerun the rule `documents`") from error
    verify_files(ChecksumList(manifest, {path.name: sha256}, "file", "documents"))
    return sha256


def verify_files(listed: ChecksumList) -> int:
    """Verify files, unless this machine has done so already; returns how many were read.

    Processes of one machine take turns, so that one of them reads and the others find its record. Where the folder
    cannot be written, a message says so, and the files are read at every start.

    Raises:
        PlumblineError: a file's bytes are not those that are listed.
    """
    record = listed.manifest.parent / FOLDER / f"{platform.node()}.json"
    with ExitStack() as stack:
        try:
            record.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(open(record.with_name(f"{record.name}.lock"), "ab"))
            locks.lock(file, wait=True)
        except OSError as error:
            _warn_unrecorded(listed, record, error)
            return _read_through(listed, {}, {})
        earlier = _read_record(record)
        verified: Record = {}
        try:
            return _read_through(listed, earlier, verified)
        finally:
            if verified:
                _write(listed, record, earlier | verified)


def _read_through(listed: ChecksumList, record: Record, verified: Record) -> int:
    """Hash the files that `record` does not vouch for and add them to `verified`; returns how many there were."""
    expected = listed.expected
    paths = {name: listed.manifest.parent / name for name in expected}
    unknown = [name for name in paths if record.get(name) != _list_facts(os.stat(paths[name]), expected[name], listed)]
    with ProgressCounter(f"verify {listed.manifest}", "files", len(unknown)) as progress:
        for name in unknown:
            with name_in_errors(paths[name]), open(paths[name], "rb") as file:
                # Before it is read: a change while it is read is then seen at the next start.
                facts = _list_facts(os.fstat(file.fileno()), expected[name], listed)
                sha256, largest = read(file, listed.dtype)
            if sha256 != expected[name]:
                raise PlumblineError(
                    f"{listed.kind} {paths[name]} of {listed.manifest} is damaged: sha256 {sha256} instead of "
                    f"{expected[name]}: delete it and rerun the rule `{listed.rule}` that makes {listed.manifest}"
                )
            if listed.vocabulary is not None and largest >= listed.vocabulary:
                raise PlumblineError(
                    f"shard {paths[name]} of {listed.manifest} holds the id {largest}, and the tokenizer that it names "
                    f"has {listed.vocabulary} entries: delete it and rerun the rule `pack` that makes {listed.manifest}"
                )
            verified[name] = facts
            progress.add()
    return len(unknown)


def read(file: IO[bytes], dtype: np.dtype | None) -> tuple[str, int]:
    """Read a file: its SHA-256, and the largest id in it if it holds ids of this type, else 0."""
    digest, largest = hashlib.sha256(), 0
    while piece := file.read(_PIECE):
        digest.update(piece)
        if dtype is None:
            continue
        # What was cut off while it was read has another checksum.
        whole = piece[: len(piece) // dtype.itemsize * dtype.itemsize]
        largest = max(largest, int(np.frombuffer(whole, dtype).max(initial=0)))
    return digest.hexdigest(), largest


def _list_facts(status: os.stat_result, sha256: str, listed: ChecksumList) -> dict[str, Any]:
    return {
        "inode": status.st_ino,
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "ctime_ns": status.st_ctime_ns,
        "sha256": sha256,
        "vocabulary": listed.vocabulary,
    }


def _read_record(record: Path) -> Record:
    """What was verified before. A damaged record vouches for nothing: everything is read."""
    try:
        content = parse_json(record.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(listed: ChecksumList, record: Path, content: Record) -> None:
    try:
        atomic_write_json(record, content)
    except OSError as error:
        _warn_unrecorded(listed, record, error)


def _warn_unrecorded(listed: ChecksumList, record: Path, error: OSError) -> None:
    print(
        f"{record}: {error.strerror}: cannot record that {listed.manifest} was verified, so the next start reads all "
        "its files again",
        file=sys.stderr,
    )
