"""Every method's step of one micro-batch at paper size, compiled by shared layers as the trainer does, next to the
baseline's, which comes first and last, so that what the device's clock does in between can be seen.

A method that the compiler refuses has no row, and is named with its words: the trainer would go on without it. Nothing
is compiled at toy sizes, where that alone takes a processor minutes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.base_scale_specs import BASELINE
from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.sections import baseline_steps

TITLE = "Methods by compiled step"
#: Processes that compile ahead, each with a model of few layers: all layers share what the first ones need.
AHEAD, AHEAD_LAYERS = 8, 3
#: Seconds for a model, its graphs from where they were compiled ahead, and its steps.
LEAST = 15.0
#: Methods that are estimated to cost most over the baseline, or go through kernels of ours: a call has time for some.
FIRST = ("attnres", "denseformer", "softpick", "selective_attn", "hyper", "sandwich_norm", "diff_attn")


def rows(setting: SectionCall, layers: int | None = None) -> dict[str, Callable[[], dict[str, Any]]]:
    """The baseline first and last, and each method between."""
    if not setting.size.compiles:
        return {}
    specs = base_scale_specs.runs(setting.size.preset)
    others = [name for name in base_scale_specs.methods() if name in specs and name not in (BASELINE, *FIRST)]
    methods = [name for name in FIRST if name in specs] + others
    chosen = {f"{BASELINE}, first": BASELINE, **{name: name for name in methods}, f"{BASELINE}, last": BASELINE}
    take = functools.partial(baseline_steps.take_steps, way=baseline_steps.BY_LAYERS, setting=setting, layers=layers)
    return {key: functools.partial(take, specs[name]) for key, name in chosen.items()}


def ahead_rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """The same with few layers."""
    return rows(setting, AHEAD_LAYERS)


def page(state: MeasuredRows) -> list[str]:
    """As that of `baseline_steps`."""
    return baseline_steps.page(state, "compiled_method_steps")
