"""The table, the pilot's table and the picture of what was stated of small models, of drawn runs and of none."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from plumbline.core import frames as schemas
from plumbline.core.errors import PlumblineError
from plumbline.project import load as load_project
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.report import small_models, small_rates
from plumbline.results.figures.figure_style import FigureWithData
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import Table
from plumbline.specs import small_file, small_runs, study_config, study_parts
from plumbline.specs.spec_changes import overlay
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import load_config
from tests.forget_caches import forget
from tests.studies.run_files import make_run, write_run
from tests.verdict.small_models.small_worlds import draw, load

STUDIES = ("key_norms", "premature", "quack", "query_free", "transfer")


@cache
def find_study(name: str) -> Study:
    return study_config.load(name, "evening")


def make(study: str, target: str, frames: RunFrames, kind: str = "tables") -> Table | FigureWithData:
    return study_parts.function(study, kind, target)(frames, find_study(study), PrintedNumbers.of(study, reads=[]))


@cache
def draw_gains(study: str, identity: str, gain: float, sigma: float) -> RunFrames:
    """The runs of one statement; those of the others are missing."""
    small, runs = load(study)
    statement = next(each for each in small.statements if each.id == identity)
    frames = draw(study, statement, gain, sigma).load()
    rest = {run.spec.key: run for run in runs if run.spec.key not in frames.runs.index}
    rows = [
        dict.fromkeys(frames.runs.columns)
        | {"key": key, "scale": run.size, "method": run.spec.method, "seed": run.spec.init_seed}
        | {"run_id": run.spec.run_id, "outcome": "missing", "validation_loss": math.nan}
        for key, run in rest.items()
    ]
    return dataclasses.replace(frames, runs=pd.concat([frames.runs, pd.DataFrame(rows).set_index("key")]))


def test_a_statement_is_judged_and_the_others_are_not_run() -> None:
    table = make("premature", "small", draw_gains("premature", "upper_entropy_stays_high", 0.03, 0.001))
    assert isinstance(table, Table)
    (statement,) = [each for each in load("premature")[0].statements if each.id == "upper_entropy_stays_high"]
    rows = table.frame.set_index("statement")
    own = rows.loc["upper_entropy_stays_high"]
    assert list(own["verdict"]) == ["seen", "seen"] and list(own["size"]) == ["0.8M", "1.3M"]
    assert list(own["gain"]) == pytest.approx([0.03, 0.03]) and list(own["below_target"]) == ["yes", "yes"]
    assert (own["power"] == 1).all() and list(own["n_seeds"]) == [len(statement.seeds)] * 2
    assert set(rows.loc["gated_blocks_gain_less", "verdict"]) == {"not run"}
    cell = table.cell("gated_blocks_gain_less/deep/geglu", "gain")
    assert cell.value is None and cell.word == "missing"
    assert len(cell.runs) == 4 * len(statement.seeds) and all(key.startswith("premature/deep/") for key in cell.runs)


@pytest.mark.parametrize("study", STUDIES)
def test_every_statement_size_and_contrast_has_a_row(study: str) -> None:
    small, _ = load(study)
    frames = draw_gains(study, small.statements[-1].id, small.statements[-1].target_gain, 0.01)
    table = make(study, "small", frames)
    assert isinstance(table, Table)
    expected = {
        f"{each.id}/{size}/{contrast}"
        for each in small.statements
        for size in each.sizes
        for contrast in (["order"] if each.test == "order" else each.contrasts)
    }
    assert set(table.frame["row"]) == expected and table.frame["row"].is_unique


def test_the_pilot_tells_the_noise_and_how_many_seeds_it_needs() -> None:
    """By scipy's power of the t test; gains are not shown."""
    study, (small, _) = "query_free", load("query_free")
    statement = small.statements[0]
    frames = draw_gains(study, statement.id, 5.0, 0.02)
    table = make(study, "small_pilot", frames)
    assert isinstance(table, Table) and "gain" not in table.frame.columns
    assert not any(cell.value == pytest.approx(5.0) for row in table.rows for cell in row.values() if cell.value)
    row = table.frame.set_index("row").loc[f"{statement.id}/deep/query"]
    keys = [[f"{study}/deep/{arm}/s{seed}" for seed in (101, 102, 103)] for arm in statement.arms]
    own, other = (frames.runs.loc[of_arm, "validation_loss"].to_numpy(dtype=float) for of_arm in keys)
    sigma = float(np.std(own - other, ddof=1))
    assert row["sigma"] == pytest.approx(sigma) and (row["df"], row["n_seeds"]) == (2, 3)

    def compute_power(n: int) -> float:
        shift = 0.01 / (sigma / math.sqrt(n))
        return float(stats.nct.sf(stats.t.isf(0.025, n - 1), n - 1, shift))

    assert row["power"] == pytest.approx(compute_power(len(statement.seeds)), abs=0.02)
    assert compute_power(int(row["seeds_needed"])) > 0.78 and compute_power(int(row["seeds_needed"]) - 1) < 0.82
    assert row["power_low"] <= row["power"] <= row["power_high"]


