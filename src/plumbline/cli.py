"""What every verb shares: how a user's error is shown, and which exit code it gets."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable

#: Exit code of a verb that was asked to stop, saved its state, and wants to be run again (EX_TEMPFAIL).
EXIT_RUN_AGAIN = 75


class PlumblineError(ValueError):
    """An error a user can mend. Its message names the key or file at fault and the remedy."""


def prog(module: str) -> str:
    """How the verb at work was called, for its own help: `plumbline <verb>`, or as the module that it is."""
    called = sys.argv[0]
    return called if called.partition(" ")[0] == "plumbline" else module


def nearest(given: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` where something known is near to what was given, else nothing."""
    close = difflib.get_close_matches(given, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def run(main: Callable[[], int | None]) -> None:
    """Run a verb's main function; show a PlumblineError as one line and exit 1, let other errors traceback."""
    try:
        code = main()
    except PlumblineError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    sys.exit(code or 0)
