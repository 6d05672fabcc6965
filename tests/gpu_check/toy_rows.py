"""Sections of a toy check, without torch. Which one a module is, its name in the tests' `MODULES` shows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table

#: A setting has no room for a toy's own words: `beside` is its folder.
Rows = dict[str, Callable[[], dict[str, Any]]]


class OutOfMemoryError(RuntimeError):
    """As torch's is called."""


def counted(setting: SectionCall, name: str) -> int:
    """How many times this has been asked of a row, by any process."""
    with Path(setting.beside, name).open("a") as handle:
        handle.write(".")
        return handle.tell()


def waiting(setting: SectionCall) -> dict[str, Any]:
    """The first time longer than any test's patience."""
    if counted(setting, "waiting") == 1:
        time.sleep(600)
    return {"number": 2}


def dying_once(setting: SectionCall) -> dict[str, Any]:
    """The first time it takes its process with it."""
    number = counted(setting, "dying")
    return killed() if number == 1 else {"number": number}


def killed() -> dict[str, Any]:
    """As an operating system ends a process that has taken too much."""
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def refused() -> dict[str, Any]:
    raise ValueError("no such kernel")


def no_room() -> dict[str, Any]:
    raise OutOfMemoryError("tried to allocate")


def lines(state: MeasuredRows, name: str) -> list[str]:
    return table(("row", "number"), ((key, row["number"]) for key, row in state.rows(name).items()))
