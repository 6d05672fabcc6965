"""Implements value residual: later layers attend to a blend of their own and the first layer's values."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from plumbline.model.context import ForwardContext
from plumbline.model.roles import ConstantInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class ValueResidual(nn.Module):
    """(1 - share) V_layer + share V_first; `share` is learned, from `initial`. The first layer's values stay as they
    are.

    `shares`: one per layer, or one for each of its key/value heads. Source: transfer study, appendix B.8, after
    ResFormer (Zhou et al. 2025). The blend is made per key/value head, before heads are grouped; the cache holds
    blended values. V_first keeps its gradients from all layers.
    """

    def __init__(
        self, model: ModelSpec, layer: int, *, initial: float = 0.5, shares: Literal["layer", "head"] = "layer"
    ) -> None:
        super().__init__()
        self.share = None
        if layer > 0:
            count = model.key_value_heads if shares == "head" else 1
            self.share = parameter(count, role="scalar", layer=layer, init=ConstantInit(value=initial))

    def forward(self, v_BGTW: torch.Tensor, context: ForwardContext) -> torch.Tensor:
        """Store the first layer's values (B, G, T, W) in the call's context, or blend a later layer's with them."""
        if self.share is None:
            context.first_values_BGTW = v_BGTW
            return v_BGTW
        assert context.first_values_BGTW is not None, "the first layer has not run"
        share_G11 = self.share[:, None, None]
        return ((1 - share_G11) * v_BGTW + share_G11 * context.first_values_BGTW).to(v_BGTW.dtype)
