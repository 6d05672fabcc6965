"""A section that has nothing against it."""

from __future__ import annotations

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from tests.gpu_check import toy_rows

TITLE = "Steady"


def rows(setting: SectionCall) -> toy_rows.Rows:
    return {"first": lambda: {"number": toy_rows.counted(setting, "first")}}


def page(state: MeasuredRows) -> list[str]:
    return toy_rows.lines(state, "steady")
