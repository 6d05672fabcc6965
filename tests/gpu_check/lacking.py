"""A section that needs what is not on the machine."""

from __future__ import annotations

from benchmarks.gpu_check.setting import SectionCall
from benchmarks.gpu_check.state import MeasuredRows, MissingHere
from tests.gpu_check import toys

TITLE, SHARE = "Lacking", 1.0


def rows(setting: SectionCall) -> toys.Rows:
    raise MissingHere("no Snakemake")


def page(state: MeasuredRows) -> list[str]:
    return toys.lines(state, "lacking")
