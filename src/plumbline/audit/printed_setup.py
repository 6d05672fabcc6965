"""Reads the stated configuration of a paper, `published/setup.yaml`, value by value."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from plumbline.audit.printed_number import PrintedNumber, exact
from plumbline.audit.printed_numbers import PrintedNumbers
from plumbline.core.errors import PlumblineError, nearest


class PrintedSetup:
    """Reader of single values of a paper's setup.yaml. The file is read when the first value is asked for.

    Raises:
        PlumblineError: (from each method) there is no such entry or key, or its value is of another type.
    """

    def __init__(self, published: PrintedNumbers) -> None:
        self._published = published
        self._path = published.directory / "setup.yaml"

    @cached_property
    def _entries(self) -> dict[str, dict[str, Any]]:
        return self._published.setup()

    def whole(self, entry: str, key: str) -> int:
        """Read a whole number: a size or a count."""
        value = self._value(entry, key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise PlumblineError(f"{self._path}: {entry}.{key} is {value!r}; write a whole number")
        return value

    def number(self, entry: str, key: str) -> PrintedNumber:
        """Read a number of any kind, as an exact one."""
        value = self._value(entry, key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise PlumblineError(f"{self._path}: {entry}.{key} is {value!r}; write a number")
        return exact(value, f"{entry}.{key}")

    def flag(self, entry: str, key: str) -> bool:
        """Read a truth value: whether the paper's setup has something."""
        value = self._value(entry, key)
        if not isinstance(value, bool):
            raise PlumblineError(f"{self._path}: {entry}.{key} is {value!r}; write true or false")
        return value

    def _value(self, entry: str, key: str) -> Any:
        if entry not in self._entries:
            raise PlumblineError(f"{self._path}: there is no entry {entry!r}{nearest(entry, self._entries)}")
        values = self._entries[entry]
        if key not in values:
            raise PlumblineError(f"{self._path}: {entry} has no {key!r}{nearest(key, values)}")
        return values[key]
