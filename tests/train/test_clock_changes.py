"""A clock that is set by an hour during a run, forwards and back, changes nothing of it, and no time left."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from plumbline.operate import status
from plumbline.operate.console.forecast import Forecast
from plumbline.operate.console.job_log import JobLog
from plumbline.train import loop as loop_module
from plumbline.train.checkpoint import run_lock
from tests.model_specs import run_spec
from tests.train.small_runs import products, read, settings, train


@pytest.mark.parametrize("hours", [1, -1])
def test_a_run_goes_on(
    packs: Path, tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Its lock is then stamped by the other clock, until its next heartbeat."""
    original, clock = loop_module.TrainingLoop.train_step, time.time

    def train_step(self: loop_module.TrainingLoop) -> tuple[bool, bool]:
        if self.step == 5:
            monkeypatch.setattr(time, "time", lambda: clock() + 3600 * hours)
            os.utime(tmp_path / "state" / run_lock.NAME, (clock() - 3600 * hours,) * 2)
        return original(self)

    monkeypatch.setattr(loop_module.TrainingLoop, "train_step", train_step)
    assert train(run_spec(), settings(packs, tmp_path, checkpoint_steps=2)) == 0
    assert products(tmp_path) == products(undisturbed)
    assert [start["ended"] for start in read(tmp_path / "state/starts.json")] == ["completed"]
    assert read(tmp_path / "out/manifest.json")["wall_seconds"] < 600
    events = [json.loads(line) for line in (tmp_path / "state/progress.jsonl").read_text().splitlines()]
    assert all(event["eta_seconds"] < 600 for event in events if "eta_seconds" in event)


@pytest.mark.parametrize("hours", [1, -1])
def test_what_a_person_sees_of_time_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    log, clock = JobLog(), time.time
    log.plan({"pretrain": 2})
    log.forecast = Forecast(seconds={}, wall=300.0)
    monkeypatch.setattr(time, "time", lambda: clock() + 3600 * hours)
    assert log.snapshot().seconds_left() == pytest.approx(300.0, abs=5)


def test_status_forecasts_no_more_than_the_trainer_said(packs: Path, tmp_path: Path, monkeypatch) -> None:
    """The trainer's last word lies an hour ahead."""
    state, clock = tmp_path / "work/smoke/state/a/b/c/s1", time.time
    forecasts: list[float] = []
    original = loop_module.TrainingLoop.train_step

    def train_step(self: loop_module.TrainingLoop) -> tuple[bool, bool]:
        if self.step == 8:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(time, "time", lambda: clock() - 3600)
                os.utime(state / run_lock.NAME, (clock() - 3600,) * 2)
                forecasts.append(status.make_row(state, tmp_path / "out")["eta_seconds"])
        return original(self)

    monkeypatch.setattr(loop_module.TrainingLoop, "train_step", train_step)
    assert train(run_spec(), settings(packs, tmp_path, state=state)) == 0
    assert len(forecasts) == 1 and forecasts[0] < 600
