"""A few steps of the trainer at paper size, before anything takes long: eager, compiled, and compiled with a kernel of
ours in the graph. Random tokens, one micro-batch a step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.gpu_check import model_shapes
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.model_shapes import BASELINE
from benchmarks.gpu_check.sections import training

TITLE = "First steps of the trainer"
SHARE = 0.45

#: The method whose mixer is a kernel of ours that the most arithmetic goes through.
OURS = "softpick"
REPEATS, WARMUP = 3, 1


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """Two rows of the baseline and one of a kernel; the eager one alone where nothing is compiled."""
    specs, size = model_shapes.runs(setting.size.preset), setting.size
    chosen = [(BASELINE, False), (BASELINE, True), (OURS, True)]
    return {
        f"{name}, {'compiled' if compiled else 'eager'}": functools.partial(
            training.trainer, specs[name], size.sequences, compiled, setting, 1, REPEATS, WARMUP
        )
        for name, compiled in chosen
        if size.compiles or not compiled
    }


def page(state: MeasuredRows) -> list[str]:
    """As that of `training`."""
    return training.page(state, "first_steps")
