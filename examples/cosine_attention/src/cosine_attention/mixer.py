"""Scaled cosine attention: a score is the cosine between query and key, times a learned temperature.

How long a query or a key is says nothing then: a head can only sharpen all of its rows together. Source of the form:
Liu et al. 2022 (Swin Transformer V2), where each head of each layer has a temperature of its own, too; without their
position bias and their bound. It is exp of a parameter, so that it stays above 0.
"""

from __future__ import annotations

import math

import torch

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.mixers._base import Mixer, masked_softmax, widen
from plumbline.model.mixers.softmax import fused_softmax
from plumbline.model.roles import ConstantInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class CosineAttention(Mixer):
    """weights = softmax(tau cos(q, k)) over the visible keys; tau = exp(log_temperature), one for each head.

    `initial`: tau at the start. Cosines lie within 1, so that a head cannot be sharper than exp(2 tau) to one.
    """

    def __init__(self, model: ModelSpec, layer: int, *, initial: float = 10.0) -> None:
        super().__init__(model, layer)
        self.scale = 1.0  # cosines are not divided by sqrt(head width)
        start = ConstantInit(value=math.log(initial))
        self.log_temperature = parameter(model.heads, role="scalar", layer=layer, init=start)

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        return masked_softmax(self.logits(q_BHQW, k_BGKW, attention_mask), attention_mask)

    def logits(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """tau cos(q, k)."""
        return self.scores(*self.directions(q_BHQW, k_BGKW))

    def directions(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Queries of length tau and keys of length 1: their products are the scores."""
        tau_H11 = widen(self.log_temperature).exp()[:, None, None]
        return tau_H11 * _unit(widen(q_BHQW)), _unit(widen(k_BGKW))

    def forward(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        v_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        cache: DecodingCache | None = None,
    ) -> torch.Tensor:
        q_BHQW, k_BGKW = (direction.to(v_BGKW.dtype) for direction in self.directions(q_BHQW, k_BGKW))
        return fused_softmax(q_BHQW, k_BGKW, v_BGKW, attention_mask, self.scale)


def _unit(x: torch.Tensor) -> torch.Tensor:
    """Vectors of length 1; one of length 0 stays what it is, and its gradient finite."""
    return x * (x.square().sum(-1, keepdim=True) + 1e-12).rsqrt()
