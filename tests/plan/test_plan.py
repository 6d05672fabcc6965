"""Estimates: limits, conservation, what is done costs nothing, and measurements taken from files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

from plumbline.cli import PlumblineError
from plumbline.plan import counts, data, evaluation, machines
from plumbline.plan.estimate import Estimator, estimator
from plumbline.plan.targets import WHOLE, published, row, table
from plumbline.project import Plan, plan
from plumbline.specs import suites
from plumbline.specs.config import ROOT, load_config
from plumbline.specs.sheet import Run
from plumbline.specs.spec import ProbeSpec

BASELINE = "transfer/base/baseline/s42"


@pytest.fixture
def paper(tmp_path: Path) -> Plan:
    return plan(load_config() | {"preset": "paper", "work": str(tmp_path), "machine": "h100"})


@pytest.fixture
def demo(tmp_path: Path) -> Plan:
    return plan(load_config() | {"preset": "demo", "work": str(tmp_path)})


def finish(whole: Plan, run: Run, *, seconds: float, evaluation: float | None = None, **changes: Any) -> None:
    """Leave the files of a run that took `seconds` inside and ten more outside."""
    work = Path(whole.work)
    folder = work / "runs" / run.key
    folder.mkdir(parents=True)
    manifest = {
        "run_id": run.spec.run_id,
        "wall_seconds": seconds,
        "tokens": run.spec.train.steps * run.spec.train.batch_tokens,
        "world_size": 1,
        "attempts": 1,
        "device": "cpu",
        "device_name": "any processor",
    }
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))
    (folder / "outcome.json").write_text("{}")
    benchmark(work, "pretrain", run, seconds + 10)
    if evaluation is not None:
        scores = work / "scores" / run.key
        scores.mkdir(parents=True)
        (scores / "scores.parquet").touch()
        benchmark(work, "evaluate", run, evaluation)


def benchmark(work: Path, rule: str, run: Run, seconds: float) -> None:
    path = work / "benchmarks" / rule / f"{run.key.replace('/', '.')}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"s": seconds}) + "\n")


def by_target(priced: Estimator) -> pd.DataFrame:
    return table(priced).set_index("target")


def test_a_paper_run_is_the_arithmetic_of_its_sizes(paper: Plan) -> None:
    """6 operations a weight and token, 12 a layer, width and pair of tokens; 8 H100 at 0.40 of 989 TFLOP/s. What is
    reckoned is the baseline's."""
    priced = estimator(paper)
    run = paper.runs[BASELINE]
    weights = 24 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 5632) + 65664 * 2048
    token = 6 * weights + 12 * 24 * 2048 * 1024
    tokens = 44000 * 524288 + 440 * 2048 * 1024 / 3
    flops = priced.training_flops(run)
    assert flops == pytest.approx(token * tokens, rel=1e-9)
    assert priced.pretrain_seconds(run) == pytest.approx(120 + flops / (8 * 0.40 * 989e12))


def test_the_whole_study_is_the_sum_of_its_distinct_runs(paper: Plan) -> None:
    priced = estimator(paper)
    whole = by_target(priced).loc[WHOLE]
    runs = list(paper.runs.values())
    assert whole["runs"] == whole["runs_to_do"] == len(runs) == len({run.spec.run_id for run in runs})
    assert whole["tokens"] == sum(run.spec.train.steps * run.spec.train.batch_tokens for run in runs)
    assert whole["training_flops"] == pytest.approx(sum(priced.training_flops(run) for run in runs))
    hours = sum(priced.pretrain_seconds(run) * priced.machine.devices_of(run) for run in runs) / 3600
    evaluated = paper.studies["transfer"].group("base", "noise_floor", "large", "hardware")
    hours += sum(priced.evaluate_seconds(run) for run in evaluated) / 3600
    assert whole["evaluations_to_do"] == len(evaluated)
    assert whole["device_hours"] == pytest.approx(hours)
    assert whole["device_hours"] == pytest.approx(whole["training_device_hours"] + whole["evaluation_device_hours"])


