"""Declares the error that a user can fix, and suggests the nearest name to a misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PlumblineError(ValueError):
    """An error a user can mend. Its message names the key or file at fault and the remedy."""


def nearest(given: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` where something known is near to what was given, else nothing."""
    close = difflib.get_close_matches(given, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
