"""Writes and checks `ro-crate-metadata.json`, which describes an archive and its files, by RO-Crate 1.2.

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
    """The content of a crate in addition to the list of its files.

    `results`: files that were made; all others are what they were made from. `date`: an ISO 8601 date or time.
    `commit`: empty if it is not known.
    """

    name: str
    description: str
    date: str
    commit: str
    version: str
    results: frozenset[str]
    packages: Mapping[str, str] = field(default_factory=dict)


def build_crate(files: Iterable[ArchivedFile], crate: CrateMetadata) -> dict[str, Any]:
    """Build the crate's content (JSON-LD) for files of these names, sizes and checksums."""
    files = list(files)
    outputs = [_refer_to(file.name) for file in files if file.name in crate.results]
    inputs = [_refer_to(file.name) for file in files if file.name not in crate.results]
    commit = f" at commit {crate.commit}" if crate.commit else ""
    packages = [_describe_package(name, version) for name, version in sorted(crate.packages.items())]
    software = [{"@id": package["@id"]} for package in packages]
    workflow = [_refer_to(file.name) for file in files if file.name == WORKFLOW]
    language = {"@id": _SNAKEMAKE, "@type": "ComputerLanguage", "name": "Snakemake", "url": _SNAKEMAKE}
    graph: list[dict[str, Any]] = [
        {"@id": NAME, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": CONFORMS_TO}},
        {
            "@id": "./",
            "@type": "Dataset",
            "name": crate.name,
            "description": crate.description,
            "datePublished": crate.date,
            "license": {"@id": LICENCE},
            "author": {"@id": _AUTHORS},
            "publisher": {"@id": _AUTHORS},
            "hasPart": _unwrap_single([_refer_to(file.name) for file in files]),
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
            "endTime": crate.date,
            "agent": {"@id": _AUTHORS},
            "instrument": _unwrap_single(workflow or software),
            "object": _unwrap_single(inputs),
            "result": _unwrap_single(outputs),
        },
        language | {"version": crate.packages.get("snakemake", "not known")},
        *packages,
        *(
            _describe_workflow(file, crate, software) if file.name == WORKFLOW else _describe_file(file)
            for file in files
        ),
    ]
    return {"@context": CONTEXT, "@graph": graph}


def to_json(document: Mapping[str, Any]) -> str:
    """Write the crate's content as JSON text."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_crate(document: Any, where: str) -> dict[str, ArchivedFile]:
    """Check a crate's content against what RO-Crate 1.2 requires of all crates, and what a bundle needs of its files.

    Returns:
        Name -> the file's entry.

    Raises:
        PlumblineError: naming the entity and what it lacks.
    """

    def require(holds: bool, problem: str) -> None:
        if not holds:
            raise PlumblineError(f"{where}: {NAME}: {problem}; it is not a Plumbline bundle")

    require(isinstance(document, dict) and document.get("@context") == CONTEXT, f"@context is not {CONTEXT}")
    graph = document.get("@graph")
    require(
        isinstance(graph, list) and all(isinstance(entity, dict) for entity in graph), "@graph is no list of entities"
    )
    ids = [entity.get("@id") for entity in graph]
    require(all(isinstance(entity, str) and entity for entity in ids), "an entity has no @id")
    require(len(set(ids)) == len(ids), "two entities have the same @id")
    by_id = dict(zip(ids, graph, strict=True))
    require(all(entity.get("@type") for entity in graph), "an entity has no @type")
    descriptor = by_id.get(NAME, {})
    require(descriptor.get("conformsTo") == {"@id": CONFORMS_TO}, f"its descriptor does not conform to {CONFORMS_TO}")
    require(descriptor.get("about") == {"@id": "./"}, "its descriptor is not about ./")
    root = by_id.get("./", {})
    require(root.get("@type") == "Dataset", "./ is no Dataset")
    for key in ("name", "description", "datePublished", "license"):
        require(bool(root.get(key)), f"./ has no {key}")
    for entity in graph:
        for reference in _find_references(entity):
            is_known = reference in by_id or reference.startswith("https://")
            require(is_known, f"{entity['@id']} refers to {reference}, which is not there")
    listed = root.get("hasPart", [])
    parts = [part.get("@id") for part in (listed if isinstance(listed, list) else [listed]) if isinstance(part, dict)]
    files = {
        entity["@id"]: entity for entity in graph if entity["@type"] == "File" or entity["@type"] == _WORKFLOW_TYPES
    }
    require(set(parts) == set(files) and len(parts) == len(files), "hasPart is not the list of its files")
    entries: dict[str, ArchivedFile] = {}
    for file_id, entity in files.items():
        size, sha256 = entity.get("contentSize"), entity.get("sha256")
        sized = isinstance(size, str) and size.isdecimal() and len(size) <= LONGEST_SIZE
        require(sized and isinstance(sha256, str), f"{file_id} has no size and sha256")
        entries[unquote(file_id)] = ArchivedFile(unquote(file_id), int(size), sha256)
    return entries


def _find_references(value: Any) -> Iterable[str]:
    """Find every ``{"@id": ...}`` within an entity."""
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict) and set(part) == {"@id"}:
            yield str(part["@id"])
        elif isinstance(part, dict | list):
            yield from _find_references(part)


def _refer_to(name: str) -> dict[str, str]:
    return {"@id": quote(name)}


def _describe_package(name: str, version: str) -> dict[str, Any]:
    url = f"https://pypi.org/project/{name}/"
    return {"@id": f"#{name}", "@type": "SoftwareApplication", "name": name, "url": url, "version": version}


def _describe_workflow(file: ArchivedFile, crate: CrateMetadata, software: list[dict[str, str]]) -> dict[str, Any]:
    return _describe_file(file) | {
        "@type": _WORKFLOW_TYPES,
        "name": "Plumbline",
        "version": crate.version + (f"+{crate.commit[:12]}" if crate.commit else ""),
        "programmingLanguage": {"@id": _SNAKEMAKE},
        "softwareRequirements": _unwrap_single(software),
    }


def _unwrap_single(values: list[dict[str, str]]) -> Any:
    """Return the only value of a list of one, else the list."""
    return values[0] if len(values) == 1 else values


def _describe_file(file: ArchivedFile) -> dict[str, Any]:
    ending = "." + file.name.rpartition(".")[2]
    return {
        "@id": quote(file.name),
        "@type": "File",
        "name": file.name,
        "contentSize": str(file.size),
        "encodingFormat": TYPES.get(ending, "application/octet-stream"),
        "sha256": file.sha256,
    }
