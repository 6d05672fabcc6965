"""A run that was trained again: what equal, near and different mean, and which exit code follows."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plumbline.bundle import records
from plumbline.core.errors import PlumblineError
from plumbline.operate import retrain
from plumbline.operate.retrain import RecordedRun

SPEC = {"study": "s", "scale": "base", "method": "m", "init_seed": 1}
FILES = {"model.safetensors": {"sha256": "a" * 64}, "points/index.json": {"sha256": "b" * 64}}
MANIFEST = {"spec": SPEC, "files": FILES, "device": "cpu", "processor": "x", "packages": {"torch": "2"}}
OUTCOME = {"outcome": "completed", "step": 2, "last_finite_loss": 5.5, "validation_loss": 5.0}
LOSSES = [6.0, 5.5, 5.0]


def make_run(manifest: dict[str, Any] | None = None, losses: list[float] = LOSSES, **outcome: Any) -> RecordedRun:
    log = pd.DataFrame({"step": [1, 2, 2], "split": ["train", "train", "validation"], "loss": losses})
    return RecordedRun(manifest=MANIFEST | (manifest or {}), outcome=OUTCOME | outcome, metrics=log)


OTHER_WEIGHTS = {"files": FILES | {"model.safetensors": {"sha256": "c" * 64}}}
ELSEWHERE = OTHER_WEIGHTS | {"processor": "y"}


@pytest.mark.parametrize(
    ("trained", "status", "names"),
    [
        (make_run(), "equal", "3 logged losses"),
        (make_run({"processor": "y", "packages": {"torch": "3"}}), "equal", "bit for bit"),
        (make_run(OTHER_WEIGHTS), "different", "same kind of processor"),
        (make_run(ELSEWHERE, [6.0, 5.5 + 1e-6, 5.0]), "near", "processor x, here y"),
        (make_run(OTHER_WEIGHTS | {"code_sha256": "f" * 64}, [6.0, 5.5 + 1e-6, 5.0]), "near", "ffff"),
        (make_run(ELSEWHERE), "different", "0 nats"),
        (make_run(OTHER_WEIGHTS | {"packages": {"torch": "3"}}, [6.0, 5.51, 5.0]), "near", "torch 2, here 3"),
        (make_run(ELSEWHERE, [6.0, 5.53, 5.0]), "near", "0.03 nats"),
        (make_run(ELSEWHERE, [6.0, 5.55, 5.0]), "different", "0.05 nats"),
        (make_run(ELSEWHERE, [6.0, 5.5, float("nan")]), "different", "processor"),
        (make_run(ELSEWHERE, validation_loss=5.02), "different", "validation_loss"),
        (make_run(ELSEWHERE, validation_loss=5.01), "near", "validation_loss"),
        (make_run(ELSEWHERE, validation_loss=None), "different", "validation_loss"),
        (make_run(ELSEWHERE, outcome="diverged"), "different", "completed, here diverged"),
        (make_run({"files": {}}), "different", "other weights"),
        (make_run(validation_loss=5.0 + 1e-9), "different", "validation_loss"),
        (make_run(losses=[6.0, 5.5 + 1e-9, 5.0]), "different", "metrics.parquet"),
        (make_run({"files": FILES | {"points/index.json": {"sha256": "d" * 64}}}), "different", "other weights"),
    ],
)
def test_what_a_run_is_called(trained: RecordedRun, status: str, names: str) -> None:
    compared = retrain.compare(make_run(), trained)
    assert compared.status == status and names in compared.why and compared.key == "s/base/m/s1"


def test_a_record_without_a_processor_is_equal_or_near() -> None:
    silent = make_run({"processor": None})
    assert retrain.compare(silent, make_run()).status == "equal"
    compared = retrain.compare(silent, make_run(OTHER_WEIGHTS, validation_loss=5.0 + 1e-6))
    assert compared.status == "near" and "processor" in compared.why and "here x" in compared.why


def test_two_seeds_of_a_method_are_never_near(repository: Path, tmp_path: Path) -> None:
    """Of the kept records: a quarter of these pairs end as near as two makers' processors, and no pair was as near
    all the way."""
    apart, ends = [], []
    for name in records.list_records(repository / "records"):
        of_method: dict[str, list[RecordedRun]] = {}
        for run in retrain.read_runs(records.unpack_runs(repository / "records" / name, tmp_path / name)[1]):
            of_method.setdefault(run.key.rpartition("/")[0], []).append(run)
        for runs in of_method.values():
            for pair in itertools.combinations(runs, 2):
                if pair[0].metrics.shape == pair[1].metrics.shape:
                    apart.append((pair[0].metrics["loss"] - pair[1].metrics["loss"]).abs().max())
                    ends.append(abs(pair[0].outcome["validation_loss"] - pair[1].outcome["validation_loss"]))
    assert len(apart) == 109 and retrain.LOGGED < min(apart) < 0.042
    assert sum(end < retrain.FINAL for end in ends) == 27


def test_a_draw_is_its_seeds_and_never_more_than_there_is() -> None:
    runs = [make_run({"spec": SPEC | {"init_seed": seed}}) for seed in range(9)]
    drawn = [run.key for run in retrain.draw_runs(runs, 3, 1)]
    assert drawn == [run.key for run in retrain.draw_runs(runs, 3, 1)] and len(set(drawn)) == 3
    assert drawn != [run.key for run in retrain.draw_runs(runs, 3, 2)]
    assert len(retrain.draw_runs(runs, 20, 1)) == 9


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> list[RecordedRun]:
    """Three runs of a record that the project here can train, which `train` gives back as they were."""
    runs = [make_run({"spec": SPEC | {"init_seed": seed}}) for seed in range(3)]
    monkeypatch.setattr(retrain, "explain_refusal", lambda run, project: "")
    monkeypatch.setattr(retrain, "describe_plan", lambda runs, project: "about 1 min")
    monkeypatch.setattr(retrain, "read_trained", lambda run, project: None)
    monkeypatch.setattr(retrain, "train", lambda run, project, stop: run)
    return runs


def call(runs: list[RecordedRun], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = retrain.retrain_runs("one", "smoke", runs, 3, seed=1, changes=[], as_json=True)
    return code, json.loads(capsys.readouterr().out)


def test_a_stop_loses_nothing_that_was_compared(
    record: list[RecordedRun], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = [record[0], None]
    monkeypatch.setattr(retrain, "train", lambda run, project, stop: run if left.pop() is None else None)
    code = retrain.retrain_runs("one", "smoke", record, 3, seed=None, changes=[], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert code == 75 and sum(line.startswith("equal (1 of 3) s/base/m/s") for line in lines) == 1
    seed = lines[0].partition("--seed ")[2].partition(",")[0]
    assert any(f"--seed {seed} continues" in line for line in lines[1:]) and seed.isdecimal()


def test_exit_codes(
    record: list[RecordedRun], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answer = call(record, capsys)
    assert code == answer["exit_code"] == 0 and [run["status"] for run in answer["runs"]] == ["equal"] * 3

    def fail(run: RecordedRun, project: Any, stop: Any) -> RecordedRun:
        if run.key.endswith("s1"):
            raise PlumblineError("no memory")
        return run

    monkeypatch.setattr(retrain, "train", fail)
    code, answer = call(record, capsys)
    assert code == 1 and len(answer["runs"]) == 2 and answer["not_compared"] == {"s/base/m/s1": "no memory"}
    other = {key: replace(run, outcome=OUTCOME | {"step": 1}) for key, run in enumerate(record)}
    monkeypatch.setattr(retrain, "train", lambda run, project, stop: other[run.manifest["spec"]["init_seed"]])
    assert call(record, capsys)[0] == 10
    monkeypatch.setattr(retrain, "explain_refusal", lambda run, project: "its numerics are 1")
    code, answer = call(record, capsys)
    assert code == 16 and answer["not_compared"] == {run.key: "its numerics are 1" for run in record}
