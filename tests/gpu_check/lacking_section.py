"""A section that needs what is not on the machine."""

from __future__ import annotations

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows, MissingOnThisMachine
from tests.gpu_check import toy_rows

TITLE = "Lacking"


def rows(setting: SectionCall) -> toy_rows.Rows:
    raise MissingOnThisMachine("no Snakemake")


def page(state: MeasuredRows) -> list[str]:
    return toy_rows.lines(state, "lacking")
