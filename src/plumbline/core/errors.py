"""Declares the error that a user can fix, and suggests the nearest name to a misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PlumblineError(ValueError):
    """An error that a user can fix. Its message names the key or file at fault and the remedy."""


def nearest(given: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` for the known name that is most like the `given` one; empty where none is like it."""
    close = difflib.get_close_matches(given, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
