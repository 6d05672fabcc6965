"""Answers what a profile's expressions ask of a job: its size, and whether it needs a GPU."""

from __future__ import annotations

from typing import Any

from plumbline.project.configuration import Configuration
from plumbline.project.paths import WorkflowPaths
from plumbline.project.planned_measurements import PlannedMeasurements

#: Training tokens from which a run is compiled. Those of the studies that read fewer take a GPU a minute at most, as
#: long as compiling does; those that read more take hours (both estimated).
LONG_RUN = 100_000_000
#: What this process loaded last: a profile's expressions see a job's wildcards and nothing else.
_LOADED: Configuration | None = None


def remember(configuration: Configuration) -> None:
    """Keep `configuration` as the one that the profile's expressions ask about."""
    global _LOADED
    _LOADED = configuration


def load_configuration() -> Configuration:
    """Give the configuration that the profile's expressions ask about."""
    assert _LOADED is not None, "a profile is read after the configuration was loaded"
    return _LOADED


def size_of(wildcards: Any) -> str:
    """Look up the size class of the run that a job's wildcards name: one_gpu, node or two_nodes."""
    return load_configuration().run(wildcards.study, wildcards.scale, wildcards.method, wildcards.seed).size


def compile_flag(wildcards: Any) -> str:
    """Give the trainer's flag that compiles the run that a job's wildcards name, where it is long; else nothing."""
    train = load_configuration().run(wildcards.study, wildcards.scale, wildcards.method, wildcards.seed).spec.train
    return "--compile" if train.steps * train.batch_tokens >= LONG_RUN else ""


def on_gpu(wildcards: Any) -> bool:
    """Whether a job needs a GPU: one of a run, of whatever trainer, or a measurement that asks for it."""
    if not hasattr(wildcards, "measurement"):
        return hasattr(wildcards, "seed") or hasattr(wildcards, "run_id")
    measurements = PlannedMeasurements(load_configuration(), WorkflowPaths(load_configuration()))
    return measurements.one(wildcards.study, wildcards.measurement).device == "gpu"
