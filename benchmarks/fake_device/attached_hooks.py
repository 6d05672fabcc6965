"""Attaches a run's interventions to a model on a device that is not there, as the trainer does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from plumbline.data.loader import Pack
from plumbline.model.distributed import RankGroup
from plumbline.specs.spec import RunSpec
from plumbline.train.interventions import Intervention, InterventionInputs, build
from plumbline.train.monitoring.progress import TrainingProgress

#: Where the code of interventions is: in a step in which one has to know the loss at once, it may wait for the device.
FOLDER = "src/plumbline/train/interventions"


class BlankPack:
    """Held-out sequences of one token, repeated."""

    path, separator = Path("no pack"), 0

    def __init__(self, spec: RunSpec) -> None:
        self.context = spec.model.context

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """Read several sequences (B, T)."""
        return np.zeros((len(indices), self.context), dtype=np.int64)


def attach_hooks(spec: RunSpec, model: torch.nn.Module, device: torch.device) -> list[Intervention]:
    """Build the interventions of a spec and attach them to a model of fake tensors.

    What they try on a processor, with numbers, they try with real ones.
    """
    hooks = build(spec.interventions)
    progress = SimpleNamespace(say=lambda text: None, event=lambda *arguments, **keywords: None)
    inputs = InterventionInputs(
        spec=spec,
        model=model,
        ranks=RankGroup(rank=0, world=1, device=device),
        validation=cast(Pack, BlankPack(spec)),
        progress=cast(TrainingProgress, progress),
    )
    with unset_fake_temporarily():
        for hook in hooks:
            hook.attach(inputs)
    return hooks
