"""Builds msgspec structs from what a user wrote."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin

import msgspec

from plumbline.core.errors import PlumblineError, nearest


def convert(kind: Any, given: dict[str, Any], where: str, known: list[str] | None = None) -> Any:
    """Build a struct from a dictionary that has exactly its fields, each of its type.

    Args:
        kind: the struct's class.
        where: begins error messages.
        known: keys to suggest for a misspelt one; the struct's fields by default.

    Raises:
        PlumblineError: a key is unknown or missing, or a value has another type.
    """
    fields = _fields(kind)
    names = [field.name for field in fields]
    unknown = sorted(set(given) - set(names))
    if unknown:
        listed = sorted(known or names)
        raise PlumblineError(f"{where}: unknown key {unknown[0]!r}{nearest(unknown[0], listed)} (known: {listed})")
    missing = sorted(field.name for field in fields if field.required and field.name not in given)
    if missing:
        raise PlumblineError(f"{where}: {missing[0]!r} is missing")
    try:
        return msgspec.convert(given, type=kind, from_attributes=True)
    except msgspec.ValidationError as error:
        words, _, place = str(error).partition(" - at `$")
        raise PlumblineError(f"{where}{place.rstrip('`')}: {words}{_list_values(fields, place)}") from error


def _list_values(fields: tuple[msgspec.structs.FieldInfo, ...], place: str) -> str:
    """List what a key may be, where that is one of a few words."""
    value_type = next((field.type for field in fields if place == f".{field.name}`"), None)
    return f" (known: {list(get_args(value_type))})" if get_origin(value_type) is Literal else ""


@cache
def _fields(kind: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    """A struct's fields, read once: reading them is most of what thousands of runs cost."""
    return msgspec.structs.fields(kind)
