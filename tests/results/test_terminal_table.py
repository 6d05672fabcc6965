"""A finished table in 80 columns: what counts most above it, read from the csv and its provenance alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.results.runs.finished_runs import load
from plumbline.results.tables import write_table
from plumbline.results.tables.table import Cell, Column, Table, number_cell
from plumbline.results.tables.terminal_table import format_for_terminal
from plumbline.specs import study_config, study_parts
from tests.studies.transfer.synthetic_runs import PUBLISHED, World, tasks_of


def test_table2_at_demo_with_a_long_name(tmp_path: Path) -> None:
    world = World(tmp_path / "work", "demo")
    for seed, value in ((42, 0.30), (43, 0.31), (44, 0.302)):
        world.completed("base", "baseline", seed, tasks_of(value), 5.0, source="proxy")
    world.completed("base", "softpick", 42, tasks_of(0.32), 4.9, source="proxy")
    frames = world.load("base", "noise_floor")
    methods = world.study.definition["methods"]
    long = {"softpick": methods["softpick"] | {"label": "Softpick with a very long name and " + "x" * 60}}
    renamed = study_config.Study(
        name="transfer",
        preset="demo",
        definition=world.study.definition | {"methods": methods | long},
        runs=world.study.runs,
    )
    write_table.write(
        study_parts.function("transfer", "tables", "table2")(frames, renamed, PUBLISHED), frames, tmp_path / "t.csv"
    )
    lines = format_for_terminal(tmp_path / "t.csv").splitlines()
    assert max(map(len, lines)) <= 80 and "".join(lines).count("x") >= 60, "folded, and nothing cut off"
    head = next(i for i, line in enumerate(lines) if line.startswith("Method"))
    heading = " ".join(lines[head - 1 : head + 1]).split()
    assert set(heading) == {"Method", "by", "val.", "loss", "Δ", "seeds", "needed", "CLIMB-avg"}
    above, below = " ".join(lines[:head]), " ".join(lines[head:])
    assert above.startswith("Significant (Bonferroni): none of 19 methods differ from Baseline on other seeds")
    assert "Preset demo: no reproduction" in above
    assert "Preset: demo." in below and "nothing about the methods" in below
    assert "Stand-in: 12 of 12 tasks" in below
    softpick = next(line for line in lines if line.startswith("Softpick"))
    assert softpick.split()[-5:] == ["-0.1000", "no", "noise", "floor", "0.3200"]
    hyper = next(line for line in lines if line.startswith("HyperConnections"))
    assert hyper.split()[-4:] == ["missing"] * 4
    assert "t.csv (44 more columns)" in " ".join(lines[-2:])


def test_without_marked_columns_as_many_as_there_is_room_for(published: World, tmp_path: Path) -> None:
    columns = [Column(name="a", header="A", kind="label")]
    columns += [Column(name=f"v{n}", header=f"value {n}", kind="reproduced", format=".3f") for n in range(12)]
    row = {"a": Cell("a" * 100)} | {f"v{n}": number_cell(n / 7, "missing") for n in range(12)}
    table = Table(name="t", title="T.", study="x", preset="demo", key="a", columns=columns, rows=[row])
    write_table.write(table, load([], tmp_path), tmp_path / "t.csv")
    text = format_for_terminal(tmp_path / "t.csv")
    assert max(map(len, text.splitlines())) <= 80 and "1.143" in text and "1.286" not in text
    assert text.count("a") >= 100 and "0.857" in text


def test_a_table_of_no_rows_and_a_table_that_is_not_there(tmp_path: Path) -> None:
    columns = [Column(name="a", header="A", kind="label", narrow=True)]
    table = Table(name="t", title="T.", study="x", preset="demo", key="a", columns=columns, rows=[])
    write_table.write(table, load([], tmp_path), tmp_path / "t.csv")
    assert "T." in format_for_terminal(tmp_path / "t.csv")
    with pytest.raises(PlumblineError, match="there is no table"):
        format_for_terminal(tmp_path / "u.csv")
