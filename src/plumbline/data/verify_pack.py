"""Verifies that a pack's shards are still the bytes that were packed, and ids of its tokenizer."""

from __future__ import annotations

from plumbline.data.loader import Pack
from plumbline.data.verify_files import ChecksumList, verify_files


def verify_once(pack: Pack) -> int:
    """Verify every shard of `pack`, unless this machine has done so already; returns how many shards were read.

    Raises:
        PlumblineError: a shard's bytes are not those that were packed, or it holds an id that the tokenizer lacks.
    """
    expected = {entry["file"]: entry["sha256"] for entry in pack.manifest["shards"]}
    return verify_files(ChecksumList(pack.path, expected, "shard", "pack", pack.dtype, pack.vocabulary))
