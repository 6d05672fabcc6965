"""Runs a verb: shows a user's error in one line, chooses the exit code, and reads options that many verbs have."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import platform
import re
import select
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from plumbline.core import end_on_ctrl_c
from plumbline.core.errors import PlumblineError, visible
from plumbline.core.files import FAILING, FULL
from plumbline.core.formats import parse_duration
from plumbline.core.pipeline_packages import explain_missing_package
from plumbline.core.terminal_lines import fold_lines

#: Exit code of a verb that was asked to stop, saved its state, and wants to be run again (EX_TEMPFAIL).
EXIT_RUN_AGAIN = 75
#: Of `plumbline verify`: something is another one than was recorded; nothing could be compared.
EXIT_DIFFERENT, EXIT_NOTHING_COMPARED = 10, 16
#: The help of an option that the workflow's rules pass and nobody types: it is accepted, and stands in no help.
HIDDEN = argparse.SUPPRESS
#: How wide a help is, in every terminal: what argparse takes in one of 80 columns.
HELP_WIDTH = 78
#: Lists the names that an argument may become: called with what is typed of it, and with the arguments before it.
Completer = Callable[..., Iterable[str]]


class Parser(argparse.ArgumentParser):
    """Parses a command line, and has its errors be an object too where `--json` asks for one.

    Its help is as wide in every terminal, in paragraphs, and without backquotes, which mean nothing there.

    Args:
        description: what the help says first, mostly the module's docstring.
        settings: what else `argparse.ArgumentParser` takes.
    """

    def __init__(self, description: str | None = None, **settings: Any) -> None:
        formatter = partial(argparse.RawDescriptionHelpFormatter, width=HELP_WIDTH)
        settings = {"prog": _program(), "formatter_class": formatter} | settings
        super().__init__(description=_refill(description), **settings)
        self.epilog = _refill(self.epilog)

    def add_argument(self, *names: str, completer: Completer | None = None, **settings: Any) -> argparse.Action:
        """Declare an argument as argparse does; a shell completes it with the names that `completer` lists."""
        action = super().add_argument(*names, **settings)
        if completer is not None:
            action.completer = completer  # type: ignore[attr-defined]
        return action

    def error(self, message: str) -> NoReturn:
        """Print why the command line cannot be meant, and exit with code 2."""
        print_json_error(f"{self.prog}: {message}", 2)
        super().error(message)


def _program() -> str | None:
    """The running program as it was called: `plumbline VERB`, or else `python -m MODULE`."""
    called, spec = sys.argv[0], sys.modules["__main__"].__spec__
    if called.partition(" ")[0] == "plumbline":
        return called
    return f"python -m {spec.name.removesuffix('.__main__')}" if spec is not None else None


def _find_typed_command() -> str:
    """The running verb as it was typed, or `this command` where it was called by its module."""
    typed = sys.argv[0].split() if " " in sys.argv[0] else sys.argv[:2]
    return " ".join(typed) if typed[0] == "plumbline" else "this command"


def token_id(text: str) -> int:
    """Parse an option's value as the id of a vocabulary entry, a whole number from 0 on (for argparse's `type`).

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no id of an entry; ids are whole numbers from 0 on")
    return int(text)


def comma_list(text: str) -> list[str]:
    """Parse an option's value as words with commas between them (for argparse's `type`)."""
    return [word.strip() for word in text.split(",") if word.strip()]


def positive(text: str) -> int:
    """Parse an option's value as a whole number from 1 on (for argparse's `type`).

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def not_negative(text: str) -> int:
    """Parse an option's value as a whole number from 0 on (for argparse's `type`).

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def duration(text: str) -> float:
    """Parse an option's value as a time, in seconds (for argparse's `type`).

    Raises:
        argparse.ArgumentTypeError: the text is not a time.
    """
    try:
        return parse_duration(text)
    except PlumblineError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(main: Callable[[], int | None]) -> None:
    """Run the main function of a verb and exit with its code.

    A PlumblineError, a package of the extra `[pipeline]` that is not installed, a disk that is full or fails and a file
    that belongs to another user are shown as one line, and the exit code is 1, or 2 of a command line that cannot be
    meant; any other error gives a traceback. With `--json` the error is an object on stdout too, and so is a stop.
    Ctrl-C ends the process by its signal, without a word, and so does a reader of its output that is gone (`| head`).
    On a system that Plumbline does not support, nothing is run.
    """
    if refusal := explain_unsupported_system():
        sys.exit(f"error: {refusal}")
    try:
        try:
            code = main()
            _flush()
        except SystemExit as error:
            if error.code == EXIT_RUN_AGAIN:
                print_json_error("stopped on request; the same command goes on", EXIT_RUN_AGAIN)
            _flush()
            raise
        except Exception as error:
            sentence, code = _describe(error)
            print_json_error(sentence or f"{type(error).__name__}: {error}", code)
            if sentence is None:
                raise
            print(f"error: {sentence}", file=sys.stderr)
    except KeyboardInterrupt:
        with suppress(OSError):  # nobody reads it any more
            print_json_error("interrupted; the same command goes on", 128 + signal.SIGINT)
        end_on_ctrl_c.end()
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        end_on_ctrl_c.end(signal.SIGPIPE)
    sys.exit(code or 0)


def _describe(error: Exception) -> tuple[str | None, int]:
    """What a user is told of an error, None of one that is shown with its traceback, and the exit code."""
    if isinstance(error, PlumblineError):
        return str(error), error.exit_code
    if isinstance(error, BrokenPipeError) and _reader_is_gone():
        raise error
    if isinstance(error, ModuleNotFoundError):
        missing = explain_missing_package(error, _find_typed_command())
        return None if missing is None else str(missing), 1
    if shortage := _describe_shortage(error):
        return shortage, 1
    return describe_disk_error(error) if isinstance(error, OSError) else None, 1


