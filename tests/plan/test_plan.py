"""Estimates: limits, conservation, what is done costs nothing, and prices next to printed ones."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest
from msgspec import structs

from plumbline.core.errors import PlumblineError
from plumbline.plan import machines
from plumbline.plan.run_estimate import estimator
from plumbline.plan.target_costs import WHOLE, compare_published, makespan
from plumbline.project import Project
from plumbline.specs.yaml_files import ROOT
from tests.plan.finished_run_files import BASELINE, by_target, finish


def test_a_paper_run_is_the_arithmetic_of_its_sizes(paper: Project) -> None:
    """6 operations a weight and token, 12 a layer, width and pair of tokens; 8 H100 at 0.40 of 989 TFLOP/s. What is
    estimated is the baseline's."""
    priced = estimator(paper)
    run = paper.runs[BASELINE]
    weights = 24 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 5632) + 65664 * 2048
    token = 6 * weights + 12 * 24 * 2048 * 1024
    tokens = 44000 * 524288 + 440 * 2048 * 1024 / 3
    flops = priced.training_flops(run)
    assert flops == pytest.approx(token * tokens, rel=1e-9)
    assert priced.pretrain_seconds(run) == pytest.approx(120 + flops / (8 * 0.40 * 989e12))


def test_the_whole_study_is_the_sum_of_its_distinct_runs(paper: Project) -> None:
    priced = estimator(paper)
    whole = by_target(priced).loc[WHOLE]
    runs = list(paper.runs.values())
    assert whole["runs"] == whole["runs_to_do"] == len(runs) == len({run.spec.run_id for run in runs})
    assert whole["tokens"] == sum(run.spec.train.steps * run.spec.train.batch_tokens for run in runs)
    assert whole["training_flops"] == pytest.approx(sum(priced.training_flops(run) for run in runs))
    hours = sum(priced.pretrain_seconds(run) * priced.machine.devices_of(run) for run in runs) / 3600
    evaluated = paper.studies["transfer"].group("base", "noise_floor", "large", "hardware", "variants")
    hours += sum(priced.evaluate_seconds(run) for run in evaluated) / 3600
    probed = paper.studies["transfer"].group("large", "concentration")
    hours += sum(priced.probe_seconds(run) for run in probed) / 3600
    assert (whole["evaluations_to_do"], whole["probes_to_do"]) == (len(evaluated), len(probed))
    assert whole["device_hours"] == pytest.approx(hours)
    parts = ("training_device_hours", "evaluation_device_hours", "probe_device_hours")
    assert whole["device_hours"] == pytest.approx(sum(whole[part] for part in parts))


def test_a_whole_study_evaluates_what_its_targets_read(paper: Project) -> None:
    study = paper.studies["transfer"]
    targets = {name: study.definition["targets"][name] for name in ("table5", "table6")}
    fewer = dataclasses.replace(study, definition=study.definition | {"targets": targets})
    rows = by_target(estimator(dataclasses.replace(paper, studies={"transfer": fewer})))
    assert rows["evaluations_to_do"].to_dict() == {"table5": 21, "table6": 0, WHOLE: 21}
    assert rows.loc[WHOLE, "runs"] == len(study.runs)


def test_a_target_costs_at_most_the_whole(paper: Project) -> None:
    rows = by_target(estimator(paper))
    assert (rows["device_hours"] <= rows.loc[WHOLE, "device_hours"] * (1 + 1e-12)).all()
    assert (rows["longest_run_hours"] <= rows["longest_path_hours"]).all()
    assert (rows["longest_path_hours"] <= rows["wall_hours"]).all()
    assert rows.loc["table1", ["runs", "device_hours", "disk_gb", "wall_hours"]].tolist() == [0, 0, 0, 0]
    assert rows.loc["fig2", "evaluations_to_do"] == 0


def test_many_devices_leave_the_longest_path(paper: Project) -> None:
    machine = structs.replace(machines.load("h100"), devices_at_once=10**6)
    row = by_target(estimator(paper, machine)).loc["table2"]
    assert row["wall_hours"] == pytest.approx(row["longest_path_hours"], rel=1e-2)


