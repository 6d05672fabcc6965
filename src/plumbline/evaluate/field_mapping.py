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
    """Raised where `values` does not list a value."""


class MissingField(PlumblineError):
    """Raised where a path leads nowhere."""


def fields(mapping: dict[str, Any], source: Any, source_name: str, field: str = "") -> dict[str, Any]:
    """Make the fields of an item from `source`, as `mapping` states.

    Args:
        source_name: what `source` is, for a message, such as ``a line of test.jsonl``.
        field: the field whose inner fields these are, for a message, which begins with it.

    Raises:
        UnlistedValue: a value that `values` does not list.
        MissingField: a path that leads nowhere.
        PlumblineError: a text that is no integer where one is asked for.
    """
    return {
        name: _make_value(rule, source, source_name, f"{field}.{name}" if field else name)
        for name, rule in mapping.items()
    }


def choice(answers: list[str], right: int) -> dict[str, Any]:
    """List what a mapping can name of a question with several answers: the answers, and the right one in each form."""
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


def _make_value(rule: Any, source: Any, source_name: str, field: str) -> Any:
    if isinstance(rule, str):
        return _look_up(source, rule, source_name, field)
    if isinstance(rule, list):
        return [_make_value(part, source, source_name, field) for part in rule]
    if "is" in rule:
        return rule["is"]
    if "of" not in rule:
        return fields(rule, source, source_name, field)
    value = _look_up(source, rule["of"], source_name, field)
    if "values" in rule:
        if str(value) not in rule["values"]:
            raise UnlistedValue(
                f"{field}: {rule['of']!r} is {value!r} in {source_name}, which is none of {list(rule['values'])}"
            )
        value = rule["values"][str(value)]
    match rule.get("as"):
        case "text":
            return str(value)
        case "integer":
            try:
                return int(value)
            except (ValueError, TypeError) as error:
                raise PlumblineError(
                    f"{field}: {rule['of']!r} is {value!r} in {source_name}, and no integer"
                ) from error
    return value


def _look_up(source: Any, path: str, source_name: str, field: str) -> Any:
    """Look up the value at a path.

    Raises:
        MissingField: there is none; the message names the nearest field.
    """
    head, _, rest = path.partition(".")
    try:
        if head == "*":
            return [_look_up(entry, rest, source_name, field) if rest else entry for entry in source]
        value = source[int(head)] if isinstance(source, list) else source[head]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        names = sorted(source) if isinstance(source, dict) else []
        has = f" (there are {names})" if names else ""
        raise MissingField(f"{field}: there is no {path!r} in {source_name}{nearest(head, names)}{has}") from error
    return _look_up(value, rest, source_name, field) if rest else value
