"""A section that has nothing against it."""

from __future__ import annotations

from benchmarks.gpu_check.setting import Setting
from benchmarks.gpu_check.state import State
from tests.gpu_check import toys

TITLE, SHARE = "Steady", 1.0


def rows(setting: Setting) -> toys.Rows:
    return {"first": lambda: {"number": toys.counted(setting, "first")}}


def page(state: State) -> list[str]:
    return toys.lines(state, "steady")
