"""A section whose time is out in its second row, the first time."""

from __future__ import annotations

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from tests.gpu_check import toy_rows

TITLE = "Slow"


def rows(setting: SectionCall) -> toy_rows.Rows:
    return {
        "quick": lambda: {"number": toy_rows.counted(setting, "quick")},
        "waiting": lambda: toy_rows.waiting(setting),
    }


def page(state: MeasuredRows) -> list[str]:
    return toy_rows.lines(state, "slow")
