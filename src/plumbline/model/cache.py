"""Stores what decoding remembers of the tokens so far: keys and values per layer, and mixers' own memory."""

from __future__ import annotations

import torch

from plumbline.model.attention_mask import AttentionMask


class DecodingCache:
    """The decoding cache, which grows along the key axis.

    Keys are stored normalised and rotated, values as they are attended to; projections that compress keys and values
    store the compressed form. `memory` holds, by layer, what a mixer that looks back on earlier queries keeps of them.
    """

    def __init__(self) -> None:
        self.attention_mask: AttentionMask | None = None
        self.memory: dict[int, torch.Tensor] = {}
        self._layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def extend(self, layer: int, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append a call's keys and values and return all of them."""
        if layer in self._layers:
            k_before, v_before = self._layers[layer]
            k_BGKW, v_BGKW = torch.cat([k_before, k_BGKW], dim=2), torch.cat([v_before, v_BGKW], dim=2)
        self._layers[layer] = (k_BGKW, v_BGKW)
        return k_BGKW, v_BGKW

    @property
    def bytes(self) -> int:
        """Bytes of the stored keys and values, over all tokens and layers; `memory` does not count."""
        return sum(value.numel() * value.element_size() for pair in self._layers.values() for value in pair)
