"""A few steps of the trainer at paper size, before anything takes long: eager, compiled, and compiled with a kernel of
ours in the graph. Random tokens, one micro-batch a step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.base_scale_specs import BASELINE
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.sections import eager_steps

TITLE = "First steps of the trainer"
SHARE = 0.45

#: The method whose mixer is a kernel of ours that the most arithmetic goes through.
OURS = "softpick"
REPEATS, WARMUP = 3, 1


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """Two rows of the baseline and one of a kernel; the eager one alone where nothing is compiled."""
    specs, size = base_scale_specs.runs(setting.size.preset), setting.size
    chosen = [(BASELINE, False), (BASELINE, True), (OURS, True)]
    return {
        f"{name}, {'compiled' if compiled else 'eager'}": functools.partial(
            eager_steps.trainer, specs[name], size.sequences, compiled, setting, 1, REPEATS, WARMUP
        )
        for name, compiled in chosen
        if size.compiles or not compiled
    }


def page(state: MeasuredRows) -> list[str]:
    """As that of `eager_steps`."""
    return eager_steps.page(state, "first_steps")
