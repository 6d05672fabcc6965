"""Reads findings: rows of the audit that do not hold for one common reason, as `findings.yaml` states them.

The verdicts are computed; a finding can explain them, and change none. A finding about text, where no number is
compared, has no rows: it names the places of the paper that do not agree.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from plumbline.core.errors import PlumblineError
from plumbline.core.structs import Absent, ClosedStruct, Fault
from plumbline.specs.field_types import Text
from plumbline.specs.yaml_files import read_struct

#: What a finding bears on, the most consequential first.
BEARINGS = {
    "conclusion": "a stated result does not follow from the paper's own numbers",
    "setup": "what was run, its size or its time is stated inconsistently",
    "detail": "one number is off, and nothing else depends on it",
}


_Id = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9][a-z0-9_]*\Z",
        description="is no name: lower-case letters, digits and _, of which the first is no _",
    ),
]


class Place(ClosedStruct, frozen=True, kw_only=True):
    """A place of a paper, and the text there that a finding is about."""

    where: Text
    says: Annotated[str, Meta(min_length=1, max_length=120)]


class Wording(ClosedStruct, frozen=True, kw_only=True):
    """What a finding about words rests on, and the places that do not agree."""

    kind: Literal["two places", "reference", "definition", "outside source"]
    places: Annotated[tuple[Place, ...], Meta(min_length=1)]


class Reply(ClosedStruct, frozen=True, kw_only=True):
    """What somebody answers to a finding in their own words, an author of the paper first of all; it changes none."""

    by: Text
    date: datetime.date
    text: Text


class Finding(ClosedStruct, frozen=True, kw_only=True):
    """An entry of `findings.yaml`: the rows that it explains, what they bear on, and why they do not hold.

    One about words has a `wording` instead of rows. `replies` are shown below the finding, in their order.
    """

    id: _Id
    bears_on: Literal["conclusion", "setup", "detail"]
    text: Text
    rows: Annotated[tuple[_Id, ...], Meta(min_length=1)] = ()
    wording: Absent[Wording] = None
    replies: tuple[Reply, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.rows) == bool(self.wording):
            raise Fault("give either `rows` or a `wording`, one of the two")


class FindingsFile(ClosedStruct, frozen=True):
    """studies/<study>/findings.yaml, the findings of the audit."""

    findings: list[Finding]


def read_findings(path: Path) -> list[Finding]:
    """Read the findings of a paper, the most consequential first; empty if there is no file.

    Raises:
        PlumblineError: something in the file cannot be meant, or a name or a row stands twice.
    """
    if not path.is_file():
        return []
    findings: list[Finding] = read_struct(path, FindingsFile).findings
    for names in ([finding.id for finding in findings], [row for finding in findings for row in finding.rows]):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise PlumblineError(f"{path}: {twice!r} is there twice; keep it in one finding")
    return sorted(findings, key=lambda finding: list(BEARINGS).index(finding.bears_on))
