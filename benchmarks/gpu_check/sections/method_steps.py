"""Every method's step of one micro-batch at paper size, compiled by shared layers as the trainer does, next to the
baseline's, which comes first and last, so that what the device's clock does in between can be seen.

A method that the compiler refuses has no row, and is named with the compiler's message: the trainer would go on without
it. In a rehearsal nothing is compiled, and there are no rows.
"""

from __future__ import annotations

import functools

from benchmarks.gpu_check import base_scale_specs
from benchmarks.gpu_check.base_scale_specs import BASELINE
from benchmarks.gpu_check.sections import Rows, SectionCall, training_steps
from plumbline.specs import study_config

#: What is compiled ahead has few layers: all layers share what the first ones need.
AHEAD_LAYERS = 3
#: Methods that are estimated to cost most over the baseline, or go through kernels of ours: a call has time for some.
FIRST = ("softpick", "selective_attn", "hyper", "sandwich_norm", "diff_attn")
#: Methods whose layers have a graph each: all but three are compiled in the row's own time, and all others' would go.
LAST = ("denseformer", "attnres")


def rows(call: SectionCall) -> Rows:
    """The baseline first and last, and each method between."""
    if call.rehearsal:
        return {}
    specs = base_scale_specs.runs(call.preset)
    study = study_config.load("transfer", call.preset)
    methods = [*dict.fromkeys(name for name in (*FIRST, *study.methods) if name not in (BASELINE, *LAST)), *LAST]
    layers = AHEAD_LAYERS if call.ahead else None
    take = functools.partial(training_steps.take_steps, way=training_steps.BY_LAYERS, call=call, layers=layers)
    chosen = {f"{BASELINE}, first": BASELINE} | {name: name for name in methods} | {f"{BASELINE}, last": BASELINE}
    return {key: functools.partial(take, specs[name]) for key, name in chosen.items()}
