"""Runs `plumbline audit FOLDER`: reads the tables, checks them, writes rows and page, and prints what contradicts.

Exit codes: 0 nothing contradicts, 10 something does, 15 something may (a relation that no name states does not hold),
16 nothing was checked, 2 the command line, the folder or its audit file is not valid.
"""

from __future__ import annotations

import argparse
import gc
import json
from pathlib import Path

from plumbline.audit.audit_csv import to_csv
from plumbline.audit.paper import html_page, paper_page
from plumbline.audit.paper.paper_audit import ANSWERS, audit_folder
from plumbline.audit.paper.paper_table import check_inside
from plumbline.core.errors import UsageError
from plumbline.core.files import atomic_write_text, make_folder

#: Where the rows are written, below the folder.
ROWS = Path("audit/audit.csv")


def run_audit(options: argparse.Namespace) -> int:
    """Audit the folder of the command line, and return the exit code.

    Raises:
        UsageError: the folder, a table, the audit file or the LaTeX is not valid, or no number could be read.
    """
    # A paper is a million small tuples without a cycle: looking for one takes a tenth of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        return _audit(options)
    finally:
        if collects:
            gc.enable()


def _audit(options: argparse.Namespace) -> int:
    folder = options.folder
    if options.latex is not None:
        from plumbline.audit.paper.latex.write_tables import write_tables

        write_tables(options.latex, folder)
    audit = audit_folder(folder, options.checks, untold=not options.told_only)
    if not audit.printed and not audit.rows:
        names = ", ".join(f"{table.name}.csv" for table in audit.tables[:8])
        raise UsageError(
            f"{folder}: no number could be read in {names}; a cell is a number where "
            'all of it is one: "48.2", "1,234", "48.2 ± 0.3", "124M"'
        )
    not_read = [*audit.source.not_read, *(entry for table in audit.tables for entry in table.half_read)]
    out = options.out or folder / ROWS
    if options.out is None:
        check_inside(out.parent, folder)
    if out.resolve().parent == folder.resolve():
        raise UsageError(f"--out {out}: the next audit would take it for a table; name another folder")
    make_folder(out.parent)
    html, page = out.with_suffix(".html"), out.with_suffix(".md")
    files = {"rows": str(out), "page": str(html), "text": str(page)}
    atomic_write_text(out, to_csv(audit.rows))
    atomic_write_text(page, paper_page.write_page(audit, not_read))
    atomic_write_text(html, html_page.write_html(audit, not_read))
    code = ANSWERS[audit.answer]
    if options.json:
        print(json.dumps(paper_page.make_json(audit, files, not_read, code), ensure_ascii=True))
    else:
        print(paper_page.format_console(audit, files, not_read))
    return code
