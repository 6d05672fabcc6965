"""Md and TeX contain the same as the csv; special characters survive both."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from plumbline.results.runs.finished_runs import load
from plumbline.results.tables import write_table
from plumbline.results.tables.finished_table import read_table
from plumbline.results.tables.number_formats import format_number
from plumbline.results.tables.table import (
    Cell,
    Column,
    PaperCell,
    PaperColumn,
    Table,
    make_printed_cell,
    make_published_column,
    number_cell,
)
from plumbline.results.tables.tex_table import PACKAGES
from plumbline.results.tables.tex_text import number_to_tex as number_for_tex
from plumbline.results.tables.tex_text import tex
from plumbline.specs.paper import Paper

COLUMNS = [
    Column(name="name", header="Name", kind="label"),
    Column(name="gain", header="Δ_x & 100 %", kind="reproduced", format="+.2f"),
    make_published_column("gain", "Δ_x & 100 %"),
    Column(name="p", header="p", kind="reproduced", format="probability"),
]


@pytest.fixture
def table() -> Table:
    rows = [
        {
            "name": Cell("ReLU^2 | {a}_b\\c"),
            "gain": number_cell(0.125, "missing"),
            "gain_published": make_printed_cell("0.1250"),
            "p": number_cell(0.0, "missing"),
        },
        {
            "name": Cell("plain"),
            "gain": number_cell(None, "diverged"),
            "gain_published": make_printed_cell("not printed", bound="1e-7"),
            "p": number_cell(float("nan"), "reference"),
        },
    ]
    return Table(
        name="t", title="50 % of #1.", study="s_x", preset="demo", key="name", columns=COLUMNS, rows=rows,
        warnings=["Beware: ≤ 2."], notes=["A note, σ."],
        paper=Paper.of({"paper": {"title": "Of Lines", "authors": ["A Ray", "B Line", "C"], "kind": "summary"}}),
    )  # fmt: skip


def test_csv(table: Table) -> None:
    assert write_table.to_csv(table).splitlines() == [
        "name,gain,gain_published,p,missing_reasons",
        "ReLU^2 | {a}_b\\c,0.125,0.1250,0.0,<1e-300: p",
        "plain,,,,diverged: gain; <1e-7: gain_published; reference: p",
    ]
    assert table.frame.dtypes.iloc[1:].eq("float64").all()


def test_markdown(table: Table) -> None:
    lines = [" ".join(line.split()) for line in write_table.to_markdown(table).splitlines()]
    caption = "# 50 % of #1. Preset demo: no reproduction of the paper's numbers."
    assert lines[:3] == [caption, "", "Beware: ≤ 2."]
    assert lines[4] == "| Name | Δ_x & 100 % | p |"
    assert lines[6] == r"| ReLU^2 \| {a}_b\c | +0.12<br>(0.1250) | <1e-300 |"
    assert lines[7] == "| plain | diverged<br>(<1e-7) | reference |"
    assert lines[9:] == [
        '- Study `s_x`: a summary of "Of Lines" (Ray et al.).',
        "- In parentheses: the number that the paper prints.",
        "- A note, σ.",
        "- [t.csv](t.csv) has 1 more columns.",
    ]


def test_tex(table: Table) -> None:
    text = write_table.to_tex(table)
    assert r"\multicolumn{1}{@{}l}{Name} & \multicolumn{1}{r}{" in text and r"$\Delta_x$ \&" in text
    assert r"ReLU$^2$ \textbar{} \{a\}\_b\textbackslash{}c & +0.12 & $<10^{-300}$ \\*" in text
    assert "\n" + r" & (0.1250) &  \\[1pt]" in text and r" & ($<10^{-7}$) & " in text
    assert r"\caption{50 \% of \#1. Preset demo" in text
    assert r"\label{tab:s_x-t}" in text and "Beware" not in text and "A note" not in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert r"\begin{tabular}{@{}lrr@{}}" in text and text.count("{") == text.count("}")


def test_notes_for_tex(table: Table) -> None:
    lines = write_table.to_tex_notes(table).splitlines()
    assert lines[:2] == [
        f"% needs {PACKAGES}",
        '% s_x t of a summary of "Of Lines" (Ray et al.), preset demo: its notes; \\input this where they are to stand',
    ]
    assert [line for line in lines if line.startswith(r"\item")] == [
        r"\item Study \texttt{s\_\allowbreak{}x}: a summary of ``Of Lines'' (Ray et al.).",
        r"\item Beware: $\le$ 2.",
        r"\item A note, $\sigma$.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("λ_Q, ✓ × ′", r"$\lambda_Q$, $\checkmark$ $\times$ $'$"), ("x₁₂⁻¹", "x$_1$$_2$$^-$$^1$"),
        ("|z| of `a|b`", r"\textbar{}z\textbar{} of \texttt{a\textbar{}b}"),
        ("W_Q^t of `d_k --x`", r"$W_Q$$^{t}$ of \texttt{d\_k -{}-x}"), ('"a" & Ćé', r"``a'' \& Ćé"),
        ('"W_K, `b` x" and "c"', r"``$W_K$, \texttt{b} x'' and ``c''"),
        ("中 and \N{LEFT-POINTING ANGLE BRACKET}", "[U+4E2D] and [U+2329]"),
        ("a long_name", r"a long\_name"), ("Θ Α ε", r"$\Theta$ $\mathrm{A}$ $\varepsilon$"),
    ],
)  # fmt: skip
def test_signs_that_tex_lacks(text: str, expected: str) -> None:
    assert tex(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-0.0030", "$-$0.0030"), ("+4.47", "+4.47"), ("1.5e-04", r"$1.5\times10^{-4}$"), ("<1e-7", "$<10^{-7}$"),
        ("1,234", "1,234"), ("1.4e+00", "1.4"), ("not printed", "not printed"),
        ("-0.5±0.1%", r"$-$0.5$\pm$0.1\%"),
    ],
)  # fmt: skip
def test_numbers_of_tex(text: str, expected: str) -> None:
    assert number_for_tex(text) == expected


def test_a_table_without_numbers_needs_no_status() -> None:
    table = Table(
        name="t", title="T.", study="s", preset="demo", key="name", columns=COLUMNS[:1], rows=[{"name": Cell("a")}]
    )  # fmt: skip
    assert write_table.to_csv(table) == "name\na\n"


def test_what_rows_have_in_common_is_read_once() -> None:
    columns = [Column(name=name, header=name, kind="label", once=name != "c") for name in "abc"]
    rows = [dict(zip("abc", map(Cell, row), strict=True)) for row in ("xs1", "xs2", "ys3", "ys4")]
    table = Table(name="t", title="T.", study="s", preset="demo", key="c", columns=columns, rows=rows)
    assert write_table.to_csv(table).split() == ["a,b,c", "x,s,1", "x,s,2", "y,s,3", "y,s,4"]
    read = [line.replace(" ", "") for line in write_table.to_markdown(table).splitlines() if line.startswith("|")]
    assert read[2:] == ["|x|s|1|", "|||2|", "|y|s|3|", "|||4|"]
    assert [" ".join(line.split()) for line in write_table.to_tex(table).splitlines() if "&" in line][1:3] == [
        r"x & s & 1 \\",
        r"& & 2 \\",
    ]


def test_words_have_no_place_among_numbers() -> None:
    with pytest.raises(AssertionError, match=r"'missing'.*column.*\+.2f"):
        row = {"name": Cell("a"), "gain": Cell("missing")}
        Table(name="t", title="T.", study="s", preset="demo", key="name", columns=COLUMNS[:2], rows=[row])


def test_provenance_says_how_to_read_it(table: Table, tmp_path: Path) -> None:
    write_table.write(table, load([], tmp_path), tmp_path / "t.csv")
    content = json.loads((tmp_path / "t.provenance.json").read_text())
    assert [entry["heading"] for entry in content["columns"]][1:3] == [
        "Δ_x & 100 % (reproduced)", "Δ_x & 100 % (published)"
    ]  # fmt: skip
    assert content["why_empty"]["plain"] == {"gain": "diverged", "gain_published": "<1e-7", "p": "reference"}
    assert content["warnings"] == ["Beware: ≤ 2."] and set(content["made_with"]) >= {"numpy", "scipy"}
    assert pd.read_csv(tmp_path / "t.csv")["gain"].tolist()[0] == 0.125


def test_a_table_is_read_back_as_it_was_written(table: Table, tmp_path: Path) -> None:
    cells = {"plain": PaperCell("n.r.", "0.5", bold=True), "ReLU^2 | {a}_b\\c": PaperCell("+0.12")}
    table.paper_columns = [PaperColumn(heading="Gain", numeric=True, names=("gain",), cells=cells)]
    write_table.write(table, load([], tmp_path), tmp_path / "t.csv")
    again = read_table(tmp_path / "t.csv")
    assert again.paper_columns == table.paper_columns and again.columns == table.columns
    for write_as in write_table.AS_TEXT.values():
        assert write_as(again) == write_as(table)


@pytest.mark.parametrize(
    ("value", "style", "text"),
    [
        (0.12345, ".3f", "0.123"), (7, ".3f", "7"), (3.0, "+.1f", "+3.0"), (1234567, ",d", "1,234,567"),
        (4143800000000000, ".4e", "4.1438e+15"), (0.0, "probability", "<1e-300"), (0.99, "probability", "0.99"),
        (0.0266, "probability", "0.027"), (1e-9, "probability", "1.0e-09"), (0.4820, "as printed", "0.482"),
        (3.5, "g", "3.5"), ("word", ".3f", "word"), (2031.7, ".3g", "2030"), (-2031.7, "+.3g", "-2030"),
        (2e6, ".3g", "2e+06"),
    ],
)  # fmt: skip
def test_formats(value: float | str, style: str, text: str) -> None:
    assert format_number(value, style) == text
