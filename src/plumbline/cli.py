"""What every verb shares: how a user's error is shown, and which exit code it gets."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Iterable

from plumbline.files import FULL
from plumbline.system import unsupported

#: Exit code of a verb that was asked to stop, saved its state, and wants to be run again (EX_TEMPFAIL).
EXIT_RUN_AGAIN = 75


class PlumblineError(ValueError):
    """An error a user can mend. Its message names the key or file at fault and the remedy."""


def prog(module: str) -> str:
    """How the verb at work was called, for its own help: `plumbline <verb>`, or as the module that it is."""
    called = sys.argv[0]
    return called if called.partition(" ")[0] == "plumbline" else module


def described(documentation: str | None) -> str:
    """A module's documentation as its verb's help shows it: a terminal knows no marks of code."""
    return (documentation or "").replace("`", "")


def token_id(text: str) -> int:
    """An option's value that is an id of a vocabulary.

    Raises:
        argparse.ArgumentTypeError: it cannot be one.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no id of an entry; ids are whole numbers from 0 on")
    return int(text)


def positive(text: str) -> int:
    """An option's value that is a count of at least one.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    if (value := not_negative(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return value


def not_negative(text: str) -> int:
    """An option's value that is a count, or 0.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def nearest(given: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` where something known is near to what was given, else nothing."""
    close = difflib.get_close_matches(given, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def run(main: Callable[[], int | None]) -> None:
    """Run a verb's main function; show a PlumblineError, a full disk, and what is another user's as one line and
    exit 1, let other errors traceback. Where this cannot run at all, nothing is tried."""
    if words := unsupported():
        sys.exit(f"error: {words}")
    try:
        code = main()
    except PlumblineError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if isinstance(error, PermissionError) and error.filename is not None:
            from plumbline.access import denied

            print(f"error: {denied(os.fspath(error.filename))}", file=sys.stderr)
            sys.exit(1)
        if error.errno not in FULL:
            raise
        print(
            f"error: {error.filename or 'a file'}: no room to write it ({error.strerror}); free some "
            "(python -m plumbline.operate.leftovers lists what is not needed), or name a folder on a larger disk "
            "(--config work=...), and give the same command again",
            file=sys.stderr,
        )
        sys.exit(1)
    sys.exit(code or 0)
