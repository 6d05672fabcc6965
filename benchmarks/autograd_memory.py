"""What autograd keeps between a forward and its backward pass."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

import torch


class HeldByAutograd:
    """Bytes of all that autograd holds at a time: each storage once, those of `parameters` not at all.

    `now`: what is held at present; `most`: the most since this was made.
    """

    def __init__(self, *parameters: torch.Tensor) -> None:
        self.now = self.most = 0
        self._parameters = {value.untyped_storage().data_ptr() for value in parameters}
        self._held: Counter[int] = Counter()

    @contextlib.contextmanager
    def count(self) -> Iterator[None]:
        """Count what operations in this block keep, for as long as they keep it, beyond its end."""
        with torch.autograd.graph.saved_tensors_hooks(
            lambda value: _Held(self, value), lambda stand_in: stand_in.value
        ):
            yield

    def hold(self, storage: torch.UntypedStorage) -> None:
        """A tensor of this storage is kept. Its address is its own until then."""
        place = storage.data_ptr()
        if place not in self._parameters:
            self.now += 0 if self._held[place] else storage.nbytes()
            self._held[place] += 1
            self.most = max(self.most, self.now)

    def release(self, storage: torch.UntypedStorage) -> None:
        """It is not any more."""
        place = storage.data_ptr()
        if place not in self._parameters:
            self._held[place] -= 1
            self.now -= 0 if self._held[place] else storage.nbytes()


class _Held:
    """What autograd has in place of a tensor: it goes when the graph lets go of it."""

    def __init__(self, counter: HeldByAutograd, value: torch.Tensor) -> None:
        self.kept, self.value = counter, value
        counter.hold(value.untyped_storage())

    def __del__(self) -> None:
        self.kept.release(self.value.untyped_storage())
