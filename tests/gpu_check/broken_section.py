"""A section that cannot begin."""

from __future__ import annotations

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from tests.gpu_check import toy_rows

TITLE = "Broken"


def rows(setting: SectionCall) -> toy_rows.Rows:
    raise ImportError("no package of that name")


def page(state: MeasuredRows) -> list[str]:
    return toy_rows.lines(state, "broken")