def test_what_is_done_is_not_priced(demo: Project) -> None:
    before = by_target(estimator(demo, calibrate_on=[]))
    run = demo.runs[BASELINE]
    finish(demo, run, seconds=30.0, evaluation=8.0)
    priced = estimator(demo, calibrate_on=[])
    after = by_target(priced)
    assert after.loc["table2", "runs_done"] == 1
    for name in ("table2", WHOLE):
        spent = (before.loc[name, "device_hours"] - after.loc[name, "device_hours"]) * 3600
        assert spent == pytest.approx(priced.pretrain_seconds(run) + priced.evaluate_seconds(run))
    assert after.loc["table6", "device_hours"] == before.loc["table6", "device_hours"]


def test_time_limits_are_positive_and_at_most_a_slice(paper: Project, demo: Project) -> None:
    for whole in (paper, demo):
        priced = estimator(whole)
        for run in whole.runs.values():
            for minutes in (priced.pretrain_minutes(run), priced.evaluate_minutes(run)):
                assert isinstance(minutes, int)
                assert 1 <= minutes <= priced.machine.slice_hours * 60
    run = paper.runs[BASELINE]
    short = structs.replace(machines.load("h100"), slice="30 min")
    assert estimator(paper, short).pretrain_minutes(run) == 30
    long = structs.replace(machines.load("h100"), slice="1000 hours")
    priced = estimator(paper, long)
    assert 60 * priced.pretrain_minutes(run) > priced.pretrain_seconds(run)


def test_price(paper: Project) -> None:
    free, dear = estimator(paper), estimator(paper, machines.replace_price(machines.load("h100"), 2.5))
    assert by_target(free)["price"].isna().all()
    rows = by_target(dear)
    assert rows["price"].tolist() == pytest.approx((2.5 * rows["device_hours"]).tolist())
    with pytest.raises(PlumblineError, match="not negative"):
        machines.replace_price(dear.machine, -1)


def test_published_hours_stand_beside_the_estimate_at_paper_only(paper: Project, demo: Project) -> None:
    rows = compare_published(estimator(paper), ROOT).set_index("run")
    assert rows["published_hours"].tolist() == [16, 72]
    assert rows["published_devices"].tolist() == [8, 16]
    assert rows.loc["1.2B Baseline", "ratio"] == pytest.approx(1.0, abs=0.15)
    stated = rows["estimated_hours"] * rows["estimated_devices"]
    assert rows["ratio"].tolist() == pytest.approx(
        (stated / rows["published_hours"] / rows["published_devices"]).tolist()
    )
    assert compare_published(estimator(demo), ROOT).empty


def test_published_hours_need_no_noise_floor(paper: Project, tmp_path: Path) -> None:
    """Without a reference the first method is compared; a study that prints no hours has no row."""
    study = paper.studies["transfer"]
    definition = {key: value for key, value in study.definition.items() if key != "noise_floor"}
    plain = dataclasses.replace(paper, studies={"transfer": dataclasses.replace(study, definition=definition)})
    assert plain.studies["transfer"].reference is None
    rows = compare_published(estimator(plain), ROOT)
    assert rows["run"].tolist() == ["1.2B Baseline", "3B Baseline"]
    (tmp_path / "studies/transfer").mkdir(parents=True)
    shutil.copy(ROOT / "studies/transfer/study.yaml", tmp_path / "studies/transfer")
    assert compare_published(estimator(plain), tmp_path).empty


@pytest.mark.parametrize(
    ("jobs", "devices", "seconds"),
    [
        ([], 4, 0.0),
        ([(10.0, 1)] * 4, 2, 20.0),
        ([(10.0, 1)] * 5, 2, 30.0),  # 25 device-seconds each, if the last one could be shared
        ([(6.0, 2), (4.0, 1), (4.0, 1)], 2, 10.0),
        ([(10.0, 1), (6.0, 8)], 10**11, 10.0),  # no memory holds a number for each
        ([(6.0, 8)], 2, 6.0),  # a run that is larger than the machine waits for all of it
    ],
)
def test_the_last_round_may_leave_devices_idle(jobs: list[tuple[float, int]], devices: int, seconds: float) -> None:
    assert makespan(jobs, devices) == seconds
