"""Finished runs as frames: averages by the suite's name, probes where they are read, runs made otherwise by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from plumbline import NUMERICS
from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.results import __main__ as results
from plumbline.results.runs.expected_runs import ExpectedRun, list_expected_runs
from plumbline.results.runs.finished_runs import load
from tests import run_in_process
from tests.studies.run_files import write_frame
from tests.studies.transfer.synthetic_runs import World, tasks_of

KEY = "transfer/base/baseline/s42"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A demo with three seeds of the baseline and one method."""
    world = World(tmp_path / "work", "demo")
    for seed, value in ((42, 0.30), (43, 0.31), (44, 0.302)):
        world.completed("base", "baseline", seed, tasks_of(value), 5.0)
    world.completed("base", "softpick", 42, tasks_of(0.32), 4.9)
    return world


def rewrite_run(world: World, key: str, run_id: str, numerics: int) -> None:
    """What a run left, as another version of the trainer would have written it."""
    for name in ("outcome.json", "manifest.json"):
        path = world.root / "runs" / key / name
        content = json.loads(path.read_text()) | {"run_id": run_id}
        if name == "manifest.json":
            content["spec"]["numerics"] = numerics
        path.write_text(json.dumps(content))
    for name in ("scores", "examples"):
        path = world.root / "scores" / key / f"{name}.parquet"
        write_frame(frames.read(path, name).assign(run_id=run_id), name, path)


def test_the_average_is_the_suites(world: World) -> None:
    expected = [ExpectedRun(key=KEY, run_id=world.study.runs[KEY].spec.run_id)]
    loaded = load(expected, world.root, average="climb_avg")
    assert loaded.runs.loc[KEY, "average"] == pytest.approx(0.30) and len(loaded.task_scores(KEY)) == 12
    unnamed = load(expected, world.root)
    assert pd.isna(unnamed.runs.loc[KEY, "average"]) and "climb_avg" in unnamed.task_scores(KEY)
    assert loaded.key("base", "baseline") == loaded.key("base", "baseline", 42) == KEY
    assert loaded.key("large", "baseline") is loaded.key("base", "baseline", 7) is None


@pytest.mark.usefixtures("specs_of_other_ids")
def test_a_run_of_another_spec_is_refused_and_found_by_name(world: World, tmp_path: Path, repository: Path) -> None:
    rewrite_run(world, KEY, "f" * 16, numerics=0)
    with pytest.raises(PlumblineError, match=r"f{16}.*--expected-runs"):
        world.load("base", "noise_floor")
    loaded = load(list_expected_runs("found", world.study, ["base"], world.root), world.root, average="climb_avg")
    assert loaded.runs.loc[KEY, "run_id"] == "f" * 16 and loaded.runs.loc[KEY, "average"] == pytest.approx(0.30)
    assert loaded.others == (
        f"{KEY} is run {'f' * 16} (numerics 0), here it would be {world.study.runs[KEY].spec.run_id} "
        f"(numerics {NUMERICS})",
    )
    out = tmp_path / "table2.csv"
    args = ("table", "transfer", "table2", "--expected-runs", "found", "--work", world.root, "--out", out)
    process = run_in_process.run(results.main, *args, cwd=repository)
    assert process.returncode == 0, process.stderr
    page = out.with_suffix(".md").read_text()
    assert f"versions: {KEY} is run {'f' * 16} (numerics 0)" in page
    table = pd.read_csv(out, index_col="method")
    assert table.loc["softpick", "climb_avg_delta"] == pytest.approx(0.32 - 0.304)
    assert table.loc["baseline", "n_seeds"] == 3
    assert json.loads(out.with_suffix(".provenance.json").read_text())["runs"][KEY]["run_id"] == "f" * 16


def test_where_every_run_is_the_expected_one_nothing_is_said(world: World) -> None:
    runs = list_expected_runs("found", world.study, ["base", "noise_floor"], world.root)
    assert runs == list_expected_runs(None, world.study, ["base", "noise_floor"], world.root)
    assert load(runs, world.root, average="climb_avg").others == ()


def test_scores_of_another_run_than_outcomes_are_refused_even_so(world: World) -> None:
    path = world.root / "scores" / KEY / "scores.parquet"
    write_frame(frames.read(path, "scores").assign(run_id="e" * 16), "scores", path)
    with pytest.raises(PlumblineError, match=r"scores.parquet .* e{16}"):
        load(list_expected_runs("found", world.study, ["base"], world.root), world.root, average="climb_avg")


def test_an_outcome_that_names_no_run_is_named(world: World) -> None:
    (world.root / "runs" / KEY / "outcome.json").write_text("{")
    with pytest.raises(PlumblineError, match=r"outcome.json names no run"):
        list_expected_runs("found", world.study, ["base"], world.root)


PROBES = pd.DataFrame(
    [[0, 0.0, 0, 1, "key_norm", 2.5, 1.0, "offline"], [6, 1.0, 0, 1, "key_norm", 3.5, 1.0, "online"]],
    columns=["step", "fraction", "layer", "head", "probe", "value", "null", "source"],
)


def add_probes(world: World, key: str) -> list[ExpectedRun]:
    path = world.root / "runs" / key / "manifest.json"
    content = json.loads(path.read_text())
    content["spec"]["probes"] = [{"name": "query_key_norms", "at": [0.0, 1.0]}]
    path.write_text(json.dumps(content))
    return [
        ExpectedRun(key=name, run_id=world.study.runs[name].spec.run_id) for name in (key, "transfer/base/hyper/s42")
    ]


@pytest.mark.usefixtures("specs_of_other_ids")
def test_probes_carry_their_run(world: World) -> None:
    expected = add_probes(world, KEY)
    run_id = expected[0].run_id
    write_frame(PROBES.assign(run_id=run_id), "probes", world.root / "probes" / KEY / "probes.parquet")
    read = load(expected, world.root, average="climb_avg", probes=True).probes
    assert len(read) == 2 and read["key"].eq(KEY).all() and read["method"].eq("baseline").all()
    assert read.loc[read["fraction"] == 1.0, ["value", "seed", "scale"]].values.tolist() == [[3.5, 42, "base"]]
    write_frame(PROBES.assign(run_id="e" * 16), "probes", world.root / "probes" / KEY / "probes.parquet")
    with pytest.raises(PlumblineError, match=r"probes.parquet .* e{16}"):
        load(expected, world.root, probes=True)


@pytest.mark.usefixtures("specs_of_other_ids")
def test_a_finished_run_without_its_probes_is_an_error(world: World) -> None:
    expected = [replace(run, groups=("base",)) for run in add_probes(world, KEY)]
    (world.root / "probes" / KEY / "probes.parquet").unlink()
    for groups in (None, {"base", "large"}):
        with pytest.raises(PlumblineError, match=r"snakemake.*\S+/probes\.parquet, with"):
            load(expected, world.root, probes=True, probed_groups=groups)
    # Who does not read probes, or reads those of other runs, does not miss them.
    assert load(expected, world.root).probes.empty
    assert load(expected, world.root, probes=True, probed_groups={"large"}).probes.empty
