"""CSV that a spreadsheet opens and carries nothing out of, and that is read back as it was."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plumbline.core.csv_text import mark_formula, read_cells, read_rows, unmark_formula, write_frame, write_rows
from tests.hostile_texts import FORMULAS, NO_FORMULAS

TEXTS = st.text(st.sampled_from("=+-@'\t 1.a(|!,\"\n\r"), max_size=8) | st.text(max_size=5)


def runs(cell: str) -> bool:
    """Whether a spreadsheet takes a cell for a formula that names something."""
    return cell[:1] in ("=", "@", "\t", "\r") or bool(
        re.match(r"[+-]\W*[^\W\d](?!(nf|an)\Z)|[+-].*[(|!=@]", cell, re.S)
    )


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), min_size=1, max_size=3))
def test_what_is_written_runs_nowhere_and_is_read_back(rows: list[list[str]]) -> None:
    text = write_rows([["name", "=label"], *rows])
    lines = list(csv.reader(io.StringIO(text, newline="")))
    assert not any(runs(cell) for line in lines for cell in line)
    assert list(read_rows(io.StringIO(text, newline=""))) == [{"name": row[0], "=label": row[1]} for row in rows]
    assert list(read_cells(io.StringIO(text, newline=""))) == [["name", "=label"], *rows]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_marked(text: str) -> None:
    assert runs(text) or text[0] in "＝＠－\n\ufeff"
    assert mark_formula(text) == "'" + text and unmark_formula("'" + text) == text
    assert mark_formula("'" + text) == "''" + text, "and what is marked already is told from it"


@pytest.mark.parametrize("cell", [*NO_FORMULAS, -0.3, None])
def test_numbers_and_other_texts_stay(cell: object) -> None:
    assert mark_formula(cell) == cell


def test_a_frame_is_written_as_pandas_writes_it() -> None:
    frame = pd.DataFrame({"x": [-0.1, float("nan")], "n": [-1, 2], "yes": [True, False], "text": ["a", None]})
    assert write_frame(frame) == frame.to_csv(index=False)
    frame = frame.assign(text=["=A1", "-b"], kind=pd.Categorical(["@x", "y"]))
    rows = list(read_rows(io.StringIO(write_frame(frame))))
    assert [(row["text"], row["kind"], row["n"]) for row in rows] == [("=A1", "@x", "-1"), ("-b", "y", "2")]
    assert "'=A1" in write_frame(frame) and "'-b" in write_frame(frame)


@given(st.lists(TEXTS, min_size=1, max_size=3))
@example(["a\rb", "\r\n", "=\r"])
def test_texts_of_a_frame_are_read_back(texts: list[str]) -> None:
    frame = pd.DataFrame({"x": -0.5, "text": texts})
    text = write_frame(frame)
    assert text == write_rows([["x", "text"], *([-0.5, each] for each in texts)])
    assert [row["text"] for row in read_rows(io.StringIO(text, newline=""))] == texts


def test_nobody_writes_or_reads_csv_otherwise(repository: Path) -> None:
    """But for who reads what others wrote."""
    own = re.compile(r"csv\.(Dict)?([Ww]rit|[Rr]ead)er|\.to_csv\(index|read_csv\(")
    folders = [repository / name for name in ("src", "studies", "workflow", "examples")]
    users = {path.name for folder in folders for path in folder.rglob("*.py") if own.search(path.read_text())}
    assert users == {"csv_text.py", "foreign_rows.py", "convert_released.py"}
