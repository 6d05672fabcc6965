"""The decoding cache: keys and values of the tokens seen so far (or what projections make them of), one pair a layer,
and what mixers remember beside."""

from __future__ import annotations

import dataclasses

import torch

from plumbline.model.visibility import Visibility


class Cache:
    """Grows along the key axis. Keys are stored normalised and rotated, values as they are attended to; projections
    that compress them store what they make keys and values of.

    `memory`: by layer, what a mixer that looks back on earlier queries keeps of them.
    """

    def __init__(self) -> None:
        self.visibility: Visibility | None = None
        self.memory: dict[int, torch.Tensor] = {}
        self._layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def extend(self, layer: int, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append a call's keys and values and return all of them."""
        if layer in self._layers:
            k_before, v_before = self._layers[layer]
            k_BGKW, v_BGKW = torch.cat([k_before, k_BGKW], dim=2), torch.cat([v_before, v_BGKW], dim=2)
        self._layers[layer] = (k_BGKW, v_BGKW)
        return k_BGKW, v_BGKW

    def branch(self, rows_B: torch.Tensor, *, last: bool = False) -> Branch:
        """Rows that go on from rows of this cache, which stays as it is: row i from its row `rows_B[i]`.

        `last`: nothing goes on from them in turn, so that each layer's keys and values are let go of after their use.
        """
        return Branch(self, rows_B, last)

    @property
    def bytes(self) -> int:
        """What is remembered of all tokens and layers, in bytes; without `memory`."""
        return sum(value.numel() * value.element_size() for pair in self._layers.values() for value in pair)


class Branch(Cache):
    """What goes on from rows of another cache. A layer's rows are copied when the layer asks for them."""

    def __init__(self, before: Cache, rows_B: torch.Tensor, last: bool) -> None:
        super().__init__()
        assert before.visibility is not None, "nothing to go on from"
        positions_BK = before.visibility.key_positions_BK
        if positions_BK.shape[0] > 1:  # else all rows are alike
            positions_BK = positions_BK[rows_B]
        self.visibility = dataclasses.replace(before.visibility, key_positions_BK=positions_BK)
        self.memory = {layer: value.index_select(0, rows_B) for layer, value in before.memory.items()}
        self._before, self._rows_B, self._last = before, rows_B, last

    def extend(self, layer: int, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if layer not in self._layers:
            k_before, v_before = self._before._layers[layer]
            self._layers[layer] = (k_before.index_select(0, self._rows_B), v_before.index_select(0, self._rows_B))
        pair = super().extend(layer, k_BGKW, v_BGKW)
        if self._last:
            del self._layers[layer]
        return pair
