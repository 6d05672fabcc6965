"""What a model bears, tried on a few tokens: a cache, padding. Most do; a mixer may look at the length of a call."""

from __future__ import annotations

import torch

from plumbline.model.cache import Cache
from plumbline.model.decoder import Decoder

#: Differences that are rounding's, as a share of the largest logit.
ROUNDING = 1e-3


@torch.inference_mode()
def keeps_cache(model: Decoder) -> bool:
    """Whether decoding in steps, with keys and values kept and nothing else, gives what reading the whole gives."""
    tokens_BT, cache = some_tokens(model), Cache()
    parts = [part for part in tokens_BT.tensor_split([5, 6], dim=1) if part.shape[1]]
    found = torch.cat([model(part, cache=cache) for part in parts], dim=1)
    return not cache.memory and _alike(found, model(tokens_BT))


@torch.inference_mode()
def takes_padding(model: Decoder) -> bool:
    """Whether padding, left and right, changes nothing at the tokens beside it."""
    tokens_BT = some_tokens(model)
    expected, length = model(tokens_BT), tokens_BT.shape[1]
    longer_BT = tokens_BT.new_zeros((2, length + 4))
    padding_BT = torch.ones_like(longer_BT, dtype=torch.bool)
    for row, start in ((0, 4), (1, 0)):
        longer_BT[row, start : start + length] = tokens_BT[row]
        padding_BT[row, start : start + length] = False
    found = model(longer_BT, padding_BT=padding_BT)
    return _alike(found[0, 4:], expected[0]) and _alike(found[1, :length], expected[1])


def some_tokens(model: Decoder, most: int = 12) -> torch.Tensor:
    """Two rows of made-up tokens, as many as the model reads but no more than `most`."""
    size = (2, min(most, model.spec.context))
    return torch.randint(model.spec.vocabulary, size, generator=torch.Generator().manual_seed(0))


def _alike(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool((found - expected).abs().max() <= ROUNDING * expected.abs().max())
