"""Every table of every study on a page, in a headless Chromium: six lines above it at most, its columns shown.

Lines are counted as a reader sees them: of the title, of the sentences below it, and of search and buttons.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from plumbline.results.tables import write_table
from plumbline.results.tables.shown_table import arrange_columns
from tests.report import table_pictures
from tests.report.headless_browser import Browser
from tests.report.table_pictures import write_page
from tests.studies.made_shapes import make_table_at
from tests.studies.made_targets import STUDIES, TABLES, make_table

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


@pytest.mark.parametrize(
    ("study", "shape"),
    [(study, "paper") for study in STUDIES]
    + [pytest.param(study, "demo", marks=[] if study == "transfer" else [pytest.mark.slow]) for study in STUDIES],
)
def test_six_lines_at_most_stand_above_a_table_on_a_page(
    chromium: Browser, study: str, shape: str, tmp_path: Path
) -> None:
    page = write_page(study, [make_table_at(study, name, shape) for owner, name in TABLES if owner == study], tmp_path)
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


def test_a_table_is_pictured_in_every_way(chromium: Browser, tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_table.write(*make_table("query_free", "table2"), results / "query_free/table2.csv")
    table_pictures.main([str(tmp_path), "--results", str(results), "--only", "query_free/table2"])
    ways = {path.stem.removeprefix("query_free_table2_"): path for path in tmp_path.glob("*.png")}
    assert {"terminal80", "terminal120", "markdown", "page1280", "page390"} <= set(ways)
    widths = {way: struct.unpack(">I", path.read_bytes()[16:20])[0] for way, path in ways.items()}
    assert widths["page390"] == 390 and widths["page1280"] == 1280 and widths["terminal80"] < widths["terminal120"]
    assert (tmp_path / "query_free_table2.pdf").exists() == (shutil.which("pdflatex") is not None)


def test_pictures_of_no_table_are_an_error(chromium: Browser, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        table_pictures.main([str(tmp_path), "--results", str(tmp_path / "nowhere")])
