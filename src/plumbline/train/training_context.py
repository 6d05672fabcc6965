"""What a run is trained with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from plumbline.data.loader import Pack
from plumbline.runtime.distributed import Ranks
from plumbline.runtime.stop import StopRequest
from plumbline.specs.spec import RunSpec
from plumbline.train.batch import Batching
from plumbline.train.checkpoint.probe_checkpoints import Points
from plumbline.train.checkpoint.rolling import Checkpoints
from plumbline.train.checkpoint.run_lock import Lease
from plumbline.train.interventions import Intervention
from plumbline.train.monitoring.progress import Progress
from plumbline.train.optim import Optimizer
from plumbline.train.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What the loop works with, made before its first step. `model` is the decoder, sharded or not; `forward` calls it,
    wrapped or compiled."""

    spec: RunSpec
    settings: Settings
    ranks: Ranks
    stop: StopRequest
    lease: Lease | None
    checkpoints: Checkpoints
    points: Points
    progress: Progress
    pack: Pack
    validation: Pack
    batching: Batching
    model: nn.Module
    forward: Callable[..., torch.Tensor]
    optimizer: Optimizer
    interventions: list[Intervention]
    made_with: dict[str, str]
