"""A section whose rows are carried out ahead; one of them dies there."""

from __future__ import annotations

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from tests.gpu_check import toy_rows

TITLE, AHEAD = "Ahead", 16


def rows(setting: SectionCall) -> toy_rows.Rows:
    return {
        "first": lambda: {"number": toy_rows.counted(setting, "first")},
        "second": lambda: {"number": toy_rows.counted(setting, "second")},
        "dies once": lambda: toy_rows.dying_once(setting),
    }


def page(state: MeasuredRows) -> list[str]:
    return toy_rows.lines(state, "ahead")
