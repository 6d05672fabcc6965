"""MLflow sees a run, goes on with it, and cannot disturb it: a stand-in of it, and MLflow itself where it is there."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from plumbline.core.command_line import EXIT_RUN_AGAIN
from plumbline.train.monitoring import mlflow as hook
from plumbline.train.monitoring.progress import SCALARS, ScalarsFile
from tests.model_specs import run_spec
from tests.train.small_runs import products, settings, train
from tests.train.test_pretrain import StopAt

STANDIN = Path(__file__).parent / "standin_mlflow"
REAL = pytest.param("real", marks=pytest.mark.skipif(find_spec("mlflow") is None, reason="MLflow is not installed"))


@pytest.fixture(params=["stand-in", REAL])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """What reads a folder `tracked`, as the hook's process finds it, too."""
    monkeypatch.setattr(hook, "PATIENCE", 120.0)  # the import of the real one takes seconds
    for name, value in hook.DEFAULTS.items():
        monkeypatch.setenv(name, value)
    if request.param == "stand-in":
        monkeypatch.syspath_prepend(STANDIN)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STANDIN), os.environ.get("PYTHONPATH", "")]))
    yield importlib.import_module("mlflow").MlflowClient(tracking_uri=(tmp_path / "tracked").as_uri())
    for name in [name for name in sys.modules if name.partition(".")[0] == "mlflow"]:
        del sys.modules[name]  # the other one is imported next


def only_run(client: Any) -> Any:
    experiment = client.get_experiment_by_name("plumbline/smoke/transfer")
    (run,) = client.search_runs([experiment.experiment_id])
    return run


def steps(client: Any, name: str) -> list[int]:
    return sorted(metric.step for metric in client.get_metric_history(only_run(client).info.run_id, name))


def test_a_run_that_goes_on_is_the_same_run(client: Any, packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    spec, chosen = run_spec(), settings(packs, tmp_path, mlflow=str(tmp_path / "tracked"))
    assert train(spec, chosen, StopAt(20)) == EXIT_RUN_AGAIN
    values = steps(client, "loss")
    assert 0 < len(values) < spec.train.steps and only_run(client).info.status == "KILLED"
    assert train(spec, chosen) == 0
    assert products(tmp_path) == products(undisturbed)
    run = only_run(client)
    assert steps(client, "loss") == list(range(1, 13)) and steps(client, "validation_loss") == [5, 10, 12]
    assert (run.info.status, run.info.run_name) == ("FINISHED", spec.key)
    assert run.data.tags["plumbline.run_id"] == spec.run_id
    assert run.data.params["optimizer.learning_rate"] == str(spec.to_dict()["optimizer"]["learning_rate"])


def follow(tmp_path: Path, *numbers: int, then: bytes = b"") -> None:
    """A trainer takes these steps, and is killed while it writes `then`; what follows it ends as well."""
    scalars = ScalarsFile(tmp_path / SCALARS)
    for number in numbers:
        scalars.scalars(number, {"loss": 4.0 - number})
    scalars.close()
    with open(tmp_path / SCALARS, "ab") as file:
        file.write(then)
    args = [(tmp_path / "tracked").as_uri(), str(tmp_path), run_spec(train__steps=4).to_json()]
    command = [sys.executable, "-m", "plumbline.train.monitoring.mlflow", *args]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=60)


def test_what_a_killed_trainer_makes_again_is_told_once(client: Any, tmp_path: Path) -> None:
    follow(tmp_path, 1, 2, 3, then=b'{"step": 4, "ti')
    assert steps(client, "loss") == [1, 2, 3] and only_run(client).info.status == "KILLED"
    follow(tmp_path, 2, 3, 4)
    assert steps(client, "loss") == [1, 2, 3, 4] and only_run(client).info.status == "FINISHED"


def test_the_next_start_tells_the_rest(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a start made steps that an earlier one had made already, and MLflow has heard of neither."""
    with monkeypatch.context() as away:
        away.setenv("PYTHONPATH", os.pathsep.join([str(STANDIN), os.environ.get("PYTHONPATH", "")]))
        away.setenv("STANDIN_FAULT", "missing")
        follow(tmp_path, 1, 2)
    follow(tmp_path, 2, 3)
    assert steps(client, "loss") == [1, 2, 3]


@pytest.mark.parametrize(
    ("fault", "end"),
    [
        ("missing", "No module named 'mlflow'; in a clone of Plumbline: pip install '.[mlflow]'. The run continues"),
        ("fails", "MlflowException: the server. The run continues"),
        ("hangs", "MLflow has not taken the last values in 0.5 s; training does not wait for it"),
    ],
)
def test_whatever_becomes_of_it_the_run_is_the_same(
    packs: Path, tmp_path: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any, fault: str, end: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(STANDIN), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("STANDIN_FAULT", fault)
    if fault == "hangs":
        monkeypatch.setattr(hook, "PATIENCE", 0.5)
    assert train(run_spec(), settings(packs, tmp_path, mlflow=str(tmp_path / "tracked"))) == 0
    assert products(tmp_path) == products(undisturbed)
    lines = [line for line in capfd.readouterr().err.splitlines() if "MLflow" in line]
    assert len(lines) == 1 and lines[0].endswith(end)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("http://alice:secret@tracker:5000/x", "http://tracker:5000/x"),
        ("http://tracker:5000", "http://tracker:5000"),
        ("file:///data/ml@flow", "file:///data/ml@flow"),
    ],
)
def test_no_password_is_shown_or_kept(uri: str, expected: str) -> None:
    assert hook.strip_password(uri) == expected
