"""Builds the pages of any folder in which audits, verdicts or records lie: a first page that lists them, and theirs."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.audit.printed_tables import PrintedTables
from plumbline.core.csv_text import read_rows
from plumbline.core.errors import PlumblineError
from plumbline.project.paths import VERDICTS
from plumbline.report import audit_page
from plumbline.report.markdown_page import make_slug
from plumbline.report.page_frame import ReportPage
from plumbline.report.page_table import ColumnHead, HtmlCell, PageTable, number_cell, text_cell
from plumbline.report.workbench.change_pages import build_change_page
from plumbline.specs.yaml_files import ROOT, papers
from plumbline.verdict.board.board_rows import TIERS, Board, BoardRow
from plumbline.verdict.board.project_board import RECORD, gather_rows, make_project_board
from plumbline.verdict.sources.bounded_reading import list_files_below, read_text

#: What `plumbline audit` writes, and its files that a page offers.
AUDIT, ENDINGS = "audit.csv", (".csv", ".md", ".html")
#: What `plumbline board` writes: its numbers, and what its page needs next to it.
BOARD, BOARD_FILES = "board.json", ("index.html", "progress.svg", "card.svg")


@dataclass(frozen=True, kw_only=True)
class CollectedPages:
    """The pages of a folder, the first one first, and the board of the records and verdicts in it."""

    pages: Sequence[ReportPage]
    board: Board


def collect_pages(folder: Path) -> CollectedPages:
    """Build the pages of what lies below a folder.

    Raises:
        PlumblineError: nothing of it is an audit, a verdict, a record or a board.
    """
    files = list(list_files_below(folder, (AUDIT, BOARD)))
    audits, boards = ([path for path in files if path.name == name] for name in (AUDIT, BOARD))
    rows, left_out = gather_rows(folder)
    if not (rows or audits or boards):
        raise PlumblineError(
            f"{folder}: neither a {RECORD} nor a verdict (a page with its .json) nor an {AUDIT}, which plumbline audit "
            f"FOLDER writes, nor a {BOARD} of plumbline board is below it"
        )
    board = make_project_board(folder, rows, left_out)
    rows = rows[::-1]
    of_boards = [each for path in boards if (each := _read_board(path, folder, left_out))]
    of_audits = [page for path in audits if (page := _build_audit(path, folder, left_out))]
    page_names = [row.page for row in rows if row.page]
    of_rows = {page: build_change_page(folder / page, VERDICTS, name=make_slug(page)) for page in page_names}
    content = {
        "audits": _list_audits(of_audits) if of_audits else None,
        "boards": _list_boards(of_boards) if of_boards else None,
        "rows": _list_rows(rows, of_rows) if rows else None,
        "board": board if rows else None,
        "left_out": left_out,
    }
    title = folder.resolve().name
    files_of_boards = {source: target for each in of_boards for source, target in each.files.items()}
    first = ReportPage(
        path="index.html",
        title=title,
        template="collected.html.j2",
        content=content,
        nav="Overview",
        files=files_of_boards,
    )
    return CollectedPages(pages=[first, *of_audits, *of_rows.values()], board=board)


@dataclass(frozen=True, kw_only=True)
class _CopiedBoard:
    """A board that `plumbline board` wrote: its title, how far its records were checked, and its files' copies."""

    title: str
    tiers: dict[str, int]
    href: str
    files: dict[Path, str]


def _read_board(path: Path, folder: Path, left_out: list[str]) -> _CopiedBoard | None:
    """Read a board; None of what is none, which `left_out` then names."""
    target = f"files/boards/{make_slug(str(path.relative_to(folder)))}"
    sources = [path, *(path.with_name(name) for name in BOARD_FILES)]
    try:
        board: Any = json.loads(read_text(path))
        tiers: dict[str, int] = {tier: int(board["tiers"][tier]) for tier in TIERS}
        return _CopiedBoard(
            title=str(board["title"]),
            tiers=tiers,
            href=f"{target}/index.html",
            files={source: f"{target}/{source.name}" for source in sources if source.is_file()},
        )
    except (ValueError, KeyError, TypeError, RecursionError, PlumblineError):
        left_out.append(f"{path.relative_to(folder)} cannot be read as a board.")
        return None


def _list_boards(boards: Sequence[_CopiedBoard]) -> PageTable:
    heads = [ColumnHead(text="board"), *(ColumnHead(text=tier, numeric=True) for tier in TIERS)]
    rows = [
        [
            text_cell(board.title, href=board.href if board.href in board.files.values() else ""),
            *(number_cell(count, str(count)) for count in board.tiers.values()),
        ]
        for board in boards
    ]
    return PageTable(
        id="boards", title="Boards of records, and how far each record was checked.", heads=heads, rows=rows
    )


def _build_audit(path: Path, folder: Path, left_out: list[str]) -> ReportPage | None:
    """Build the page of an audit; None of what is none, which `left_out` then names."""
    name = (path.parent.parent if path.parent.name == "audit" else path.parent).relative_to(folder).as_posix()
    slug = make_slug(str(path.relative_to(folder)))
    title = folder.resolve().name if name == "." else name
    files = {each: f"files/audits/{slug}{ending}" for ending in ENDINGS if (each := path.with_suffix(ending)).is_file()}
    links = {each.suffix.removeprefix("."): f"../{target}" for each, target in files.items()}
    try:
        grid = audit_page.build_table(path, links)
        with open(path, encoding="utf-8", newline="") as handle:
            rows = list(read_rows(handle))
        printed = None if "html" in links else _read_printed(path, {row["study"] for row in rows})
    except (csv.Error, ValueError, KeyError, TypeError, OSError):
        left_out.append(f"{path.relative_to(folder)} cannot be read as an audit.")
        return None
    content = {
        "grid": grid,
        "counts": Counter(row["verdict"] for row in rows),
        "page_of_tables": links.get("html", ""),
        "printed": printed,
    }
    contents = [*((id, name) for id, name, _ in printed.tables), ("rows", "Every row")] if printed else []
    return ReportPage(
        path=f"audits/{slug}.html",
        title=title,
        template="collected_audit.html.j2",
        content=content,
        files=files,
        contents=contents,
    )


def _read_printed(path: Path, audited: set[str]) -> PrintedTables | None:
    """Read the tables of the paper of which an audit is, if it is a study's here."""
    (study,) = audited if len(audited) == 1 else ("",)
    return PrintedTables.read(study, ROOT, path) if study in papers(ROOT) else None


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