def test_a_whole_study_evaluates_what_its_targets_read(paper: Plan) -> None:
    study = paper.studies["transfer"]
    targets = {name: study.sheet["targets"][name] for name in ("table5", "table6")}
    fewer = dataclasses.replace(study, sheet=study.sheet | {"targets": targets})
    rows = by_target(estimator(dataclasses.replace(paper, studies={"transfer": fewer})))
    assert rows["evaluations_to_do"].to_dict() == {"table5": 21, "table6": 0, WHOLE: 21}
    assert rows.loc[WHOLE, "runs"] == 42


def test_a_target_costs_at_most_the_whole_and_a_path_at_most_the_wall_time(paper: Plan) -> None:
    rows = by_target(estimator(paper))
    assert (rows["device_hours"] <= rows.loc[WHOLE, "device_hours"] * (1 + 1e-12)).all()
    assert (rows["longest_run_hours"] <= rows["longest_path_hours"]).all()
    assert (rows["longest_path_hours"] <= rows["wall_hours"]).all()
    assert rows.loc["table1", ["runs", "device_hours", "disk_gb", "wall_hours"]].tolist() == [0, 0, 0, 0]
    assert rows.loc["fig2", "evaluations_to_do"] == 0


def test_many_devices_leave_the_longest_path(paper: Plan) -> None:
    machine = dataclasses.replace(machines.load("h100"), devices_at_once=10**6)
    row = by_target(estimator(paper, machine)).loc["table2"]
    assert row["wall_hours"] == pytest.approx(row["longest_path_hours"], rel=1e-2)


def test_what_is_done_is_not_priced(demo: Plan) -> None:
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


