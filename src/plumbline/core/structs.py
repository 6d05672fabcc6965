"""Builds msgspec structs from what a user wrote, and says of what is none where it is wrong and what is meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from plumbline.core.errors import PlumblineError, nearest

#: Keys and numbers of entries that lead from a file's content to a part of it.
Place = tuple[Any, ...]

if TYPE_CHECKING:
    Kind = TypeVar("Kind")
    Absent: TypeAlias = Kind | None
else:

    class Absent:
        """The type of a field that may be left out, and is None then. The file may not say null."""

        def __class_getitem__(cls, kind: Any) -> Any:
            return kind


_NOUNS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", type(None): "null"}


class Fault(PlumblineError):
    """What a `__post_init__` refuses: the message, and the keys from its struct to what is wrong."""

    def __init__(self, message: str, *place: Any) -> None:
        super().__init__(message)
        self.place = place


class ClosedStruct(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping of a file whose keys are all known, and in whose lists nothing stands twice."""

    def __post_init__(self) -> None:
        for name, key in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            entries = getattr(self, name)
            if isinstance(entries, (list, tuple)):
                plain = [entry for entry in entries if isinstance(entry, (str, int, float))]
                if len(plain) > len(set(plain)):
                    raise Fault(f"{Counter(plain).most_common(1)[0][0]!r} is there twice; keep one of them", key)


def convert(kind: Any, value: Any, where: str, known_keys: Iterable[str] | None = None) -> Any:
    """Build a struct, or what else msgspec knows as a type, from plain data.

    Args:
        kind: the struct's class, or another type.
        where: begins error messages: a file with a colon, or also the key of what is given.
        known_keys: keys to suggest for a misspelt one; the struct's fields by default.

    Raises:
        PlumblineError: a key is unknown or missing, or a value has another type or bounds.
    """
    try:
        return msgspec.convert(value, type=kind, from_attributes=True)
    except msgspec.ValidationError as error:
        place, message = find_fault(kind, value, known_keys) or ((), str(error))
        keys = ".".join(map(str, place))
        if where.endswith(":"):
            raise PlumblineError(f"{where} {keys or 'top level'}: {message}") from error
        raise PlumblineError(f"{where}{'.' if keys else ''}{keys}: {message}") from error


def find_fault(kind: Any, value: Any, known_keys: Iterable[str] | None = None) -> tuple[Place, str] | None:
    """Find what is wrong with data, as the keys that lead there and a message; None if nothing is.

    Keys of a mapping come first, then what stands below them.
    """
    try:
        msgspec.convert(value, type=kind, from_attributes=True)
    except msgspec.ValidationError as error:
        if message := _wrong_key(kind, value, known_keys):
            return (), message
        for key, entry, entry_kind in _entries(kind, value):
            if fault := find_fault(entry_kind, entry):
                return (key, *fault[0]), fault[1]
        cause = error.__cause__
        return (cause.place, str(cause)) if isinstance(cause, Fault) else ((), _wrong_value(kind, value, str(error)))
    return None


def unknown_key(key: Any, known_keys: Iterable[str]) -> str:
    """Say that a key is unknown, with the nearest known one and all of them."""
    listed = sorted(known_keys)
    return f"unknown key {key!r}{nearest(str(key), listed)} (known: {listed})"


def _wrong_key(kind: Any, mapping: Any, known_keys: Iterable[str] | None) -> str:
    """What is wrong with the keys of a mapping; empty if nothing is, or it is none."""
    if not isinstance(mapping, dict):
        return ""
    for member in _members(kind):
        if isinstance(member, type) and issubclass(member, Struct):
            fields = _fields(member)
            names = [field.encode_name for field in fields]
            if member.__struct_config__.forbid_unknown_fields:
                for key in mapping:
                    if key not in names:
                        return unknown_key(key, known_keys or names)
            for field in fields:
                if field.required and field.encode_name not in mapping:
                    return f"{field.encode_name!r} is missing; add it"
            return next((f"the key {key!r} is not a text" for key in mapping if not isinstance(key, str)), "")
        if get_origin(member) is dict:
            key_kind = get_args(member)[0]
            for key in mapping:
                if fault := find_fault(key_kind, key):
                    literals = _literals(key_kind)
                    return unknown_key(key, literals) if literals else f"the key {fault[1]}"
    return ""


def _entries(kind: Any, container: Any) -> Iterator[tuple[Any, Any, Any]]:
    """What stands in a mapping or a list: the key or number, the value, and the type that it has to have."""
    for member in _members(kind):
        origin, arguments = get_origin(member), get_args(member)
        if isinstance(container, dict) and isinstance(member, type) and issubclass(member, Struct):
            kinds = {field.encode_name: field.type for field in _fields(member)}
            yield from ((key, value, kinds[key]) for key, value in container.items() if key in kinds)
        elif isinstance(container, dict) and origin is dict:
            yield from ((key, value, arguments[1]) for key, value in container.items())
        elif isinstance(container, (list, tuple)) and origin in (list, tuple):
            yield from ((number, value, arguments[0]) for number, value in enumerate(container))


def _wrong_value(kind: Any, value: Any, message: str) -> str:
    """Say what a value should be; `message` is msgspec's."""
    text = f"{_format_value(value):.200}"
    description = _description(kind)
    if "matching regex" in message and description:
        return f"{text} {description}"
    if not message.startswith(("Expected", "Invalid enum value")):
        return f"{text}: {message}"
    nouns = list(dict.fromkeys(map(_noun, _members(kind))))
    if "a number" in nouns and "a whole number" in nouns:
        nouns.remove("a whole number")
    bound = re.match(r"Expected `[^`]+`( .+)", message)
    near = nearest(value, _literals(kind)) if isinstance(value, str) else ""
    return f"{text} is not {' or '.join(nouns)}{bound[1].removesuffix('.0') if bound else ''}{near}"


def _format_value(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no whole number of thousands of digits
        return "a number of thousands of digits"


def _noun(member: Any) -> str:
    if get_origin(member) is Literal:
        return f"one of {list(get_args(member))}"
    if get_origin(member) in (list, tuple):
        return "a list"
    return _NOUNS.get(member, "a mapping")


def _members(kind: Any) -> list[Any]:
    """The types that a value may have, without their bounds."""
    if get_origin(kind) is Annotated:
        return _members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [member for argument in get_args(kind) for member in _members(argument)]
    return [kind]


def _literals(kind: Any) -> list[str]:
    return [str(word) for member in _members(kind) if get_origin(member) is Literal for word in get_args(member)]


def _description(kind: Any) -> str:
    """What a type says of a text that does not match its pattern, to stand behind the text; empty if nothing."""
    if get_origin(kind) is Annotated:
        metas = (meta for meta in get_args(kind)[1:] if isinstance(meta, msgspec.Meta))
        return next((meta.description for meta in metas if meta.description), "")
    return next(filter(None, map(_description, get_args(kind))), "") if _members(kind) != [kind] else ""


@cache
def _fields(kind: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    """A struct's fields, read once: reading them is most of what a message costs."""
    return msgspec.structs.fields(kind)
