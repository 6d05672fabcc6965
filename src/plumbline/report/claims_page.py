"""Builds the report's page of the claims of all papers with their verdicts, and the table of one study's claims."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

from plumbline.core import fingerprint_file
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import (
    NOT_THESE_TEXTS,
    NOT_THIS_SIZE,
    ColumnHead,
    HtmlCell,
    PageTable,
    RunLinks,
    text,
)
from plumbline.report.results_on_disk import ResultsOnDisk
from plumbline.results.claims import replication_rates
from plumbline.specs import study_folders
from plumbline.specs.study_config import Study

#: What a page shows of a claim: column of the csv -> head.
SHOWN = {
    "id": ColumnHead(text="claim"),
    "verdict": ColumnHead(text="verdict"),
    "text": ColumnHead(text="text", wide=True),
    "published": ColumnHead(text="values", kind="published", printed=True, wide=True),
    "reproduced": ColumnHead(text="values", kind="reproduced", wide=True),
    "why": ColumnHead(text="why", wide=True),
    "nearness": ColumnHead(text="how near", wide=True, short=False),
}
#: Verdicts that say what came out, in the order of a count; what was not tested or judged follows.
SAYING = ("reproduced", "partly", "not reproduced", "diverged")
#: How often a claim would be reproduced, where that was drawn.
RATES = {
    name: ColumnHead(text=head, kind=kind, numeric=True, short=False)
    for name, head, kind in (
        ("reproduced_if_paper_right", "reproduced", "if the paper is right"),
        ("partly_if_paper_right", "partly", "if the paper is right"),
        ("reproduced_if_nothing_differs", "reproduced", "if nothing differs"),
    )
}


def page(found: ResultsOnDisk) -> ReportPage:
    """Build the page of all claims that have been judged, with a table for each study."""
    sources = RunLinks(found=found, root="")
    own = [study for study in found.studies.values() if study.name in found.project.studies]
    studies = [study for study in own if found.project.targets.has_claims(study.name)]
    made = {study.name: grid(found, study, sources) for study in studies}
    missing = [_path(found, study) for study in studies if made[study.name] is None]
    content = {
        "grids": [one for one in made.values() if one],
        "counts": [(study, counts(found, study)) for study in studies if made[study.name]],
        "rates": [(study, in_words(line)) for study in studies if made[study.name] for line in rates(found, study)],
        "missing": missing,
        "damaged": [path for path in missing if path.exists()],
        "command": found.command(*missing),
        "sources": sources,
    }
    files = {path: copied for study in studies for path, copied in along(found, study).items()}
    contents = [(f"claims-{study.name}", study.name) for study in studies if made[study.name]]
    contents += [("replication", "What a perfect replication would get")] if content["rates"] else []
    return ReportPage(
        path="claims.html",
        title="Claims",
        template="claims.html.j2",
        content=content,
        nav="Claims",
        files=files,
        contents=contents,
    )


def grid(found: ResultsOnDisk, study: Study, sources: RunLinks, *, named: bool = True) -> PageTable | None:
    """Build the table of a study's claims, each verdict linked to the runs that it rests on.

    None where no claims were judged. `named`: whether the title names the study.
    """
    rows = read(found, study)
    if not rows:
        return None
    title = (
        f"Claims of {study.name}, {study.paper or study.definition['title']}"
        if named
        else "What the paper claims, and what was found."
    )
    files = {path.suffix[1:]: f"{sources.root}{copied}" for path, copied in along(found, study).items()}
    rated = RATES if any(row.get(next(iter(RATES))) for row in rows) else {}
    # Claims of an earlier version have fewer columns.
    shown = {name: head for name, head in (SHOWN | rated).items() if name in rows[0]}
    return PageTable(
        id=f"claims-{study.name}",
        title=title,
        heads=list(shown.values()),
        rows=[[_cell(row, name, sources) for name in shown] for row in rows],
        files=files,
    )


def along(found: ResultsOnDisk, study: Study) -> dict[Path, str]:
    """List the files of a study's claims that a page offers for download: source -> where it lies in the report."""
    path = _path(found, study)
    there = [one for one in (path, path.with_suffix(".md")) if one.exists()]
    return {one: f"files/{study.name}/{one.name}" for one in there}


def read(found: ResultsOnDisk, study: Study) -> list[dict[str, str]]:
    """Read the rows of a study's claims; none where they were not judged, or the file is not the one that was made."""
    path = _path(found, study)
    if study.name not in found.project.studies or not found.project.targets.has_claims(study.name):
        return []
    if not path.exists():
        return []
    if not fingerprint_file.is_unchanged(path):
        return []
    with open(path, encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    # A file that was cut short has rows without all of their cells: nothing is shown of it, and the page says so.
    return rows if all(None not in row.values() and {"verdict", "runs"} <= row.keys() for row in rows) else []


def counts(found: ResultsOnDisk, study: Study) -> list[tuple[str, int]]:
    """Count a study's verdicts, those that say something first; none where it has no claims or they were not judged."""
    said = Counter(in_words(row["verdict"]) for row in read(found, study))
    first = [verdict for verdict in SAYING if verdict in said]
    return [(verdict, said[verdict]) for verdict in dict.fromkeys([*first, *sorted(said)])]


def in_words(said: str) -> str:
    """Write the verdict of a claim that was not judged as people read it, in a text of verdicts.

    The csv names the preset (`not judged (demo size)`), which every page has at its top.
    """
    return re.sub(r"not judged \(\w+ size\)", NOT_THIS_SIZE, said).replace("not judged (other texts)", NOT_THESE_TEXTS)


def rates(found: ResultsOnDisk, study: Study) -> list[str]:
    """Say what a perfect replication would get of a study's claims, and what was drawn; nothing where none was."""
    verdicts = {row["id"]: row["verdict"] for row in read(found, study)}
    return replication_rates.read(study_folders.folder(study.code, found.project.root)).summary(verdicts)


def _path(found: ResultsOnDisk, study: Study) -> Path:
    return Path(found.project.paths.results) / study.name / "claims.csv"


def _cell(row: dict[str, str], name: str, sources: RunLinks) -> HtmlCell:
    keys = row["runs"].split()
    if name == "verdict":
        return text(in_words(row[name]), href=sources.href(keys), title=sources.title(keys))
    if name == "id":
        return text(row[name].replace("_", " "), title=f"{row['kind']}; {row['source']}")
    return text(row[name])
