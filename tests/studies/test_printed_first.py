"""Every table of a paper is shown as the paper prints it: its columns first, its numbers in every format.

Where it matters, what is reproduced is taken out of a table first, so that each number that is left is the paper's.
"""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.core.structs import Fault
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.report.agreement_with_print import ELSEWHERE, SAME
from plumbline.report.page_table import PageTable, RunLinks
from plumbline.report.study_tables import lay_out
from plumbline.results.tables import shown_table, tex_table, write_table
from plumbline.results.tables.finished_table import read_table
from plumbline.results.tables.paper_columns import NOT_REPRODUCED, NOT_REPRODUCED_NOTE, add_paper_columns, fill_template
from plumbline.results.tables.table import Cell, Column, Table
from plumbline.results.tables.terminal_table import format_table
from plumbline.results.tables.tex_text import number_to_tex
from plumbline.results.tables.trace_cell import trace_cell
from plumbline.specs.study_files import PrintedTable, Target
from plumbline.specs.yaml_files import ROOT
from tests.studies.made_shapes import make_table_at
from tests.studies.made_targets import TABLES, declaration, make_table, make_table_without_results

#: The tables that a paper has.
OF_PAPERS = [
    (study, name)
    for study, name in TABLES
    if name.startswith("table") and (ROOT / f"studies/{study}/published/{name}.csv").exists()
]

#: Columns of a file of printed numbers that a table's caption says in words, and the table does not have.
IN_CAPTION = {("transfer", "table1"): {"soft_hard"}}


class NoLinks(RunLinks):
    """Cells that link nowhere."""

    def __init__(self) -> None:
        self.sets = {}

    def href(self, keys: Iterable[str]) -> str:
        return ""

    def title(self, keys: Iterable[str]) -> str:
        return ""


class SeenLinks(NoLinks):
    """Keeps the sets of runs that were asked for."""

    def __init__(self) -> None:
        self.seen: list[set[str]] = []

    def href(self, keys: Iterable[str]) -> str:
        self.seen.append(set(keys))
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
    assert set(rows[0]) - {key} - IN_CAPTION.get((study, name), set()) <= names, "columns that the declaration lacks"


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


@pytest.mark.parametrize(
    ("study", "name"), [each for each in OF_PAPERS if not (declaration(*each) or {}).get("transposed")]
)
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


#: The head of query_free's Table 2, and the first column of its rows.
CONFIGURATIONS = [
    "Baseline (smaller MLP)", "Baseline (smaller d)", "WQ=I (117M)", "Baseline (124M)", "WQ=I (larger MLP)",
]  # fmt: skip
SETTINGS = [
    "Trainable W_Q", "Total params", "Non-emb params", "MLP hid. mult.", "Attention scale", "Weight decay", "Peak LR",
    "Min LR", "Val loss (60k)", "vs. Baseline",
]  # fmt: skip


def test_a_table_whose_configurations_are_columns_is_shown_so(tmp_path: Path) -> None:
    table, frames = make_table("query_free", "table2")
    write_table.write(table, frames, tmp_path / "table2.csv")
    page = on_page(read_table(tmp_path / "table2.csv"))
    assert [head.text for head in page.heads][:6] == ["", *CONFIGURATIONS]
    assert [row[0].text for row in page.rows][:10] == SETTINGS
    loss = page.rows[SETTINGS.index("Val loss (60k)")][1]
    assert (loss.text, loss.printed, loss.sort) == ("2.9550", "2.955", 2.955) and loss.mark is not None
    lines = [
        re.split(r" *\| *", line.strip("| ")) for line in write_table.to_markdown(table).splitlines() if "|" in line
    ]
    assert lines[0][:5] == CONFIGURATIONS and [line[0] for line in lines[2:12]] == SETTINGS
    rows = [line.partition(" & ")[0] for line in tex_table.to_tex(table).splitlines() if line.endswith(r"\\")]
    assert [row.replace("$", "") for row in rows[1:11]] == SETTINGS
    parts = in_terminal(table).partition("──")
    assert parts[0].splitlines()[-1].split()[-1] == "MLP)"
    starts = [line.partition("  ")[0] for line in parts[2].splitlines()[1:] if line[:1].strip()]
    assert starts[:10] == SETTINGS
    labels = shown_table.arrange_columns(table)[1:]
    assert [column.of_paper for column in labels] == [True] * 5 + [False] * 2, "ours come after the paper's"


