"""Reads the sequences of each step in a thread, while the step before it computes.

Shape suffixes: B sequences of a micro-batch, T tokens.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch

from plumbline.data.loader import Pack, batch_indices
from plumbline.model.distributed import RankGroup
from plumbline.specs.spec import RunSpec
from plumbline.train.batches.micro_batches import MicroBatching


def rows(pack: Pack, indices: np.ndarray, device: torch.device) -> torch.Tensor:
    """Read some sequences of a pack into the host's memory, int64 (B, T).

    For a GPU the memory is pinned, so that copying from it need not wait.
    """
    tokens_BT = torch.from_numpy(pack.rows(indices))
    return tokens_BT.pin_memory() if device.type == "cuda" else tokens_BT


class BatchReader:
    """Reads one rank's sequences for each step. They follow from the step alone, so that they can be read ahead."""

    def __init__(self, pack: Pack, spec: RunSpec, batching: MicroBatching, ranks: RankGroup, *, ahead: bool) -> None:
        """`ahead`: a thread reads the next step's sequences; otherwise they are read when they are requested."""
        self.pack, self.spec, self.device = pack, spec, ranks.device
        self.places = batching.micro_batches(ranks.rank)
        self._thread = ThreadPoolExecutor(1, "next batch", initializer=self._on_device) if ahead else None
        self._next: tuple[int, Future[list[torch.Tensor]]] | None = None

    def take(self, step: int) -> list[torch.Tensor]:
        """Return the micro-batches of `step` (from 1), each as `rows` gives it.

        The thread begins with the step after it.

        Raises:
            Exception: what reading them raised, as it was.
        """
        pending, self._next = self._next, None
        micro_batches = pending[1].result() if pending is not None and pending[0] == step else self._read(step)
        if self._thread is not None and step < self.spec.train.steps:
            self._next = step + 1, self._thread.submit(self._read, step + 1)
        return micro_batches

    def _read(self, step: int) -> list[torch.Tensor]:
        indices = batch_indices(self.pack, self.spec.data_seed, step - 1, self.spec.sequences_per_batch)
        return [rows(self.pack, indices[place], self.device) for place in self.places]

    def _on_device(self) -> None:
        """A thread pins memory for the first GPU unless it says for which."""
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
