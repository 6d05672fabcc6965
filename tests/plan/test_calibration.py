"""Measurements taken from the files of finished runs, damaged ones too."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.plan import machines, model_counts, plan_page
from plumbline.plan.fit_to_time import estimate_time
from plumbline.plan.run_estimate import estimator
from plumbline.plan.target_costs import describe_memory, make_table
from plumbline.project import Project, load
from plumbline.specs.yaml_files import load_config
from tests.plan.finished_run_files import BASELINE, by_target, finish

#: A manifest except for its seconds and its devices.
READ = (
    '{"run_id": "RUN", "wall_seconds": %s, "world_size": %s, '
    '"tokens": 1, "attempts": 1, "device": "cpu", "device_name": "any"}'
)


def test_a_run_under_another_spec_is_not_done(demo: Project) -> None:
    finish(demo, demo.runs[BASELINE], seconds=30.0, run_id="0" * 16)
    priced = estimator(demo)
    assert not priced.is_trained(demo.runs[BASELINE])
    assert priced.calibration.runs == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not the manifest"),
        ('{"run_id": "RUN"}', "has no 'wall_seconds'"),
        ('{"run_id": "RUN", "wall_seconds": "30"}', "has no 'wall_seconds'"),
        ("[" * 100_000, "is not the manifest"),
        (READ % ("30.0", "0"), "has a 'world_size' of 0"),
        (READ % ("30.0", "true"), "has no 'world_size'"),
        (READ % ("30.0", "9" * 400), "has a 'world_size' of 999"),
        (READ % ("NaN", "1"), "has a 'wall_seconds' of nan"),
        (READ % ("0", "1"), "has a 'wall_seconds' of 0"),
    ],
)
def test_a_damaged_manifest_is_named(
    demo: Project, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run, other = demo.runs[BASELINE], demo.runs["transfer/base/softpick/s42"]
    finish(demo, run, seconds=30.0)
    finish(demo, other, seconds=30.0)
    path = Path(demo.paths.run(run, "manifest.json"))
    path.write_text(text.replace("RUN", run.spec.run_id))
    priced = estimator(demo)
    assert by_target(priced).loc["table2", "runs_done"] == 1
    assert priced.calibration.runs == 1 and priced.pretrain_minutes(run) > 0
    stderr = capsys.readouterr().err
    assert stderr.count(f"warning: {path} {message}") == 1
    assert "delete its folder" in stderr


def test_a_run_that_another_user_keeps_to_himself_is_to_be_done(
    demo: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(demo, demo.runs[BASELINE], seconds=30.0)
    exists = Path.exists

    def deny_outcome(path: Path) -> bool:
        if path.name == "outcome.json":
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", deny_outcome)
    assert estimator(demo).calibration.runs == 0
    assert "read or changed by " in capsys.readouterr().err


def test_an_empty_frame_of_a_run_stops_no_plan(demo: Project) -> None:
    run = demo.runs[BASELINE]
    finish(demo, run, seconds=30.0, evaluation=20.0)
    for path in (demo.paths.run(run, "metrics.parquet"), demo.paths.scores(run)):
        Path(path).write_bytes(b"")
        with pytest.raises(PlumblineError, match=r"parquet is damaged: 0 bytes.*delete"):
            frames.read(path, "metrics")
    priced = estimator(demo)
    assert priced.is_trained(run) and priced.is_scored(run) and by_target(priced).loc["table2", "runs_done"] == 1


def test_a_run_that_diverged_at_its_first_step_is_done(demo: Project) -> None:
    finish(demo, demo.runs[BASELINE], seconds=0.5, tokens=0)
    assert estimator(demo).is_trained(demo.runs[BASELINE])


NUMBERS = ["Infinity", "-Infinity", "NaN", "0", "-3", "9" * 400, '"inf"']


@pytest.mark.parametrize("text", ["[]", '{"h:m:s": "0:00:09"}', "[" * 100_000, *(f'{{"s": {one}}}' for one in NUMBERS)])
def test_a_damaged_benchmark_file(demo: Project, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = demo.runs[BASELINE]
    finish(demo, run, seconds=30.0)
    path = Path(demo.paths.work) / "benchmarks" / "pretrain" / "transfer.base.baseline.s42.jsonl"
    path.write_text(text)
    priced = estimator(demo)
    assert priced.is_trained(run) and priced.calibration.runs == 1
    assert priced.calibration.pretrain_start is None and priced.pretrain_minutes(run) > 0
    assert f"{path} is not a benchmark" in capsys.readouterr().err


def test_a_calibration_run_is_predicted_as_it_was_measured(demo: Project) -> None:
    run = demo.runs[BASELINE]
    finish(demo, run, seconds=30.0, evaluation=9.0)
    priced = estimator(demo)
    assert priced.pretrain_seconds(run) == pytest.approx(40.0)
    assert priced.evaluate_seconds(run) == pytest.approx(9.0)
    assert by_target(priced)["speed"].str.startswith("measured on 1 run,").all()


def test_a_slower_calibration_run_makes_all_runs_dearer(demo: Project) -> None:
    other = demo.runs["transfer/large/softpick/s42"]
    stated = estimator(demo, calibrate_on=[])
    finish(demo, demo.runs[BASELINE], seconds=1e4)
    slow = estimator(demo)
    assert slow.pretrain_seconds(other) > 10 * stated.pretrain_seconds(other)
    assert slow.evaluate_seconds(other) > stated.evaluate_seconds(other)


def test_runs_on_request_and_small_models_are_measured_too(tmp_path: Path) -> None:
    """A plan of an evening's hours stayed at the stated speed however many of its runs were finished."""
    evening = load(load_config() | {"studies": ["quack"], "preset": "evening", "work": str(tmp_path)})
    first, second = list(evening.every_run.values())[:2]
    assert first.key not in evening.runs
    stated = estimator(evening)
    finish(evening, first, seconds=10 * stated.pretrain_seconds(first))
    measured = estimator(evening)
    assert measured.calibration.runs == 1
    assert measured.pretrain_seconds(second) > 9 * stated.pretrain_seconds(second)
    assert estimate_time(evening, evening.studies["quack"], [second]).seconds > 9 * stated.pretrain_seconds(second)


