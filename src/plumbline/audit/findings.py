"""Reads findings: rows of the audit that do not hold for one common reason, as `findings.yaml` tells them.

The verdicts are computed; a finding can say why, and can change none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.specs.yaml_files import read_checked

#: What a finding bears on, the most consequential first.
BEARINGS = {
    "conclusion": "a stated result does not follow from the paper's own numbers",
    "setup": "what was run, its size or its time is stated inconsistently",
    "detail": "one number is off, and nothing else depends on it",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """An entry of `findings.yaml`: the rows that it explains, what they bear on, and why they do not hold."""

    id: str
    bears_on: str
    text: str
    rows: tuple[str, ...]


def read_findings(path: Path) -> list[Finding]:
    """Read the findings of a paper, the most consequential first; empty where there is no file.

    Raises:
        PlumblineError: the file does not match its schema, or a name or a row stands twice.
    """
    if not path.is_file():
        return []
    content = read_checked(path, "findings")
    found = [Finding(**{**entry, "rows": tuple(entry["rows"])}) for entry in content["findings"]]
    for names in ([finding.id for finding in found], [row for finding in found for row in finding.rows]):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise PlumblineError(f"{path}: {twice!r} is there twice; keep it in one finding")
    return sorted(found, key=lambda finding: list(BEARINGS).index(finding.bears_on))
