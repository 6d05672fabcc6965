"""Every table of a paper is shown as the paper prints it: its columns first, its numbers in every format.

Where it matters, what is reproduced is taken out of a table first, so that each number that is left is the paper's.
"""

from __future__ import annotations

import csv
import re
import textwrap
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.report.page_table import PageTable, RunLinks
from plumbline.report.study_tables import lay_out
from plumbline.results.tables import shown_table, tex_table, write_table
from plumbline.results.tables.paper_columns import NOT_REPRODUCED, add_paper_columns, fill_template
from plumbline.results.tables.table import Cell, Column, Table
from plumbline.results.tables.terminal_table import format_table
from plumbline.results.tables.tex_text import number_to_tex
from plumbline.specs.yaml_files import ROOT
from tests.studies.made_targets import TABLES, declaration, make_table, make_table_without_results

#: The tables that a paper has.
OF_PAPERS = [
    (study, name)
    for study, name in TABLES
    if name.startswith("table") and (ROOT / f"studies/{study}/published/{name}.csv").exists()
]


class NoLinks(RunLinks):
    """Cells that link nowhere."""

    def __init__(self) -> None: ...

    def href(self, keys: object) -> str:
        return ""

    def title(self, keys: object) -> str:
        return ""


def read_printed(study: str, name: str) -> tuple[str, list[dict[str, str]]]:
    """The column that names the rows, and the rows."""
    with open(ROOT / f"studies/{study}/published/{name}.csv", encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    return next(iter(rows[0])), rows


def in_terminal(table: Table, width: int = 80) -> str:
    return format_table(table, Path("results/t.csv"), width)


def on_page(table: Table) -> PageTable:
    return lay_out(table, {}, NoLinks(), {})


def in_html(table: Table) -> str:
    return "\n".join(f"{cell.text} ({cell.printed})" for row in on_page(table).rows for cell in row)


FORMATS = {
    "md": write_table.to_markdown, "tex": tex_table.to_tex, "all.tex": tex_table.to_tex_all,
    "terminal": in_terminal, "html": in_html,
}  # fmt: skip


@pytest.mark.parametrize(("study", "name"), OF_PAPERS)
def test_every_printed_column_is_declared(study: str, name: str) -> None:
    printed = declaration(study, name)
    assert printed is not None
    templates = [text for entry in printed["columns"].values() for text in (entry.get("here"), entry.get("paper"))]
    named = re.findall(r"\{(\w+)", " ".join([*filter(None, templates), printed.get("rows", "")]))
    names = {name.removeprefix("covers_").removesuffix("_published") for name in named} | set(named)
    key, rows = read_printed(study, name)
    assert set(rows[0]) - {key} <= names, "columns that the paper prints and the declaration lacks"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("study", "name"), OF_PAPERS)
def test_every_printed_number_stands_in_every_format(study: str, name: str, form: str) -> None:
    text = FORMATS[form](make_table_without_results(study, name))
    plain = re.sub(r"[\s,]|\\\\", "", text)
    key, rows = read_printed(study, name)
    for row in rows:
        for column, printed in row.items():
            if column != key and re.fullmatch(r"-?\d[\d.e-]*", printed):
                forms = (printed, *(number_to_tex(sign + printed) for sign in ("", "<") if "tex" in form))
                assert any(re.sub(r"[\s,]", "", one) in plain for one in forms), (row[key], column, printed)


@pytest.mark.parametrize(("study", "name"), OF_PAPERS)
def test_the_papers_headings_stand_first_and_in_its_order(study: str, name: str) -> None:
    table, _ = make_table(study, name)
    headings = list((declaration(study, name) or {})["columns"])
    head = next(line for line in write_table.to_markdown(table).splitlines() if line.startswith("|"))
    in_markdown = [cell.strip() for cell in head.strip("|").split("|")]
    columns = tex_table.choose_columns(shown_table.arrange_columns(table), tex_table.estimate_width, tex_table.ROOM)
    for shown in (in_markdown, [head.text for head in on_page(table).heads], [column.heading for column in columns]):
        assert [heading for heading in shown if heading in headings][: len(headings)] == headings
        names = shown_table.arrange_columns(table)
        own_names = [column.heading for column in names if column.label and not column.of_paper]
        assert set(shown[: shown.index(headings[-1])]) <= {*headings, *own_names}, "ours come after the paper's"