def test_each_scale_has_its_own_speed(demo: Project) -> None:
    finish(demo, demo.runs[BASELINE], seconds=30.0)
    finish(demo, demo.runs["transfer/large/baseline/s42"], seconds=60.0)
    priced = estimator(demo)
    assert priced.pretrain_seconds(demo.runs["transfer/large/baseline/s42"]) == pytest.approx(70.0)
    assert priced.pretrain_seconds(demo.runs[BASELINE]) == pytest.approx(40.0)


def test_scales_of_different_studies_have_speeds_of_their_own(demo: Project) -> None:
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
    assert [other.speed(each) / speed for each in (run, mine, third)] == pytest.approx([1, 3, 2])


@pytest.mark.parametrize("change", [{"device": "cuda", "device_name": "NVIDIA A100"}, {"tokens": 5}])
def test_other_machines_and_unfinished_runs_measure_nothing(demo: Project, change: dict[str, Any]) -> None:
    finish(demo, demo.runs[BASELINE], seconds=30.0, **change)
    assert estimator(demo).calibration.speed == {}


def test_memory_is_told_where_runs_recorded_it_and_nowhere_else(demo: Project) -> None:
    for method, peak in (("baseline", 4e8), ("softpick", 5.14e8), ("qknorm", 0), ("hyper", 10**400), ("ssmax", None)):
        more = {"peak_memory_bytes": peak if peak is None else int(peak)}
        finish(demo, demo.runs[f"transfer/base/{method}/s42"], seconds=30.0, **more)
    finish(demo, demo.runs["transfer/large/baseline/s42"], seconds=30.0)
    assert describe_memory(estimator(demo)) == "0.51 GB (base)"
    notes = plan_page.list_notes(estimator(demo), make_table(estimator(demo)))
    assert "most: 0.51 GB (base), of 2 GiB a device." in " ".join(notes)
    assert not describe_memory(estimator(demo, calibrate_on=[]))


def test_measured_and_stated_speeds_are_told_apart(paper: Project) -> None:
    assert set(by_target(estimator(paper))["speed"]) == {"stated, MFU 0.40 (all pairs) of 989 TFLOP/s"}


def test_a_relative_step_time_is_that_of_the_components_added_up(demo: Project) -> None:
    times = {"mixer": {"softpick": 1.5}, "query_key": {"qk_norm": 1.1}, "precision": {"bfloat16": 2.0}}
    machine = msgspec.structs.replace(machines.load("core"), relative_step_time=times)
    expected = {"baseline": 1.0, "softpick": 1.5, "qknorm_geglu": 1.1, "second_hardware": 2.0}
    for method, ratio in expected.items():
        assert machine.compute_relative_time(demo.runs[f"transfer/base/{method}/s42"]) == pytest.approx(ratio)
    finish(demo, demo.runs["transfer/base/softpick/s42"], seconds=30.0)
    assert estimator(demo, machine).pretrain_seconds(demo.runs[BASELINE]) == pytest.approx(10 + 20, rel=1e-2)


def test_the_digest_changes_with_what_is_done(demo: Project) -> None:
    first = estimator(demo).digest()
    assert estimator(demo).digest() == first
    finish(demo, demo.runs[BASELINE], seconds=30.0)
    second = estimator(demo).digest()
    other = demo.runs["transfer/base/selective_attn/s42"]
    finish(demo, other, seconds=30.0, evaluation=8.0)
    third = estimator(demo)
    assert len({first, second, third.digest()}) == 3
    model_counts.update(Path(demo.paths.counts), [other])
    counted = estimator(demo)
    assert counted.calibration.speed != third.calibration.speed
    assert counted.digest() == third.digest()


def test_the_digest_changes_with_what_scores_the_runs(demo: Project) -> None:
    def score_on(suite: str) -> Project:
        study = demo.studies["transfer"]
        runs = {key: dataclasses.replace(run, scored_by=("mine", suite)) for key, run in study.runs.items()}
        return dataclasses.replace(demo, studies={"mine": dataclasses.replace(study, runs=runs)})

    piqa, other = score_on("piqa"), score_on("boolq")
    assert piqa.runs.keys() == other.runs.keys()
    first = estimator(piqa).digest()
    assert first != estimator(other).digest()
    finish(piqa, piqa.runs[BASELINE], seconds=30.0, run_id="0" * 16)  # of another spec, so not done
    assert estimator(piqa).digest() == first
    items = Path(piqa.paths.items("climbmix", "piqa"))
    items.parent.mkdir(parents=True)
    items.write_text('{"piqa": {"n": 7}}')
    assert estimator(piqa).digest() != first, "there is less to evaluate"
