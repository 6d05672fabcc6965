"""A section that has nothing against it."""

from __future__ import annotations

from benchmarks.gpu_check.setting import SectionCall
from benchmarks.gpu_check.state import MeasuredRows
from tests.gpu_check import toys

TITLE, SHARE = "Steady", 1.0


def rows(setting: SectionCall) -> toys.Rows:
    return {"first": lambda: {"number": toys.counted(setting, "first")}}


def page(state: MeasuredRows) -> list[str]:
    return toys.lines(state, "steady")