@pytest.mark.parametrize(("study", "name"), TABLES)
def test_labels_tell_rows_apart_and_no_line_is_longer_than_a_terminal(study: str, name: str) -> None:
    table, _ = make_table(study, name)
    for columns in (shown_table.arrange_columns(table), [c for c in shown_table.arrange_columns(table) if c.readable]):
        names = [column for column in columns if column.label]
        rows = list(zip(*([cell.lines[-1] for cell in column.cells] for column in names), strict=True))
        assert len(set(rows)) == len(rows) == len(table.rows)
    for width in (80, 120):
        assert max(map(len, in_terminal(table, width).splitlines())) <= width


@pytest.mark.parametrize(("study", "name"), TABLES)
def test_six_lines_at_most_stand_above_a_table(study: str, name: str) -> None:
    table, _ = make_table(study, name)
    above = in_terminal(table).partition("──")[0].split("\n\n")[:-1]
    assert 1 <= sum(len(part.splitlines()) for part in above) <= 6
    assert sum(len(textwrap.wrap(text, 80)) for text in on_page(table).above) <= 6


COLUMNS = [
    Column(name="method", header="Method", kind="label"),
    Column(name="loss", header="loss", kind="reproduced", format=".3f"),
]


def make_small_table(tmp_path: Path, printed: dict[str, object]) -> Table:
    folder = tmp_path / "one" / "published"
    folder.mkdir(parents=True)
    (folder / "t.csv").write_text("id,name,loss,sd\na,The first,2.50,0.1\nb,The second,2.40,\n")
    row = {"method": Cell("a"), "loss": Cell(2.51)}
    table = Table(name="t", title="T.", study="one", preset="demo", key="method", columns=COLUMNS, rows=[row])
    add_paper_columns(table, printed, PrintedNumbers(folder))
    return table


def test_a_row_that_was_not_run_stands_with_the_printed_number_and_a_mark(tmp_path: Path) -> None:
    columns = {
        "Method": {"here": "{method}", "paper": "{name}", "marks": {"b": "†"}},
        "Loss": {"here": "{loss}", "paper": "{loss}±{sd}|{loss}", "bold": ["b"]},
    }
    text = write_table.to_markdown(make_small_table(tmp_path, {"columns": columns, "notes": ["† means it."]}))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "| The first | 2.510<br>(2.50±0.1) |" in lines
    assert f"| The second † | {NOT_REPRODUCED}<br>**(2.40)** |" in lines
    assert f"- {NOT_REPRODUCED}: not reproduced here." in lines and "- † means it." in lines


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"Loss": {"here": "{los}", "paper": "{loss}"}}, ["Loss: here", "'los'", "'loss'"]),
        ({"Loss": {"here": "{loss}", "paper": "{lost}"}}, ["Loss: paper", "'lost'"]),
        ({"Loss": {"here": "{loss}", "paper": "{loss}", "bold": ["c"]}}, ["columns: Loss", "'c'"]),
    ],
)
def test_a_template_that_names_what_is_not_there(columns: dict[str, object], named: list[str], tmp_path: Path) -> None:
    with pytest.raises(PlumblineError) as error:
        make_small_table(tmp_path, {"columns": columns})
    assert all(part in str(error.value) for part in ["studies/one/study.yaml", *named])


@pytest.mark.parametrize(
    ("template", "text"),
    [("{a}±{b}|{a}", "1500"), ("{a:,} → {c:+}", "1,500 → +2.0"), ("{d:words}", "no seed"), ("{b}", ""),
     ("{a:.1f}", "1500.0"), ("<{c}", "<2.0")],
)  # fmt: skip
def test_templates(template: str, text: str) -> None:
    assert fill_template(template, {"a": "1500", "b": "", "c": "2.0", "d": "no_seed"}.get) == text