def _describe_shortage(error: Exception) -> str | None:
    """Say of an error that the system starts no process or thread, or gives no memory, with the remedy; None of any
    other one."""
    remedy = "end some, or raise the limit, and repeat the command: what is finished is used"
    no_process = isinstance(error, OSError) and error.filename is None and error.errno == errno.EAGAIN
    if no_process or (isinstance(error, RuntimeError) and "start new thread" in str(error)):
        return f"no further process or thread can be started (the limits: ulimit -u, pids.max of a cgroup): {remedy}"
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return f"no memory is left ({str(error) or 'MemoryError'}; the limits: ulimit -v, memory of a cgroup): {remedy}"
    return None


def print_json_error(message: str, code: int) -> None:
    """Print an error, or why there is no answer, as the one object that `--json` asks for; else nothing."""
    arguments = sys.argv[1:]
    if "--json" in arguments[: arguments.index("--") if "--" in arguments else None]:
        print(json.dumps({"error": message, "exit_code": code}), flush=True)


def print_refusal(reasons: list[str], exit_code: int) -> int:
    """Print why nothing is run, and return the exit code."""
    message = "\n".join(map(visible, reasons))
    print_json_error(message, exit_code)
    print(message, file=sys.stderr)
    return exit_code


def print_plan(plan: str, *, as_json: bool, **more: Any) -> int:
    """Print what a dry run says, and return its exit code; `more` goes into the object of `--json`."""
    print(json.dumps({"dry_run": True, "plan": plan} | more) if as_json else fold_lines(visible(plan), sys.stdout))
    return 0


def _refill(text: str | None) -> str | None:
    """Refill the paragraphs of a text; those with an indented line, such as commands, stay as they are."""
    if text is None:
        return None
    paragraphs = [paragraph.strip("\n") for paragraph in re.split(r"\n\s*\n", text.replace("`", "").strip())]
    return "\n\n".join(
        paragraph
        if re.search(r"^\s", paragraph, re.MULTILINE)
        else textwrap.fill(paragraph, HELP_WIDTH, break_long_words=False, break_on_hyphens=False)
        for paragraph in paragraphs
    )


def _flush() -> None:
    """Have what was printed leave this process, while an error of it can still be told."""
    if sys.stdout is not None:  # None: closed by whoever began this process
        sys.stdout.flush()


def _reader_is_gone() -> bool:
    """Whether nobody reads any more what this process prints."""
    poll = select.poll()
    for descriptor in (1, 2):
        poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Have a SIGTERM end the block as a verb ends that wants to be run again."""

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(EXIT_RUN_AGAIN)

    previous_handler = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous_handler)


def describe_disk_error(error: OSError) -> str | None:
    """Say of an error that a disk is full or fails, or that a file belongs to another user, with the remedy; None of
    any other error.
    """
    if isinstance(error, PermissionError) and error.filename is not None:
        from plumbline.core.permissions import explain_denial

        return visible(explain_denial(os.fspath(error.filename)))
    if error.errno not in FAILING + FULL:
        return None
    file, why = visible(str(error.filename or _find_open_file(error))), os.strerror(error.errno)
    if error.errno in FAILING:
        return (
            f"{file}: cannot be read or written ({why}): its file system fails, is gone or may only be read; run the "
            "same command again when it works, or name a folder elsewhere (--config work=...)"
        )
    return (
        f"{file}: no disk space to write it ({why}); free some (plumbline cleanup lists what is not "
        "needed), or name a folder on a larger disk (--config work=...), and run the same command again"
    )


def _find_open_file(error: OSError) -> str:
    """The file that was in use when an error without a file name was raised: a file that is read or written has one
    only where it was opened.

    It is the open file of the innermost function that has one, or else the path that such a function was given.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        values = list(frame.f_locals.values())
        opened = [value.name for value in values if isinstance(value, io.IOBase) and hasattr(value, "name")]
        paths = [value for value in values if isinstance(value, Path) and not os.path.isdir(value)]
        if files := dict.fromkeys(str(each) for each in opened or paths):
            return " or ".join(files)
    return "a file"


#: Bytes of addresses: with numpy and scipy 400 MB just suffice, and below 300 loading numpy may never end.
LEAST_ADDRESS_SPACE = 512 << 20
#: As a user knows them.
NAMES = {"darwin": "macOS", "win32": "Windows"}


def _explain_small_address_space() -> str | None:
    """What to do about a limit below which numpy's libraries fail to load, or wait forever for memory and hear no
    signal; None without one."""
    import resource  # only Unix has it

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit in range(LEAST_ADDRESS_SPACE):
        return (
            f"a process may have {limit >> 20} MB of addresses here (ulimit -v), and needs "
            f"{LEAST_ADDRESS_SPACE >> 20}: ulimit -v unlimited, or limit memory by a control group"
        )
    return None


def explain_unsupported_system() -> str | None:
    """What to use instead, where Plumbline cannot run on this system; None if it can."""
    if sys.platform == "linux":
        return _explain_small_address_space()
    name = NAMES.get(sys.platform, platform.system() or sys.platform)
    remedy = "WSL2 (wsl --install)" if sys.platform == "win32" else "a Linux virtual machine"
    return (
        f"this is {name}, and Plumbline runs only on Linux: it needs Linux's locks and process tables. Use "
        f"{remedy}, or a Linux container (envs/Dockerfile)"
    )
