"""Declares the error that a user can fix, prints warnings, suggests the nearest name to a misspelt one, and makes
foreign names safe to print.
"""

from __future__ import annotations

import difflib
import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from pathlib import Path

#: A character that may have to be shown as an escape.
_NOT_PLAIN = re.compile(r"[^ -~\n\t]")


class PlumblineError(ValueError):
    """An error that a user can fix. Its message names the key or file at fault and the remedy.

    The message may quote what others wrote, and is `visible`.
    """

    #: What a command ends with.
    exit_code = 1

    def __str__(self) -> str:
        return visible(super().__str__())


class UsageError(PlumblineError):
    """A command line that cannot be meant."""

    exit_code = 2


def visible(text: str) -> str:
    """Write as escapes what steers a terminal, reorders the letters of a line, or is not seen in it.

    A name that somebody else chose may hold such characters, and then looks like another name. Line ends and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return _NOT_PLAIN.sub(
        lambda match: match[0].encode("unicode_escape").decode() if _is_unseen(match[0]) else match[0], text
    )


def _is_unseen(letter: str) -> bool:
    """Whether it is a control or format character, a lone surrogate (a byte of a name that is no UTF-8), an end of line
    or paragraph of its own, or no character, which an XML file cannot hold.
    """
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") or letter in "\ufffe\uffff"


def nearest(name: str, names: Iterable[str]) -> str:
    """Suggest the one of `names` most like a misspelt `name`: ``; did you mean 'x'?``; empty if none is."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


@cache
def warn_once(sentence: str) -> None:
    """Print a warning on standard error, once in a process; the sentence names a file and the remedy."""
    print(f"warning: {visible(sentence)}", file=sys.stderr)


def warn_unread(path: Path, error: OSError) -> None:
    """Warn that a file could not be read, which says nothing of what is in it: the caller does without."""
    warn_once(f"{path} cannot be read ({error.strerror}) and is not used")
