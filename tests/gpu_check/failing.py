"""A section whose rows fail, each in its own way, but for the last."""

from __future__ import annotations

from benchmarks.gpu_check.setting import SectionCall
from benchmarks.gpu_check.state import MeasuredRows
from tests.gpu_check import toys

TITLE, SHARE = "Failing", 1.0


def rows(setting: SectionCall) -> toys.Rows:
    return {
        "refused": toys.refused,
        "large": toys.no_room,
        "killed": toys.killed,
        "after them": lambda: {"number": 7},
    }


def page(state: MeasuredRows) -> list[str]:
    return toys.lines(state, "failing")
