"""Writes the pages of a trainer's folder, once or again whenever something there is new, and those of any folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.report.page_frame import ReportPage
from plumbline.report.report_site import ReportSite, replace_report
from plumbline.report.workbench.collected_pages import collect_pages
from plumbline.report.workbench.folder_runs import gather_runs
from plumbline.report.workbench.tried_changes import gather_changes
from plumbline.report.workbench.workbench_pages import Workbench
from plumbline.verdict.board.board_page import write_numbers
from plumbline.verdict.board.board_rows import Board
from plumbline.verdict.own_trainer.folder import Folder

#: Seconds between two looks at what is new.
EVERY = 2.0


def write_workbench(root: Path, out: Path) -> int:
    """Write the pages of a trainer's folder, in place of those that are there.

    Returns:
        How many pages there are.
    """
    folder = Folder(root)
    changes, unreadable = gather_changes(folder.ledger, folder.pages)
    runs = gather_runs(folder, changes)
    bench = Workbench(title=root.resolve().name, changes=changes, unreadable=unreadable, runs=runs)
    return _write(bench.title, bench.build_pages(), out)


def write_collected(folder: Path, out: Path) -> int:
    """Write the pages of a folder of audits, verdicts or records.

    Returns:
        How many pages there are.
    """
    collected = collect_pages(folder)
    return _write(folder.resolve().name, collected.pages, out, collected.board)


def _write(name: str, pages: Sequence[ReportPage], out: Path, board: Board | None = None) -> int:
    def write(new: Path) -> int:
        site = ReportSite(folder=new, name=name)
        for page in pages:
            site.write(page, [each for each in pages if each.nav])
        site.write_assets()
        if board and board.rows:
            write_numbers(board, new)
        return len(pages)

    return replace_report(out, write)


def _look_at(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def watch(root: Path, out: Path) -> None:
    """Write the pages again whenever a run, a decision or a page was added, until it is interrupted."""
    folder, last = Folder(root), None
    while True:
        state = [_look_at(path) for path in (folder.bank_file, folder.ledger, folder.pages)]
        if state != last:
            last = state
            try:
                pages = f"{write_workbench(root, out)} pages"
            except PlumblineError as error:  # until something is new again
                pages = f"not renewed: {error}"
            print(f"{time.strftime('%H:%M:%S')} {out} ({pages})", flush=True)
        time.sleep(EVERY)
