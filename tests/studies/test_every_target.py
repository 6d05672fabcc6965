"""What holds for every table and every figure of every study, made where its paper is right."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.text import Text
from rich.cells import cell_len

from plumbline.results.figures import figure_style
from plumbline.results.tables import shown_table, write_table
from plumbline.results.tables.provenance import collect_provenance
from plumbline.results.tables.table import Table
from plumbline.results.tables.terminal_table import format_for_terminal
from tests.studies.made_targets import FIGURES, STUDIES, TABLES, draw, make_anew, make_table, make_target

#: One figure of each study: that their bytes repeat is no other matter than that the others' do.
REPEATED = [*zip(STUDIES, ("fig1", "fig3", "fig2", "fig1", "fig1"), strict=True)]
#: What is the same at every preset, and says so at most in words.
OF_NO_PRESET = {
    ("premature", "fig1"),
    ("transfer", "table1"),
    ("transfer", "table4"),
    ("transfer", "protocol_thresholds"),
}
#: Studies whose tables have a run or a source behind every number.
TRACED = ("key_norms", "premature", "transfer")


@pytest.mark.parametrize(("study", "name"), [*TABLES, *FIGURES])
def test_it_reads_what_it_declares(study: str, name: str) -> None:
    target = make_target(study, name)
    assert target.read == set(target.study.definition["targets"][name]["published"])


@pytest.mark.parametrize(("study", "name"), [table for table in TABLES if table[0] in TRACED])
def test_every_number_of_a_table_is_traceable(study: str, name: str) -> None:
    table, frames = make_table(study, name)
    names = [column.name for column in table.columns]
    facts = collect_provenance(table, frames, write_table.to_csv(table))
    assert table.frame[table.key].is_unique
    for row in table.rows:
        assert set(row) == set(names)
        for column in table.columns:
            value, key = row[column.name].value, str(row[table.key].value)
            assert table.format_cell(row, column) != "" and not (isinstance(value, float) and math.isnan(value))
            if column.kind == "reproduced" and isinstance(value, (int, float)):
                assert facts["cells"][key].get(column.name) or facts["sources"][key][column.name]


@pytest.mark.parametrize(("study", "name"), TABLES)
def test_a_table_is_written_as_every_file_and_fits_a_terminal(study: str, name: str, tmp_path: Path) -> None:
    table, frames = make_table(study, name)
    paths = write_table.write(table, frames, tmp_path / f"{name}.csv")
    assert [path.suffix for path in paths] == [".csv", ".md", ".tex", ".tex", ".tex", ".json"]
    text = format_for_terminal(tmp_path / f"{name}.csv")
    assert max(map(cell_len, text.replace(str(tmp_path), "").splitlines())) <= 80
    assert "Preset: paper" in text or "needs no training" in text or (study, name) in OF_NO_PRESET
    labels = [column for column in shown_table.arrange_columns(table) if column.label and column.readable]
    assert all(cell.lines[-1][:6] in text for cell in labels[0].cells)


@pytest.mark.parametrize(("study", "name"), TABLES)
def test_the_csv_of_a_table_is_read_as_numbers(study: str, name: str) -> None:
    check_csv(make_table(study, name)[0])


def check_csv(table: Table) -> None:
    """Columns are read as what they are, and every number that is not there is accounted for: as not printed, or in the
    status."""
    frame = pd.read_csv(io.StringIO(write_table.to_csv(table)))
    text_columns = {column.name for column in table.columns if not column.numeric}
    read_as_numbers = {column for column in frame if pd.api.types.is_numeric_dtype(frame[column])}
    assert {column.name for column in table.columns if column.numeric} <= read_as_numbers
    assert len(frame) == len(table.rows) and text_columns | {"missing_reasons"} >= set(frame) - read_as_numbers
    for (_, csv_row), row in zip(frame.iterrows(), table.rows, strict=True):
        for column in table.columns:
            if column.numeric and pd.isna(csv_row[column.name]):
                word = table.word(row, column)
                assert word == "not printed" or f"{word}: " in csv_row["missing_reasons"], column.name


@pytest.mark.parametrize(("study", "name"), FIGURES)
def test_a_figure_names_its_preset(study: str, name: str) -> None:
    picture = draw(study, name)
    texts = [text for text in picture.figure.findobj(Text) if text.get_text().strip()]
    assert (study, name) in OF_NO_PRESET or any("preset paper" in text.get_text() for text in texts)
    assert min(text.get_fontsize() for text in texts) >= figure_style.SMALL


@pytest.mark.parametrize(
    ("study", "name"), [pytest.param(*one, marks=[] if one in REPEATED else [pytest.mark.slow]) for one in FIGURES]
)
def test_the_bytes_of_a_figure_repeat(study: str, name: str, tmp_path: Path) -> None:
    pictures = {"a": draw(study, name), "b": make_anew(study, name).product}
    paths = [figure_style.save(picture, tmp_path / folder / f"{name}.png") for folder, picture in pictures.items()]
    for path, path_of_repeat in zip(*paths, strict=True):
        assert path.read_bytes() == path_of_repeat.read_bytes()
    csv = pd.read_csv(tmp_path / "a" / f"{name}.csv")
    assert len(csv) == len(pictures["a"].frame) > 0 and csv["preset"].eq("paper").all()
    assert "<dc:date>" not in (tmp_path / "a" / f"{name}.svg").read_text()
