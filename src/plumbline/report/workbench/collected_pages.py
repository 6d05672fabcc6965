"""Builds the pages of any folder in which audits, verdicts or records lie: a first page that lists them, and theirs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from plumbline.core.csv_text import read_rows
from plumbline.core.errors import PlumblineError
from plumbline.project.paths import VERDICTS
from plumbline.report import audit_page
from plumbline.report.markdown_page import make_slug
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, number_cell, text_cell
from plumbline.report.workbench.change_pages import build_change_page
from plumbline.verdict.board.board_rows import BoardRow
from plumbline.verdict.board.project_board import RECORD, gather_rows
from plumbline.verdict.sources.bounded_reading import list_files_below

#: What `plumbline audit` writes, and its files that a page offers.
AUDIT, ENDINGS = "audit.csv", (".csv", ".md", ".html")


def collect_pages(folder: Path, besides: Path) -> list[ReportPage]:
    """Build the pages of what lies below a folder, the first one first; `besides`: the folder of the pages themselves.

    Raises:
        PlumblineError: nothing of it is an audit, a verdict or a record.
    """
    audits = [path for path in list_files_below(folder, (AUDIT,)) if path.name == AUDIT]
    every_row, left_out = gather_rows(folder)
    if not (every_row or audits):
        raise PlumblineError(
            f"{folder}: neither a {RECORD} nor a verdict (a page with its .json) nor an {AUDIT}, which plumbline audit "
            "FOLDER writes, is below it"
        )
    rows = [row for row in reversed(every_row) if not _is_below(folder / row.page, besides)]
    of_audits = [_build_audit(path, folder) for path in audits]
    named = [row.page for row in rows if row.page]
    of_rows = {page: build_change_page(folder / page, VERDICTS, name=make_slug(page)) for page in named}
    content = {
        "audits": _list_audits(of_audits) if of_audits else None,
        "rows": _list_rows(rows, of_rows) if rows else None,
        "left_out": left_out,
    }
    title = folder.resolve().name
    first = ReportPage(path="index.html", title=title, template="collected.html.j2", content=content, nav="Overview")
    return [first, *of_audits, *of_rows.values()]


def _is_below(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _build_audit(path: Path, folder: Path) -> ReportPage:
    name = (path.parent.parent if path.parent.name == "audit" else path.parent).relative_to(folder).as_posix()
    slug = make_slug(str(path.relative_to(folder)))
    title = folder.resolve().name if name == "." else name
    files = {each: f"files/audits/{slug}{ending}" for ending in ENDINGS if (each := path.with_suffix(ending)).is_file()}
    links = {each.suffix.removeprefix("."): f"../{target}" for each, target in files.items()}
    with open(path, encoding="utf-8", newline="") as handle:
        counts = Counter(row.get("verdict") or "" for row in read_rows(handle))
    content = {"grid": audit_page.build_table(path, links), "counts": counts, "printed": links.get("html", "")}
    return ReportPage(
        path=f"audits/{slug}.html", title=title, template="collected_audit.html.j2", content=content, files=files
    )


def _list_audits(pages: list[ReportPage]) -> PageTable:
    verdicts = list(dict.fromkeys(verdict for page in pages for verdict in page.content["counts"]))
    heads = [ColumnHead(text="paper"), *(ColumnHead(text=verdict, numeric=True) for verdict in verdicts)]
    rows = [
        [
            text_cell(page.title, href=page.path),
            *(number_cell(count := page.content["counts"][verdict], str(count)) for verdict in verdicts),
        ]
        for page in pages
    ]
    return PageTable(id="audits", title="Audits: printed numbers that follow from others.", heads=heads, rows=rows)


def _list_rows(rows: list[BoardRow], pages: dict[str, ReportPage]) -> PageTable:
    heads = [
        ColumnHead(text="what"),
        ColumnHead(text="verdict"),
        ColumnHead(text="in a sentence", wide=True),
        ColumnHead(text="runs", numeric=True),
        ColumnHead(text="checked"),
        ColumnHead(text="date"),
    ]
    return PageTable(
        id="verdicts",
        title="Verdicts and records, the newest first.",
        heads=heads,
        rows=[_make_row(row, pages.get(row.page)) for row in rows],
    )


def _make_row(row: BoardRow, page: ReportPage | None) -> list[HtmlCell]:
    checked = ", ".join([row.tier, *(f"{fault} does not hold" for fault in row.faults)])
    return [
        text_cell(page.title if page else row.name, href=page.path if page else ""),
        text_cell(row.verdict or row.shown),
        text_cell(row.description.replace("`", "")),
        number_cell(row.runs or None, str(row.runs)),
        text_cell(checked),
        text_cell(row.date),
    ]
