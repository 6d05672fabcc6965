"""Reads benchmark tasks from config/tasks/: one file states everything that is particular to a task."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta, field

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.structs import Absent, ClosedStruct, Fault, find_fault
from plumbline.specs.field_types import Count, Identifier, Positive, Text
from plumbline.specs.yaml_files import ROOT, read_struct

MetricPolicy = Literal["acc_norm_where_defined", "acc"]
Maker = Literal["next_sentence", "said_in_passage", "reading_problem", "two_true_answers", "blank", "last_word"]
Converter = Literal["reading_passage", "answers_by_truth"]
#: What a field of an item may be.
SHAPES = ("text", "integer", "number", "boolean")

#: A whole number stays one: fingerprints have it as it is written.
Chance = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]
#: Answers that a maker or a line gives.
Answers = Annotated[int, Meta(ge=2, le=5)]
Fields = Annotated[dict[str, Any], Meta(min_length=1)]


class TaskWorkload(ClosedStruct, frozen=True, kw_only=True):
    """How much there is to read: items of the published split, each in some passes of some bytes of text."""

    items: Count
    passes_per_item: Positive
    bytes_per_pass: Count


class HubData(ClosedStruct, frozen=True, kw_only=True):
    """A data set of the hub at a commit; `file` where it has to be read by name."""

    path: Text
    split: Text
    revision: Annotated[str, Meta(pattern=r"^[0-9a-f]{40}\Z", description="is not a full commit hash (40 hex digits)")]
    licence: Text
    configuration: Absent[Text] = None
    file: Absent[Text] = None


class PackagedData(ClosedStruct, frozen=True, kw_only=True):
    """A file of the pinned wheel, the number of items that it gives, and how they are made of its lines.

    `answers`: how many a line's text of lettered options must hold; None if a line has none.
    """

    file: Text
    items: Count
    licence: Text
    fields: Fields
    answers: Absent[Answers] = None
    repeated_answers: bool = False
    note: Text = ""

    def __post_init__(self) -> None:
        _require_made(self.fields, "fields")


class ProxyItems(ClosedStruct, frozen=True, kw_only=True):
    """The maker of proxy items by name, its options, how an item is made of what it gives, and what guessing scores on
    them where that differs from the task's own items."""

    maker: Maker
    fields: Fields
    chance: Absent[Chance] = None
    answers: Absent[Answers] = None
    near: Absent[bool] = None
    skip: Absent[Count] = None
    without: Absent[Text] = None

    def __post_init__(self) -> None:
        _require_made(self.fields, "fields")

    @property
    def options(self) -> dict[str, Any]:
        """The options of the maker that the file gives."""
        options = {name: getattr(self, name) for name in ("answers", "near", "skip", "without")}
        return {name: value for name, value in options.items() if value is not None}


class ReleasedFormat(ClosedStruct, frozen=True, kw_only=True):
    """How items are made of the form that their authors released: a mapping of fields, or a converter by name."""

    fields: Fields = {}
    converter: Absent[Converter] = None
    needs: Absent[Literal["labels", "subject"]] = None

    def __post_init__(self) -> None:
        if bool(self.fields) == bool(self.converter):
            raise Fault("give either `fields` or a `converter`, one of the two")
        if self.fields:
            _require_made(self.fields, "fields")


class FewShot(ClosedStruct, frozen=True, kw_only=True):
    """Solved examples before each question: how many, and the hub's split that they are drawn from."""

    number: Count
    split: Text


class Task(ClosedStruct, frozen=True, kw_only=True):
    """One benchmark task; config/tasks/README.md explains the keys. What a file leaves out is None."""

    name: Identifier = field(name="task")
    harness: Text
    choices: Annotated[int, Meta(ge=2)] | None
    chance: Chance = -1
    fields: Fields
    metric: Literal["acc", "acc_norm"] = "acc"
    right: Absent[Text] = None
    subjects: Absent[Text] = None
    few_shot: Absent[FewShot] = None
    workload: Absent[TaskWorkload] = None
    hub: Absent[HubData] = None
    packaged: Absent[PackagedData] = None
    proxy: Absent[ProxyItems] = None
    released: Absent[ReleasedFormat] = None

    def __post_init__(self) -> None:
        _require_shape(self.fields, "fields")
        if self.chance == -1:
            if self.choices is None:
                raise Fault("'chance' is missing, and follows from no number of choices; add it")
            msgspec.structs.force_setattr(self, "chance", 1 / self.choices)

    def __hash__(self) -> int:
        return hash(self.name)

    def to_plain(self) -> dict[str, Any]:
        """Every key with its value, as fingerprints hash it."""
        content = {name: msgspec.to_builtins(getattr(self, name)) for name in self.__struct_fields__}
        if self.proxy:
            content["proxy"] = {"options": self.proxy.options} | {
                name: getattr(self.proxy, name) for name in ("maker", "fields", "chance")
            }
        return content

    @property
    def file(self) -> str:
        """The file that describes the task, for messages."""
        return f"config/tasks/{self.name}.yaml"

    @property
    def examples(self) -> str:
        """The name of the file of solved examples next to that of the items."""
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
        proxy_chance = self.proxy.chance if self.proxy and source == "proxy" else None
        return self.chance if proxy_chance is None else proxy_chance

    def primary_metric(self, policy: MetricPolicy) -> str:
        """The metric that enters a suite's average under `policy`."""
        if policy not in get_args(MetricPolicy):
            raise PlumblineError(f"metric policy {policy!r} is none of {list(get_args(MetricPolicy))}")
        return self.metric if policy == "acc_norm_where_defined" else "acc"


