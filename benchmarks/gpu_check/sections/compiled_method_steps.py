"""Every method's step at paper size by torch.compile, next to the baseline's, as `eager_steps` takes the eager ones.

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
from benchmarks.gpu_check.sections import eager_steps

TITLE = "Methods by compiled step"
SHARE = 0.6
#: A layer is compiled first.
LEAST = 75.0
#: Methods that are estimated to cost most over the baseline, or go through kernels of ours: a call has time for some.
FIRST = ("attnres", "denseformer", "softpick", "selective_attn", "hyper", "sandwich_norm", "diff_attn")


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """The baseline first and last, and each method between."""
    if not setting.size.compiles:
        return {}
    specs = base_scale_specs.runs(setting.size.preset)
    others = [name for name in base_scale_specs.methods() if name in specs and name not in (BASELINE, *FIRST)]
    methods = [name for name in FIRST if name in specs] + others
    chosen = {f"{BASELINE}, first": BASELINE, **{name: name for name in methods}, f"{BASELINE}, last": BASELINE}
    return {key: functools.partial(eager_steps.method, specs[name], setting, True) for key, name in chosen.items()}


def page(state: MeasuredRows) -> list[str]:
    """As that of `eager_steps`."""
    return eager_steps.page(state, "compiled_method_steps")