def test_no_seeds_are_counted_for_a_test_that_a_diverged_run_has_decided() -> None:
    frames = draw_gains("premature", "slowing_lowers_the_loss", 0.0, 0.01)
    frames = dataclasses.replace(frames, runs=frames.runs.copy())
    frames.runs.loc["premature/deep/gpt/s102", ["outcome", "validation_loss"]] = ["diverged", math.nan]
    table = make("premature", "small_pilot", frames)
    assert isinstance(table, Table)
    for column in ("power", "power_low", "power_high", "seeds_needed"):
        assert table.cell("slowing_lowers_the_loss/deep/slowed", column).word == "diverged"
        assert table.cell("slowing_lowers_the_loss/shallow/slowed", column).value is not None


def test_sizes_that_are_not_asked_for_are_not_run() -> None:
    """Their runs are in no frame; what the others say is the same."""
    name = "upper_entropy_stays_high"
    every = draw_gains("premature", name, 0.03, 0.001)
    asked = dataclasses.replace(every, runs=every.runs[every.runs["scale"] == "shallow"])
    whole, part = (make("premature", "small", frames) for frames in (every, asked))
    pilot, picture = make("premature", "small_pilot", asked), make("premature", "small_gains", asked, "figures")
    assert isinstance(whole, Table) and isinstance(part, Table) and isinstance(pilot, Table)
    facts = ["row", "verdict", "gain", "p", "outcome", "run_ids"]
    at_shallow = whole.frame["size"] == "0.8M"
    pd.testing.assert_frame_equal(part.frame[at_shallow][facts], whole.frame[at_shallow][facts])
    assert set(part.frame[~at_shallow]["verdict"]) == {"not run"} and part.frame[~at_shallow]["gain"].isna().all()
    assert set(pilot.frame["size"]) == {"0.8M", "1.3M"} and isinstance(picture, FigureWithData)


def test_the_picture_has_its_minimum_at_0_and_its_target_at_1() -> None:
    frames = draw_gains("premature", "lower_routing_is_not_delayed", 0.0, 1e-4)
    picture = make("premature", "small_gains", frames, "figures")
    assert isinstance(picture, FigureWithData)
    rows = picture.frame[picture.frame["row"] == "lower routing is not delayed"]
    assert list(rows["size"]) == ["shallow", "deep"] and list(rows["gain"]) == pytest.approx([0, 0], abs=1e-9)
    assert list(rows["drawn_gain"]) == pytest.approx([1.0, 1.0])
    assert (rows["drawn_low"] < 1).all() and (rows["drawn_high"] > 1).all()
    (axes,) = picture.figure.axes
    assert sum("lower routing" in label.get_text() for label in axes.get_yticklabels()) == 2
    assert any("missing" in text.get_text() for text in axes.texts), "what is not drawn is named"


