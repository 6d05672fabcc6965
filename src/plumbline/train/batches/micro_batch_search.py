"""Finds the micro-batch where none is given, by trying: the largest that a GPU's memory holds.

A processor takes its whole share of a batch at once: that is the fastest there (measured at the demo's sizes), and
memory is not short.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable

import torch

from plumbline.model.decoder import Decoder
from plumbline.runtime.distributed import RankGroup
from plumbline.runtime.numerics import autocast
from plumbline.specs.spec import RunSpec
from plumbline.train import randomness
from plumbline.train.batches.micro_batches import MicroBatching

#: Bytes that a parameter takes beside itself and its gradient: an optimizer's two moments, and what ranks exchange.
BESIDE = 12


def fitted(batching: MicroBatching, model: Decoder, spec: RunSpec, ranks: RankGroup) -> MicroBatching:
    """Try which micro-batch is the largest that fits the device of every rank, and return `batching` with it.

    The model is whole on each device while it is tried. Nothing of a trial stays: no gradient, and no random number
    drawn. What interventions add to a step is not tried; where that is too much, the run says so at its first step, and
    wants a `--micro-batch`.
    """

    def attempt(micro_batch: int) -> None:
        parameters = sum(value.numel() for value in model.parameters())
        reserve = torch.empty(BESIDE * parameters, dtype=torch.uint8, device=ranks.device)
        tokens_BT = torch.zeros(micro_batch, spec.model.context, dtype=torch.long, device=ranks.device)
        with randomness.preserved(ranks.device):
            with autocast(spec.train.precision, ranks.device):
                loss = model(tokens_BT, loss=True)
            loss.backward()
        del reserve

    def cleared() -> None:
        model.zero_grad(set_to_none=True)
        gc.collect()
        torch.cuda.empty_cache()

    mine = largest(batching.sequences // ranks.world, attempt, cleared)
    agreed = -int(ranks.max([-float(mine)])[0])
    return MicroBatching.derive(batching.sequences, agreed, ranks.world)


def largest(share: int, attempt: Callable[[int], None], cleared: Callable[[], None]) -> int:
    """Find the largest divisor of `share` for which `attempt` does not run out of memory.

    1 where none does, since the run itself then says it best. `cleared` is called after each attempt.
    """
    for number in (number for number in range(share, 1, -1) if share % number == 0):
        fits = False
        with contextlib.suppress(torch.OutOfMemoryError):
            attempt(number)
            fits = True
        cleared()  # after the error is gone: its traceback holds the tensors
        if fits:
            return number
    return 1
