"""Measures how far apart two models' logits are on random tokens, in float64 and at the precision of a model."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch.nn.functional import linear as apply_linear

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.context import ForwardContext
from plumbline.model.decoder import Decoder
from plumbline.model.numerics import autocast
from plumbline.specs.spec import Precision

#: Tokens (1, T) -> logits (1, T, V).
Logits = Callable[[torch.Tensor], torch.Tensor]


def random_tokens(vocabulary: int, sequences: int, length: int, seed: int = 0) -> torch.Tensor:
    """Random tokens (B, T), each entry of the vocabulary equally likely."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, vocabulary, (sequences, length), generator=generator)


def in_double(model: Decoder) -> Logits:
    """A function that computes a decoder's logits in float64 throughout (`Decoder.forward` gives them in float32)."""
    double = copy.deepcopy(model).double().eval()

    def logits(tokens_BT: torch.Tensor) -> torch.Tensor:
        context = ForwardContext(attention_mask=AttentionMask.for_call(tokens_BT, None, None), cache=None)
        return apply_linear(double.hidden(tokens_BT, context), double.head_weight)

    return logits


def at_precision(model: Decoder, precision: Precision) -> Logits:
    """A function that computes a decoder's logits at the precision it is used at."""
    model.eval()

    def logits(tokens_BT: torch.Tensor) -> torch.Tensor:
        with autocast(precision, tokens_BT.device):
            return model(tokens_BT)

    return logits


@torch.no_grad()
def relative_difference(logits: Logits, reference: Logits, tokens_BT: torch.Tensor) -> float:
    """Relative difference of two models' logits, |found - stated|_F / |stated|_F per sequence; the largest of them."""
    gaps = []
    for tokens_T in tokens_BT:
        expected = reference(tokens_T[None]).double()
        gaps.append(float((logits(tokens_T[None]).double() - expected).norm() / expected.norm()))
    return max(gaps) if all(gap == gap for gap in gaps) else float("nan")
