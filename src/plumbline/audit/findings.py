"""Reads findings: rows of the audit that do not hold for one common reason, as `findings.yaml` tells them.

The verdicts are computed; a finding can say why, and can change none. A finding about words, where no number is
compared, has no rows: it names the places of the paper that do not agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.specs.yaml_files import read_checked

#: What a finding bears on, the most consequential first.
BEARINGS = {
    "conclusion": "a stated result does not follow from the paper's own numbers",
    "setup": "what was run, its size or its time is stated inconsistently",
    "detail": "one number is off, and nothing else depends on it",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A place of a paper, and the words there that a finding is about."""

    where: str
    says: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """An entry of `findings.yaml`: the rows that it explains, what they bear on, and why they do not hold.

    One about words has a `kind` and `places` instead of rows.
    """

    id: str
    bears_on: str
    text: str
    rows: tuple[str, ...] = ()
    kind: str = ""
    places: tuple[Place, ...] = ()


def read_findings(path: Path) -> list[Finding]:
    """Read the findings of a paper, the most consequential first; empty where there is no file.

    Raises:
        PlumblineError: the file does not match its schema, or a name or a row stands twice.
    """
    if not path.is_file():
        return []
    content = read_checked(path, "findings")
    found = [_finding(entry) for entry in content["findings"]]
    for names in ([finding.id for finding in found], [row for finding in found for row in finding.rows]):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise PlumblineError(f"{path}: {twice!r} is there twice; keep it in one finding")
    return sorted(found, key=lambda finding: list(BEARINGS).index(finding.bears_on))


def _finding(entry: dict[str, Any]) -> Finding:
    told = {name: entry[name] for name in ("id", "bears_on", "text")}
    words = entry.get("wording", {})
    places = tuple(Place(**place) for place in words.get("places", ()))
    return Finding(**told, rows=tuple(entry.get("rows", ())), kind=words.get("kind", ""), places=places)
