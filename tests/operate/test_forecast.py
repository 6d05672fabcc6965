"""How long a Snakemake will take, before it begins and while it is running."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import Any

import pytest

from plumbline.core.formats import format_clock, format_rough_duration
from plumbline.operate.console import forecast
from plumbline.operate.console.job_log import JobCounts, JobLog, StartedJob


@pytest.fixture
def estimator(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Trainings take 100 s, evaluations 20 s, the data stage 30 s; a training of `large` has two devices of eight."""
    monkeypatch.setattr(forecast.data_stage, "seconds", lambda plan, runs: 30.0 if list(runs) else 0.0)
    return SimpleNamespace(
        project=SimpleNamespace(
            run=lambda *names: SimpleNamespace(key="/".join(names), scale=names[1]),
            measurements=SimpleNamespace(one=lambda *names: SimpleNamespace(key="/".join(names), seconds=600.0)),
        ),
        on_device=lambda item: item.key.endswith("gpu"),
        machine=SimpleNamespace(devices_of=lambda run: 2 if run.scale == "large" else 1, devices_at_once=8),
        pretrain_seconds=lambda run: 100.0,
        evaluate_seconds=lambda run: None if run.scale == "unknown" else 20.0,
    )


def jobs(scale: str, number: int, **uses: int) -> list[tuple[int, str, Any, dict[str, int]]]:
    """The corpus, and so many runs with their evaluations, a table and its copy."""
    tasks = [(1, "documents", SimpleNamespace(), uses), (2, "pack", SimpleNamespace(), uses)]
    for seed in range(number):
        wildcards = SimpleNamespace(study="transfer", scale=scale, method="baseline", seed=str(seed))
        tasks += [(100 + seed, "pretrain", wildcards, uses), (200 + seed, "evaluate", wildcards, uses)]
    return [*tasks, (300, "table", SimpleNamespace(), uses), (301, "copy_table", SimpleNamespace(), uses)]


def test_the_scarcest_resource_decides(estimator: Any) -> None:
    uses = {"_cores": 1, "mem_mb": 2000}

    def of(**limits: int | None) -> float | None:
        return forecast.foresee(jobs("base", 6, **uses), limits, estimator).wall

    assert of(_cores=2) == 30 + (6 * 120 + 4) / 2
    assert of(_cores=16, mem_mb=6000) == 30 + (6 * 120 + 4) / 3
    assert of(_cores=16) == 30 + 120, "one run after another of its own jobs"
    assert of(_cores=None, _nodes=2**63 - 1) == 30 + 120


def test_on_a_cluster_the_devices_of_the_machine_are_one_of_them(estimator: Any) -> None:
    estimate = forecast.foresee(jobs("large", 24, _nodes=1), {"_nodes": 64}, estimator, cluster=True)
    assert estimate.wall == 30 + 24 * (2 * 100 + 20) / 8
    assert sum(estimate.seconds.values()) == 24 * 120 + 30 + 4


def test_a_measurement_takes_what_its_study_says(estimator: Any) -> None:
    tasks = jobs("base", 2, _cores=1)
    for number, name in enumerate(("cpu", "gpu")):
        tasks.append((400 + number, "measure", SimpleNamespace(study="quack", measurement=name), {"_cores": 1}))
    estimate = forecast.foresee(tasks, {"_cores": 16}, estimator)
    assert estimate.seconds[400] == estimate.seconds[401] == 600 and estimate.wall == 30 + 600
    assert forecast.foresee(tasks, {"_cores": 1}, estimator).wall == 30 + 2 * 120 + 4 + 2 * 600
    estimator.machine.devices_at_once = 1
    assert forecast.foresee(tasks, {}, estimator, cluster=True).wall == 30 + 2 * 120 + 600, "one of them has a device"


@pytest.mark.parametrize(("load", "is_busy"), [(0.0, False), (2.4, False), (2.6, True)])
def test_a_machine_with_more_to_do_than_cores_is_busy(
    monkeypatch: pytest.MonkeyPatch, load: float, is_busy: bool
) -> None:
    """What was rounded is compared, so that no load of 2 on 2 cores is called busy."""
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    told = forecast.describe_load()
    assert bool(told) == is_busy and ("load 3 on 2 cores" in told) == is_busy


def test_what_cannot_be_estimated_is_said(estimator: Any) -> None:
    estimate = forecast.foresee(jobs("unknown", 1, _cores=1), {"_cores": 1}, estimator)
    assert estimate.wall is None and estimate.seconds[100] == 100


def test_a_forecast_that_fails_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    forecast.announce(SimpleNamespace(), None)  # type: ignore[arg-type]
    (record,) = caplog.records
    assert record.levelname == "WARNING" and "no attribute 'dag'" in record.getMessage()


def snapshot(done: float, passed: float, wall: float | None, running: tuple[StartedJob, ...] = ()) -> JobCounts:
    began = time.monotonic() - passed
    return JobCounts(stages=(), running=running, weight=100.0, done_weight=done, wall=wall, began=began)


def test_time_left_goes_by_the_forecast_first() -> None:
    assert snapshot(0, 10, None).seconds_left() is None
    assert snapshot(0, 10, 50.0).seconds_left() == pytest.approx(40, abs=0.1)
    assert snapshot(50, 100, 50.0).seconds_left() == pytest.approx(100, rel=0.01), "as slow as until now"
    between = snapshot(10, 20, 50.0).seconds_left()
    assert between is not None and 45 < between < 180
    assert snapshot(20, 20, None).seconds_left() == pytest.approx(80, rel=0.01)
    half = StartedJob(number=1, rule="pretrain", name="", logs=(), state=None, out=None, local=True, weight=60.0)
    half.last = {"step": 5, "steps": 10}
    assert snapshot(20, 50, None, (half,)).seconds_left() == pytest.approx(50, rel=0.01), "half of a run counts"


def test_without_a_forecast_every_job_counts_the_same() -> None:
    job_log = JobLog()
    job_log.plan({"pretrain": 3, "copy_table": 1, "all": 1, "total": 5})
    assert job_log.stages == ["train"] and job_log.snapshot().weight == 3


def test_times_in_words() -> None:
    assert [format_rough_duration(seconds) for seconds in (0.2, 45, 89, 91, 540, 9000, 36000, 400000)] == [
        "1 s", "45 s", "89 s", "2 min", "9 min", "2 h", "10 h", "5 days"
    ]  # fmt: skip
    assert format_clock(3671.9) == "1:01:11" and format_clock(None) == ""
