"""Reads held-out sequences while a run trains: its validation loss and its online probes, on the same ones every time.

Shape suffixes: B sequences, T tokens.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from plumbline.evaluate.probes import ProbeValue, read_all
from plumbline.model.numerics import autocast
from plumbline.specs.spec import ProbeSpec
from plumbline.train import randomness
from plumbline.train.batches.batch_prefetch import rows
from plumbline.train.training_context import TrainingContext


def loss_sum(parts: TrainingContext, tokens_BT: torch.Tensor) -> torch.Tensor:
    """Compute the summed cross-entropy (nats) of the next tokens of a micro-batch."""
    with autocast(parts.spec.train.precision, parts.ranks.device):
        return parts.forward(tokens_BT, loss=True)


@torch.no_grad()
def loss(parts: TrainingContext) -> float:
    """Compute the mean loss a token (nats) on the first sequences of the validation pack, over all ranks."""
    sequences = parts.spec.train.validation_sequences
    parts.model.eval()
    width = parts.batching.micro_batch
    rounds = math.ceil(sequences / (width * parts.ranks.world))
    total = torch.zeros((), dtype=torch.float64, device=parts.ranks.device)
    for number in range(rounds):
        parts.ranks.poll(parts.stop)
        start = (number * parts.ranks.world + parts.ranks.rank) * width
        last = min(start + width, sequences)
        # A rank with nothing left reads something all the same: a sharded model's forward pass needs every rank.
        indices = np.arange(start, last) if start < last else np.arange(min(width, sequences))
        value = loss_sum(parts, _read_tokens(parts, indices))
        if start < last:
            total += value.double()
    parts.model.train()
    return parts.ranks.sum([total.item()])[0] / (sequences * (parts.spec.model.context - 1))


def probe_values(parts: TrainingContext, due: list[ProbeSpec]) -> list[ProbeValue]:
    """Let the probes that are due read the model as it is; every rank gets the leader's values."""
    parts.ranks.poll(parts.stop)
    tokens_BT = _read_tokens(parts, np.arange(max(probe.sequences for probe in due)))
    with randomness.preserve_random_state(parts.ranks.device):
        values = read_all(
            parts.model,
            due,
            tokens_BT,
            parts.spec.train.precision,
            init_seed=parts.spec.init_seed,
            separator=parts.validation.separator,
        )
    return parts.ranks.broadcast(values)


def _read_tokens(parts: TrainingContext, indices: np.ndarray) -> torch.Tensor:
    device = parts.ranks.device
    return rows(parts.validation, indices, device).to(device, non_blocking=True)
