"""Reads loss and gradient norm of a step some steps after they were computed.

A device works through a queue, and whoever asks it for a number waits until the queue is empty: asked in every step, it
then rests while the host prepares the next one. So a step's numbers travel to the host behind the step's own work, and
are looked at when more steps are in the queue. What must not wait is decided on the device: `DeferredMetrics.skip` is 1
from the first step on whose loss or gradient norm is no finite number, and an update that is skipped changes nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from plumbline.model.distributed import RankGroup

#: How many steps late a GPU is read. A wish to stop is read as late where ranks must agree, and then time is short; two
#: steps are still more than the launches that a device's queue holds, but for the smallest models.
LATE_ALONE, LATE_AMONG_RANKS = 8, 2


def choose_lag(requested: int | None, ranks: RankGroup, can_skip: bool) -> int:
    """Choose how many steps late losses are read where `requested` (None: not said) are asked for.

    0 is before the step's update. A processor has no queue. An optimizer that cannot skip on the device needs an answer
    before every update.
    """
    if not can_skip:
        return 0
    if requested is not None:
        return requested
    if ranks.device.type == "cpu":
        return 0
    return LATE_ALONE if ranks.world == 1 else LATE_AMONG_RANKS


@dataclass(frozen=True, kw_only=True, slots=True)
class StepMetrics:
    """The numbers of one step, as they came from the device: the mean loss a token (nats) and the gradient's norm
    before clipping.

    `stop`: a rank wanted to stop; `save`: rank 0 wanted a checkpoint by the clock; `random`: random states before the
    step.
    """

    step: int
    learning_rate: float
    loss: float
    grad_norm: float
    stop: bool
    save: bool
    random: tuple[Any, ...]

    @property
    def finite(self) -> bool:
        """Whether loss and gradient norm are finite, so that the step's update was made."""
        return math.isfinite(self.loss) and math.isfinite(self.grad_norm)


class DeferredMetrics:
    """Holds the steps whose numbers nobody has looked at yet, the oldest first.

    Attributes:
        late: how many there may be.
        skip: on the device, float32: 1 from the first step on that is not finite, before that 0; None if every step
            is read before its update.
    """

    def __init__(self, ranks: RankGroup, late: int) -> None:
        self.ranks, self.late = ranks, late
        self.skip = torch.zeros((), device=ranks.device) if late else None
        self._unread: deque[tuple[dict[str, Any], Callable[[], list[float]]]] = deque()

    def __len__(self) -> int:
        return len(self._unread)

    def add(
        self, loss: torch.Tensor, grad_norm: torch.Tensor, *, stop: bool, save: bool, **facts: Any
    ) -> torch.Tensor | None:
        """Add a step's numbers, and return `skip` for its update.

        `loss` is this rank's part of the mean loss, `stop` and `save` are this rank's wishes: summed over the ranks.
        `facts` is the rest of the StepMetrics. Nothing here waits for the device.
        """
        wishes = [torch.full((), float(wish), dtype=torch.float64, device=loss.device) for wish in (stop, save)]
        summed = torch.stack([loss.double(), *wishes])
        self.ranks.sum_in_place(summed)
        values = torch.cat([summed, grad_norm.double().reshape(1)])
        if self.skip is not None:
            self.skip = torch.maximum(self.skip, 1.0 - values.isfinite().all().float())
        self._unread.append((facts, start_copy(values)))
        return self.skip

    def read(self, late: int) -> Iterator[StepMetrics]:
        """Read the numbers of all but the last `late` steps; waits for the device as far as it must."""
        while len(self._unread) > late:
            facts, arrived = self._unread.popleft()
            loss, stop, save, grad_norm = arrived()
            yield StepMetrics(**facts, loss=loss, grad_norm=grad_norm, stop=stop > 0, save=save > 0)

    def drop(self) -> None:
        """Forget the steps whose numbers nobody has looked at."""
        self._unread.clear()


def start_copy(values: torch.Tensor) -> Callable[[], list[float]]:
    """Send values to the host, without waiting; the function that is returned waits for them."""
    if values.device.type == "cpu":
        return values.tolist
    copy = values.to("cpu", non_blocking=True)  # torch takes pinned memory for such a copy
    arrived = torch.cuda.Event()
    arrived.record()

    def read() -> list[float]:
        arrived.synchronize()
        return copy.tolist()

    return read
