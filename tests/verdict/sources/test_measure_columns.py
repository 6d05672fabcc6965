"""What a run took is read from names that leave no doubt, in their units, and from nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.verdict.sources.measure_columns import (
    list_contradictions,
    list_times_without_unit,
    read_measures,
    read_start,
)
from plumbline.verdict.sources.row_files import ColumnNames, read_rows
from plumbline.verdict.sources.run_rows import read_table


def test_names_of_trackers_and_trainers_are_read_in_their_units() -> None:
    cells = {"summary._runtime": "61.5", "total_tokens_M": "499.6", "num_params": "124,000,000", "peak_vram_mb": "1024"}
    measures = {"seconds": 61.5, "tokens": 499.6e6, "parameters": 124e6, "memory_bytes": 2**30}
    assert read_measures(cells | {"num_steps": 953}) == measures | {"step": 953.0}


def test_what_is_no_amount_or_could_be_another_thing_is_not_read() -> None:
    cells = {"seconds": "", "num_params": "124M", "peak_vram_mb": "0.0", "time": "12", "epoch": "5", "params": "x"}
    assert read_measures(cells) == {}
    assert read_measures({"seconds": "12"}, without=frozenset(("seconds",))) == {}, "the metric is no budget"
    assert read_measures({"total_seconds": "15", "training_seconds": "12"}) == {"seconds": 12.0}


def test_what_an_evaluation_took_is_not_the_runs(tmp_path: Path) -> None:
    for train in ("train.tokens", "tokens"):
        assert read_measures({"eval.tokens": "10", train: "99", "val_c4.seconds": 2, "test.time_s": 5}) == {
            "tokens": 99
        }
    assert read_measures({"eval.tokens": "10"}) == {}
    cells = {"train.tokens": "99", "data.tokens": "98", "a.runtime_s": "1", "b.runtime_s": "2"}
    assert read_measures(cells) == {}
    assert list_contradictions(cells) == [("train.tokens", "data.tokens"), ("a.runtime_s", "b.runtime_s")]
    assert read_measures(cells | {"total_tokens": "97"}) == {"tokens": 97}
    assert read_measures({"train.tokens": "99", "summary.tokens": "99", "tokens": ""}) == {"tokens": 99}
    (tmp_path / "t.csv").write_text("method,seed,loss,train.tokens,data.tokens\na,1,3,99,98\na,2,3,99,98\n")
    (told,) = read_table(read_rows(tmp_path / "t.csv"), ColumnNames(metric="loss")).told
    assert "`train.tokens` and `data.tokens`" in told


STEPS = [("config.steps", "summary._step"), ("summary._step", "config.steps"), ("a.steps", "b.steps")]


@pytest.mark.parametrize("names", STEPS)
def test_methods_are_equal_where_they_are_in_every_column_of_a_measure(tmp_path: Path, names: tuple[str, str]) -> None:
    def read_steps(*cells: str) -> tuple[set[float | None], tuple[str, ...]]:
        rows = "".join(f"{method},{n},3,{cell}\n" for method, cell in zip("abc", cells) for n in (1, 2))
        (tmp_path / "t.csv").write_text(f"method,seed,loss,{','.join(names)}\n{rows}")
        read = read_table(read_rows(tmp_path / "t.csv"), ColumnNames(metric="loss"))
        return {run.step for of in read.runs.values() for run in of.values()}, read.told

    steps, told = read_steps("1000,500", "1000,1000")
    assert steps == {500, 1000} and all(f"`{name}`" in told[0] for name in names)
    steps, told = read_steps("1000,999", "1000,999", "1000,999")
    assert steps in ({1000}, {999}) and len(told) == (names[0] == "a.steps")
    steps, told = read_steps("1000,500", "2000,1000")
    assert steps in ({1000, 2000}, {500, 1000}) and len(told) == (names[0] == "a.steps"), "by one factor in both"
    assert read_steps("1000,", "1000,1000")[0] == {1000}


def test_times_of_other_names_are_other_times(tmp_path: Path) -> None:
    rows = "".join(f"{method},{n},3,300,{total}\n" for method, total in (("a", 320), ("b", 400)) for n in (1, 2))
    (tmp_path / "t.csv").write_text("method,seed,loss,training_seconds,total_seconds\n" + rows)
    read = read_table(read_rows(tmp_path / "t.csv"), ColumnNames(metric="loss"))
    assert {run.seconds for of in read.runs.values() for run in of.values()} == {300} and not read.told


def test_the_runtime_of_an_exported_table_is_in_seconds() -> None:
    exported = {"Name": "base", "State": "finished", "Created": "2026-10-01T10:00:00.000Z", "Runtime": "61"}
    assert read_measures(exported) == {"seconds": 61.0}
    assert read_measures({"method": "base", "Runtime": "61", "runtime": "61"}) == {}
    assert read_measures({"ElapsedRaw": "300"}) == {"seconds": 300.0}


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        ({"runtime_s": "61.5"}, 61.5),
        ({"Duration (min)": "2"}, 120.0),
        ({"wall_time_hours": 0.5}, 1800.0),
        ({"elapsed": "61.5 s"}, 61.5),
        ({"Elapsed": "1-02:03:04"}, 93784.0),
        ({"runtime": "0 days 00:01:02.5"}, 62.5),
        ({"duration": "1h 5m"}, 3900.0),
        ({"time": "850ms"}, 0.85),
        ({"total_seconds": "15", "runtime_min": "9"}, 15.0),
        *(({name: "61"}, None) for name in ("time", "runtime", "elapsed", "duration", "step_time_ms", "time_of_day_s")),
        ({"time": "12:03:04"}, None),
        *(({"elapsed": cell}, None) for cell in ("02:03", "5 parsecs", "", "-3 s", "0 s")),
    ],
)
def test_a_time_is_read_where_its_column_or_its_cell_has_a_unit(
    cells: dict[str, object], seconds: float | None
) -> None:
    assert read_measures(cells) == ({} if seconds is None else {"seconds": pytest.approx(seconds)})
    without_unit = [
        name for name in cells if name in ("time", "runtime", "elapsed", "duration") and cells[name] == "61"
    ]
    assert list_times_without_unit(cells) == without_unit


@pytest.mark.parametrize(
    ("cells", "started"),
    [
        ({"Created": "2026-10-01T10:00:00.000Z"}, "2026-10-01T10:00:00+00:00"),
        ({"Start Time": "2026-10-01 10:00:00 UTC"}, "2026-10-01T10:00:00+00:00"),
        ({"run.started_at": "2026-10-01T12:00:00+02:00"}, "2026-10-01T10:00:00+00:00"),
        ({"date": "2026-10-01_10-00-00", "timestamp": "1"}, "2026-10-01T10:00:00+00:00"),
        ({"_timestamp": 1790848800.0}, "2026-10-01T10:00:00+00:00"),
        ({"timestamp": "1790848800000"}, "2026-10-01T10:00:00+00:00"),
        *(({"start": cell}, None) for cell in ("", "0", "2026-10-01", "yesterday", "2026-10-01 99:00:00", "1e400")),
        ({"submitted": "2026-10-01T10:00:00"}, None),
    ],
)
def test_the_moment_of_a_run_is_read_in_the_forms_of_trackers(cells: dict[str, object], started: str | None) -> None:
    assert read_start(cells) == ({} if started is None else {"started": started})
