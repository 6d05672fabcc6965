"""A section whose time is out in its second row, the first time."""

from __future__ import annotations

from benchmarks.gpu_check.setting import SectionCall
from benchmarks.gpu_check.state import MeasuredRows
from tests.gpu_check import toys

TITLE, SHARE = "Slow", 0.02


def rows(setting: SectionCall) -> toys.Rows:
    return {"quick": lambda: {"number": toys.counted(setting, "quick")}, "waiting": lambda: toys.waiting(setting)}


def page(state: MeasuredRows) -> list[str]:
    return toys.lines(state, "slow")
