"""Reads the JSON files that the data stages write, with an error that names the file, what it lacks and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, parse_json, sha256_text

#: The folder of a corpus's packs, beside that of its tokenizer.
PACKS = "packs"

_PACK_KEYS = ("context", "dtype", "sequences", "sequences_per_shard", "shards", "tokenizer_sha256", "vocabulary")


def read_documents(path: Path) -> dict[str, Any]:
    """Read documents.json, which describes the documents of a corpus.

    Raises:
        PlumblineError: the file is missing, or is no such file.
    """
    return _read(path, ("corpus", "source", "collections", "split_rule", "piece_bytes", "splits"), "documents")


def read_pack(path: Path) -> dict[str, Any]:
    """Read the manifest of a pack.

    Raises:
        PlumblineError: the file is missing, or is no manifest.
    """
    return _read(path, _PACK_KEYS, "pack")


def fingerprint(manifest: dict[str, Any]) -> str:
    """SHA-256 of what a pack's sequences are made of: shards' checksums and lengths, number type, tokenizer."""
    shards = [[entry["sequences"], entry["sha256"]] for entry in manifest["shards"]]
    parts = {key: manifest[key] for key in ("sequences", "context", "dtype", "tokenizer_sha256")}
    return sha256_text(canonical_json(parts | {"shards": shards}))


def beside_tokenizer(tokenizer: Path) -> Path:
    """Name the folder of the packs that were cut with a corpus's tokenizer.json."""
    return tokenizer.absolute().parent.parent / PACKS


def of_fingerprint(folder: Path, wanted: str | None) -> tuple[Path, dict[str, Any]] | None:
    """Find the manifest of the pack with a fingerprint among the packs of a corpus, shards or no shards.

    None where there is none; what is no manifest is passed over.
    """
    for path in sorted(folder.glob("*/*/[!.]*.json")):
        try:
            manifest = read_pack(path)
            if fingerprint(manifest) == wanted:
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
