"""A section that cannot begin."""

from __future__ import annotations

from benchmarks.gpu_check.setting import Setting
from benchmarks.gpu_check.state import State
from tests.gpu_check import toys

TITLE, SHARE = "Broken", 1.0


def rows(setting: Setting) -> toys.Rows:
    raise ImportError("no package of that name")


def page(state: State) -> list[str]:
    return toys.lines(state, "broken")
