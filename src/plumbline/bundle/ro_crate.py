"""Writes and checks `ro-crate-metadata.json`: what an archive is and which files it has, by RO-Crate 1.2.

Its dates are those of commit and runs, not of a clock, so that the same state gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from plumbline.core.errors import PlumblineError

NAME = "ro-crate-metadata.json"
CONTEXT = "https://w3id.org/ro/crate/1.2/context"
CONFORMS_TO = "https://w3id.org/ro/crate/1.2"
LICENCE = "https://spdx.org/licenses/Apache-2.0"

#: Media types by ending.
TYPES = {
    **{".parquet": "application/vnd.apache.parquet", ".yaml": "application/yaml", ".jsonl": "application/jsonl"},
    **{".md": "text/markdown", ".tex": "application/x-tex", ".csv": "text/csv", ".json": "application/json"},
    **{".png": "image/png", ".svg": "image/svg+xml", ".lock": "text/plain"},
}

#: Digits of a size in bytes: a petabyte.
LONGEST_SIZE = 16

#: The workflow, which the archive has with its rules.
WORKFLOW = "Snakefile"
_WORKFLOW_TYPES = ["File", "SoftwareSourceCode", "ComputationalWorkflow"]

_AUTHORS, _ACTION, _SNAKEMAKE = "#authors", "#made", "https://snakemake.readthedocs.io"


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A file of an archive: its name within the crate, its size in bytes, and its SHA-256 in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CrateMetadata:
    """Everything that the crate says beside the list of its files.

    `results`: files that were made; all others are what they were made from. `date`: an ISO 8601 date or time.
    `commit`: empty where it is not known.
    """

    name: str
    description: str
    date: str
    commit: str
    version: str
    results: frozenset[str]
    packages: Mapping[str, str] = field(default_factory=dict)


def build(files: Iterable[ArchivedFile], said: CrateMetadata) -> dict[str, Any]:
    """Build the crate's content (JSON-LD) for files of these names, sizes and checksums."""
    files = list(files)
    made = [_at(file.name) for file in files if file.name in said.results]
    read = [_at(file.name) for file in files if file.name not in said.results]
    commit = f" at commit {said.commit}" if said.commit else ""
    packages = [_package(name, version) for name, version in sorted(said.packages.items())]
    software = [{"@id": package["@id"]} for package in packages]
    workflow = [_at(file.name) for file in files if file.name == WORKFLOW]
    language = {"@id": _SNAKEMAKE, "@type": "ComputerLanguage", "name": "Snakemake", "url": _SNAKEMAKE}
    graph: list[dict[str, Any]] = [
        {"@id": NAME, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": CONFORMS_TO}},
        {
            "@id": "./",
            "@type": "Dataset",
            "name": said.name,
            "description": said.description,
            "datePublished": said.date,
            "license": {"@id": LICENCE},
            "author": {"@id": _AUTHORS},
            "publisher": {"@id": _AUTHORS},
            "hasPart": _one_or_all([_at(file.name) for file in files]),
            "mentions": {"@id": _ACTION},
        },
        {
            "@id": LICENCE,
            "@type": "CreativeWork",
            "name": "Apache License 2.0",
            "description": "Of Plumbline, its configuration and what it measured; printed numbers are the papers'.",
        },
        {"@id": _AUTHORS, "@type": "Organization", "name": "The Plumbline authors"},
        {
            "@id": _ACTION,
            "@type": "CreateAction",
            "name": "Tables, figures, claims, interpretations and audit from finished runs",
            "description": f"snakemake bundle{commit}",
            "endTime": said.date,
            "agent": {"@id": _AUTHORS},
            "instrument": _one_or_all(workflow or software),
            "object": _one_or_all(read),
            "result": _one_or_all(made),
        },
        language | {"version": said.packages.get("snakemake", "not known")},
        *packages,
        *(_workflow(file, said, software) if file.name == WORKFLOW else _file(file) for file in files),
    ]
    return {"@context": CONTEXT, "@graph": graph}


def text(document: Mapping[str, Any]) -> str:
    """Write the crate's content as JSON text."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def check(document: Any, where: str) -> dict[str, ArchivedFile]:
    """Check a crate's content against what RO-Crate 1.2 asks of all crates, and what a bundle needs of its files.

    Returns:
        Name -> the file's entry.

    Raises:
        PlumblineError: naming the entity and what it lacks.
    """

    def require(holds: bool, what: str) -> None:
        if not holds:
            raise PlumblineError(f"{where}: {NAME}: {what}; it is not a Plumbline bundle")

    require(isinstance(document, dict) and document.get("@context") == CONTEXT, f"@context is not {CONTEXT}")
    graph = document.get("@graph")
    require(isinstance(graph, list) and all(isinstance(one, dict) for one in graph), "@graph is no list of entities")
    ids = [one.get("@id") for one in graph]
    require(all(isinstance(one, str) and one for one in ids), "an entity has no @id")
    require(len(set(ids)) == len(ids), "two entities have the same @id")
    by_id = dict(zip(ids, graph, strict=True))
    require(all(one.get("@type") for one in graph), "an entity has no @type")
    descriptor = by_id.get(NAME, {})
    require(descriptor.get("conformsTo") == {"@id": CONFORMS_TO}, f"its descriptor does not conform to {CONFORMS_TO}")
    require(descriptor.get("about") == {"@id": "./"}, "its descriptor is not about ./")
    root = by_id.get("./", {})
    require(root.get("@type") == "Dataset", "./ is no Dataset")
    for key in ("name", "description", "datePublished", "license"):
        require(bool(root.get(key)), f"./ has no {key}")
    for one in graph:
        for named in _references(one):
            known = named in by_id or named.startswith("https://")
            require(known, f"{one['@id']} refers to {named}, which is not there")
    listed = root.get("hasPart", [])
    parts = [part.get("@id") for part in (listed if isinstance(listed, list) else [listed]) if isinstance(part, dict)]
    files = {one["@id"]: one for one in graph if one["@type"] == "File" or one["@type"] == _WORKFLOW_TYPES}
    require(set(parts) == set(files) and len(parts) == len(files), "hasPart is not the list of its files")
    found: dict[str, ArchivedFile] = {}
    for at, one in files.items():
        size, sha256 = one.get("contentSize"), one.get("sha256")
        sized = isinstance(size, str) and size.isdecimal() and len(size) <= LONGEST_SIZE
        require(sized and isinstance(sha256, str), f"{at} has no size and sha256")
        found[unquote(at)] = ArchivedFile(unquote(at), int(size), sha256)
    return found


def _references(value: Any) -> Iterable[str]:
    """Every ``{"@id": ...}`` within an entity."""
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict) and set(one) == {"@id"}:
            yield str(one["@id"])
        elif isinstance(one, dict | list):
            yield from _references(one)


def _at(name: str) -> dict[str, str]:
    return {"@id": quote(name)}


def _package(name: str, version: str) -> dict[str, Any]:
    url = f"https://pypi.org/project/{name}/"
    return {"@id": f"#{name}", "@type": "SoftwareApplication", "name": name, "url": url, "version": version}


def _workflow(file: ArchivedFile, said: CrateMetadata, software: list[dict[str, str]]) -> dict[str, Any]:
    return _file(file) | {
        "@type": _WORKFLOW_TYPES,
        "name": "Plumbline",
        "version": said.version + (f"+{said.commit[:12]}" if said.commit else ""),
        "programmingLanguage": {"@id": _SNAKEMAKE},
        "softwareRequirements": _one_or_all(software),
    }


def _one_or_all(values: list[dict[str, str]]) -> Any:
    """A list of one is written as the one."""
    return values[0] if len(values) == 1 else values


def _file(file: ArchivedFile) -> dict[str, Any]:
    ending = "." + file.name.rpartition(".")[2]
    return {
        "@id": quote(file.name),
        "@type": "File",
        "name": file.name,
        "contentSize": str(file.size),
        "encodingFormat": TYPES.get(ending, "application/octet-stream"),
        "sha256": file.sha256,
    }
