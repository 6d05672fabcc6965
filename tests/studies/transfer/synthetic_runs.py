"""Synthetic run directories in which chosen results hold, written as training and evaluation write them."""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
from dataclasses import InitVar, dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from plumbline.core import frames
from plumbline.results.runs.expected_runs import list_expected_runs
from plumbline.results.runs.finished_runs import RunFrames, load
from plumbline.specs import study_config
from tests.studies.run_files import keep_read, make_run, write_frame, write_run
from tests.studies.transfer.synthetic_results import (
    PUBLISHED,
    Run,
    answers_of,
    base_value,
    curve,
    history,
    read_printed_rows,
    right,
    tasks_of,
)

__all__ = ["PUBLISHED", "World", "base_value", "curve", "history", "published_once", "read_printed_rows", "tasks_of"]


@dataclass
class World:
    """Run directories under `root`, of one preset of the transfer study or of one that extends it."""

    root: Path
    preset: str = "paper"
    study: study_config.Study = field(init=False)
    of: InitVar[study_config.Study | None] = None

    def __post_init__(self, of: study_config.Study | None) -> None:
        self.study = of or study_config.load("transfer", self.preset)

    def completed(
        self,
        scale,
        method,
        seed,
        tasks: pd.Series | None,
        loss: float,
        metrics=None,
        source="benchmark",
        made_on=None,
        answers: pd.Series | None = None,
        more: dict[str, pd.Series] | None = None,
        probed: Run | None = None,
    ):
        """A finished run with its scores and what probes read of it: of `tasks` with made-up answers item by item, or
        of these `answers` on (task, item); `more` metrics than accuracy, by task; probes of `probed`."""
        spec = self.study.every_run[self.study.key(scale, method, seed)].spec
        metrics = metrics if metrics is not None else curve(spec.train.steps, loss, every=400)
        probes = (probed or Run()).probes(spec)
        run = make_run(spec, metrics, probes, step=spec.train.steps, loss=loss, made_on=made_on)
        write_run(self.root, run)
        if answers is not None:
            tasks = answers.groupby(level="task", sort=False).mean()
        if tasks is not None:
            values = pd.concat([tasks, pd.Series({"climb_avg": tasks.mean()})])
            self.scores(spec, values, source, answers if answers is not None else answers_of(tasks, spec.key), more)

    def diverged(
        self,
        scale,
        method,
        seed,
        diverged_at: int,
        history: list[tuple[int, float]],
        made_on=None,
        probed: Run | None = None,
    ):
        """A diverged run with the gradient norms that led there; its scores frame is empty."""
        spec = self.study.every_run[self.study.key(scale, method, seed)].spec
        steps = np.array([step for step, _ in history])
        norms = np.array([norm for _, norm in history])
        loss = 2.5 + 3.0 * np.exp(-steps / 3000)
        common = {"split": "train", "loss": loss, "learning_rate": 3e-4, "tokens": steps * 524288}
        tail = [[step, None if math.isnan(norm) else norm] for step, norm in history]
        run = make_run(
            spec, pd.DataFrame({"step": steps, "grad_norm": norms} | common),
            (probed or Run(diverged=diverged_at)).probes(spec), step=diverged_at, loss=None,
            diverged="gradient norm is not finite",
            outcome={"grad_norm_tail": tail}, made_on=made_on,
        )  # fmt: skip
        write_run(self.root, run)
        self.scores(spec, pd.Series(dtype=float), "benchmark")

    def load(self, *groups: str) -> RunFrames:
        """The frames of some groups; of all runs by default."""
        expected = list_expected_runs(None, self.study, groups or self.study.usual_groups, self.root)
        return load(expected, self.root, average="climb_avg", examples=True, probes=True, packs=True)

    def scores(self, spec, values: pd.Series, source: str, answers: pd.Series | None = None, more=None):
        frame = pd.DataFrame({"task": values.index.astype(str), "value": values.to_numpy(dtype=float)})
        frame["metric"] = ["climb_avg" if task == "climb_avg" else "acc" for task in frame["task"]]
        others = [
            pd.DataFrame({"task": of_tasks.index, "value": of_tasks.to_numpy(dtype=float), "metric": metric})
            for metric, of_tasks in (more or {}).items()
        ]
        frame = pd.concat([frame.assign(primary=True), *(other.assign(primary=False) for other in others)])
        frame = frame.assign(run_id=spec.run_id, stderr=0.01, items=100, task_source=source)
        path = self.root / "scores" / spec.key / "scores.parquet"
        write_frame(frame.assign(harness_version="0.4.13"), "scores", path)
        given_answers = pd.Series(dtype=float) if answers is None else answers
        of_items = (
            given_answers.rename("value").rename_axis(["task", "item"][: given_answers.index.nlevels]).reset_index()
        )
        of_items = of_items.reindex(columns=["task", "item", "value"]).astype({"task": str, "item": str})
        of_items = of_items.assign(metric="acc", run_id=spec.run_id)
        frames.write(of_items, "examples", path.with_name("examples.parquet"))


def write_published_world(root: Path) -> World:
    """A world whose runs give what the paper prints, as far as it prints it."""
    world = World(root, "paper")
    for (scale, method, seed), run in right().items():
        if run.diverged is not None:
            world.diverged(scale, method, seed, run.diverged, run.norms, run.made_on, run)
        else:
            steps = world.study.runs[world.study.key(scale, method, seed)].spec.train.steps
            world.completed(
                scale, method, seed, run.tasks, run.loss, run.metrics(steps), made_on=run.made_on, probed=run
            )
    return world


@cache
def published_once() -> World:
    """The published world at paper size, made once a process. Read only."""
    root = tempfile.mkdtemp(prefix="plumbline-published-")
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    return keep_read(write_published_world(Path(root)))
