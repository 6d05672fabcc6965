"""What fits a time: the scale and the steps, by the plan's own price, on the speed that was found."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from plumbline import project
from plumbline.core import formats
from plumbline.core.errors import PlumblineError
from plumbline.plan import data_stage, fit_to_time, machines
from plumbline.plan.run_estimate import estimator
from plumbline.project import Project
from plumbline.specs import experiment_runs
from plumbline.specs.study_config import Run
from plumbline.specs.yaml_files import load_config
from tests.plan.finished_run_files import finish


def load_project(work: Path, **changes: object) -> Project:
    return project.load(load_config() | {"studies": ["transfer"], "work": str(work)} | changes)


def fit_budget(whole: Project, time: str, runs: int = 13, scale: str | None = None) -> fit_to_time.FittedBudget:
    return fit_to_time.fit_budget(whole, whole.study("transfer"), "qknorm", "baseline", time, runs=runs, scale=scale)


def longest(whole: Project, budget: fit_to_time.FittedBudget) -> tuple[float, Run]:
    experiment = budget.options | {"method": "qknorm", "against": "baseline", "baseline_seeds": [42], "seeds": [1042]}
    runs = list(experiment_runs.load(experiment, whole.study("transfer")).runs.values())
    return max(estimator(whole).pretrain_seconds(run) for run in runs), runs[0]


@pytest.mark.parametrize(("time", "runs", "scale"), [("2h", 13, None), ("20min", 6, "large"), ("8h", 13, None)])
def test_all_runs_fit_the_time_and_fill_it(tmp_path: Path, time: str, runs: int, scale: str | None) -> None:
    whole, limit = load_project(tmp_path), formats.parse_duration(time)
    budget = fit_budget(whole, time, runs, scale)
    each, _ = longest(whole, budget)
    rounds = math.ceil(runs / estimator(whole).machine.devices_at_once)
    assert 0.8 * limit < budget.seconds <= 0.9 * limit + 1 and rounds * each <= budget.seconds + 1
    assert scale in (None, budget.options["scale"]) and f"{budget.options['steps']:,} steps" in budget.message
    assert "speed stated" in budget.message


def test_a_round_lasts_as_long_as_its_longest_run(tmp_path: Path) -> None:
    whole = load_project(tmp_path, preset="mini", machine="h100")
    for runs in (4, 80):
        budget = fit_budget(whole, "20h", runs)
        each, _ = longest(whole, budget)
        rounds = math.ceil(runs / estimator(whole).machine.devices_at_once)
        assert 0.8 * 20 < rounds * each / 3600 <= 0.9 * 20


def test_speed_is_also_that_of_earlier_experiments(tmp_path: Path) -> None:
    experiment = {"study": "transfer", "scale": "base", "method": "ssmax", "against": "baseline", "pack": "base"}
    experiment |= {
        "steps": 500,
        "warmup_steps": 9,
        "validation_sequences": 64,
        "baseline_seeds": [42, 43, 44],
        "seeds": [1042],
    }
    before = load_project(tmp_path, experiment=experiment)
    price = estimator(before)
    assert before.experiment is not None
    for run in (run for run in before.experiment.runs.values() if run.spec.method == "baseline"):
        finish(before, run, seconds=2 * (price.pretrain_seconds(run) - 4), spec=run.spec.to_dict())
    slow, fast = (fit_budget(load_project(work), "2h", scale="base") for work in (tmp_path, tmp_path / "none"))
    assert "speed measured on" in slow.message
    assert slow.options["steps"] / fast.options["steps"] == pytest.approx(0.5, abs=0.03), "half the speed"


def test_experiment_is_said_to_take_what_its_missing_runs_take(tmp_path: Path) -> None:
    """By the machine that is named, and by measured speed where there is one."""
    experiment = {"study": "transfer", "scale": "base", "method": "ssmax", "against": "baseline"}
    experiment |= {"baseline_seeds": [42, 43, 44], "seeds": [1042]}
    whole = load_project(tmp_path, experiment=experiment)
    study, runs = whole.study("transfer"), list(whole.experiment.runs.values())
    priced = estimator(whole)
    stage = data_stage.seconds(whole, runs)
    seconds = [priced.pretrain_seconds(run) for run in runs]
    both = max(seconds[:2]) + max(seconds[2:]) + stage
    sentence = fit_to_time.estimate_time(whole, study, runs).message
    assert sentence.startswith("At most 4 runs ") and "(0 of 4 are there): about " in sentence
    assert f"{formats.format_duration(both)} on one CPU core" in sentence, "two at once, twice"
    cluster = load_project(tmp_path, experiment=experiment, preset="paper", machine="h100")
    paper = fit_to_time.estimate_time(
        cluster, cluster.study("transfer"), list(cluster.experiment.runs.values())
    ).message
    assert " h on NVIDIA H100 SXM" in paper
    for run in runs[:3]:
        finish(whole, run, seconds=500.0, spec=run.spec.to_dict())
    later = fit_to_time.estimate_time(whole, study, runs).message
    assert later.startswith("At most 1 run ") and "(3 of 4 are there): about " in later
    slower = estimator(whole, calibrate_on=runs).pretrain_seconds(runs[3]) + stage
    assert f"{formats.format_duration(slower)} on one CPU core" in later
    finish(whole, runs[3], seconds=500.0)
    assert fit_to_time.estimate_time(whole, study, runs).message == "Nothing is to be trained: all runs are there."


def test_an_experiment_takes_as_long_as_its_slower_method(tmp_path: Path) -> None:
    experiment = {"study": "transfer", "scale": "base", "method": "attnres", "against": "baseline"}
    whole = load_project(tmp_path, experiment=experiment | {"baseline_seeds": [42], "seeds": [1042]})
    runs, priced = list(whole.experiment.runs.values()), estimator(whole)
    fast, slow = sorted(priced.pretrain_seconds(run) for run in runs)
    assert slow > 1.1 * fast and machines.load("core").devices_at_once == 2
    took = formats.format_duration(slow + data_stage.seconds(whole, runs))
    for order in (runs, runs[::-1]):
        message = fit_to_time.estimate_time(whole, whole.study("transfer"), order).message
        assert f"about {took} on one CPU core" in message


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ("20s", "13 runs: give more time"),
        ("2x", "is not a time"),
        ("0h", "'0h' must be above 0"),
    ],
)
def test_what_fits_nothing_is_said(tmp_path: Path, time: str, message: str) -> None:
    with pytest.raises(PlumblineError, match=message):
        fit_budget(load_project(tmp_path), time)
