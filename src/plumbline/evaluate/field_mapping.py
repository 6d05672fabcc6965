"""Makes an item's fields of what a line or a maker gives, as a task's file says.

A field is made of a path (``answers.0``; ``*`` stands for each of a list), of ``{is: constant}``, of ``{of: path}``
with a change (``as: text``, ``as: integer``, ``values: {from: to}``), of inner fields, or of a list of these.
"""

from __future__ import annotations

from typing import Any

from plumbline.core.errors import PlumblineError, nearest

#: The letters of answers, in order.
LETTERS = "ABCDE"


class UnlistedValue(PlumblineError):
    """A value that `values` does not list."""


class MissingField(PlumblineError):
    """A path that leads nowhere."""


def fields(mapping: dict[str, Any], given: Any, what: str, field: str = "") -> dict[str, Any]:
    """The fields that `mapping` makes of `given`.

    Args:
        what: what `given` is, for a message, such as ``a line of test.jsonl``.
        field: the field whose inner fields these are, for a message, which begins with it.

    Raises:
        UnlistedValue: a value that `values` does not list.
        MissingField: a path that leads nowhere.
        PlumblineError: a text that is no integer where one is asked for.
    """
    return {name: _value(made, given, what, f"{field}.{name}" if field else name) for name, made in mapping.items()}


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


def _value(made: Any, given: Any, what: str, field: str) -> Any:
    if isinstance(made, str):
        return _at(given, made, what, field)
    if isinstance(made, list):
        return [_value(one, given, what, field) for one in made]
    if "is" in made:
        return made["is"]
    if "of" not in made:
        return fields(made, given, what, field)
    value = _at(given, made["of"], what, field)
    if "values" in made:
        if str(value) not in made["values"]:
            raise UnlistedValue(
                f"{field}: {made['of']!r} is {value!r} in {what}, which is none of {list(made['values'])}"
            )
        value = made["values"][str(value)]
    match made.get("as"):
        case "text":
            return str(value)
        case "integer":
            try:
                return int(value)
            except (ValueError, TypeError) as error:
                raise PlumblineError(f"{field}: {made['of']!r} is {value!r} in {what}, and no integer") from error
    return value


def _at(given: Any, path: str, what: str, field: str) -> Any:
    """What stands at a path.

    Raises:
        MissingField: nothing does; the message names what is nearest.
    """
    head, _, rest = path.partition(".")
    try:
        if head == "*":
            return [_at(one, rest, what, field) if rest else one for one in given]
        found = given[int(head)] if isinstance(given, list) else given[head]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        there = sorted(given) if isinstance(given, dict) else []
        has = f" (there are {there})" if there else ""
        raise MissingField(f"{field}: there is no {path!r} in {what}{nearest(head, there)}{has}") from error
    return _at(found, rest, what, field) if rest else found
