"""Reads suites from config/suites/: which tasks are averaged, and what the average is called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.formats import format_count
from plumbline.core.structs import ClosedStruct
from plumbline.specs import tasks
from plumbline.specs.field_types import Identifier
from plumbline.specs.tasks import Task
from plumbline.specs.yaml_files import ROOT, read_struct


class SuiteFile(ClosedStruct, frozen=True):
    """config/suites/<suite>.yaml."""

    suite: Identifier
    average: Identifier
    tasks: Annotated[list[Identifier], Meta(min_length=1)]


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

    @property
    def words(self) -> str:
        """The tasks, for a sentence."""
        return f"{format_count(len(self.tasks), 'task')}: {', '.join(self.task_names)}"

    def task(self, name: str) -> Task:
        """The task called `name`.

        Raises:
            PlumblineError: the suite has no such task.
        """
        for task in self.tasks:
            if task.name == name:
                return task
        names = self.task_names
        raise PlumblineError(f"suite {self.name!r} has no task {name!r}{nearest(name, names)} (it has {list(names)})")


def list_suites(root: Path = ROOT) -> list[str]:
    """Names of all suites: the files of config/suites."""
    return sorted(path.stem for path in (root / "config" / "suites").glob("*.yaml"))


def suite(name: str, root: Path = ROOT, where: str = "") -> Suite:
    """config/suites/<name>.yaml, checked, or the task of that name alone.

    Args:
        where: what stands before a message, such as ``study.yaml: suite: ``.

    Raises:
        PlumblineError: there is no such suite or task, or its file cannot be meant.
    """
    suite_names, task_names = list_suites(root), tasks.list_tasks(root)
    if name in suite_names and name in task_names:
        raise PlumblineError(f"{where}{name!r} is a file of config/suites and of config/tasks; rename the suite")
    if name in suite_names:
        return _read(root, name)
    if name in task_names:
        return Suite(name=name, average=f"{name}_avg", tasks=(tasks.task(name, root),))
    raise PlumblineError(
        f"{where}there is no suite {name!r}{nearest(name, [*suite_names, *task_names])} (config/suites has "
        f"{suite_names}; a task of config/tasks is a suite too: {task_names})"
    )


@cache
def _read(root: Path, name: str) -> Suite:
    path = root / "config" / "suites" / f"{name}.yaml"
    content: SuiteFile = read_struct(path, SuiteFile)
    if content.suite != name:
        raise PlumblineError(f"{path}: suite: {content.suite!r} must be the file's name, {name!r}")
    if content.average in content.tasks:
        raise PlumblineError(f"{path}: average: {content.average!r} is also the name of a task; rename the average")
    suite_tasks = tuple(tasks.task(task, root, f"{path}: tasks: ") for task in content.tasks)
    return Suite(name=name, average=content.average, tasks=suite_tasks)