def test_a_run_under_another_spec_is_not_done(demo: Plan) -> None:
    finish(demo, demo.runs[BASELINE], seconds=30.0, run_id="0" * 16)
    priced = estimator(demo)
    assert not priced.trained(demo.runs[BASELINE])
    assert priced.calibration.runs == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no manifest of a run"),
        ("[]", "is no manifest of a run"),
        ('{"run_id": "RUN"}', "has no 'wall_seconds'"),
        ('{"run_id": "RUN", "wall_seconds": "30"}', "has no 'wall_seconds'"),
    ],
)
def test_a_damaged_manifest_is_named_and_its_run_is_to_be_done(
    demo: Plan, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run, other = demo.runs[BASELINE], demo.runs["transfer/base/softpick/s42"]
    finish(demo, run, seconds=30.0)
    finish(demo, other, seconds=30.0)
    path = Path(demo.run_file(run, "manifest.json"))
    path.write_text(text.replace("RUN", run.spec.run_id))
    priced = estimator(demo)
    assert by_target(priced).loc["table2", "runs_done"] == 1
    assert priced.calibration.runs == 1
    said = capsys.readouterr().err
    assert said.count(f"warning: {path} {says}") == 1
    assert "delete its folder to repeat the run" in said


@pytest.mark.parametrize("text", ["{", "[]", '{"s": null}', '{"h:m:s": "0:00:09"}'])
def test_a_damaged_benchmark_file_is_named_and_not_used(
    demo: Plan, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = demo.runs[BASELINE]
    finish(demo, run, seconds=30.0)
    path = Path(demo.work) / "benchmarks" / "pretrain" / "transfer.base.baseline.s42.jsonl"
    path.write_text(text)
    priced = estimator(demo)
    assert priced.trained(run) and priced.calibration.runs == 1
    assert priced.calibration.pretrain_start is None
    assert f"warning: {path} is no benchmark of a job" in capsys.readouterr().err


def test_a_calibration_run_is_predicted_as_it_was_measured(demo: Plan) -> None:
    run = demo.runs[BASELINE]
    finish(demo, run, seconds=30.0, evaluation=9.0)
    priced = estimator(demo)
    assert priced.pretrain_seconds(run) == pytest.approx(40.0)
    assert priced.evaluate_seconds(run) == pytest.approx(9.0)
    assert by_target(priced)["speed"].str.startswith("measured on 1 run,").all()


def test_a_slower_calibration_run_makes_all_runs_dearer(demo: Plan) -> None:
    other = demo.runs["transfer/large/softpick/s42"]
    stated = estimator(demo, calibrate_on=[])
    finish(demo, demo.runs[BASELINE], seconds=1e4)
    slow = estimator(demo)
    assert slow.pretrain_seconds(other) > 10 * stated.pretrain_seconds(other)
    assert slow.evaluate_seconds(other) > stated.evaluate_seconds(other)


def test_scales_of_different_studies_have_speeds_of_their_own(demo: Plan) -> None:
    """Their names may be the same; a study without a measurement takes those of others."""
    run = demo.runs[BASELINE]
    finish(demo, run, seconds=30.0)
    priced = estimator(demo)
    (key, speed), *none = priced.calibration.speed.items()
    assert key == ("transfer", "base") and not none
    calibration = dataclasses.replace(priced.calibration, speed={key: speed, ("mine", "base"): 3 * speed})
    other = dataclasses.replace(priced, calibration=calibration)
    mine, third = (
        dataclasses.replace(run, spec=msgspec.structs.replace(run.spec, study=name)) for name in ("mine", "third")
    )
    assert [other.speed(one) / speed for one in (run, mine, third)] == pytest.approx([1, 3, 2])


def test_each_scale_has_its_own_speed(demo: Plan) -> None:
    finish(demo, demo.runs[BASELINE], seconds=30.0)
    finish(demo, demo.runs["transfer/large/baseline/s42"], seconds=60.0)
    priced = estimator(demo)
    assert priced.pretrain_seconds(demo.runs["transfer/large/baseline/s42"]) == pytest.approx(70.0)
    assert priced.pretrain_seconds(demo.runs[BASELINE]) == pytest.approx(40.0)


@pytest.mark.parametrize("change", [{"device": "cuda", "device_name": "NVIDIA A100"}, {"tokens": 5}])
def test_other_machines_and_unfinished_runs_measure_nothing(demo: Plan, change: dict[str, Any]) -> None:
    finish(demo, demo.runs[BASELINE], seconds=30.0, **change)
    assert estimator(demo).calibration.speed == {}


def test_measured_and_stated_speeds_are_told_apart(paper: Plan) -> None:
    assert set(by_target(estimator(paper))["speed"]) == {"stated, MFU 0.40 of 989 TFLOP/s"}


def test_an_evaluation_grows_with_items_context_and_model(paper: Plan, tmp_path: Path) -> None:
    suite = suites.suite("climb12")

    def amount(limit: int, context: int) -> tuple[int, float]:
        found = evaluation.suite_size(suite, limit, tmp_path / "items.json", context, 4096)
        assert found is not None
        return found

    assert amount(16, 128)[0] == 12 * 16
    assert amount(32, 128) == (2 * amount(16, 128)[0], pytest.approx(2 * amount(16, 128)[1]))
    assert amount(16, 1024)[1] > amount(16, 128)[1]
    assert amount(0, 1024)[0] == sum(task.size.items for task in suite.tasks if task.size)
    priced = estimator(paper)
    base, large = (priced.evaluate_seconds(paper.runs[f"transfer/{scale}/baseline/s42"]) for scale in ("base", "large"))
    assert 60 < base < large


def test_the_items_that_were_made_are_the_items_that_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index, suite = tmp_path / "items.json", suites.suite("climb12")
    index.write_text(json.dumps({"piqa": {"n": 5}}))
    assert evaluation.suite_size(suite, 16, index, 128, 4096)[0] == 11 * 16 + 5
    index.write_text("[")
    assert evaluation.suite_size(suite, 16, index, 128, 4096)[0] == 12 * 16
    assert f"warning: {index} is no index of items" in capsys.readouterr().err


def test_a_task_of_unknown_size_is_named_and_its_job_gets_a_whole_slice(
    demo: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = suites.suite("climb12")
    tasks = (dataclasses.replace(known.tasks[0], size=None), *known.tasks[1:])
    monkeypatch.setattr(suites, "suite", lambda *given: dataclasses.replace(known, tasks=tasks))
    priced, run = estimator(demo), demo.runs[BASELINE]
    assert priced.evaluate_seconds(run) is None
    assert priced.evaluate_minutes(run) == 24 * 60
    row = by_target(priced).loc["table6"]
    assert row["not_counted"] == ""
    row = by_target(priced).loc["table2"]
    assert row["evaluation_device_hours"] == 0 and "evaluation of transfer/base/baseline/s42" in row["not_counted"]


def test_a_study_without_a_suite_evaluates_nothing(demo: Plan) -> None:
    run = dataclasses.replace(demo.runs[BASELINE], spec=msgspec.structs.replace(demo.runs[BASELINE].spec, suite=""))
    priced = estimator(demo)
    assert priced.evaluate_seconds(run) == 0.0
    cost = row(priced, "transfer", "table2", [run], {"scores": {run.key: run}, "probes": {}})
    assert (cost["evaluations_to_do"], cost["evaluation_device_hours"]) == (0, 0)


def test_probes_cost_a_job_that_grows_with_their_points(demo: Plan) -> None:
    run, priced = demo.runs[BASELINE], estimator(demo)

    def probed(*fractions: float) -> Run:
        probes = (ProbeSpec(name="norms", at=fractions, sequences=4),)
        return dataclasses.replace(run, spec=msgspec.structs.replace(run.spec, probes=probes))

    few, many = probed(1.0), probed(0.0, 0.1, 0.5, 1.0)
    assert 0 < priced.probe_seconds(few) < priced.probe_seconds(many)
    assert priced.probe_minutes(few) >= 15
    read = {"scores": {}, "probes": {many.key: many}}
    cost = row(priced, "transfer", "mine", [many], read)
    assert cost["probes_to_do"] == 1
    assert cost["probe_device_hours"] == pytest.approx(priced.probe_seconds(many) / 3600)
    assert cost["device_hours"] == pytest.approx(cost["training_device_hours"] + cost["probe_device_hours"])
    assert cost["disk_gb"] > row(priced, "transfer", "mine", [few], read)["disk_gb"]
    finish(demo, run, seconds=30.0)
    Path(demo.probes_file(run)).parent.mkdir(parents=True)
    Path(demo.probes_file(run)).touch()
    assert (
        row(estimator(demo), "transfer", "mine", [run], {"scores": {}, "probes": {run.key: run}})["probes_to_do"] == 0
    )


def test_time_limits_are_positive_and_at_most_a_slice(paper: Plan, demo: Plan) -> None:
    for whole in (paper, demo):
        priced = estimator(whole)
        for run in whole.runs.values():
            for minutes in (priced.pretrain_minutes(run), priced.evaluate_minutes(run)):
                assert isinstance(minutes, int)
                assert 1 <= minutes <= priced.machine.slice_hours * 60
    run = paper.runs[BASELINE]
    short = dataclasses.replace(machines.load("h100"), slice_hours=0.5)
    assert estimator(paper, short).pretrain_minutes(run) == 30
    long = dataclasses.replace(machines.load("h100"), slice_hours=1000)
    priced = estimator(paper, long)
    assert 60 * priced.pretrain_minutes(run) > priced.pretrain_seconds(run)


def test_a_relative_step_time_is_that_of_the_components_added_up(demo: Plan) -> None:
    times = {"mixer": {"softpick": 1.5}, "query_key": {"qk_norm": 1.1}, "precision": {"bfloat16": 2.0}}
    machine = dataclasses.replace(machines.load("core"), relative_step_time=times)
    expected = {"baseline": 1.0, "softpick": 1.5, "qknorm_geglu": 1.1, "second_hardware": 2.0}
    for method, ratio in expected.items():
        assert machine.relative(demo.runs[f"transfer/base/{method}/s42"]) == pytest.approx(ratio)
    finish(demo, demo.runs["transfer/base/softpick/s42"], seconds=30.0)
    assert estimator(demo, machine).pretrain_seconds(demo.runs[BASELINE]) == pytest.approx(10 + 20, rel=1e-2)


def test_price(paper: Plan) -> None:
    free, dear = estimator(paper), estimator(paper, machines.priced(machines.load("h100"), 2.5))
    assert by_target(free)["price"].isna().all()
    rows = by_target(dear)
    assert rows["price"].tolist() == pytest.approx((2.5 * rows["device_hours"]).tolist())
    with pytest.raises(PlumblineError, match="not negative"):
        machines.priced(dear.machine, -1)


def test_the_data_stage_costs_nothing_once_its_packs_are_there(demo: Plan) -> None:
    assert data.seconds(demo, demo.runs.values()) > 0
    for run in demo.runs.values():
        path = Path(demo.pack_manifest(run))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert data.seconds(demo, demo.runs.values()) == 0


def test_corpora_are_made_side_by_side_and_a_target_pays_for_its_own(demo: Plan) -> None:
    read = demo.corpora["climbmix"]
    twice = msgspec.structs.replace(
        read, name="other", packs={name: 2 * size for name, size in read.packs.items()}, validation=2 * read.validation
    )
    run = demo.runs[BASELINE]
    spec = msgspec.structs.replace(run.spec, study="mine", data=msgspec.structs.replace(run.spec.data, corpus="other"))
    mine = dataclasses.replace(run, spec=spec)
    whole = dataclasses.replace(demo, corpora={"climbmix": read, "other": twice})
    whole.runs[mine.key] = mine
    assert data.tokens(whole, "other") == 2 * data.tokens(whole, "climbmix")
    one, other = data.seconds(whole, [run]), data.seconds(whole, [mine])
    assert data.seconds(demo, [run]) == one < other == data.seconds(whole, [run, mine])
    both = data.disk_bytes(whole, [run, mine])
    assert both == pytest.approx(data.disk_bytes(whole, [run]) + data.disk_bytes(whole, [mine]))
    assert data.disk_bytes(whole, [mine]) == pytest.approx(2 * data.disk_bytes(whole, [run]))
    packs = dict.fromkeys(read.packs)
    unknown = dataclasses.replace(demo, corpora={"climbmix": msgspec.structs.replace(read, packs=packs, source="hub")})
    assert data.tokens(unknown, "climbmix") is None and data.seconds(unknown, [run]) is None
    assert by_target(estimator(unknown)).loc["table2", "not_counted"] == "data"


def test_published_hours_stand_beside_the_estimate_at_paper_only(paper: Plan, demo: Plan) -> None:
    rows = published(estimator(paper), ROOT).set_index("run")
    assert rows["published_hours"].tolist() == [16, 72]
    assert rows["published_devices"].tolist() == [8, 16]
    assert rows.loc["1.2B Baseline", "ratio"] == pytest.approx(1.0, abs=0.15)
    stated = rows["estimated_hours"] * rows["estimated_devices"]
    assert rows["ratio"].tolist() == pytest.approx(
        (stated / rows["published_hours"] / rows["published_devices"]).tolist()
    )
    assert published(estimator(demo), ROOT).empty


def test_published_hours_need_no_noise_floor_and_are_none_where_none_are_printed(paper: Plan, tmp_path: Path) -> None:
    """Without a reference the first method is compared; a study that prints no hours has no row."""
    study = paper.studies["transfer"]
    sheet = {key: value for key, value in study.sheet.items() if key != "noise_floor"}
    plain = dataclasses.replace(paper, studies={"transfer": dataclasses.replace(study, sheet=sheet)})
    assert plain.studies["transfer"].reference is None
    rows = published(estimator(plain), ROOT)
    assert rows["run"].tolist() == ["1.2B Baseline", "3B Baseline"]
    assert published(estimator(plain), tmp_path).empty


def test_the_digest_changes_with_what_is_done_and_with_nothing_else(demo: Plan) -> None:
    first = estimator(demo).digest()
    assert estimator(demo).digest() == first
    finish(demo, demo.runs[BASELINE], seconds=30.0)
    second = estimator(demo).digest()
    other = demo.runs["transfer/base/selective_attn/s42"]
    finish(demo, other, seconds=30.0, evaluation=8.0)
    third = estimator(demo)
    assert len({first, second, third.digest()}) == 3
    counts.update(counts.path(demo), [other])
    counted = estimator(demo)
    assert counted.calibration.speed != third.calibration.speed
    assert counted.digest() == third.digest()
