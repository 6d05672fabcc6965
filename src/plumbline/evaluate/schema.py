"""The hub's schema of each task: the fields that the harness's YAML reads, and a check that names what is wrong.

Items are checked as far as the harness would trip over them: a label outside the choices, no blank to fill. An item may
hold more fields than its schema asks for.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.files import parse_json

Item = dict[str, Any]


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(fields), "properties": fields}


def _among(kind: str, *values: Any) -> dict[str, Any]:
    return {"type": kind, "enum": list(values)}


_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT, "minItems": 1, "description": "must be a list that is not empty"}
_LETTERED = {"choices": _object(text=_TEXTS, label=_TEXTS), "answerKey": _TEXT}
_LABELS = _TEXTS | {"items": {"type": "integer"}}

#: JSON Schema of an item, by task. A `description` is what a message says of a value that does not fit.
SCHEMAS: dict[str, dict[str, Any]] = {
    "piqa": _object(goal=_TEXT, sol1=_TEXT, sol2=_TEXT, label=_among("integer", 0, 1)),
    "arc_easy": _object(question=_TEXT, **_LETTERED),
    "arc_challenge": _object(question=_TEXT, **_LETTERED),
    "hellaswag": _object(activity_label=_TEXT, ctx_a=_TEXT, ctx_b=_TEXT, endings=_TEXTS, label=_TEXT),
    "winogrande": _object(
        sentence=_TEXT | {"pattern": "^[^_]*_[^_]*$", "description": "must have one blank '_'"},
        option1=_TEXT,
        option2=_TEXT,
        answer=_among("string", "1", "2"),
    ),
    "social_iqa": _object(
        context=_TEXT,
        question=_TEXT,
        answerA=_TEXT,
        answerB=_TEXT,
        answerC=_TEXT,
        label=_among("string", "1", "2", "3"),
    ),
    "mmlu": _object(
        question=_TEXT,
        # Empty where a source does not ship it; the prompt then has no line that names the subject.
        subject=_TEXT,
        choices=_TEXTS | {"minItems": 4, "maxItems": 4, "description": "must be a list of 4 entries"},
        answer=_among("integer", 0, 1, 2, 3),
    ),
    "openbookqa": _object(question_stem=_TEXT, **_LETTERED),
    "boolq": _object(passage=_TEXT, question=_TEXT, label=_among("integer", 0, 1)),
    "race": _object(article=_TEXT, problems=_TEXT),
    "lambada_openai": _object(text=_TEXT | {"pattern": r"\S\s* \s*\S", "description": "must have several words"}),
    "truthfulqa_mc2": _object(question=_TEXT, mc2_targets=_object(choices=_TEXTS, labels=_LABELS)),
}

# What a schema cannot say, because it holds one field against another: what is wrong with an item, or None.
_SENSE: dict[str, Callable[[Item], str | None]] = {
    "arc_easy": lambda item: _lettered(item),
    "arc_challenge": lambda item: _lettered(item),
    "openbookqa": lambda item: _lettered(item),
    "hellaswag": lambda item: _one_of("label", item["label"], [str(i) for i in range(len(item["endings"]))]),
    "race": lambda item: _problems(item["problems"]),
    "truthfulqa_mc2": lambda item: _truths(item["mc2_targets"]),
}

# In JSON Schema 1.0 is an integer; to the harness it is no index.
_Strict = validators.extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)
_TYPES = {"string": "str", "integer": "int", "object": "an object", "array": "a list that is not empty"}


def known(task: str) -> str:
    """`task`, if there is a schema for its items.

    Raises:
        PlumblineError: there is none.
    """
    if task not in SCHEMAS:
        raise PlumblineError(
            f"task {task!r} has no schema in plumbline.evaluate.schema{nearest(task, SCHEMAS)} (there are "
            f"{sorted(SCHEMAS)})"
        )
    return task


def fields(task: str) -> tuple[str, ...]:
    """The fields of an item that the harness reads, in the order of the hub's data set."""
    return tuple(SCHEMAS[task]["required"])


@cache
def _validator(task: str) -> Validator:
    return _Strict(SCHEMAS[task])


def check(task: str, item: Any, where: str) -> Item:
    """Return `item` if it has the fields of `task`.

    Args:
        where: the item's place, for the message, such as ``piqa.jsonl line 3``.

    Raises:
        PlumblineError: a field is missing, of the wrong type, or makes no sense; the message names it.
    """
    if not isinstance(item, dict):
        raise PlumblineError(f"{where}: an item must be a JSON object, not {type(item).__name__}")
    error = next(_validator(task).iter_errors(item), None)
    complaint = _explain(error) if error else _SENSE[task](item) if task in _SENSE else None
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
        return parse_json(line)
    except json.JSONDecodeError as error:
        raise PlumblineError(f"{path} line {number}: not JSON ({error})") from error


def _explain(error: ValidationError) -> str:
    """An error of the schema in one line: which field, and what it must be."""
    field = ".".join(part for part in error.absolute_path if isinstance(part, str))
    wanted, schema = cast(Any, error.validator_value), cast(dict[str, Any], error.schema)
    if error.validator == "required":
        missing = next(key for key in wanted if key not in cast(dict[str, Any], error.instance))
        name = f"{field}.{missing}" if field else missing
        return f"field {name!r} is missing; it has {sorted(cast(dict[str, Any], error.instance))}"
    if error.validator == "type":
        got = f", not {error.instance!r}" if wanted in ("string", "integer") else ""
        return f"field {field!r} must be {_TYPES[wanted]}{got}"
    if error.validator == "enum":
        return f"field {field!r} is {error.instance!r}, which is none of {wanted}"
    return f"field {field!r} {schema['description']}"


def _one_of(field: str, value: Any, allowed: Iterable[Any]) -> str | None:
    allowed = list(allowed)
    return None if value in allowed else f"{field!r} is {value!r}, which is none of {allowed}"


def _lettered(item: Item) -> str | None:
    choices = item["choices"]
    if len(choices["text"]) != len(choices["label"]):
        return "'choices.text' and 'choices.label' differ in length"
    return _one_of("answerKey", item["answerKey"].lstrip(), choices["label"])


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
