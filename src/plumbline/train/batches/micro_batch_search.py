"""Finds the micro-batch where none is given, by trying: the largest that a GPU's memory holds.

A processor takes its whole share of a batch at once: that is the fastest there (measured at the demo's sizes), and
memory is not short. Where the first step then runs out of memory all the same (interventions may add to it), a run of
one rank is tried with smaller ones. Several ranks cannot: the others wait in a collective for the one that failed.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable

import torch

from plumbline.model.decoder import Decoder
from plumbline.model.distributed import RankGroup, Strategy
from plumbline.model.numerics import autocast
from plumbline.specs.spec import RunSpec
from plumbline.train import randomness
from plumbline.train.batches.micro_batches import MicroBatching

#: Bytes that a parameter takes in addition to itself and what a trial makes: an optimizer's two moments and the
#: gradient of the micro-batches before; and, where there are several ranks, its copy in DDP's buckets.
BYTES_PER_PARAMETER, BUCKET_BYTES_PER_PARAMETER = 12, 4
#: Bytes that are left free in addition, for the libraries' own use and for fragments (estimated, not measured).
SPARE = 2**30


class TooLarge(Exception):
    """Raised where a micro-batch that nobody requested did not fit, and one of `smaller` sequences is to be tried."""

    def __init__(self, smaller: int) -> None:
        super().__init__(f"out of memory in the first step; {smaller} sequence{'s' * (smaller > 1)} at a time next")
        self.smaller = smaller


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory of a device, or of the host, is too small."""
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


def next_smaller(error: BaseException, batching: MicroBatching | None, requested: int | None) -> int | None:
    """What to try after an error in the first step: the next smaller micro-batch that divides a rank's share.

    None if a micro-batch was requested, there are several ranks, or the error is not a lack of memory.
    """
    if requested is not None or batching is None or batching.ranks > 1 or not is_out_of_memory(error):
        return None
    share = batching.micro_batch * batching.accumulation
    return next((number for number in range(batching.micro_batch - 1, 0, -1) if share % number == 0), None)


def needs_search(requested: int | None, device: str, strategy: Strategy) -> bool:
    """Whether the micro-batch is found by trying: nobody requested one, and each rank has a GPU with a whole model.

    A trial holds a whole model, which shards need not have room for.
    """
    return requested is None and device == "cuda" and strategy == "ddp"


def count_reserved_bytes(parameters: int, device: str, ranks: int) -> int:
    """Bytes that a trial leaves free of a device's memory: what a step takes beside weights and what a trial makes, and
    on a GPU what libraries take.
    """
    each = BYTES_PER_PARAMETER + (BUCKET_BYTES_PER_PARAMETER if ranks > 1 else 0)
    return each * parameters + (SPARE if device == "cuda" else 0)


def find_largest_batch(batching: MicroBatching, model: Decoder, spec: RunSpec, ranks: RankGroup) -> MicroBatching:
    """Try which micro-batch is the largest that fits the device of every rank, and return `batching` with it.

    The model is whole on each device while it is tried. Nothing of a trial stays: no gradient, and no random number
    drawn. What interventions add to a step is not tried.
    """

    def attempt(micro_batch: int) -> None:
        parameters = sum(value.numel() for value in model.parameters())
        size = count_reserved_bytes(parameters, ranks.device.type, ranks.world)
        reserve = torch.empty(size, dtype=torch.uint8, device=ranks.device)
        tokens_BT = torch.zeros(micro_batch, spec.model.context, dtype=torch.long, device=ranks.device)
        with randomness.preserve_random_state(ranks.device):
            with autocast(spec.train.precision, ranks.device):
                loss = model(tokens_BT, loss=True)
            loss.backward()
        del reserve

    def free_memory() -> None:
        model.zero_grad(set_to_none=True)
        gc.collect()
        torch.cuda.empty_cache()

    mine = find_largest_divisor(batching.sequences // ranks.world, attempt, free_memory)
    agreed = -int(ranks.max([-float(mine)])[0])
    return MicroBatching.derive(batching.sequences, agreed, ranks.world)


def find_largest_divisor(share: int, attempt: Callable[[int], None], clear: Callable[[], None]) -> int:
    """Find the largest divisor of `share` for which `attempt` does not run out of memory.

    1 where none does, since the run itself then says it best. `clear` is called after each attempt.
    """
    for number in (number for number in range(share, 1, -1) if share % number == 0):
        fits = False
        with contextlib.suppress(torch.OutOfMemoryError):
            attempt(number)
            fits = True
        clear()  # after the error is gone: its traceback holds the tensors
        if fits:
            return number
    return 1
