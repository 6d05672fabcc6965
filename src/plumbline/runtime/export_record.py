"""Reads what an exported folder says of itself, and compares its files with that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json, sha256_file

#: What an export says of itself, the checksums of its other files among it.
RECORD = "export.json"


def read(folder: Path) -> dict[str, Any]:
    """Read what an earlier export says of itself; empty where there is none."""
    try:
        found = parse_json((folder / RECORD).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("files"), dict) else {}


def require_unchanged(folder: Path) -> None:
    """Refuse an exported folder of which a file is no longer the one that was exported; other folders pass.

    Raises:
        PlumblineError: naming the file and both hashes.
    """
    for name, expected in read(folder).get("files", {}).items():
        path = folder / name
        found = sha256_file(path) if path.is_file() else "missing"
        if found != expected:
            raise PlumblineError(
                f"{path} is not what was exported: sha256 {found}, not {expected} as in {RECORD}; export the run again "
                f"(plumbline export), or, where the change is meant, remove {folder / RECORD}: the folder is then one "
                "like any other"
            )
