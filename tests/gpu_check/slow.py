"""A section whose time is out in its second row, the first time."""

from __future__ import annotations

from benchmarks.gpu_check.setting import Setting
from benchmarks.gpu_check.state import State
from tests.gpu_check import toys

TITLE, SHARE = "Slow", 0.02


def rows(setting: Setting) -> toys.Rows:
    return {"quick": lambda: {"number": toys.counted(setting, "quick")}, "waiting": lambda: toys.waiting(setting)}


def page(state: State) -> list[str]:
    return toys.lines(state, "slow")
