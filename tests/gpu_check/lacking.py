"""A section that needs what is not on the machine."""

from __future__ import annotations

from benchmarks.gpu_check.setting import Setting
from benchmarks.gpu_check.state import NotHere, State
from tests.gpu_check import toys

TITLE, SHARE = "Lacking", 1.0


def rows(setting: Setting) -> toys.Rows:
    raise NotHere("no Snakemake")


def page(state: State) -> list[str]:
    return toys.lines(state, "lacking")
