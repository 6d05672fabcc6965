"""Reads and writes items as JSONL, and compares their fields with those that the task's file states.

An item may hold more fields than that. Whether an item makes sense is checked by the harness
(`plumbline.evaluate.check_items`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json
from plumbline.specs.tasks import Task

Item = dict[str, Any]

_KINDS = {"text": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}


def require(task: Task, item: Any, where: str) -> Item:
    """Return `item` if it has the fields of `task`.

    Args:
        where: the item's place, for the message, such as ``piqa.jsonl line 3``.

    Raises:
        PlumblineError: a field is missing or of another type; the message names it.
    """
    if not isinstance(item, dict):
        raise PlumblineError(f"{where}: an item must be a JSON object, not {type(item).__name__}")
    if complaint := _find_fault(item, task.fields, ""):
        raise PlumblineError(f"{where} (task {task.name}): {complaint}; {task.file} says `fields`")
    if task.right is not None and (complaint := _find_label_fault(labels(task, item))):
        raise PlumblineError(f"{where} (task {task.name}): field {task.right!r} {complaint}; {task.file} says `right`")
    return item


def labels(task: Task, item: Item) -> list[Any]:
    """Look up the marks of the answers in an item of a task with several right answers."""
    value: Any = item
    for key in (task.right or "").split("."):
        value = value[key]
    return value


def of(task: Task, item: Item) -> Item:
    """Reduce an item to the fields of its task, in the item's own order."""
    return {key: value for key, value in item.items() if key in task.fields}


def read(task: Task, path: Path, limit: int | None = None) -> list[Item]:
    """The first `limit` items of a JSONL file, with the fields of `task`.

    Raises:
        PlumblineError: a line is not JSON or not an item of `task`, or there is no line.
    """
    return [item for _, item in read_numbered(task, path, limit)]


def read_numbered(task: Task, path: Path, limit: int | None = None) -> list[tuple[int, Item]]:
    """Like `read`, each item with the number of its line."""
    items: list[tuple[int, Item]] = []
    with open(path, encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if limit is not None and len(items) >= limit:
                break
            if line.strip():
                items.append((number, require(task, _parse(line, path, number), f"{path} line {number}")))
    if not items:
        raise PlumblineError(f"{path}: there is no item in it (task {task.name}); write one a line")
    return items


def dump(items: Iterable[Item]) -> str:
    """Items as JSONL text with the keys in their own order."""
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def _parse(line: str, path: Path, number: int) -> Any:
    try:
        return parse_json(line)
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{path} line {number}: not JSON ({error})") from error


def _find_fault(value: Any, shape: Any, field: str) -> str | None:
    """Describe what is wrong with a field's value; None if it is valid."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"field {field!r} must be an object, not {value!r}"
        for key, inner in shape.items():
            name = f"{field}.{key}" if field else key
            if key not in value:
                return f"field {name!r} is missing; it has {sorted(value)}"
            if complaint := _find_fault(value[key], inner, name):
                return complaint
        return _find_uneven_lists(value, shape, field) if field else None
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"field {field!r} must be a list, not {value!r}"
        if len(shape) > 1 and len(value) != len(shape):
            return f"field {field!r} must have {len(shape)} entries, not {len(value)}"
        return next((complaint for entry in value if (complaint := _find_fault(entry, shape[0], field))), None)
    fits = isinstance(value, _KINDS[shape]) and isinstance(value, bool) == (shape == "boolean")
    return None if fits else f"field {field!r} must be of type {shape}, not {value!r}"


def _find_uneven_lists(value: Item, shape: dict[str, Any], field: str) -> str | None:
    """Describe lists of different lengths within one field, such as texts and their letters; None if all are equal."""
    lengths = {f"{field}.{key}": len(value[key]) for key in shape if isinstance(shape[key], list)}
    if len(set(lengths.values())) < 2:
        return None
    lengths_text = " and ".join(f"{name!r} has {length}" for name, length in lengths.items())
    return f"lists of field {field!r} must be of one length, and {lengths_text}"


def _find_label_fault(marks: list[Any]) -> str | None:
    """Describe what is wrong with the marks of right answers: the harness takes those before the first 0 as right."""
    if set(marks) == {0, 1} and marks == sorted(marks, reverse=True):
        return None
    return f"must have a 1 for each right answer and then a 0 for each other, at least one of both, not {marks!r}"
