"""Writes and reads `ro-crate-metadata.json`, the list of an archive's files with their sizes and checksums.

It has as much of RO-Crate 1.2 as every crate must have, so that tools for crates read it. Its date is that of commit or
runs, not of a clock, so that the same state gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from plumbline.core.errors import PlumblineError

NAME = "ro-crate-metadata.json"
CONTEXT = "https://w3id.org/ro/crate/1.2/context"
CONFORMS_TO = "https://w3id.org/ro/crate/1.2"
LICENCE = "https://spdx.org/licenses/Apache-2.0"

#: Digits of a size in bytes: a petabyte.
LONGEST_SIZE = 16


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file of an archive: its name within the crate, its size in bytes, and its SHA-256 in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CrateMetadata:
    """The content of a crate in addition to the list of its files. `date`: an ISO 8601 date or time."""

    name: str
    description: str
    date: str


def build_crate(files: Iterable[ArchivedFile], crate: CrateMetadata) -> dict[str, Any]:
    """Build the crate's content (JSON-LD) for files of these names, sizes and checksums."""
    entities = [
        {"@id": quote(file.name), "@type": "File", "contentSize": str(file.size), "sha256": file.sha256}
        for file in files
    ]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": crate.name,
        "description": crate.description,
        "datePublished": crate.date,
        "license": {"@id": LICENCE},
        "hasPart": [{"@id": entity["@id"]} for entity in entities],
    }
    descriptor = {"@id": NAME, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": CONFORMS_TO}}
    return {"@context": CONTEXT, "@graph": [descriptor, root, *entities]}


def to_json(document: Mapping[str, Any]) -> str:
    """Write the crate's content as JSON text."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_crate(document: Any, where: str) -> dict[str, ArchivedFile]:
    """Read the files of a crate; what else it describes, as those of early bundles do, is left alone.

    Returns:
        Name -> the file's entry.

    Raises:
        PlumblineError: naming the entity and what it lacks.
    """

    def require(holds: bool, problem: str) -> None:
        if not holds:
            raise PlumblineError(f"{where}: {NAME}: {problem}; it is not a Plumbline bundle")

    graph = document.get("@graph") if isinstance(document, dict) else None
    require(isinstance(graph, list) and all(isinstance(entity, dict) for entity in graph), "@graph lists no entities")
    entries: dict[str, ArchivedFile] = {}
    for entity in graph or ():
        identity, types = entity.get("@id"), entity.get("@type")
        require(isinstance(identity, str) and bool(identity), "an entity has no @id")
        require(bool(types), "an entity has no @type")
        if "File" not in (types if isinstance(types, list) else [types]):
            continue
        name, size, sha256 = unquote(identity), entity.get("contentSize"), entity.get("sha256")
        sized = isinstance(size, str) and size.isdecimal() and len(size) <= LONGEST_SIZE
        require(sized and isinstance(sha256, str), f"{identity} has no size and sha256")
        require(name not in entries, f"two entities have the same @id {identity}")
        entries[name] = ArchivedFile(name, int(size), sha256)
    return entries
