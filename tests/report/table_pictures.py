"""Pictures of a study's tables in the six ways that people read them, to be looked at one by one.

python -m tests.report.table_pictures OUT [--results results/smoke] [--only transfer/table2 ...]

Of finished tables below a folder, or without one of tables made from the world in which each paper is right. Needs
Chromium; for the sheet in print pdflatex, and pdftoppm for a picture of it (Debian: chromium-headless-shell,
texlive-latex-recommended, poppler-utils).
"""

from __future__ import annotations

import argparse
import html
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Sequence
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

from markdown_it import MarkdownIt

from plumbline.report.page_frame import PresetWarning, ReportPage
from plumbline.report.report_site import ASSETS, ReportSite
from plumbline.report.study_tables import lay_out
from plumbline.results.tables import tex_table, write_table
from plumbline.results.tables.finished_table import read_table
from plumbline.results.tables.table import Table
from plumbline.results.tables.terminal_table import format_table
from tests.report.headless_browser import NAMES, Browser, find_browser
from tests.studies.made_targets import TABLES, make_table
from tests.studies.test_printed_first import NoLinks

#: Signs of a line of a terminal, and points of a window.
TERMINALS, WINDOWS = (80, 120), (1280, 390)
#: What reads Markdown as a site of repositories does, line breaks in cells too.
READER = MarkdownIt("commonmark").enable("table")
FRAME = """<meta charset=utf-8><style>pre {{ font: 13px "DejaVu Sans Mono", monospace }}
body {{ font: 14px sans-serif }} table {{ border-collapse: collapse }}
td, th {{ border: 1px solid #ccc; padding: 4px 9px }}</style>{}"""
SHEET = "\\documentclass{article}\n%s\n\\pagestyle{empty}\n\\begin{document}\n%s\n%s\n\\end{document}\n"


def write_page(study: str, tables: Sequence[Table], folder: Path) -> Path:
    """The report's page of a study's tables, of these alone."""
    for name in ASSETS:
        shutil.copyfile(str(resources.files("plumbline.report") / "assets" / name), folder / name)
    grids = [lay_out(table, {}, NoLinks(), {"csv": f"{table.name}.csv"}) for table in tables]
    contents = [(grid.id, f"{grid.name}: {grid.title}") for grid in grids]
    template = "study_tables.html.j2"
    page = ReportPage(path="tables.html", title=study, template=template, content={}, study=study, contents=contents)
    content = {"page": page, "grids": grids, "broken": {}, "sources": NoLinks(), "study": SimpleNamespace(name=study)}
    content |= {"banner": PresetWarning.of(tables[0].preset, {}), "nav": [], "root": "", "site": "Plumbline"}
    text = ReportSite(folder=folder).environment.get_template(template).render(content)
    (folder / page.path).write_text(text, encoding="utf-8")
    return folder / page.path


def find_tables(results: Path | None, only: Collection[str]) -> Iterator[Table]:
    """The finished tables of studies below a folder, as the report reads them; without one, those of the made worlds.

    `only`: these alone, such as transfer/table2; all if empty.
    """
    for study, name in TABLES:
        if only and f"{study}/{name}" not in only:
            continue
        if results is None:
            yield make_table(study, name)[0]
        elif (path := results / study / f"{name}.csv").exists():
            yield read_table(path)


def take_pictures(table: Table, out: Path, browser: Browser) -> list[Path]:
    """Take the pictures of one table, with the PDF of it beside them."""
    stem = f"{table.study}_{table.name}"
    pictures = []

    def take(page: Path, way: str, width: int) -> None:
        browser.look(width=width)
        browser.open(page)
        browser.run("new Promise(done => setTimeout(done, 50))")  # observers of sizes have said that a table scrolls
        pictures.append(out / f"{stem}_{way}.png")
        browser.picture(pictures[-1], whole=True)

    with tempfile.TemporaryDirectory(prefix="plumbline-pictures-") as scratch:
        page = Path(scratch) / "page.html"
        for signs in TERMINALS:
            text = format_table(table, Path(f"{table.name}.csv"), signs)
            page.write_text(FRAME.format(f"<pre>{html.escape(text)}</pre>"), encoding="utf-8")
            take(page, f"terminal{signs}", 8 * signs + 40)
        page.write_text(FRAME.format(READER.render(write_table.to_markdown(table))), encoding="utf-8")
        take(page, "markdown", WINDOWS[0])
        for width in WINDOWS:
            take(write_page(table.study, [table], Path(scratch)), f"page{width}", width)
        if (sheet := print_sheet(table, Path(scratch))) is not None:
            shutil.copyfile(sheet, out / f"{stem}.pdf")
            if shutil.which("pdftoppm"):
                subprocess.run(["pdftoppm", "-r", "100", "-png", sheet, out / f"{stem}_tex"], check=True)
                pictures += sorted(out.glob(f"{stem}_tex-*.png"))
    return pictures


def print_sheet(table: Table, folder: Path) -> Path | None:
    """Compile the table for a paper with its notes; none where there is no pdflatex."""
    if shutil.which("pdflatex") is None:
        return None
    sheet = SHEET % (tex_table.PACKAGES, tex_table.to_tex(table), tex_table.to_tex_notes(table))
    (folder / "sheet.tex").write_text(sheet, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "sheet.tex"]
    for _ in range(2):  # widths of a table over pages are known to the second
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "sheet.pdf"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.report.table_pictures", description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder of the pictures")
    parser.add_argument("--results", type=Path, help="finished tables, such as results/smoke (default: made worlds)")
    parser.add_argument("--only", nargs="+", default=[], metavar="STUDY/TABLE", help="these tables alone")
    options = parser.parse_args(arguments)
    program = find_browser()
    if program is None:
        parser.error(f"there is no browser: install one of {', '.join(NAMES)}")
    options.out.mkdir(parents=True, exist_ok=True)
    browser = Browser(program)
    pictures: list[Path] = []
    try:
        for table in find_tables(options.results, options.only):
            pictures += take_pictures(table, options.out, browser)
            print(f"{table.study}/{table.name}: {len(pictures)} pictures so far", flush=True)
    finally:
        browser.close()
    if not pictures:
        parser.error(f"there is no such table below {options.results or 'studies'}: {' '.join(options.only)}")


if __name__ == "__main__":
    main()
