"""The hub's schema of each task: the fields that the harness's YAML reads, and a check that names what is wrong.

A schema is nested data: a type, `[type]` for a list, a dict for an object. A field may hold more than the schema asks.
Values are checked as far as the harness would trip over them: a label outside the choices, no blank to fill.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from plumbline.cli import PlumblineError

Item = dict[str, Any]

_LETTERED = {"choices": {"text": [str], "label": [str]}, "answerKey": str}

SCHEMAS: dict[str, dict[str, Any]] = {
    "piqa": {"goal": str, "sol1": str, "sol2": str, "label": int},
    "arc_easy": {"question": str, **_LETTERED},
    "arc_challenge": {"question": str, **_LETTERED},
    "hellaswag": {"activity_label": str, "ctx_a": str, "ctx_b": str, "endings": [str], "label": str},
    "winogrande": {"sentence": str, "option1": str, "option2": str, "answer": str},
    "social_iqa": {
        "context": str,
        "question": str,
        "answerA": str,
        "answerB": str,
        "answerC": str,
        "label": str,
    },
    # `subject` is empty where a source does not ship it; the prompt then has no line that names the subject.
    "mmlu": {"question": str, "subject": str, "choices": [str], "answer": int},
    "openbookqa": {"question_stem": str, **_LETTERED},
    "boolq": {"passage": str, "question": str, "label": int},
    "race": {"article": str, "problems": str},
    "lambada_openai": {"text": str},
    "truthfulqa_mc2": {"question": str, "mc2_targets": {"choices": [str], "labels": [int]}},
}

# Each answers what is wrong with an item whose fields and types are right, or None.
_SENSE: dict[str, Callable[[Item], str | None]] = {
    "piqa": lambda item: _among("label", item["label"], (0, 1)),
    "boolq": lambda item: _among("label", item["label"], (0, 1)),
    "arc_easy": lambda item: _lettered(item),
    "arc_challenge": lambda item: _lettered(item),
    "openbookqa": lambda item: _lettered(item),
    "hellaswag": lambda item: _among("label", item["label"], [str(i) for i in range(len(item["endings"]))]),
    "winogrande": lambda item: (
        _among("answer", item["answer"], ("1", "2"))
        or (None if item["sentence"].count("_") == 1 else "'sentence' must have one blank '_'")
    ),
    "social_iqa": lambda item: _among("label", item["label"], ("1", "2", "3")),
    "mmlu": lambda item: (
        _among("answer", item["answer"], (0, 1, 2, 3))
        or (None if len(item["choices"]) == 4 else "'choices' must have 4 entries")
    ),
    "race": lambda item: _problems(item["problems"]),
    "lambada_openai": lambda item: None if " " in item["text"].strip() else "'text' must have several words",
    "truthfulqa_mc2": lambda item: _truths(item["mc2_targets"]),
}


def check(task: str, item: Any, where: str) -> Item:
    """Return `item` if it has the fields of `task`.

    Args:
        where: the item's place, for the message, such as ``piqa.jsonl line 3``.

    Raises:
        PlumblineError: a field is missing, of the wrong type, or makes no sense; the message names it.
    """
    if not isinstance(item, dict):
        raise PlumblineError(f"{where}: an item must be a JSON object, not {type(item).__name__}")
    _match(SCHEMAS[task], item, "", f"{where} (task {task})")
    complaint = _SENSE[task](item)
    if complaint:
        raise PlumblineError(f"{where} (task {task}): {complaint}")
    return item


def read(task: str, path: Path, limit: int | None = None) -> list[Item]:
    """The first `limit` items of a JSONL file, each checked.

    Raises:
        PlumblineError: a line is not JSON or not an item of `task`, or there is no line.
    """
    items = [check(task, _parse(line, path, number), f"{path} line {number}") for number, line in _lines(path, limit)]
    if not items:
        raise PlumblineError(f"{path}: there is no item in it (task {task})")
    return items


def dump(items: Iterable[Item]) -> str:
    """Items as JSONL text with the keys in their own order."""
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def _lines(path: Path, limit: int | None) -> Iterator[tuple[int, str]]:
    taken = 0
    with open(path, encoding="utf-8") as handle:
        for number, line in enumerate(handle, 1):
            if limit is not None and taken >= limit:
                return
            if line.strip():
                taken += 1
                yield number, line


def _parse(line: str, path: Path, number: int) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{path} line {number}: not JSON ({error})") from error


def _match(schema: Any, value: Any, field: str, where: str) -> None:
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            raise PlumblineError(f"{where}: field {field!r} must be an object")
        for key, inner in schema.items():
            name = f"{field}.{key}" if field else key
            if key not in value:
                raise PlumblineError(f"{where}: field {name!r} is missing; it has {sorted(value)}")
            _match(inner, value[key], name, where)
    elif isinstance(schema, list):
        if not isinstance(value, list) or not value:
            raise PlumblineError(f"{where}: field {field!r} must be a list that is not empty")
        for inner in value:
            _match(schema[0], inner, field, where)
    elif not isinstance(value, schema) or isinstance(value, bool):
        raise PlumblineError(f"{where}: field {field!r} must be {schema.__name__}, not {value!r}")


def _among(field: str, value: Any, allowed: Iterable[Any]) -> str | None:
    allowed = list(allowed)
    return None if value in allowed else f"{field!r} is {value!r}, which is none of {allowed}"


def _lettered(item: Item) -> str | None:
    choices = item["choices"]
    if len(choices["text"]) != len(choices["label"]):
        return "'choices.text' and 'choices.label' differ in length"
    return _among("answerKey", item["answerKey"].lstrip(), choices["label"])


def _problems(text: str) -> str | None:
    try:
        problems = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return "'problems' must be a list written as Python text"
    if not isinstance(problems, list) or not problems:
        return "'problems' must hold at least one problem"
    for problem in problems:
        missing = {"question", "options", "answer"} - set(problem)
        if missing:
            return f"a problem lacks {sorted(missing)}"
        if len(problem["options"]) != 4 or problem["answer"] not in "ABCD":
            return "a problem must have 4 options and an answer among A, B, C, D"
    return None


def _truths(targets: Item) -> str | None:
    if len(targets["choices"]) != len(targets["labels"]):
        return "'mc2_targets.choices' and 'mc2_targets.labels' differ in length"
    return None if set(targets["labels"]) == {0, 1} else "'mc2_targets.labels' must have both a 1 and a 0"
