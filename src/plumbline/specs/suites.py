"""Reads suites of tasks from config/suites: which harness task, which metric is primary, what guessing would score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs.config import ROOT, check, read_yaml

MetricPolicy = Literal["acc_norm_where_defined", "acc"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskSize:
    """How much an evaluation reads: `items` of the published split, each in `rows` forward passes of `text` bytes."""

    items: int
    rows: float
    text: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One task of a suite; config/suites/climb12.yaml explains the keys. `size` is None where nobody counted items."""

    name: str
    yaml: str
    choices: int | None
    chance: float
    has_acc_norm: bool = False
    subjects: str | None = None
    size: TaskSize | None = None

    def primary_metric(self, policy: MetricPolicy) -> str:
        """The metric of this task that enters a suite's average under `policy`.

        Raises:
            PlumblineError: there is no such policy.
        """
        if policy not in get_args(MetricPolicy):
            raise PlumblineError(f"metric policy {policy!r} is none of {list(get_args(MetricPolicy))}")
        return "acc_norm" if self.has_acc_norm and policy == "acc_norm_where_defined" else "acc"


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite:
    """Tasks whose primary metrics are averaged, each with the same weight, under the name `average`."""

    name: str
    average: str
    tasks: tuple[Task, ...]

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    @property
    def task_names(self) -> tuple[str, ...]:
        """The tasks' names, in the file's order."""
        return tuple(task.name for task in self.tasks)

    def task(self, name: str) -> Task:
        """The task called `name`.

        Raises:
            PlumblineError: the suite has no such task.
        """
        for task in self.tasks:
            if task.name == name:
                return task
        known = self.task_names
        raise PlumblineError(f"suite {self.name!r} has no task {name!r}{nearest(name, known)} (it has {list(known)})")


def known(root: Path = ROOT) -> list[str]:
    """Names of all suites: the files of config/suites."""
    return sorted(path.stem for path in (root / "config" / "suites").glob("*.yaml"))


def suite(name: str, root: Path = ROOT, where: str = "") -> Suite:
    """Read config/suites/<name>.yaml and check it.

    Args:
        where: begins the message of an error, such as ``study.yaml: suite: ``.

    Raises:
        PlumblineError: there is no such suite, or its file cannot be meant.
    """
    there = known(root)
    if name not in there:
        raise PlumblineError(f"{where}there is no suite {name!r}{nearest(name, there)} (config/suites has {there})")
    return _read(root / "config" / "suites" / f"{name}.yaml")


@cache
def _read(path: Path) -> Suite:
    content = read_yaml(path)
    check(content, "suite", path)
    if content["suite"] != path.stem:
        raise PlumblineError(f"{path}: suite: {content['suite']!r} must be the file's name, {path.stem!r}")
    if content["average"] in content["tasks"]:
        raise PlumblineError(f"{path}: average: {content['average']!r} is also the name of a task; rename the average")
    tasks = tuple(_task(task, entry) for task, entry in content["tasks"].items())
    return Suite(name=path.stem, average=content["average"], tasks=tasks)


def _task(name: str, entry: dict[str, Any]) -> Task:
    size = TaskSize(**entry["size"]) if "size" in entry else None
    chance = entry["chance"] if "chance" in entry else 1 / entry["choices"]
    return Task(name=name, **(entry | {"chance": chance, "size": size}))
