"""Reads benchmark tasks from config/tasks/: one file says everything that is particular to a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from plumbline.core.errors import PlumblineError, nearest
from plumbline.specs.yaml_files import ROOT, read_checked

MetricPolicy = Literal["acc_norm_where_defined", "acc"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskWorkload:
    """How much there is to read: items of the published split, each in some passes of some bytes of text."""

    items: int
    passes_per_item: float
    bytes_per_pass: int


@dataclass(frozen=True, kw_only=True, slots=True)
class HubData:
    """A data set of the hub at a commit; `file` where it has to be read by name."""

    path: str
    split: str
    revision: str
    licence: str
    configuration: str | None = None
    file: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PackagedData:
    """A file of the pinned wheel, the number of items that it gives, and how they are made of its lines.

    `answers`: how many a line's text of lettered options must hold; None where a line has none.
    """

    file: str
    items: int
    licence: str
    fields: dict[str, Any] = field(hash=False)
    answers: int | None = None
    repeated_answers: bool = False
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProxyItems:
    """The maker of proxy items by name, its options, how an item is made of what it gives, and what guessing scores on
    them where that differs from the task's own items."""

    maker: str
    fields: dict[str, Any] = field(hash=False)
    options: dict[str, Any] = field(hash=False)
    chance: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleasedFormat:
    """How items are made of the form that their authors released: a mapping of fields, or a converter by name."""

    fields: dict[str, Any] = field(default_factory=dict, hash=False)
    converter: str = ""
    needs: Literal["", "labels", "subject"] = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class FewShot:
    """Solved examples before each question: how many, and the hub's split that they are drawn from."""

    number: int
    split: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One benchmark task; config/tasks/README.md explains the keys. What a file leaves out is None."""

    name: str
    harness: str
    choices: int | None
    chance: float
    fields: dict[str, Any] = field(hash=False)
    metric: Literal["acc", "acc_norm"] = "acc"
    right: str | None = None
    subjects: str | None = None
    few_shot: FewShot | None = None
    workload: TaskWorkload | None = None
    hub: HubData | None = None
    packaged: PackagedData | None = None
    proxy: ProxyItems | None = None
    released: ReleasedFormat | None = None

    @property
    def file(self) -> str:
        """The file that describes the task, for messages."""
        return f"config/tasks/{self.name}.yaml"

    @property
    def examples(self) -> str:
        """The name of the file of solved examples beside that of the items."""
        return f"{self.name}.few_shot.jsonl"

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that a folder has of the task."""
        return (f"{self.name}.jsonl", *([self.examples] if self.few_shot else []))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The accuracies that are reported."""
        return ("acc", "acc_norm") if self.metric == "acc_norm" else ("acc",)

    def chance_of(self, source: str) -> float:
        """The score of guessing on items of this source, "benchmark" or "proxy"."""
        own = self.proxy.chance if self.proxy and source == "proxy" else None
        return self.chance if own is None else own

    def primary_metric(self, policy: MetricPolicy) -> str:
        """The metric that enters a suite's average under `policy`."""
        if policy not in get_args(MetricPolicy):
            raise PlumblineError(f"metric policy {policy!r} is none of {list(get_args(MetricPolicy))}")
        return self.metric if policy == "acc_norm_where_defined" else "acc"


def known(root: Path = ROOT) -> list[str]:
    """Names of all tasks: the files of config/tasks."""
    return sorted(path.stem for path in (root / "config" / "tasks").glob("*.yaml"))


def task(name: str, root: Path = ROOT, where: str = "") -> Task:
    """config/tasks/<name>.yaml, checked; `where` stands before the message, such as ``mine.yaml: tasks: ``.

    Raises:
        PlumblineError: there is no such task, or its file cannot be meant.
    """
    path = root / "config" / "tasks" / f"{name}.yaml"
    if not path.is_file():
        there = known(root)
        raise PlumblineError(
            f"{where}there is no task {name!r}{nearest(name, there)} (config/tasks has {there}); "
            f"write config/tasks/{name}.yaml, as config/tasks/README.md says"
        )
    return _read(path)


@cache
def _read(path: Path) -> Task:
    content = read_checked(path, "task")
    if content["task"] != path.stem:
        raise PlumblineError(f"{path}: task: {content['task']!r} must be the file's name, {path.stem!r}")
    sources = {
        "hub": HubData,
        "packaged": PackagedData,
        "released": ReleasedFormat,
        "few_shot": FewShot,
        "workload": TaskWorkload,
    }
    parts: dict[str, Any] = {key: kind(**content[key]) for key, kind in sources.items() if key in content}
    if "proxy" in content:
        plain = {key: content["proxy"].get(key) for key in ("maker", "fields", "chance")}
        options = {key: value for key, value in content["proxy"].items() if key not in plain}
        parts["proxy"] = ProxyItems(**plain, options=options)
    if "few_shot" in parts and "hub" in parts and parts["few_shot"].split == parts["hub"].split:
        raise PlumblineError(
            f"{path}: few_shot.split: {parts['hub'].split!r} is the split that is scored (`hub.split`), whose answers "
            "would stand in the prompt; name another one, such as train"
        )
    if "right" in content and _shape(content["fields"], content["right"]) != ["integer"]:
        raise PlumblineError(
            f"{path}: right: {content['right']!r} is no list of integers among `fields`; name the field that has a 1 "
            "for each right answer"
        )
    for name in ("packaged", "proxy", "released"):
        if name in parts and (made := parts[name].fields):
            _require_fields(made, content["fields"], f"{path}: {name}.fields")
    chance = content["chance"] if "chance" in content else 1 / content["choices"]
    plain = {key: value for key, value in content.items() if key != "task"}
    return Task(name=path.stem, **(plain | parts | {"chance": chance}))


def _require_fields(made: dict[str, Any], needed: dict[str, Any], where: str) -> None:
    """Refuse items that would lack a field: a misspelt one is said before anything is trained."""
    if missing := [name for name in needed if name not in made]:
        more = [name for name in made if name not in needed]
        raise PlumblineError(f"{where}: {missing[0]!r} is missing{nearest(missing[0], more)} (there are {list(made)})")


def _shape(fields: Any, path: str) -> Any:
    """What `fields` say of a field, whose inner fields are parted by dots; None where they do not have it."""
    for key in path.split("."):
        fields = fields.get(key) if isinstance(fields, dict) else None
    return fields
