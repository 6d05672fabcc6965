"""A section whose rows are carried out ahead; one of them dies there."""

from __future__ import annotations

from benchmarks.gpu_check.setting import SectionCall
from benchmarks.gpu_check.state import MeasuredRows
from tests.gpu_check import toys

TITLE, SHARE, AHEAD = "Ahead", 1.0, True


def rows(setting: SectionCall) -> toys.Rows:
    return {
        "first": lambda: {"number": toys.counted(setting, "first")},
        "second": lambda: {"number": toys.counted(setting, "second")},
        "dies once": lambda: toys.dying_once(setting),
    }


def page(state: MeasuredRows) -> list[str]:
    return toys.lines(state, "ahead")
