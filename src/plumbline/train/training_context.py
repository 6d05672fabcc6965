"""Holds everything that a run is trained with, for the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from plumbline.core.stop_request import StopRequest
from plumbline.data.loader import Pack
from plumbline.model.distributed import RankGroup
from plumbline.specs.spec import RunSpec
from plumbline.train.batches.micro_batches import MicroBatching
from plumbline.train.checkpoint.checkpoint_saver import CheckpointSaver
from plumbline.train.checkpoint.resume_run import RunResumer
from plumbline.train.interventions import Intervention
from plumbline.train.monitoring.progress import TrainingProgress
from plumbline.train.run_optimizer import RunOptimizer
from plumbline.train.trainer_settings import TrainerSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingContext:
    """Everything that the loop works with, made before its first step.

    `model` is the decoder, sharded or not; `forward` calls it, wrapped or compiled.
    """

    spec: RunSpec
    settings: TrainerSettings
    ranks: RankGroup
    stop: StopRequest
    resumption: RunResumer
    saver: CheckpointSaver
    progress: TrainingProgress
    pack: Pack
    validation: Pack
    batching: MicroBatching
    model: nn.Module
    forward: Callable[..., torch.Tensor]
    optimizer: RunOptimizer
    interventions: list[Intervention]
