"""A section that cannot begin."""

from __future__ import annotations

from benchmarks.gpu_check.setting import SectionCall
from benchmarks.gpu_check.state import MeasuredRows
from tests.gpu_check import toys

TITLE, SHARE = "Broken", 1.0


def rows(setting: SectionCall) -> toys.Rows:
    raise ImportError("no package of that name")


def page(state: MeasuredRows) -> list[str]:
    return toys.lines(state, "broken")