@pytest.mark.parametrize(("study", "name"), TABLES)
def test_labels_tell_rows_apart(study: str, name: str) -> None:
    table, _ = make_table(study, name)
    for columns in (shown_table.arrange_columns(table), [c for c in shown_table.arrange_columns(table) if c.readable]):
        names = [column for column in columns if column.label]
        rows = list(zip(*([cell.lines[-1] for cell in column.cells] for column in names), strict=True))
        assert len(set(rows)) == len(rows) == (len(columns[0].cells) if table.transposed else len(table.rows))
    for width in (80, 120):
        assert max(map(len, in_terminal(table, width).splitlines())) <= width


@pytest.mark.parametrize(
    ("name", "heading", "text"), [("table10", "Multiplier", "0.125"), ("table6", "Entropy floor", "0.80")]
)
def test_a_setting_is_not_doubted_beside_an_equal_printed_one(name: str, heading: str, text: str) -> None:
    page = on_page(make_table("premature", name)[0])
    place = [head.text for head in page.heads].index(heading)
    cells = [row[place] for row in page.rows if not row[place].word]
    assert {cell.mark for cell in cells} == {SAME} and text in {cell.text for cell in cells}
    assert not any(cell.printed for cell in cells), "written once"


@pytest.mark.parametrize(("name", "stands_once"), [("table10", True), ("table6", True), ("table9", False)])
def test_a_setting_that_stands_once_is_explained(name: str, stands_once: bool) -> None:
    table, _ = make_table("premature", name)
    texts = [write_table.to_markdown(table), write_table.to_tex_notes(table), in_terminal(table, 120)]
    texts.append("\n".join(on_page(table).below))
    assert [shown_table.ONCE_NOTE in text for text in texts] == [stands_once] * 4


@pytest.mark.parametrize(("study", "name"), OF_PAPERS)
def test_tex_explains_what_was_not_reproduced(study: str, name: str) -> None:
    table = make_table_without_results(study, name)
    is_shown = any(cell.text == NOT_REPRODUCED for column in table.paper_columns for cell in column.cells.values())
    assert (NOT_REPRODUCED_NOTE in tex_table.to_tex_notes(table)) == is_shown


def test_a_cell_of_two_settings_is_the_same_only_where_both_are() -> None:
    """At smoke heads are narrower, by the same divisor beside them: 1/√32 is not 1/√64."""
    page = on_page(make_table_at("query_free", "table2", "smoke"))
    cells = [cell for row in page.rows if row[0].text == "Attention scale" for cell in row[1:] if cell.printed]
    assert cells and all(cell.text != cell.printed for cell in cells)
    assert {cell.mark for cell in cells} == {ELSEWHERE}


def test_a_page_shows_sentences_of_ours_on_request() -> None:
    heads = {head.text: head for head in on_page(make_table("quack", "alternatives")[0]).heads}
    assert heads["what it changes"].wide and not heads["what it changes"].short
    assert heads["Run"].short


def test_ours_begin_behind_a_line_with_few_or_all_columns() -> None:
    heads = on_page(make_table("transfer", "table1")[0]).heads
    lines = [(head.text, head.short) for head in heads if head.first_of_ours]
    assert lines == [("id", False), ("soft/hard", True)]


def test_a_wide_terminal_keeps_names_of_rows_whole() -> None:
    assert "MLA QK-clip 100 " in in_terminal(make_table("quack", "table1")[0], 120)


def test_a_long_word_is_broken_behind_its_hyphen() -> None:
    lines = in_terminal(make_table("transfer", "table6")[0]).splitlines()
    assert any(line.endswith("(Softmax-") for line in lines)


