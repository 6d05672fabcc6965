"""Implements differential attention: the difference of two softmax maps."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch.nn.functional import layer_norm, pad

from plumbline.core.errors import PlumblineError
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.kernels.selection import SDPA
from plumbline.model.mixers._base import Mixer, kernel_type, masked_softmax, mix_values, widen
from plumbline.model.mixers._difference import DifferenceFunction
from plumbline.model.mixers.softmax import fused_softmax
from plumbline.model.roles import ConstantInit, NormalInit, layer_constant, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Differential(Mixer):
    """norm((softmax(q1 k1) - lambda softmax(q2 k2)) v) (1 - lambda_init), with scaled scores.

    lambda = exp(lq1 . lk1) - exp(lq2 . lk2) + lambda_init, lambda_init = 0.8 - 0.6 exp(-0.3 layer), layers from 0.

    - "half_width": each head's query and key are two halves, its value is whole; one lambda per layer; each head's
      output normalised by mean and variance, gain and bias by channel (a group norm with one group per head).
    - "per_head_lambda": the same with lambda vectors for each head, and an RMSNorm whose gain all heads share.
    - "official": heads 2i and 2i + 1 are the two maps of one head with their values side by side, so that there are
      half as many; one lambda per layer; RMSNorm with a shared gain (Ye et al. 2024, and the code they published).

    `divisor` of the halves' scores: the root of a half's width, or of the whole head's. "official" has no halves.
    `one_minus_lambda_init` leaves the fixed last factor out when false; the study does not mention it, its original has
    it. Source: transfer study, appendix B.7; the first two variants have the parameter count of its Table 4. Norms are
    over one token's head, never over time.
    """

    kernel = SDPA

    def __init__(
        self,
        model: ModelSpec,
        layer: int,
        *,
        variant: Literal["half_width", "per_head_lambda", "official"] = "half_width",
        one_minus_lambda_init: bool = True,
        divisor: Literal["half", "whole"] = "half",
    ) -> None:
        self.splits = 1 if variant == "official" else 2
        super().__init__(model, layer)
        if divisor == "whole":
            self.scale = model.head_width**-0.5
        if variant == "official" and model.key_value_heads % 2:
            raise PlumblineError(
                f"model.mixer 'differential' with variant 'official' pairs heads, and model.key_value_heads "
                f"({model.key_value_heads}) is odd"
            )
        if variant != "official" and model.head_width % 4:
            raise PlumblineError(
                f"model.mixer 'differential' rotates each half of a head, so model.head_width ({model.head_width}) "
                "must be a multiple of 4"
            )
        self.variant, self.eps = variant, model.norm_eps
        # The fused call pads queries and keys to the values' width, and mixes values once for each map.
        self.extra_products = 2 * model.heads * model.head_width
        lambda_init = 0.8 - 0.6 * math.exp(-0.3 * layer)
        self.lambda_init = layer_constant(lambda_init)
        self.factor = layer_constant(1 - lambda_init if one_minus_lambda_init else 1.0)
        width = model.head_width // self.splits
        shape = (model.heads, width) if variant == "per_head_lambda" else (width,)
        self.lambda_query_1 = parameter(*shape, role="scalar", layer=layer, init=NormalInit(std=0.1))
        self.lambda_key_1 = parameter(*shape, role="scalar", layer=layer, init=NormalInit(std=0.1))
        self.lambda_query_2 = parameter(*shape, role="scalar", layer=layer, init=NormalInit(std=0.1))
        self.lambda_key_2 = parameter(*shape, role="scalar", layer=layer, init=NormalInit(std=0.1))
        self.norm_bias = None
        if variant == "half_width":
            self.norm_gain = parameter(
                model.heads, model.head_width, role="norm", layer=layer, init=ConstantInit(value=1.0)
            )
            self.norm_bias = parameter(
                model.heads, model.head_width, role="bias", layer=layer, init=ConstantInit(value=0.0)
            )
        else:
            normed = model.head_width * (2 if variant == "official" else 1)
            self.norm_gain = parameter(normed, role="norm", layer=layer, init=ConstantInit(value=1.0))

    def differential_lambda(self) -> torch.Tensor:
        """The learned factor lambda of the second map: (1, 1) or, with one per head, (H, 1, 1)."""
        first = (self.lambda_query_1 * self.lambda_key_1).sum(-1).exp()
        second = (self.lambda_query_2 * self.lambda_key_2).sum(-1).exp()
        return (first - second + self.lambda_init.to(first.dtype))[..., None, None]

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Differences of two maps (B, H, Q, K), or (B, H / 2, Q, K) for the official pairs; rows sum to 1 - lambda."""
        if self.variant == "official":
            maps_BHQK = masked_softmax(self.scores(q_BHQW, k_BGKW), attention_mask)
            first_BHQK, second_BHQK = maps_BHQK[:, ::2], maps_BHQK[:, 1::2]
        else:
            first_BHQK, second_BHQK = (
                masked_softmax(self.scores(q_half, k_half), attention_mask)
                for q_half, k_half in zip(q_BHQW.chunk(2, dim=-1), k_BGKW.chunk(2, dim=-1), strict=True)
            )
        return first_BHQK - self.differential_lambda() * second_BHQK

    def logits(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Scores of both maps (B, 2 output heads, Q, K), those of one head next to each other."""
        if self.variant == "official":
            return self.scores(q_BHQW, k_BGKW)
        halves = zip(q_BHQW.chunk(2, dim=-1), k_BGKW.chunk(2, dim=-1), strict=True)
        return torch.stack([self.scores(q_half, k_half) for q_half, k_half in halves], dim=2).flatten(1, 2)

    def reference(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, attention_mask: AttentionMask
    ) -> torch.Tensor:
        """Normalised head outputs from explicit differences of the two maps (B, H, Q, W)."""
        weights_BHQK = self.weights(q_BHQW, k_BGKW, attention_mask)
        v_BGKW = pair_heads(v_BGKW) if self.variant == "official" else v_BGKW
        return self._normalise(mix_values(weights_BHQK, widen(v_BGKW)), v_BGKW.dtype)

    def forward(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        v_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        cache: DecodingCache | None = None,
    ) -> torch.Tensor:
        """Head outputs by torch's fused attention or, for short calls on a CPU, from explicit maps (B, H, Q, W)."""
        if self.kernel_for_call(q_BHQW, attention_mask) != SDPA:
            return self.attend_in_chunks(q_BHQW, k_BGKW, v_BGKW, attention_mask)
        short = self.prefers_explicit(q_BHQW.device.type, kernel_type(q_BHQW, k_BGKW, v_BGKW), q_BHQW.shape[2])
        attend = self._attend_explicitly if short and attention_mask.plain else self._attend_fused
        return self._normalise(attend(q_BHQW, k_BGKW, v_BGKW, attention_mask), v_BGKW.dtype)

    def prefers_explicit(self, device: str, dtype: torch.dtype, queries: int) -> bool:
        """True on a CPU for few queries in float32 or float64, where torch's fused call takes twice as long."""
        # Torch's fused call takes twice as long there.
        return device == "cpu" and dtype in (torch.float32, torch.float64) and queries <= self.recompute_above

    def _attend_explicitly(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, attention_mask: AttentionMask
    ) -> torch.Tensor:
        """Differences of weights times values (B, output heads, Q, X)."""
        if self.variant == "official":
            k_BHKW = self.repeat_for_query_heads(k_BGKW, q_BHQW.shape[1])
            q_2BXQW, k_2BXKW = (x.unflatten(1, (-1, 2)).movedim(2, 0) for x in (q_BHQW, k_BHKW))
            v_BGKW = pair_heads(v_BGKW)
        else:
            q_2BXQW, k_2BXKW = (x.unflatten(-1, (2, -1)).movedim(-2, 0) for x in (q_BHQW, k_BGKW))
        inputs = (q_2BXQW, k_2BXKW, v_BGKW, self.differential_lambda())
        return DifferenceFunction.apply(*inputs, self.scale, self.spans(q_BHQW.shape[2]), torch.is_grad_enabled())

    def _attend_fused(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, attention_mask: AttentionMask
    ) -> torch.Tensor:
        """The same by torch's fused attention, with twice the heads."""
        if self.variant == "official":
            # Both maps of a pair belong to one key group, so v's pairs are repeated once for each map.
            v_BGKX = pair_heads(v_BGKW)
            width = v_BGKX.shape[-1]
            k_BHKW = self.repeat_for_query_heads(k_BGKW, q_BHQW.shape[1])
            v_BHKX = v_BGKX.repeat_interleave(q_BHQW.shape[1] // v_BGKX.shape[1], dim=1)
            q_BHQX, k_BHKX = (pad(x, (0, width - x.shape[-1])) for x in (q_BHQW, k_BHKW))
            out_BHQX = widen(fused_softmax(q_BHQX, k_BHKX, v_BHKX, attention_mask, self.scale))
            first, second = out_BHQX[:, ::2], out_BHQX[:, 1::2]
        else:
            # One fused call with twice the heads, a head's two maps side by side so that they share its keys and
            # values: where half of a query is zero, the other half alone meets its half of the key.
            q_BXQW = (q_BHQW[:, :, None] * self._half_masks(q_BHQW)).flatten(1, 2)
            out_BXQW = widen(fused_softmax(q_BXQW, k_BGKW, v_BGKW, attention_mask, self.scale))
            first, second = out_BXQW.unflatten(1, (-1, 2)).unbind(2)
        return torch.addcmul(first, second, -self.differential_lambda())

    def _half_masks(self, q_BHQW: torch.Tensor) -> torch.Tensor:
        """1 on a head's first half and 0 on its second, and the reverse (2, 1, W)."""
        ones = torch.ones(q_BHQW.shape[-1] // 2, dtype=q_BHQW.dtype, device=q_BHQW.device)
        return torch.block_diag(ones, ones)[:, None]

    def _normalise(self, difference_BHQX: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Norm and factor; the official pairs come out as heads of the model's width again (B, H, Q, W)."""
        if self.norm_bias is not None:
            # Heads next to channels, as the fused call leaves them and the output projection takes them.
            normed_BQHX = layer_norm(difference_BHQX.transpose(1, 2), difference_BHQX.shape[-1:], eps=self.eps)
            scaled_BQHX = torch.addcmul(self.norm_bias * self.factor, normed_BQHX, self.norm_gain * self.factor)
            return scaled_BQHX.transpose(1, 2).to(dtype)
        square = difference_BHQX.square().mean(dim=-1, keepdim=True)
        normed = difference_BHQX * torch.rsqrt(square + self.eps) * self.norm_gain
        if self.variant == "official":
            normed = normed.unflatten(-1, (2, -1)).transpose(2, 3).flatten(1, 2)
        return (normed * self.factor).to(dtype)


def pair_heads(v_BGKW: torch.Tensor) -> torch.Tensor:
    """Put the values of heads 2g and 2g + 1 side by side (B, G / 2, K, 2 W)."""
    return v_BGKW.unflatten(1, (-1, 2)).transpose(2, 3).flatten(-2)
