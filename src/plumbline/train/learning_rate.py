"""Gives the share of the peak learning rate at a step, a pure function of the spec: nothing to save or resume."""

from __future__ import annotations

from collections.abc import Callable

from plumbline.core.errors import PlumblineError
from plumbline.specs.components import load
from plumbline.specs.spec import ScheduleSpec


def make_schedule(spec: ScheduleSpec, steps: int) -> Callable[[int], float]:
    """Make the function step (1..steps) -> share of the peak learning rate.

    Warm-up is linear: step n of `warmup_steps` gets n / warmup_steps, so the first step is not wasted at zero and step
    `warmup_steps` is at the peak. The decay then ends exactly at the last step.

    Raises:
        PlumblineError: an unknown schedule, or a warm-up that does not end within the run.
    """
    decay = load("schedule", spec.name)
    warmup = spec.warmup_steps
    if not 0 <= warmup <= steps:
        raise PlumblineError(f"schedule.warmup_steps ({warmup}) must lie within the run's {steps} steps (train.steps)")

    def share(step: int) -> float:
        if step < warmup:
            return step / warmup
        return decay((step - warmup) / max(steps - warmup, 1), **spec.options)

    return share
