"""Defines what travels with the residual stream through one forward call."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.float32_widening import attention_is_wide


@dataclass(kw_only=True, slots=True)
class ForwardContext:
    """What all layers of one forward call share.

    Attributes:
        attention_mask: which keys each query may see.
        cache: the decoding cache, if any.
        wide_attention: queries, keys and values are widened to float32, and autocast is off in the mixer.
        first_values_BGTW: the first layer's values of this call's tokens, once it has run (value residual).
        rotations: cosines and sines by rotary width, computed once per call.
        whole_rotations: the same laid out for whole heads, by rotary width and number of parts of a head.
        selected_S: tokens, counted through all rows, whose last hidden states are asked for; None: all. After the last
            attention nothing else is computed, and states are (1, S, D).
    """

    attention_mask: AttentionMask
    cache: DecodingCache | None
    wide_attention: bool = field(default_factory=attention_is_wide)
    first_values_BGTW: torch.Tensor | None = None
    rotations: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    whole_rotations: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    selected_S: torch.Tensor | None = None
