"""A run that was trained again: what equal, near and different mean, and which exit code follows."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from plumbline import NUMERICS
from plumbline.bundle import records
from plumbline.core import fingerprint_file, locks
from plumbline.core.errors import PlumblineError
from plumbline.core.stop_request import StopRequest
from plumbline.operate import recorded_run, retrain
from plumbline.operate.recorded_run import RecordedRun
from plumbline.specs.spec import RunSpec
from plumbline.train import pretrain

SPEC = {"study": "s", "scale": "base", "method": "m", "init_seed": 1}
FILES = {"model.safetensors": {"sha256": "a" * 64}, "points/index.json": {"sha256": "b" * 64}}
MANIFEST = {
    "spec": SPEC,
    "files": FILES,
    "device": "cpu",
    "processor": "x",
    "packages": {"torch": "2"},
    "parameters": 9,
}
OUTCOME = {"outcome": "completed", "step": 2, "last_finite_loss": 5.5, "validation_loss": 5.0, "reason": None}
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
        (make_run(ELSEWHERE, validation_loss=float("nan")), "different", "validation_loss"),
        (make_run(ELSEWHERE, validation_loss="5.0"), "different", "validation_loss"),
        (make_run(ELSEWHERE, last_finite_loss=5.55), "different", "last_finite_loss"),
        (make_run(ELSEWHERE, last_finite_loss=5.51), "near", "last_finite_loss"),
        (make_run(ELSEWHERE | {"parameters": 8}, [6.0, 5.51, 5.0]), "different", "parameters 9, here 8"),
        (make_run({"parameters": 8}), "different", "parameters 9, here 8"),
        (make_run(reason="of another kind"), "different", "reason"),
        (make_run(later="key"), "equal", "bit for bit"),
        (make_run(ELSEWHERE, outcome="diverged"), "different", "outcome is completed, here diverged"),
        (make_run({"files": {}}), "different", "other weights"),
        (make_run(validation_loss=5.0 + 1e-9), "different", "validation_loss"),
        (make_run(losses=[6.0, 5.5 + 1e-9, 5.0]), "different", "metrics.parquet"),
        (make_run({"files": FILES | {"points/index.json": {"sha256": "d" * 64}}}), "different", "other weights"),
    ],
)
def test_what_a_run_is_called(trained: RecordedRun, status: str, names: str) -> None:
    compared = recorded_run.compare(make_run(), trained)
    assert compared.status == status and names in compared.why and compared.key == "s/base/m/s1"


def test_a_record_without_a_processor_is_equal_or_near() -> None:
    silent = make_run({"processor": None})
    assert recorded_run.compare(silent, make_run()).status == "equal"
    compared = recorded_run.compare(silent, make_run(OTHER_WEIGHTS, validation_loss=5.0 + 1e-6))
    assert compared.status == "near" and "processor not recorded, here x" in compared.why


def test_a_run_in_the_place_of_another_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordedRun, "read", classmethod(lambda cls, folder: make_run()))
    for place in ("s/base/m/s1", "s/base/other/s1"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "manifest.json").touch()
    with pytest.raises(PlumblineError, match=r"s/base/other/s1/manifest\.json.* s/base/m/s1"):
        recorded_run.read_runs(tmp_path)
    (tmp_path / "s/base/other/s1/manifest.json").unlink()
    assert [run.key for run in recorded_run.read_runs(tmp_path)] == ["s/base/m/s1"]


def test_a_record_that_lacks_a_file_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(fingerprint_file.seal({"spec": {}, "files": {}})))
    with pytest.raises(PlumblineError, match=r"no .*metrics\.parquet"):
        RecordedRun.read(tmp_path)


def test_a_setting_that_is_no_number_is_named(tmp_path: Path) -> None:
    run = make_run({"spec": SPEC | {"numerics": NUMERICS}, "torch_threads": "many"})
    project: Any = None
    assert "torch_threads 'many'" in retrain.explain_refusal(run, project)


def test_two_seeds_of_a_method_are_never_near(repository: Path, tmp_path: Path) -> None:
    """Of the kept records: more than half of these pairs end as near as two makers' processors, and no pair was as near
    all the way."""
    apart, ends = [], []
    for name in records.list_records(repository / "records"):
        of_method: dict[str, list[RecordedRun]] = {}
        for run in recorded_run.read_runs(records.unpack_runs(repository / "records" / name, tmp_path / name)[1]):
            of_method.setdefault(run.key.rpartition("/")[0], []).append(run)
        for runs in of_method.values():
            for pair in itertools.combinations(runs, 2):
                if pair[0].metrics.shape == pair[1].metrics.shape:
                    apart.append((pair[0].metrics["loss"] - pair[1].metrics["loss"]).abs().max())
                    ends.append(abs(pair[0].outcome["validation_loss"] - pair[1].outcome["validation_loss"]))
    assert len(apart) > 250 and min(apart) > recorded_run.LOGGED
    assert sum(end < recorded_run.FINAL for end in ends) / len(ends) == pytest.approx(0.55, abs=0.05)


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


def test_a_run_is_trained_by_one_process_at_a_time_and_anew_where_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two commands at once: the state, and the trainer's lock in it, went while the other one waited for it."""
    run = make_run({"data_fingerprint": "1", "validation_fingerprint": "2"})
    out, free = tmp_path / "out", list[bool]()

    def read(cls: type[RecordedRun], folder: Path) -> RecordedRun:
        if not (folder / "whole").exists():
            raise PlumblineError(f"{folder} is damaged")
        return run

    def train(spec: Any, settings: Any, stop: Any) -> int:
        free.append(locks.is_free(tmp_path / locks.OF_FOLDER))
        assert not out.exists()
        out.mkdir()
        (out / "whole").touch()
        return 0

    monkeypatch.setattr(retrain, "_find_folder", lambda run, project: tmp_path)
    monkeypatch.setattr(retrain, "_find_packs", lambda spec, project: (tmp_path, tmp_path))
    monkeypatch.setattr(RunSpec, "from_dict", classmethod(lambda cls, spec: spec))
    monkeypatch.setattr(RecordedRun, "read", classmethod(read))
    monkeypatch.setattr(pretrain, "pretrain", train)
    out.mkdir()
    (out / "outcome.json").touch()
    project: Any = None
    assert retrain.read_trained(run, project) is None
    assert retrain.train(run, project, StopRequest()) is run and free == [False]
    assert retrain.train(run, project, StopRequest()) is run and free == [False]