@pytest.mark.parametrize(("study", "name"), TABLES)
def test_tex_has_each_sign_of_a_table(study: str, name: str) -> None:
    table, _ = make_table(study, name)
    assert not re.findall(r"\[U\+.*?\]", tex_table.to_tex(table) + tex_table.to_tex_all(table))


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


def test_a_row_that_was_not_run_stands_with_the_printed_number(tmp_path: Path) -> None:
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
        ({"Loss": {"here": "{loss:3f}", "paper": "{loss}"}}, ["Loss: here", "{loss:3f}"]),
        ({"Loss": {"here": "{loss}", "paper": "{loss}}%"}}, ["Loss: paper", "{loss}}%"]),
        ({"Loss": {"here": "{loss}", "paper": "{name:+}"}}, ["Loss: paper", "{name:+}", "'The first'"]),
    ],
)
def test_a_template_that_names_what_is_not_there(columns: dict[str, object], named: list[str], tmp_path: Path) -> None:
    with pytest.raises(PlumblineError) as error:
        make_small_table(tmp_path, {"columns": columns})
    assert all(part in str(error.value) for part in ["one/study.yaml", *named])


def test_a_figure_is_not_printed_in_columns() -> None:
    with pytest.raises(Fault) as error:
        Target(kind="figure", runs=[], reads=[], published=[], printed=PrintedTable(columns={}))
    assert error.value.place == ("printed",)


def test_words_stand_for_what_is_written_otherwise(tmp_path: Path) -> None:
    words = {"a": "A-one", "The first": "A-one", "0.1": ""}
    columns = {
        "Method": {"here": "{method}", "paper": "{name}", "words": words},
        "Loss": {"here": "{loss}", "paper": "{loss}±{sd}|{loss}", "words": words},
    }
    table = make_small_table(tmp_path, {"columns": columns})
    names, losses = (column.cells for column in table.paper_columns)
    assert (names["a"].text, names["a"].printed) == ("A-one", "") and names["b"].text == "The second"
    assert (losses["a"].text, losses["a"].printed) == ("2.510", "2.50")


@pytest.mark.parametrize(
    ("ours", "printed", "is_written"),
    [("-0.5", "0.5", True), ("15", "1.5", True), ("3-12 %", "3–12%", False), ("GPT-style", "gpt_style", False),
     ("v2-3", "v2–3", False), ("ReLU^2", "relu2", False), ("ReLU^2", "relu3", True)],
)  # fmt: skip
def test_what_nobody_measures_is_written_once(ours: str, printed: str, is_written: bool, tmp_path: Path) -> None:
    columns = {"Method": {"here": "{method}"}, "Fact": {"here": "{fact}", "paper": "{name}", "words": {}}}
    folder = tmp_path / "one" / "published"
    folder.mkdir(parents=True)
    (folder / "t.csv").write_text(f"id,name\na,{printed}\n")
    facts = Column(name="fact", header="fact", kind="fact")
    row = {"method": Cell("a"), "fact": Cell(ours)}
    table = Table(
        name="t", title="T.", study="one", preset="demo", key="method", columns=[COLUMNS[0], facts], rows=[row]
    )
    add_paper_columns(table, {"columns": columns}, PrintedNumbers(folder))
    cell = table.paper_columns[1].cells["a"]
    assert (cell.text, cell.printed) == (ours, printed if is_written else "")


def test_a_heading_with_a_bar_is_one_cell_of_a_head(tmp_path: Path) -> None:
    columns = {"Method": {"here": "{method}", "paper": "{name}"}, "|z|": {"here": "{loss}", "paper": "{loss}"}}
    text = write_table.to_markdown(make_small_table(tmp_path, {"columns": columns}))
    assert r"\|z\|" in next(line for line in text.splitlines() if line.startswith("| Method"))


