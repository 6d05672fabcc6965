"""Runs a program that works for this one for long, such as Snakemake, and hands on what this one is asked."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from plumbline.core.command_line import EXIT_RUN_AGAIN

#: Seconds between two calls of `meanwhile`.
EVERY = 30.0


def call(command: Sequence[str], *, keeps: Sequence[int] = (), meanwhile: Callable[[], None] | None = None) -> int:
    """Run a program with its words on stderr, and wait for it to end however this process is asked to.

    Args:
        keeps: open files that it holds as this process does, and longer where this process is killed.
        meanwhile: called every half minute.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed, which the program heard too.
        SystemExit: with EXIT_RUN_AGAIN after a SIGTERM, which is passed on.
    """
    interrupted = False
    started = subprocess.Popen(command, stdout=sys.stderr, pass_fds=keeps)
    with started as process, _pass_sigterm_on(process) as stopped:
        while True:
            try:
                code = process.wait(EVERY if meanwhile else None)
                break
            except subprocess.TimeoutExpired:
                if meanwhile:
                    meanwhile()
            except KeyboardInterrupt:
                interrupted = True
    if stopped:
        raise SystemExit(EXIT_RUN_AGAIN)
    if interrupted or code in (-signal.SIGINT, 128 + signal.SIGINT):
        raise KeyboardInterrupt
    return code


@contextmanager
def _pass_sigterm_on(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Pass SIGTERM on to a process; yields a list that then holds the signal."""
    heard: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        process.send_signal(number)

    previous_handler = signal.signal(signal.SIGTERM, pass_on)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
