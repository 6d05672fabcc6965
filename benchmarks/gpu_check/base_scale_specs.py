"""Reads the transfer study's base scale, which sections measure at: once a process."""

from __future__ import annotations

import functools

from plumbline.specs import study_config
from plumbline.specs.spec import RunSpec

BASELINE = "baseline"


@functools.cache
def runs(preset: str) -> dict[str, RunSpec]:
    """The first run of each method, arm and variant of the base scale under a preset, by name."""
    specs: dict[str, RunSpec] = {}
    for run in study_config.load("transfer", preset).runs.values():
        if run.spec.scale == "base":
            specs.setdefault(run.spec.method, run.spec)
    return specs
