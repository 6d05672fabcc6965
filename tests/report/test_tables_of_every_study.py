"""Every table of every study on a page, in a headless Chromium: six lines above it at most, its columns shown.

Lines are counted as a reader sees them: of the title, of the sentences below it, and of search and buttons.
"""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

import pytest

from plumbline.report.page_frame import PresetWarning, ReportPage
from plumbline.report.study_tables import lay_out
from plumbline.report.write_report import ASSETS, ReportSite
from plumbline.results.tables.shown_table import arrange_columns
from plumbline.specs.study_config import Study
from tests.report.headless_browser import Browser
from tests.studies.made_shapes import make_table_at
from tests.studies.made_targets import STUDIES, TABLES, make_target
from tests.studies.test_printed_first import NoLinks

WIDTHS = (390, 1280)
#: For each table of a page: its id, the lines above it by what they are, whether it keeps to its section, and the
#: headings that are shown.
LOOK = """[...document.querySelectorAll('section.table')].map(section => {
  const lines = (part) => {
    const range = document.createRange();
    range.selectNodeContents(part);
    const boxes = [...range.getClientRects()].filter(box => box.width > 1);
    const middles = boxes.map(box => (box.top + box.bottom) / 2).sort((one, other) => one - other);
    return middles.filter((at, place) => !place || at - middles[place - 1] > 8).length;
  };
  const above = [...section.querySelectorAll('.title, .above, .tools')].map(part => [part.className, lines(part)]);
  const heads = [...section.querySelectorAll('thead th')].filter(head => head.offsetWidth);
  return [section.id, above, section.scrollWidth <= section.clientWidth, heads.map(head => head.textContent)]; })"""


def write_page(study: str, shape: str, folder: Path) -> Path:
    """The page of a study's tables."""
    for name in ASSETS:
        shutil.copyfile(str(resources.files("plumbline.report") / "assets" / name), folder / name)
    tables = [make_table_at(study, name, shape) for owner, name in TABLES if owner == study]
    grids = [lay_out(table, {}, NoLinks(), {"csv": f"{table.name}.csv"}) for table in tables]
    config: Study = make_target(study, tables[0].name).study
    contents = [(grid.id, f"{grid.name}: {grid.title}") for grid in grids]
    template = "study_tables.html.j2"
    page = ReportPage(path="tables.html", title=study, template=template, content={}, study=study, contents=contents)
    content = {"page": page, "grids": grids, "broken": {}, "sources": NoLinks(), "study": config, "nav": [], "root": ""}
    content["banner"] = PresetWarning.of(tables[0].preset, {})
    text = ReportSite(results=None, folder=folder).environment.get_template(template).render(content)  # type: ignore[arg-type]
    (folder / page.path).write_text(text, encoding="utf-8")
    return folder / page.path


@pytest.mark.parametrize(
    ("study", "shape"),
    [(study, "paper") for study in STUDIES]
    + [pytest.param(study, "demo", marks=[] if study == "transfer" else [pytest.mark.slow]) for study in STUDIES],
)
def test_six_lines_at_most_stand_above_a_table_on_a_page(
    chromium: Browser, study: str, shape: str, tmp_path: Path
) -> None:
    page = write_page(study, shape, tmp_path)
    for width in WIDTHS:
        chromium.look(width=width)
        chromium.open(page)
        chromium.run("new Promise(done => setTimeout(done, 50))")  # observers of sizes have said that a table scrolls
        assert chromium.run("document.documentElement.scrollWidth") <= width
        measured = chromium.run(LOOK)
        assert len(measured) == len([name for owner, name in TABLES if owner == study])
        for table, above, fits, heads in measured:
            assert 2 <= sum(lines for _, lines in above) <= 6, (width, table, above)
            assert fits and len(heads) > 1, (width, table, heads)
            table_made = make_table_at(study, table.removeprefix("table-"), shape)
            columns = [column.heading for column in arrange_columns(table_made) if column.of_paper]
            assert set(columns) <= set(heads), (width, table, heads)
