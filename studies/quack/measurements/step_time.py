"""Measures Table 2's times: training steps of several methods, side by side in one process.

Source: quack study, Key Results and Design tradeoffs ("approximately 10% faster training compared to QK norm by
removing two RMS norm computations per attention block"). How steps are timed: `plumbline.train.step_time`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pandas as pd
from msgspec import Struct

from plumbline.core.errors import PlumblineError, nearest
from plumbline.model.norms_per_block import norms_per_block
from plumbline.specs.spec import Count, RunSpec, convert
from plumbline.specs.study_config import Study
from plumbline.train.step_time import TimingSettings, measure

#: Interventions that only look on: part of how the study reads its runs, not of a method.
OBSERVERS = frozenset({"logit_change"})


class StepTimeConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of `measurements.step_time` in the study's YAML, by preset.

    `methods` are names of runs of `scale`, points of a sweep in full; each run's first seed is timed. The others are
    those of `TimingSettings`.
    """

    scale: str
    methods: tuple[str, ...]
    sequences: Count
    micro_batch: Count | None = None
    repeats: Count = 20
    warmup: Count = 3
    device: Literal["auto", "cpu", "cuda"] = "auto"
    compile: bool = False


def step_time(study: Study, options: dict[str, Any], say: Callable[[str], None]) -> pd.DataFrame:
    """One row for each timed step: scale, method, repeat, place (in the order of this repeat), seconds; and what was
    timed: sequences (of a step), context, micro_batch, norms_per_block, precision.

    Ratios are to be taken repeat by repeat (`plumbline.stats.paired_runs.compute_paired_ratio`).

    Raises:
        PlumblineError: an option is unknown, missing or cannot be meant, or there is no such run.
    """
    where = f"studies/{study.name}/study.yaml: measurements.step_time.{study.preset}"
    chosen: StepTimeConfig = convert(StepTimeConfig, options, where)
    specs = [_spec(study, chosen.scale, method, where) for method in chosen.methods]
    settings = TimingSettings(
        sequences=chosen.sequences,
        micro_batch=chosen.micro_batch,
        repeats=chosen.repeats,
        warmup=chosen.warmup,
        device=chosen.device,
        compile=chosen.compile,
    )
    frame = measure(specs, settings, say)
    facts = {
        spec.key: {
            "scale": spec.scale,
            "method": spec.method,
            "sequences": chosen.sequences,
            "context": spec.model.context,
            "micro_batch": chosen.micro_batch or chosen.sequences,
            "norms_per_block": norms_per_block(spec.model),
            "precision": spec.train.precision,
        }
        for spec in specs
    }
    about = pd.DataFrame.from_dict(facts, orient="index").rename_axis("key").reset_index()
    return about.merge(frame, on="key").drop(columns="key")


def _spec(study: Study, scale: str, method: str, where: str) -> RunSpec:
    """The first run of a method at a scale, without what only watches it."""
    specs = {run.spec.method: run.spec for run in reversed(study.runs.values()) if run.spec.scale == scale}
    if method not in specs:
        methods = sorted(specs)
        raise PlumblineError(
            f"{where}.methods: there is no run {method!r} at scale {scale!r}{nearest(method, methods)} "
            f"(there are {methods}; a measurement sees the runs of the groups that its `runs` names)"
        )
    spec = specs[method]
    interventions = tuple(entry for entry in spec.interventions if entry["name"] not in OBSERVERS)
    return msgspec.structs.replace(spec, interventions=interventions)
