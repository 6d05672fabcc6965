"""Runs a verb: shows a user's error in one line, chooses the exit code, and reads options that many verbs have."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from plumbline.core import interruption
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import FAILING, FULL
from plumbline.core.pipeline_packages import lacking
from plumbline.core.system import unsupported

#: Exit code of a verb that was asked to stop, saved its state, and wants to be run again (EX_TEMPFAIL).
EXIT_RUN_AGAIN = 75


def prog(module: str) -> str:
    """The name under which the running verb was called, for its own help: `plumbline <verb>`, or else `module`."""
    called = sys.argv[0]
    return called if called.partition(" ")[0] == "plumbline" else module


def _called() -> str:
    """The running verb as it was typed, or `this command` where it was called by its module."""
    words = sys.argv[0].split() if " " in sys.argv[0] else sys.argv[:2]
    return " ".join(words) if words[0] == "plumbline" else "this command"


def described(documentation: str | None) -> str:
    """A module's docstring as the help of its verb shows it: without backquotes, which mean nothing in a terminal."""
    return (documentation or "").replace("`", "")


def token_id(text: str) -> int:
    """Parse an option's value as the id of a vocabulary entry, a whole number from 0 on (for argparse's `type`).

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no id of an entry; ids are whole numbers from 0 on")
    return int(text)


def positive(text: str) -> int:
    """Parse an option's value as a whole number from 1 on (for argparse's `type`).

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    if (value := not_negative(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return value


def not_negative(text: str) -> int:
    """Parse an option's value as a whole number from 0 on (for argparse's `type`).

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def run(main: Callable[[], int | None]) -> None:
    """Run the main function of a verb and exit with its code.

    A PlumblineError, a package of the extra `[pipeline]` that is not installed, a disk that is full or fails and a file
    that belongs to another user are shown as one line, and the exit code is 1; any other error gives a traceback.
    Ctrl-C ends the process by its signal, without a word. On a system that Plumbline does not support, nothing is run.
    """
    if words := unsupported():
        sys.exit(f"error: {words}")
    try:
        code = main()
    except PlumblineError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        interruption.end()
    except ModuleNotFoundError as error:
        said = lacking(error, _called())
        if said is None:
            raise
        print(f"error: {said}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if isinstance(error, PermissionError) and error.filename is not None:
            from plumbline.core.permissions import denied

            print(f"error: {visible(denied(os.fspath(error.filename)))}", file=sys.stderr)
            sys.exit(1)
        if error.errno in FAILING:
            print(
                f"error: {error.filename or 'a file'}: cannot be read or written ({error.strerror}): its file system "
                "fails, is gone or may only be read; run the same command again when it works, or name a folder "
                "elsewhere (--config work=...)",
                file=sys.stderr,
            )
            sys.exit(1)
        if error.errno not in FULL:
            raise
        print(
            f"error: {error.filename or 'a file'}: no disk space to write it ({error.strerror}); free some "
            "(python -m plumbline.operate.cleanup lists what is not needed), or name a folder on a larger disk "
            "(--config work=...), and run the same command again",
            file=sys.stderr,
        )
        sys.exit(1)
    sys.exit(code or 0)
