"""Reads what the Python processes of a run said of themselves (`child/sitecustomize.py`), put together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.core.files import read_json

#: What reports list.
LISTED = ("borrowed", "seeded", "left_alone", "opened", "written")


def read(folder: Path) -> dict[str, Any]:
    """Read the reports in a folder; the names of `LISTED` are always there."""
    versions: dict[str, str] = {}
    shifted: dict[str, int] = {}
    listed = {name: set[str]() for name in LISTED}
    memory: list[float] = []
    for path in sorted(folder.glob("*.json")):
        said = read_json(path)
        if not isinstance(said, Mapping):
            continue
        versions.update(said.get("versions", {}))
        for name, count in said.get("shifted", {}).items():
            shifted[name] = shifted.get(name, 0) + count
        for name, found in listed.items():
            found.update(said.get(name, ()))
        memory += [said["memory_gb"]] if "memory_gb" in said else []
    return {
        "versions": versions,
        "shifted": shifted,
        **{name: sorted(found) for name, found in listed.items()},
        "memory_gb": max(memory, default=None),
    }
