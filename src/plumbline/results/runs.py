"""The finished runs that a table or figure expects, as frames. What is not there is `missing`, never dropped."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline import frames
from plumbline.cli import PlumblineError
from plumbline.specs.sheet import Study, expected_json

COMPLETED, DIVERGED, MISSING = "completed", "diverged", "missing"

#: The aggregate's row in a scores frame; the other rows are tasks.
AGGREGATE = "climb_avg"


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """A run that a target needs: where it is (``study/scale/method/sSEED``) and which spec it must have."""

    key: str
    run_id: str
    groups: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, str, str, int]:
        """Study, scale, method and init seed."""
        study, scale, method, seed = self.key.split("/")
        return study, scale, method, int(seed.removeprefix("s"))


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFrames:
    """Everything a table may read.

    `runs` has one row for each expected run, on its key: study, scale, method, seed, groups, run_id, outcome
    (completed, diverged or missing), steps, step, last_finite_step, last_finite_loss, validation_loss, climb_avg
    (NaN where there is none), reason, parameters, device. `scores` is the scores frames with the run's key, scale,
    method and seed. `outcomes` and `manifests` are the runs' JSON files by key.
    """

    work: Path
    runs: pd.DataFrame
    scores: pd.DataFrame
    outcomes: dict[str, dict[str, Any]] = field(default_factory=dict)
    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)

    def select(self, scale: str, methods: Iterable[str] | None = None) -> pd.DataFrame:
        """The runs of a scale, and of some methods if named."""
        chosen = self.runs[self.runs["scale"] == scale]
        return chosen if methods is None else chosen[chosen["method"].isin(list(methods))]

    def task_scores(self, key: str) -> pd.Series:
        """The run's primary metric per task, in the order of its scores; empty where it has no scores."""
        mine = self.scores[(self.scores["key"] == key) & self.scores["primary"] & (self.scores["task"] != AGGREGATE)]
        return mine.set_index("task")["value"]

    def metrics(self, key: str) -> pd.DataFrame:
        """The run's metrics frame; without rows for a run that is missing."""
        path = self.work / "runs" / key / "metrics.parquet"
        if self.runs.loc[key, "outcome"] == MISSING:
            return pd.DataFrame(columns=frames.SCHEMAS["metrics"].names)
        if not path.exists():
            raise PlumblineError(f"{path} is not there although the run is finished; remove its directory and rerun")
        return frames.read(path, "metrics")

    @property
    def task_sources(self) -> dict[str, str]:
        """Where each task's items come from: benchmark or proxy; both where runs differ."""
        tasks = self.scores[self.scores["task"] != AGGREGATE]
        return {
            str(task): " and ".join(sorted(set(rows["task_source"])))
            for task, rows in tasks.groupby("task", sort=False)
        }


def expected_runs(text: str | None, study: Study, groups: Iterable[str]) -> list[Expected]:
    """The expected runs from a command line (JSON, or a file of it); by default the study's own for `groups`."""
    if text is None:
        text = expected_json(study.group(*groups))
    elif not text.lstrip().startswith("["):
        path = Path(text)
        if not path.exists():
            raise PlumblineError(f"--expected: there is no file {path}; give it or the JSON list itself")
        text = path.read_text(encoding="utf-8")
    try:
        entries = json.loads(text)
        return [Expected(key=item["key"], run_id=item["run_id"], groups=tuple(item["groups"])) for item in entries]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise PlumblineError(f"--expected must be a JSON list of key, run_id and groups: {error!r}") from error


def load(expected: Iterable[Expected], work: str | Path) -> RunFrames:
    """Read what the expected runs left in ``<work>/runs`` and ``<work>/scores``.

    Raises:
        PlumblineError: a directory holds another run than the expected one, or a file that cannot be read.
    """
    work = Path(work)
    rows, scores, outcomes, manifests = [], [], {}, {}
    for run in expected:
        study, scale, method, seed = run.parts
        row: dict[str, Any] = {"key": run.key, "study": study, "scale": scale, "method": method, "seed": seed}
        row |= {"groups": run.groups, "run_id": run.run_id, "outcome": MISSING}
        outcome = _read(work / "runs" / run.key / "outcome.json", run)
        if outcome is not None:
            manifest = _read(work / "runs" / run.key / "manifest.json", run)
            if manifest is None:
                raise PlumblineError(f"{work / 'runs' / run.key}: outcome.json without manifest.json; rerun it")
            outcomes[run.key], manifests[run.key] = outcome, manifest
            row["outcome"] = outcome["outcome"]
            row |= {name: outcome.get(name) for name in ("steps", "step", "last_finite_step", "reason")}
            row |= {name: _number(outcome.get(name)) for name in ("last_finite_loss", "validation_loss")}
            row |= {"parameters": manifest.get("parameters"), "device": manifest.get("device")}
            mine = _scores(work / "scores" / run.key / "scores.parquet", run)
            if mine is not None:
                row["climb_avg"] = _aggregate(mine, run)
                scores.append(mine.assign(key=run.key, scale=scale, method=method, seed=seed))
        rows.append(row)
    names = ["study", "scale", "method", "seed", "groups", "run_id", "outcome", "steps", "step", "last_finite_step"]
    names += ["last_finite_loss", "validation_loss", "climb_avg", "reason", "parameters", "device"]
    runs = pd.DataFrame(rows, columns=["key", *names]).set_index("key")
    runs[["last_finite_loss", "validation_loss", "climb_avg"]] = runs[
        ["last_finite_loss", "validation_loss", "climb_avg"]
    ].astype(float)
    columns = [*frames.SCHEMAS["scores"].names, "key", "scale", "method", "seed"]
    filled = [frame for frame in scores if len(frame)]
    long = pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(columns=columns)
    long["primary"] = long["primary"].astype(bool)
    return RunFrames(work=work, runs=runs, scores=long, outcomes=outcomes, manifests=manifests)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _read(path: Path, run: Expected) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{path} is not JSON ({error}); remove the run's directory and rerun it") from error
    _same_run(content.get("run_id"), path, run)
    return content


def _same_run(found: str | None, path: Path, run: Expected) -> None:
    if found != run.run_id:
        raise PlumblineError(
            f"{path} is of run {found}, but {run.key} is run {run.run_id} under the present configuration; "
            "rerun it, or restore the configuration it was made with"
        )


def _scores(path: Path, run: Expected) -> pd.DataFrame | None:
    if not path.exists():
        return None
    frame = frames.read(path, "scores")
    for found in frame["run_id"].unique():
        _same_run(found, path, run)
    return frame


def _aggregate(scores: pd.DataFrame, run: Expected) -> float:
    """The run's CLIMB-avg; it must be the mean of the tasks it stands beside."""
    aggregate = scores[scores["task"] == AGGREGATE]["value"]
    if aggregate.empty:
        return math.nan
    tasks = scores[scores["primary"] & (scores["task"] != AGGREGATE)]["value"]
    value, mean = float(aggregate.iloc[0]), float(tasks.mean()) if tasks.notna().all() else math.nan
    if len(aggregate) > 1 or (not math.isnan(value) and not math.isclose(value, mean, abs_tol=1e-9)):
        raise PlumblineError(f"scores of {run.key}: climb_avg is {value}, the mean of its {len(tasks)} tasks is {mean}")
    return value