def list_tasks(root: Path = ROOT) -> list[str]:
    """Names of all tasks: the files of config/tasks."""
    return sorted(path.stem for path in (root / "config" / "tasks").glob("*.yaml"))


def task(name: str, root: Path = ROOT, where: str = "") -> Task:
    """config/tasks/<name>.yaml, checked; `where` stands before the message, such as ``mine.yaml: tasks: ``.

    Raises:
        PlumblineError: there is no such task, or its file cannot be meant.
    """
    path = root / "config" / "tasks" / f"{name}.yaml"
    if not path.is_file():
        names = list_tasks(root)
        raise PlumblineError(
            f"{where}there is no task {name!r}{nearest(name, names)} (config/tasks has {names}); "
            f"write config/tasks/{name}.yaml, as config/tasks/README.md says"
        )
    return _read(path)


@cache
def _read(path: Path) -> Task:
    task: Task = read_struct(path, Task)
    if task.name != path.stem:
        raise PlumblineError(f"{path}: task: {task.name!r} must be the file's name, {path.stem!r}")
    if task.few_shot and task.hub and task.few_shot.split == task.hub.split:
        raise PlumblineError(
            f"{path}: few_shot.split: {task.hub.split!r} is the split that is scored (`hub.split`), whose answers "
            "would stand in the prompt; name another one, such as train"
        )
    if task.right is not None and _find_shape(task.fields, task.right) != ["integer"]:
        raise PlumblineError(
            f"{path}: right: {task.right!r} is no list of integers among `fields`; name the field that has a 1 "
            "for each right answer"
        )
    for name, part in (("packaged", task.packaged), ("proxy", task.proxy), ("released", task.released)):
        if part and part.fields:
            _require_fields(part.fields, task.fields, f"{path}: {name}.fields")
    return task


class _Change(ClosedStruct, frozen=True):
    """A field that is a constant, or what stands at a path with a change."""

    constant: Absent[str | float | bool] = field(name="is", default=None)
    path: Absent[Text] = field(name="of", default=None)
    as_: Absent[Literal["text", "integer"]] = field(name="as", default=None)
    values: Absent[Annotated[dict[Any, Any], Meta(min_length=1)]] = None

    def __post_init__(self) -> None:
        if (self.constant is None) == (self.path is None):
            raise Fault("give either `is` or `of`, one of the two")


def _list_inner(value: Any) -> Iterable[tuple[Any, Any]]:
    """The entries of a mapping or list, with their keys or numbers; none of anything else."""
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()


def _require_shape(shape: Any, *place: Any) -> None:
    """Refuse what says of no field what it is: a list has the shape of its entries, a mapping has fields of its own."""
    if not (isinstance(shape, (dict, list)) and shape) and not (isinstance(shape, str) and shape in SHAPES):
        raise Fault(f"{shape!r} is not one of {list(SHAPES)}, a list or a mapping{nearest(str(shape), SHAPES)}", *place)
    for key, entry in _list_inner(shape):
        _require_shape(entry, *place, key)


def _require_made(value: Any, *place: Any) -> None:
    """Refuse what a field of an item cannot be made of: it is a path, a constant, a path with a change, or a list or
    mapping of these.
    """
    if isinstance(value, dict) and value.keys() & {"is", "of"}:
        if fault := find_fault(_Change, value):
            raise Fault(fault[1], *place, *fault[0])
        return
    if not (isinstance(value, (dict, list, str)) and value):
        raise Fault(f"{value!r} is not a path, a list or a mapping", *place)
    for key, entry in _list_inner(value):
        _require_made(entry, *place, key)


def _require_fields(item: dict[str, Any], fields: dict[str, Any], where: str) -> None:
    """Refuse items that would lack a field: a misspelt one is reported before anything is trained."""
    if missing := [name for name in fields if name not in item]:
        extra_names = [name for name in item if name not in fields]
        raise PlumblineError(
            f"{where}: {missing[0]!r} is missing{nearest(missing[0], extra_names)} (there are {list(item)})"
        )


def _find_shape(fields: Any, path: str) -> Any:
    """What `fields` state of a field, whose inner fields are parted by dots; None if they do not have it."""
    for key in path.split("."):
        fields = fields.get(key) if isinstance(fields, dict) else None
    return fields