def test_a_size_of_which_nothing_was_run_is_named_once() -> None:
    frames = draw_gains("premature", "lower_routing_is_not_delayed", 0.0, 1e-4)
    frames = dataclasses.replace(frames, runs=frames.runs.copy())
    frames.runs.loc[frames.runs.index.str.contains("/deep/"), ["outcome", "validation_loss"]] = ["missing", math.nan]
    picture = make("premature", "small_gains", frames, "figures")
    assert isinstance(picture, FigureWithData)
    (note,) = [text.get_text() for text in picture.figure.axes[0].texts if "not drawn" in text.get_text()]
    words = " ".join(note.split())
    assert words.count("1.3M") == 1 and "every gain at 1.3M (missing)" in words and words.count("0.8M") > 5


@pytest.mark.parametrize("sizes", [[], ["--sizes", "deep"]])
def test_before_any_run_a_table_says_so(tmp_path: Path, sizes: list[str]) -> None:
    """By the command that the rule calls; runs of one size alone may be asked for."""
    out = tmp_path / "small.csv"
    command = [sys.executable, "-m", "plumbline.results"]
    where = ["--preset", "evening", "--work", str(tmp_path), *sizes, "--out", str(out)]
    subprocess.run([*command, "table", "key_norms", "small", *where], check=True, capture_output=True)
    rows = pd.read_csv(out)
    assert set(rows["verdict"]) == {"not run"} and rows["gain"].isna().all() and len(rows) == 16
    process = subprocess.run([*command, "show", str(out)], check=True, capture_output=True, text=True)
    assert "early_norms_fall" in process.stdout


def test_rates_are_chosen_of_finished_runs_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small, runs = load("query_free")
    losses = {0.25: 5.3, 0.5: 5.1, 1: 5.0, 2: 5.2}
    tuning = {run.spec.key: run for run in runs if run.tuning}
    nothing = pd.DataFrame(columns=schemas.SCHEMAS["metrics"].names)
    path = tmp_path / "small_rates.yaml"
    monkeypatch.setattr(small_file, "rates_path_of", lambda study, root=None: path)

    def finish(run: small_runs.StatedRun) -> None:
        loss = losses[run.rate] + (0.5 if run.rate in (0.5, 1) and run.arm == "baseline_reduced_schedule" else 0.0)
        write_run(tmp_path, make_run(run.spec, nothing, step=1, loss=loss))

    first, *others = [run for run in tuning.values() if run.size == "shallow"]
    for run in others:
        finish(run)
    with pytest.raises(PlumblineError, match=r"1 of 24 tuning runs.*s201.*small_pilot.csv.*\n.*deep: 24 of 24"):
        small_rates.describe_rates("query_free", tmp_path)
    finish(first)
    shallow_text = small_rates.describe_rates("query_free", tmp_path)
    path.write_text(shallow_text, encoding="utf-8")
    assert "deep: 24 of 24" in capsys.readouterr().err
    assert small_file.load_rates(small) == {"shallow": {"baseline_reduced_schedule": 2, "wq_identity": 1}}
    unchosen = [run for run in small_runs.list_stated_runs(small_runs.load_definition(small), small) if not run.rate]
    assert {run.size for run in unchosen} == {"deep"} and len(unchosen) == 2 * 15
    for run in tuning.values():
        if run.size == "deep":
            finish(run)
    text = small_rates.describe_rates("query_free", tmp_path)
    assert text.startswith(shallow_text), "a size is added to those that are there"
    path.write_text(shallow_text.replace("schedule: 2", "schedule: 1"), encoding="utf-8")
    with pytest.raises(PlumblineError, match=r"rates.shallow: .*\n.*\n.*baseline_reduced_schedule: 2"):
        small_rates.describe_rates("query_free", tmp_path)
    for laid_out in (
        "study: query_free\nrates: {shallow: {baseline_reduced_schedule: 2, wq_identity: 1}}\n",
        shallow_text.replace("study: query_free\n", "") + "study: query_free\n",
        shallow_text.replace("  ", "    "),
        "study: query_free\nrates: {}\n",
    ):
        path.write_text(laid_out, encoding="utf-8")
        with pytest.raises(PlumblineError, match=r"by hand:\n(.*\n)*  deep:\n"):
            small_rates.describe_rates("query_free", tmp_path)
        assert path.read_text(encoding="utf-8") == laid_out
    path.write_text(text, encoding="utf-8")
    assert small_file.load_rates(small) == {
        "shallow": {"baseline_reduced_schedule": 2, "wq_identity": 1},
        "deep": {"baseline_reduced_schedule": 2, "wq_identity": 1},
    }
    assert text.count("# the highest tried") == 2, "a better rate may lie beyond"
    chosen = small_runs.list_stated_runs(small_runs.load_definition(small), small)
    methods = {
        run.spec.method
        for run in chosen
        if run.statement == "queries_are_not_needed_when_both_are_tuned" and not run.tuning
    }
    assert methods == {"baseline_reduced_schedule-rate_2", "wq_identity"}
    rates = {
        each.spec.optimizer.learning_rate for each in chosen if each.spec.method == "baseline_reduced_schedule-rate_2"
    }
    own = {run.spec.optimizer.learning_rate for run in chosen if run.spec.method == "wq_identity"}
    assert len(rates) == len(own) == 1 and rates == {2 * each for each in own}
    for change, message in (
        (("wq_identity: 1", "wq_identity: 3"), r"3 was not tried"),
        (("baseline", "base"), r"tuned arms"),
    ):
        path.write_text(text.replace(*change), encoding="utf-8")
        with pytest.raises(PlumblineError, match=message):
            small_file.load_rates(small)


