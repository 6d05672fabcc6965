"""What every mixer shares: turning queries and keys into weights, and weights and values into head outputs."""

from __future__ import annotations

import torch
from torch import nn

from plumbline.model.visibility import Visibility
from plumbline.studies.spec import ModelSpec


class Mixer(nn.Module):
    """Mixes values by weights. A subclass defines `weights`, the reference in float32; it may override `forward`
    with a faster path, which the tests hold equal to the reference, outputs and gradients.

    `output_heads`: heads that come out (fewer than go in where some heads only mask).
    `splits`: into how many equal parts a head's queries and keys fall, each of them rotated on its own.
    """

    splits = 1
    #: Query rows handled at once by the reference, which holds (B, H, rows, K) weights.
    rows = 1024

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.output_heads = model.heads
        self.groups = model.key_value_heads
        self.scale = (model.head_width // self.splits) ** -0.5

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, visibility: Visibility) -> torch.Tensor:
        """Weights (B, output heads, Q, K) in float32; exactly zero where a key is not visible."""
        raise TypeError(f"{type(self).__name__} defines no weights")

    def forward(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, visibility: Visibility
    ) -> torch.Tensor:
        """Head outputs (B, output heads, Q, W)."""
        return self.reference(q_BHQW, k_BGKW, v_BGKW, visibility)

    def reference(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, visibility: Visibility
    ) -> torch.Tensor:
        """Materialised weights times values."""
        weights_BHQK = self.weights(q_BHQW, k_BGKW, visibility)
        v_BHKW = self.per_query_head(v_BGKW, self.output_heads)
        return (weights_BHQK.to(v_BHKW.dtype) @ v_BHKW).to(v_BGKW.dtype)

    def per_query_head(self, x_BGKW: torch.Tensor, heads: int) -> torch.Tensor:
        """Repeat key/value heads so that there is one for each query head."""
        return x_BGKW.repeat_interleave(heads // self.groups, dim=1)

    def scores(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor) -> torch.Tensor:
        """Scaled dot products (B, H, Q, K) in float32, before any mask."""
        k_BHKW = self.per_query_head(k_BGKW, q_BHQW.shape[1])
        with torch.autocast(q_BHQW.device.type, enabled=False):
            return (q_BHQW.float() * self.scale) @ k_BHKW.float().transpose(-1, -2)


def masked_softmax(scores_BHQK: torch.Tensor, visibility: Visibility) -> torch.Tensor:
    """Softmax over the visible keys, in float32."""
    return scores_BHQK.masked_fill(~visibility.mask_B1QK, float("-inf")).softmax(dim=-1)