def test_rows_that_the_paper_lacks_are_named_where_they_are_few() -> None:
    notes = {name: "\n".join(make_table(*name)[0].notes) for name in OF_PAPERS}
    assert "Not in the paper's table: GPT + matched GEGLU FFN." in notes["premature", "table3"]
    assert "SSMax, HybridNorm, HyperConnections" in notes["transfer", "table3"]
    assert not any("Not in" in notes[name] for name in (("query_free", "table1"), ("transfer", "table2")))


def test_a_terminal_repeats_no_cell_that_a_page_shows_once() -> None:
    text = in_terminal(make_table("query_free", "table1")[0], 200)
    assert text.count("one head: W_Q") == 1


@pytest.mark.parametrize(
    ("study", "name", "heading", "key", "printed"),
    [
        ("transfer", "table4", "ΔP", "softpick", "+0.00%"),
        ("transfer", "table3", "Δ 3B", "baseline", "0.0000"),
        ("transfer", "table6", "Mechanism", "hybrid_norm/s42", "Post-LN FFN variance growth"),
        ("transfer", "table6", "Mechanism", "hybrid_norm/s43", ""),
        ("transfer", "table6", "Mechanism", "hybrid_norm/s44", ""),
        ("transfer", "table6", "Mechanism", "ssmax/s42", "Softmax-replacement logit blowup"),
        ("transfer", "table6", "Pre-NaN grad signature", "hybrid_norm/s43", "0.19 → NaN (no intermediate spike)"),
        ("transfer", "table6", "Pre-NaN grad signature", "hybrid_norm/s44", "0.18 → NaN, then sustained ∼14"),
        ("transfer", "table6", "Pre-NaN grad signature", "ssmax/s42", "monotone rise 27 → 1578 over 1,800 steps"),
        ("transfer", "table6", "Pre-NaN grad signature", "hyper/s42", "sustained >100 peaks from step 15,000"),
        ("query_free", "table2", "vs. Baseline", "wq_identity", "+0.00%"),
        ("query_free", "table2", "vs. Baseline", "baseline", "Ref."),
        ("query_free", "table2", "vs. Baseline", "residual_query", ""),
        ("query_free", "table2", "Attention scale", "baseline_small_d", "1/√62"),
        ("query_free", "table2", "Attention scale", "wq_identity", "1/(2√64)"),
    ],
)
def test_a_number_stands_as_the_paper_writes_it(study: str, name: str, heading: str, key: str, printed: str) -> None:
    cells = next(column.cells for column in make_table(study, name)[0].paper_columns if column.heading == heading)
    assert cells[key].printed == printed


@pytest.mark.parametrize(
    ("study", "name", "heading", "key", "text"),
    [
        ("transfer", "table5", "Task", "climb_avg", "CLIMB-avg"),
        ("premature", "table8", "Release window", "main", "3–12%"),
        ("premature", "table9", "Release rule", "intervention", "Lower-copy"),
        ("query_free", "table2", "Trainable W_Q", "wq_identity", "×"),
        ("transfer", "table1", "Category", "baseline", "Baseline"),
        ("transfer", "table1", "Category", "qknorm", "Attention"),
        ("transfer", "table1", "Category", "geglu_ffn", "FFN"),
        ("transfer", "table1", "Category", "sandwich_norm", "Normalization"),
        ("transfer", "table1", "Category", "hyper", "Residual"),
        ("transfer", "table1", "Subcategory", "baseline", "—"),
        ("transfer", "table1", "Subcategory", "relu_squared", "Non-gated ReLU²"),
        *(("transfer", table, "Method", "relu_squared", "ReLU²") for table in ("table1", "table2", "table3")),
        ("transfer", "table5", "Task", "validation_loss", "validation loss"),
        ("premature", "table7", "Setting", "global_half_lr", "Global 0.5× learning rate"),
    ],
)
def test_a_word_stands_as_the_paper_writes_it(study: str, name: str, heading: str, key: str, text: str) -> None:
    cells = next(column.cells for column in make_table(study, name)[0].paper_columns if column.heading == heading)
    assert (cells[key].text, cells[key].printed) == (text, "")


