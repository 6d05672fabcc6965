"""As much of MLflow as what follows a run uses, in one JSON file. STANDIN_FAULT states what goes wrong."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlparse

from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException

if os.environ.get("STANDIN_FAULT") == "missing":
    raise ModuleNotFoundError("No module named 'mlflow'")


class MlflowClient:
    def __init__(self, tracking_uri: str) -> None:
        folder = Path(unquote(urlparse(tracking_uri).path))
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "all.json"

    @contextmanager
    def _content(self) -> Iterator[dict[str, Any]]:
        content = json.loads(self.path.read_text()) if self.path.exists() else {"experiments": [], "runs": {}}
        yield content
        self.path.write_text(json.dumps(content))

    def get_experiment_by_name(self, name: str) -> SimpleNamespace | None:
        with self._content() as content:
            names = content["experiments"]
            return SimpleNamespace(experiment_id=str(names.index(name))) if name in names else None

    def create_experiment(self, name: str) -> str:
        with self._content() as content:
            content["experiments"].append(name)
            return str(len(content["experiments"]) - 1)

    def create_run(self, experiment_id: str, run_name: str, tags: dict[str, str]) -> SimpleNamespace:
        with self._content() as content:
            name = f"run{len(content['runs'])}"
            content["runs"][name] = {"experiment": experiment_id, "name": run_name, "tags": tags, "params": {}}
            content["runs"][name] |= {"status": "RUNNING", "metrics": {}}
        return self.get_run(name)

    def get_run(self, run_id: str) -> SimpleNamespace:
        with self._content() as content:
            if run_id not in content["runs"]:
                raise MlflowException("no such run", "RESOURCE_DOES_NOT_EXIST")
            run = content["runs"][run_id]
        info = SimpleNamespace(run_id=run_id, status=run["status"], run_name=run["name"])
        data = SimpleNamespace(params=run["params"], tags=run["tags"], metrics=run["metrics"])
        return SimpleNamespace(info=info, data=data)

    def search_runs(self, experiment_ids: list[str]) -> list[SimpleNamespace]:
        with self._content() as content:
            names = [name for name, run in content["runs"].items() if run["experiment"] in experiment_ids]
        return [self.get_run(name) for name in names]

    def update_run(self, run_id: str, status: str) -> None:
        self.get_run(run_id)
        with self._content() as content:
            content["runs"][run_id]["status"] = status

    set_terminated = update_run

    def log_batch(self, run_id: str, metrics: list[Metric] = [], params: list[Param] = []) -> None:  # noqa: B006
        if metrics and os.environ.get("STANDIN_FAULT") == "fails":
            raise MlflowException("the server\nis away", "TEMPORARILY_UNAVAILABLE")
        if metrics and os.environ.get("STANDIN_FAULT") == "hangs":
            time.sleep(3)
        with self._content() as content:
            run = content["runs"][run_id]
            run["params"] |= {param.key: param.value for param in params}
            for metric in metrics:
                run["metrics"].setdefault(metric.key, []).append([metric.step, metric.value])

    def get_metric_history(self, run_id: str, key: str) -> list[SimpleNamespace]:
        with self._content() as content:
            points = content["runs"][run_id]["metrics"].get(key, [])
        return [SimpleNamespace(step=step, value=value) for step, value in points]
