"""Makes an item's fields of what a line or a maker gives, as a task's file says.

A field is made of a path (``answers.0``; ``*`` stands for each of a list), of ``{is: constant}``, of ``{of: path}``
with a change (``as: text``, ``as: integer``, ``values: {from: to}``), of inner fields, or of a list of these.
"""

from __future__ import annotations

from typing import Any

#: The letters of answers, in order.
LETTERS = "ABCDE"


class Unmapped(KeyError):
    """A value that `values` does not list."""


def fields(mapping: dict[str, Any], given: Any) -> dict[str, Any]:
    """The fields that `mapping` makes of `given`.

    Raises:
        Unmapped: a value that `values` does not list.
        KeyError: a path that leads nowhere.
        ValueError: a text that is no integer where one is asked for.
    """
    return {name: _value(made, given) for name, made in mapping.items()}


def choice(answers: list[str], right: int) -> dict[str, Any]:
    """What a mapping can name of a question with several answers: they, and the right one in each form."""
    false = [answer for index, answer in enumerate(answers) if index != right]
    letters = list(LETTERS[: len(answers)])
    return {
        "answers": answers,
        "letters": letters,
        "right": right,
        "number": right + 1,
        "letter": letters[right],
        "true": answers[right],
        "false": false,
    }


def _value(made: Any, given: Any) -> Any:
    if isinstance(made, str):
        return _at(given, made.split("."), made)
    if isinstance(made, list):
        return [_value(one, given) for one in made]
    if "is" in made:
        return made["is"]
    if "of" not in made:
        return fields(made, given)
    value = _at(given, made["of"].split("."), made["of"])
    if "values" in made:
        if str(value) not in made["values"]:
            raise Unmapped(f"{made['of']}: {value!r}")
        value = made["values"][str(value)]
    match made.get("as"):
        case "text":
            return str(value)
        case "integer":
            return int(value)
    return value


def _at(given: Any, path: list[str], whole: str) -> Any:
    for index, part in enumerate(path):
        if part == "*":
            return [_at(one, path[index + 1 :], whole) for one in given]
        try:
            given = given[int(part)] if isinstance(given, list) else given[part]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise KeyError(whole) from error
    return given