def test_coverage_stands_in_the_papers_capitals() -> None:
    columns = {column.heading: column.cells for column in make_table("query_free", "table1")[0].paper_columns}
    texts = {cell.text for heading in ("Skip Connections", "Multi-layer") for cell in columns[heading].values()}
    in_part = {text for text in texts if text.endswith("only")}
    assert in_part == {"Around attention only", "Single layer only", "Shared weights only"}


def test_a_norm_has_its_index() -> None:
    table = make_table("premature", "table12")[0]
    assert table.paper_columns[-1].heading == "R_P/‖X‖_F²"
    assert r"$R_P$/$\Vert$X$\Vert_F$$^2$" in tex_table.to_tex(table)


def test_every_part_of_a_table_in_tex_tells_its_rows_apart() -> None:
    parts = tex_table.to_tex(make_table("query_free", "table1")[0]).split(r"\caption{")[1:]
    assert len(parts) > 1 and all("premise" in part and "Result" in part and "Section" in part for part in parts)


def test_a_cell_is_traced_by_the_names_that_are_shown(tmp_path: Path) -> None:
    for name in ("table2", "table3", "table5"):
        write_table.write(*make_table("transfer", name), tmp_path / f"{name}.csv")
    assert "row hybrid_norm, column z: 3.1" in trace_cell(tmp_path / "table2.csv", "HybridNorm ‡", "z")
    assert "row climb_avg," in trace_cell(tmp_path / "table5.csv", "CLIMB-avg", "A100")
    text = trace_cell(tmp_path / "table3.csv", "QK-Norm", "rank")
    assert "column rank_base: 3" in text and "rank_base, rank_large" in text


def test_a_cell_of_two_numbers_links_to_the_runs_of_both() -> None:
    table, _ = make_table("transfer", "table3")
    row = next(row for row in table.rows if row["method"].value == "qknorm")
    links = SeenLinks()
    lay_out(replace(table, rows=[row], paper_columns=table.paper_columns[-1:]), {}, links, {})
    assert any({*row["rank_base"].runs, *row["rank_large"].runs} <= runs for runs in links.seen)


def test_result_types_stand_before_sections_as_in_the_paper() -> None:
    headings = [column.heading for column in shown_table.arrange_columns(make_table("query_free", "table1")[0])]
    assert headings[:2] == ["Result Type", "Section"]


@pytest.mark.parametrize(("study", "name"), TABLES)
def test_no_two_columns_of_a_page_have_the_same_heading(study: str, name: str) -> None:
    headings = [head.text for head in on_page(make_table(study, name)[0]).heads]
    assert len(set(headings)) == len(headings)


@pytest.mark.parametrize(("study", "name"), OF_PAPERS)
def test_no_identifier_of_the_file_stands_for_the_papers_words(study: str, name: str) -> None:
    table, _ = make_table(study, name)
    alone = replace(table, rows=[], notes=[], paper_columns=[])
    add_paper_columns(alone, declaration(study, name), PrintedNumbers.of(study))
    tasks = (study, name) in (("transfer", "table4"), ("transfer", "table5"))  # which print such names
    texts = [cell.text + cell.printed for column in alone.paper_columns for cell in column.cells.values()]
    assert tasks or not [text for text in texts if re.search(r"[a-z]_[a-z0-9]", text)]


@pytest.mark.parametrize(
    ("template", "text"),
    [("{a}±{b}|{a}", "1500"), ("{a:,} → {c:+}", "1,500 → +2.0"), ("{b}", ""),
     ("{a:.1f}", "1500.0"), ("<{c}", "<2.0"), ("{e:.3f}B", "-0.000012B"), ("{e:+.2f}", "-0.000012"),
     ("{f:.2f}", "0.00")],
)  # fmt: skip
def test_templates(template: str, text: str) -> None:
    assert (
        fill_template(template, {"a": "1500", "b": "", "c": "2.0", "d": "no_seed", "e": "-1.23e-05", "f": "0.0"}.get)
        == text
    )
