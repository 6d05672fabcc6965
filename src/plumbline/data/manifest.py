"""Reads the JSON files that the data stages write, with an error that names the file, what it lacks and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from plumbline.core import fingerprint_file
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, parse_json, sha256_text

#: The folder of a corpus's packs, next to that of its tokenizer.
PACKS = "packs"

_Count = Annotated[int, msgspec.Meta(ge=1)]


class _Shard(msgspec.Struct):
    file: str
    sequences: _Count
    sha256: str


class _Pack(msgspec.Struct):
    """What is read of a pack's manifest, and of which types."""

    context: _Count
    dtype: Literal["<u2", "<u4"]
    sequences: _Count
    sequences_per_shard: _Count
    shards: list[_Shard]
    tokenizer_sha256: str
    vocabulary: _Count
    separator: int | None = None


def pack_folder(corpus: str, context: int | str, split: str) -> str:
    """Spell the path of the folder of packs below a corpus's: one side (`split`), cut at one context length."""
    return f"{corpus}/{PACKS}/context{context}/{split}"


def read_documents(path: Path) -> dict[str, Any]:
    """Read documents.json, which describes the documents of a corpus.

    Raises:
        PlumblineError: the file is missing, is no such file, or contains something else than was written.
    """
    facts = _read(path, ("corpus", "source", "collections", "split_rule", "piece_bytes", "splits"), "documents")
    fingerprint_file.require_as_written(path, facts, "rerun the rule `documents`")
    return facts


def read_pack(path: Path) -> dict[str, Any]:
    """Read the manifest of a pack.

    Raises:
        PlumblineError: the file is missing, is no manifest, or says something else than was written; its shards are not
            cut where it says.
    """
    manifest = _read(path, tuple(field.name for field in msgspec.structs.fields(_Pack) if field.required), "pack")
    fingerprint_file.require_as_written(path, manifest, "rerun the rule `pack`")
    try:
        pack = msgspec.convert(manifest, _Pack)
    except msgspec.ValidationError as error:
        raise PlumblineError(f"{path} is not as the rule `pack` writes it ({error}): rerun that rule") from error
    each = pack.sequences_per_shard
    for number, shard in enumerate(pack.shards, 1):
        if shard.sequences > each or (shard.sequences < each and number < len(pack.shards)):
            raise PlumblineError(
                f"{path}: {shard.file} has {shard.sequences} sequences, and sequences_per_shard is {each}: "
                "sequences would be looked for in the wrong shards; rerun the rule `pack`"
            )
    return manifest


def fingerprint(manifest: dict[str, Any]) -> str:
    """SHA-256 of what a pack's sequences are made of: shards' checksums and lengths, number type, tokenizer."""
    shards = [[entry["sequences"], entry["sha256"]] for entry in manifest["shards"]]
    parts = {key: manifest[key] for key in ("sequences", "context", "dtype", "tokenizer_sha256")}
    return sha256_text(canonical_json(parts | {"shards": shards}))


def packs_folder(tokenizer: Path) -> Path:
    """Name the folder of the packs that were cut with a corpus's tokenizer.json."""
    return tokenizer.absolute().parent.parent / PACKS


def find_pack(folder: Path, expected: str | None) -> tuple[Path, dict[str, Any]] | None:
    """Find the manifest of the pack with a fingerprint among the packs of a corpus, shards or no shards.

    None if there is none; what is not a manifest is passed over.
    """
    for path in sorted(folder.glob("*/*/[!.]*.json")):
        try:
            manifest = read_pack(path)
            if fingerprint(manifest) == expected:
                return path, manifest
        except (PlumblineError, KeyError, TypeError):
            continue
    return None


def _read(path: Path, keys: tuple[str, ...], rule: str) -> dict[str, Any]:
    try:
        value = parse_json(path.read_text())
    except FileNotFoundError as error:
        raise PlumblineError(f"{path} is missing: rerun the rule `{rule}`") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PlumblineError(f"{path} is not JSON ({error}): rerun the rule `{rule}`") from error
    for key in keys:
        if not isinstance(value, dict) or key not in value:
            raise PlumblineError(f"{path}: key {key!r} is missing, so it is not a manifest: rerun the rule `{rule}`")
    return value
