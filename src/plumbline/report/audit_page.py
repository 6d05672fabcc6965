"""Builds the report's page of the audit: its findings as in the Markdown of the results, and every row in a table."""

from __future__ import annotations

import csv
from pathlib import Path

from plumbline.core import fingerprint_file
from plumbline.report import markdown_page
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, number, text
from plumbline.report.results_on_disk import ResultsOnDisk

#: What is shown of a row: column of the csv -> head. The rest is in the csv, which lies beside.
SHOWN = {
    "id": ColumnHead(text="row"),
    "study": ColumnHead(text="study"),
    "verdict": ColumnHead(text="verdict"),
    "quantity": ColumnHead(text="quantity", wide=True),
    "source": ColumnHead(text="where"),
    "printed": ColumnHead(text="printed", numeric=True, printed=True),
    "recomputed": ColumnHead(text="recomputed", numeric=True),
    "finding": ColumnHead(text="finding"),
}


def page(found: ResultsOnDisk) -> ReportPage:
    """Build the page of the audit; without one, or where it is not the file that was made, the command is shown."""
    path = Path(found.project.paths.results) / "audit.csv"
    words = path.with_suffix(".md")
    files, grid, body, headings = {}, None, markdown_page.html(""), []
    if path.exists() and words.exists() and fingerprint_file.is_unchanged(path):
        markdown = words.read_text(encoding="utf-8")
        body, headings = markdown_page.html(markdown), [*markdown_page.headings(markdown), ("rows", "Every row")]
        files = {path: "files/audit.csv", words: "files/audit.md"}
        with open(path, encoding="utf-8", newline="") as handle:
            rows = [[_cell(row, name) for name in SHOWN] for row in csv.DictReader(handle)]
        along = {"csv": "files/audit.csv", "md": "files/audit.md"}
        title = "Every row: a printed number next to the value that follows from others."
        grid = PageTable(id="rows", title=title, heads=list(SHOWN.values()), rows=rows, files=along)
    content = {"grid": grid, "body": body, "command": found.command(path)}
    return ReportPage(
        path="audit.html",
        title="Audit",
        template="audit.html.j2",
        content=content,
        nav="Audit",
        files=files,
        contents=headings,
    )


def _cell(row: dict[str, str], name: str) -> HtmlCell:
    if not SHOWN[name].numeric:
        return text(row[name])
    try:
        return number(float(row[name]), row[name])
    except ValueError:
        return text(row[name])
