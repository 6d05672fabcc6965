"""Sections of a toy check, without torch: a table for the check's processes, and the module of its rows."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu_check.sections import Rows, Section, SectionCall

#: The variable that names the folder in which rows leave what they did.
FOLDER = "TOY_SECTIONS"


class OutOfMemoryError(RuntimeError):
    """As torch's is called."""


def rows(call: SectionCall, name: str) -> Rows:
    """The rows of one of them."""

    def count(row: str) -> int:
        """How many times this has been asked of a row, by any process."""
        with (Path(os.environ[FOLDER]) / row).open("a") as handle:
            handle.write(".")
            return handle.tell()

    def wait() -> dict[str, Any]:
        if count("waiting") == 1:
            time.sleep(600)  # the first time longer than any test's patience
        return {"number": 2}

    def die() -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGKILL)  # as an operating system ends a process that has taken too much
        return {}

    def refuse(error: Exception) -> dict[str, Any]:
        raise error

    if name == "broken":
        raise ImportError("no package of that name")
    return {
        "steady": {"first": lambda: {"number": count("first")}},
        "failing": {
            "refused": lambda: refuse(ValueError("no such kernel")),
            "large": lambda: refuse(OutOfMemoryError("tried to allocate")),
            "killed": die,
            "after them": lambda: {"number": 7},
        },
        "slow": {"waiting": wait, "quick": lambda: {"number": count("quick")}},
        "ahead": {
            "first": lambda: {"number": count("first")},
            "second": lambda: {"number": count("second")},
            "dies once": lambda: {"number": 2} if count("dying") == 2 else die(),
        },
    }[name]


#: Enough seconds for each of them but the slow one, and no section's time is another's.
SECTIONS = {
    name: Section(seconds=seconds, module=__name__, arguments=(name,), processes=16 if name == "ahead" else 0)
    for name, seconds in {"broken": 20.0, "failing": 20.0, "slow": 3.0, "steady": 20.0, "ahead": 20.0}.items()
}
