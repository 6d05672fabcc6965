"""Defines interventions, which change how a run is trained, at three points of the loop and nowhere else:

1. before a step: a multiplier on the learning rate of the parameters it selects by role and layer, or of their rows;
2. in the loss: an extra term for each micro-batch;
3. after a step: an update of the parameters.

What one decides from, it reads at the beginning of a step, before anything else is done for that step; one that only
looks on may also read at the end of a step, when everything is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import nn

from plumbline.data.loader import Pack
from plumbline.model.distributed import RankGroup
from plumbline.model.roles import ParameterRole
from plumbline.specs.spec import RunSpec
from plumbline.train.monitoring.progress import TrainingProgress


@dataclass(frozen=True, kw_only=True, slots=True)
class InterventionInputs:
    """The parts of a run that an intervention sees: its spec, the model (not wrapped for several ranks), and those
    held-out sequences that it declares (`Intervention.held_out`); nobody takes a gradient from them.

    Every decision must be agreed over `ranks`; `progress` is where an intervention may say what it decided.
    """

    spec: RunSpec
    model: nn.Module
    ranks: RankGroup
    validation: Pack
    progress: TrainingProgress


class Intervention:
    """The interface of interventions. It does nothing at each of the points; a subclass overrides what it needs.

    A file ``interventions/<name>.py`` holds one subclass, marked ``@component``; its options are its keyword-only
    arguments.
    """

    #: The component's name, once it was built by it.
    name = ""
    #: The held-out sequences that it is handed: "none", or "apart", those of which no validation loss is computed. How
    #: many it reads is its option `sequences`: where steps or a time are asked for, so many are left out of the loss.
    held_out: Literal["none", "apart"] = "none"
    #: AdamW decays by lr x wd, so a slowed parameter is decayed less. False keeps the decay as it was.
    scales_weight_decay = True

    def attach(self, run: InterventionInputs) -> None:
        """Attach the intervention to a run. Called once, before anything else; the optimizer is made afterwards."""

    def needs_loss(self, step: int) -> bool:
        """Whether the loss of step `step` must be known to be finite before the step's update.

        Every earlier loss must then be known before the step begins. Asked before `begin`, and the same on every rank.
        Where this is False, nothing may be read from a GPU or changed in that step: multipliers and extra terms follow
        from the step's number and what was decided before. A GPU need then not wait for the host.
        """
        return True

    def begin(self, step: int) -> None:
        """Read what step `step` (1-based) depends on, before anything of it is computed. Every rank calls this.

        It may be called again for the same step, when a run was stopped in the middle of it; it must then give the
        same.
        """

    def label(self, name: str, role: ParameterRole) -> str | None:
        """Name the set of parameters with one multiplier that a parameter belongs to.

        None leaves the parameter alone.
        """
        return None

    def before_step(self, step: int) -> dict[str, float]:
        """Give label -> multiplier of the learning rate of step `step` (1-based).

        Gradients are there, already clipped.
        """
        return {}

    def row_multipliers(self, step: int) -> dict[str, torch.Tensor]:
        """Give parameter name -> multiplier of the learning rate of step `step` (1-based) for each of its rows (X,).

        All rows are on every rank. Weight decay is scaled with the rate. The parameters are as they were before the
        step.
        """
        return {}

    def extra_loss(self, step: int, tokens_BT: torch.Tensor) -> torch.Tensor | None:
        """Give a term to be added to a micro-batch's mean loss, after its forward pass; averaged over micro-batches."""
        return None

    def after_step(self, step: int) -> None:
        """Change the parameters after the optimizer has made its update."""

    def end(self, step: int) -> None:
        """Look at the parameters after step `step` (1-based): nothing changes them any more. Every rank calls this."""

    def state(self) -> dict[str, Any]:
        """Give what a checkpoint must hold, as JSON: decisions taken and counters."""
        return {}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `state` gave."""

    def measurements(self) -> list[tuple[int, str, float, float | None]]:
        """Give what was read so far, for the frame of probes: step, name, value and null, in the order of the steps."""
        return []

    def report(self, step: int) -> dict[str, Any]:
        """Give what was decided up to `step`, the last one made, for ``outcome.json``."""
        return {}
