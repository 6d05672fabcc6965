"""Md and TeX say the same as the csv; special characters survive both."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from plumbline.results.runs.finished_runs import load
from plumbline.results.tables import write_table
from plumbline.results.tables.number_formats import formatted
from plumbline.results.tables.table import Cell, Column, Table, from_print, number, published_column
from plumbline.specs.paper import Paper

COLUMNS = [
    Column(name="name", header="Name", kind="label"),
    Column(name="gain", header="Δ_x & 100 %", kind="reproduced", format="+.2f"),
    published_column("gain", "Δ_x & 100 %"),
    Column(name="p", header="p", kind="reproduced", format="probability"),
]


@pytest.fixture
def table() -> Table:
    rows = [
        {
            "name": Cell("ReLU^2 | {a}_b\\c"),
            "gain": number(0.125, "missing"),
            "gain_published": from_print("0.1250"),
            "p": number(0.0, "missing"),
        },
        {
            "name": Cell("plain"),
            "gain": number(None, "diverged"),
            "gain_published": from_print("not printed", bound="1e-7"),
            "p": number(float("nan"), "reference"),
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
    said = 'Study `s_x`: a summary of "Of Lines" (Ray et al.).'
    assert lines[:5] == ["# 50 % of #1.", "", said, "", "Beware: ≤ 2."]
    assert lines[-1] == "- A note, σ."
    assert lines[6] == "| Name | Δ_x & 100 % (reproduced) | Δ_x & 100 % (published) | p |"
    assert lines[8] == r"| ReLU^2 \| {a}_b\c | +0.12 | 0.1250 | <1e-300 |"
    assert lines[9] == "| plain | diverged | <1e-7 | reference |"


def test_tex(table: Table) -> None:
    text = write_table.to_tex(table)
    assert r"Name & $\Delta$\_x \& 100 \% (reproduced) & $\Delta$\_x \& 100 \% (published) & p \\" in text
    assert r"ReLU$^2$ | \{a\}\_b\textbackslash{}c & +0.12 & 0.1250 & \ensuremath{<}1e-300 \\" in text
    assert (
        r'\caption{50 \% of \#1. Study s\_x: a summary of "Of Lines" (Ray et al.). Beware: $\le$ 2. A note, $\sigma$.}'
        in text
    )
    assert r"\label{tab:s_x-t}" in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert r"\begin{tabular}{lrrr}" in text and text.count("{") == text.count("}")


def test_a_table_without_numbers_needs_no_status() -> None:
    table = Table(
        name="t", title="T.", study="s", preset="demo", key="name", columns=COLUMNS[:1], rows=[{"name": Cell("a")}]
    )  # fmt: skip
    assert write_table.to_csv(table) == "name\na\n"


def test_what_rows_have_in_common_is_read_once_and_written_in_each() -> None:
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
    with pytest.raises(AssertionError, match=r"t.gain: 'missing' in a column of \+.2f"):
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


@pytest.mark.parametrize(
    ("value", "how", "text"),
    [
        (0.12345, ".3f", "0.123"), (7, ".3f", "7"), (3.0, "+.1f", "+3.0"), (1234567, ",d", "1,234,567"),
        (4143800000000000, ".4e", "4.1438e+15"), (0.0, "probability", "<1e-300"), (0.99, "probability", "0.99"),
        (0.0266, "probability", "0.027"), (1e-9, "probability", "1.0e-09"), (0.4820, "as printed", "0.482"),
        (3.5, "g", "3.5"), ("word", ".3f", "word"),
    ],
)  # fmt: skip
def test_formats(value: float | str, how: str, text: str) -> None:
    assert formatted(value, how) == text
