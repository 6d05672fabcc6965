"""Checks whether a model can use a decoding cache and padding, by trying both on a few tokens and on a full context.

Most models can; a mixer may depend on the length of a call.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder

#: Differences that are rounding's, as a share of the largest logit.
ROUNDING = 1e-3
#: The length of a short check in tokens, and the padding on each side.
FEW, PADDING = 12, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodingCapabilities:
    """Whether a model may be decoded with a cache, takes padding, and has a hidden state between its layers."""

    cache: bool
    padding: bool
    hidden_states: bool


def find_capabilities(model: Decoder) -> DecodingCapabilities:
    """Check which of these capabilities a model has: decoding with a cache, padding, hidden states."""
    return DecodingCapabilities(
        cache=keeps_cache(model), padding=takes_padding(model), hidden_states=bool(model.residual.single_stream)
    )


@torch.inference_mode()
def keeps_cache(model: Decoder) -> bool:
    """Whether decoding in steps, with only keys and values kept, gives the logits of reading all tokens at once."""

    def agrees(tokens_BT: torch.Tensor) -> bool:
        cache, first = DecodingCache(), tokens_BT.shape[1] * 5 // 12
        parts = [part for part in tokens_BT.tensor_split([first, first + 1], dim=1) if part.shape[1]]
        logits = torch.cat([model(part, cache=cache) for part in parts], dim=1)
        return not cache.memory and _agree(logits, model(tokens_BT))

    # A full context is the dearer one: it is read where a few tokens leave the question open.
    return agrees(some_tokens(model)) and agrees(some_tokens(model, model.spec.context, rows=1))


@torch.inference_mode()
def takes_padding(model: Decoder) -> bool:
    """Whether padding, on the left or the right, leaves the logits of the other tokens unchanged."""
    few = min(FEW, model.spec.context)
    full = max(1, model.spec.context - 2 * PADDING)
    # Of two rows of a call one is padded on the left and one on the right; of a full context each side has some.
    return _ignores_padding(model, few, [2 * PADDING, 0]) and _ignores_padding(model, full, [PADDING])


def some_tokens(model: Decoder, most: int = FEW, *, rows: int = 2) -> torch.Tensor:
    """Made-up tokens (rows, T) for a check, T at most `most` and the model's context."""
    size = (rows, min(most, model.spec.context))
    return torch.randint(model.spec.vocabulary, size, generator=torch.Generator().manual_seed(0))


def _ignores_padding(model: Decoder, length: int, starts: list[int]) -> bool:
    """Whether rows of `length` tokens, each with padding before it up to its start and behind it, are as without."""
    tokens_BT = some_tokens(model, length, rows=len(starts))
    expected = model(tokens_BT)
    longer_BT = tokens_BT.new_zeros((len(starts), length + 2 * PADDING))
    padding_BT = torch.ones_like(longer_BT, dtype=torch.bool)
    for row, start in enumerate(starts):
        longer_BT[row, start : start + length] = tokens_BT[row]
        padding_BT[row, start : start + length] = False
    logits = model(longer_BT, padding_BT=padding_BT)
    return all(_agree(logits[row, start : start + length], expected[row]) for row, start in enumerate(starts))


def _agree(logits: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool((logits - expected).abs().max() <= ROUNDING * expected.abs().max())
