"""Builds the report's page of the claims of all papers with their verdicts, and the table of one study's claims."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from plumbline.core import fingerprint_file
from plumbline.core.csv_text import read_rows
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import (
    NOT_THESE_TEXTS,
    NOT_THIS_SIZE,
    ColumnHead,
    HtmlCell,
    PageTable,
    RunLinks,
    text_cell,
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
#: Verdicts with a result, in the order in which they are counted; what was not tested or judged follows.
SAYING = ("reproduced", "partly", "not reproduced", "diverged")
#: How often a claim would be reproduced, where that was drawn.
RATES = {
    name: ColumnHead(text=head, kind=kind, numeric=True, short=False)
    for name, head, kind in (
        ("reproduced_if_paper_right", "reproduced", "if the paper is right"),
        ("partly_if_paper_right", "partly", "if the paper is right"),
        ("reproduced_if_nothing_differs", "reproduced", "if nothing differs"),
        ("partly_if_nothing_differs", "partly", "if nothing differs"),
    )
}


def build_page(results: ResultsOnDisk) -> ReportPage:
    """Build the page of all claims that have been judged, with a table for each study."""
    sources = RunLinks(results=results, root="")
    own_studies = [study for study in results.studies.values() if study.name in results.project.studies]
    studies = [study for study in own_studies if results.project.targets.has_claims(study.name)]
    tables = {study.name: build_table(results, study, sources) for study in studies}
    missing_paths = [_claims_path(results, study) for study in studies if tables[study.name] is None]
    content = {
        "grids": [table for table in tables.values() if table],
        "counts": [(study, count_verdicts(results, study)) for study in studies if tables[study.name]],
        "rates": [
            (study, format_verdict(line))
            for study in studies
            if tables[study.name]
            for line in describe_rates(results, study)
        ],
        "missing": missing_paths,
        "damaged": [path for path in missing_paths if path.exists()],
        "command": results.command(*missing_paths),
        "sources": sources,
    }
    files = {path: copied for study in studies for path, copied in list_downloads(results, study).items()}
    contents = [(f"claims-{study.name}", study.name) for study in studies if tables[study.name]]
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


def build_table(
    results: ResultsOnDisk, study: Study, sources: RunLinks, *, names_study: bool = True
) -> PageTable | None:
    """Build the table of a study's claims, each verdict linked to the runs that it rests on.

    None if no claims were judged. `names_study`: whether the title names the study.
    """
    rows = read_claims(results, study)
    if not rows:
        return None
    title = (
        f"Claims of {study.name}, {study.paper or study.definition['title']}"
        if names_study
        else "What the paper claims, and what was found."
    )
    files = {path.suffix[1:]: f"{sources.root}{copied}" for path, copied in list_downloads(results, study).items()}
    rate_heads = RATES if any(row.get(next(iter(RATES))) for row in rows) else {}
    # Claims of an earlier version have fewer columns.
    heads = {name: head for name, head in (SHOWN | rate_heads).items() if name in rows[0]}
    return PageTable(
        id=f"claims-{study.name}",
        title=title,
        heads=list(heads.values()),
        rows=[[_make_cell(row, name, sources) for name in heads] for row in rows],
        files=files,
    )


def list_downloads(results: ResultsOnDisk, study: Study) -> dict[Path, str]:
    """List the files of a study's claims that a page offers for download: source -> where it lies in the report."""
    path = _claims_path(results, study)
    existing_files = [file for file in (path, path.with_suffix(".md")) if file.exists()]
    return {file: f"files/{study.name}/{file.name}" for file in existing_files}


def read_claims(results: ResultsOnDisk, study: Study) -> list[dict[str, str]]:
    """Read the rows of a study's claims; none if they were not judged, or the file is not the one that was made."""
    path = _claims_path(results, study)
    if study.name not in results.project.studies or not results.project.targets.has_claims(study.name):
        return []
    if not path.exists():
        return []
    if not fingerprint_file.is_unchanged(path):
        return []
    with open(path, encoding="utf-8", newline="") as handle:
        rows = list(read_rows(handle))
    # A file that was cut short has rows without all of their cells: nothing is shown of it, and the page states that.
    return rows if all(None not in row.values() and {"verdict", "runs"} <= row.keys() for row in rows) else []


def count_verdicts(results: ResultsOnDisk, study: Study) -> list[tuple[str, int]]:
    """Count a study's verdicts, those with a result first; none if it has no claims or they were not judged."""
    counter = Counter(format_verdict(row["verdict"]) for row in read_claims(results, study))
    first = [verdict for verdict in SAYING if verdict in counter]
    return [(verdict, counter[verdict]) for verdict in dict.fromkeys([*first, *sorted(counter)])]


def format_verdict(verdict: str) -> str:
    """Write the verdict of a claim that was not judged as people read it, in a text of verdicts.

    The csv names the preset (`not judged (demo size)`), which every page has at its top.
    """
    return re.sub(r"not judged \(\w+ size\)", NOT_THIS_SIZE, verdict).replace(
        "not judged (other texts)", NOT_THESE_TEXTS
    )


def describe_rates(results: ResultsOnDisk, study: Study) -> list[str]:
    """Describe what a perfect replication would get of a study's claims, and what was drawn; nothing if none was."""
    verdicts = {row["id"]: row["verdict"] for row in read_claims(results, study)}
    return replication_rates.read(study_folders.folder(study.code, results.project.root)).summary(verdicts)


def _claims_path(results: ResultsOnDisk, study: Study) -> Path:
    return Path(results.project.paths.results) / study.name / "claims.csv"


def _make_cell(row: dict[str, str], name: str, sources: RunLinks) -> HtmlCell:
    keys = row["runs"].split()
    if name == "verdict":
        return text_cell(format_verdict(row[name]), href=sources.href(keys), title=sources.title(keys))
    if name == "id":
        return text_cell(row[name].replace("_", " "), title=f"{row['kind']}; {row['source']}")
    return text_cell(row[name])
