"""A section whose rows fail, each in its own way, except for the last."""

from __future__ import annotations

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from tests.gpu_check import toy_rows

TITLE = "Failing"


def rows(setting: SectionCall) -> toy_rows.Rows:
    return {
        "refused": toy_rows.refused,
        "large": toy_rows.no_room,
        "killed": toy_rows.killed,
        "after them": lambda: {"number": 7},
    }


def page(state: MeasuredRows) -> list[str]:
    return toy_rows.lines(state, "failing")