def test_a_study_without_tuning_chooses_no_rate(tmp_path: Path) -> None:
    with pytest.raises(PlumblineError, match=r"key_norms/small.yaml: .*tuning"):
        small_rates.describe_rates("key_norms", tmp_path)


def test_the_page_has_a_kept_tables_verdicts_in_their_own_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make("premature", "small", draw_gains("premature", "upper_entropy_stays_high", 0.03, 0.001))
    assert isinstance(table, Table)
    small, _ = load("premature")
    statement = next(each for each in small.statements if each.id == "upper_entropy_stays_high")
    gated = next(each for each in small.statements if each.id == "gated_blocks_gain_less")
    monkeypatch.setattr(small_models.study_folders, "folder", lambda study, root: tmp_path)
    assert small_models.describe_verdicts(statement, small, small_models.ROOT) == "not run"
    table.frame.to_csv(tmp_path / "small.csv", index=False)
    text = small_models.describe_verdicts(statement, small, small_models.ROOT)
    assert text.startswith("*seen at 0.8M* (+0.03, +0.0") and "below its target), *seen at 1.3M* (" in text
    assert small_models.describe_verdicts(gated, small, small_models.ROOT) == "not run"
    table.frame[table.frame["size"] == "0.8M"].to_csv(tmp_path / "small.csv", index=False)
    with pytest.raises(PlumblineError, match=r"small.csv: .* at 1.3M .*small.yaml"):
        small_models.list_verdicts(small, small_models.ROOT)
    table.frame.to_csv(tmp_path / "small.csv", index=False)
    for change in ({"target_gain": 0.04}, {"idea": "It is as wide."}, {"seeds": [101, 102]}):
        edited = [msgspec.structs.replace(each, **change) if each is statement else each for each in small.statements]
        with pytest.raises(PlumblineError, match=r"small.csv: upper_entropy_stays_high at .* another text"):
            small_models.list_verdicts(msgspec.structs.replace(small, statements=edited), small_models.ROOT)


@pytest.mark.parametrize("target", ["small", "small_gains", "small_pilot"])
def test_a_changed_statement_makes_its_products_stale(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it changes no run."""
    here, (small, _) = ("transfer", load("transfer"))
    kind = "figure" if target == "small_gains" else "table"

    def mark() -> str:
        project = load_project(overlay(load_config(), {"preset": "evening", "studies": [here]}))
        return project.fingerprints.product(here, kind, target)

    before = mark()
    assert mark() == before
    changed = [msgspec.structs.replace(small.statements[0], target_gain=0.9), *small.statements[1:]]
    monkeypatch.setattr(
        small_file, "load_small", lambda study, root=None: msgspec.structs.replace(small, statements=changed)
    )
    forget(study_config)
    try:
        assert mark() != before
    finally:
        forget(study_config)
