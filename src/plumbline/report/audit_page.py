"""Builds the report's page of the audit: its findings as in the Markdown of the results, and every row in a table."""

from __future__ import annotations

import re
from pathlib import Path

from plumbline.core import fingerprint_file
from plumbline.core.csv_text import read_rows
from plumbline.report import markdown_page
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, number_cell, text_cell
from plumbline.report.results_on_disk import ResultsOnDisk

#: What is shown of a row: column of the csv -> head, first what a phone has room for. The rest is in the csv next to
#: the page.
SHOWN = {
    "id": ColumnHead(text="row"),
    "verdict": ColumnHead(text="verdict"),
    "printed": ColumnHead(text="printed", numeric=True, printed=True),
    "recomputed": ColumnHead(text="recomputed", numeric=True),
    "study": ColumnHead(text="study"),
    "quantity": ColumnHead(text="quantity", wide=True),
    "source": ColumnHead(text="where"),
    "finding": ColumnHead(text="finding"),
}


def build_page(results: ResultsOnDisk) -> ReportPage:
    """Build the page of the audit; without one, or where it is not the file that was made, the command is shown."""
    path = Path(results.project.paths.results) / "audit.csv"
    markdown_file = path.with_suffix(".md")
    files, grid, body, headings = {}, None, markdown_page.to_html(""), []
    if path.exists() and markdown_file.exists() and fingerprint_file.is_unchanged(path):
        markdown = markdown_file.read_text(encoding="utf-8")
        body, headings = (
            markdown_page.to_html(markdown, below=0),
            [*markdown_page.list_headings(markdown), ("rows", "Every row")],
        )
        files = {path: "files/audit.csv", markdown_file: "files/audit.md"}
        grid = build_table(path, {"csv": "files/audit.csv", "md": "files/audit.md"})
    content = {"grid": grid, "body": body, "command": results.command(path)}
    return ReportPage(
        path="audit.html",
        title="Audit",
        template="audit.html.j2",
        content=content,
        nav="Audit",
        files=files,
        contents=headings,
    )


def build_table(path: Path, files: dict[str, str]) -> PageTable:
    """Build the table of every row of an audit's CSV; `files`: what is offered with it."""
    with open(path, encoding="utf-8", newline="") as handle:
        audited = list(read_rows(handle))
    # The study is the page's own where it is the only one.
    names = [name for name in SHOWN if name != "study" or len({row["study"] for row in audited}) > 1]
    rows = [[_make_cell(row, name) for name in names] for row in audited]
    title = "Every row: a printed number next to the value that follows from others."
    return PageTable(id="rows", title=title, heads=[SHOWN[name] for name in names], rows=rows, files=files)


def _make_cell(row: dict[str, str], name: str) -> HtmlCell:
    if not SHOWN[name].numeric:
        return text_cell(row[name])
    try:
        value = float(row[name])
    except ValueError:
        return text_cell(row[name])
    return number_cell(value, row[name] if SHOWN[name].printed else _write_short(value, row))


def _write_short(value: float, row: dict[str, str]) -> str:
    """Write a recomputed number with two digits more than the printed one has; the csv has them all."""
    printed, text = row["printed"], row["recomputed"]
    if not re.fullmatch(r"[-+]?\d+(\.\d+)?", printed):
        return text
    return min(text, f"{value:.{len(printed.partition('.')[2]) + 2}f}", key=len)
