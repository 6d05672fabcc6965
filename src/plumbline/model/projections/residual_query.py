"""Implements queries that are the input plus a map of it: X + X W_Q, or with a nonlinearity."""

from __future__ import annotations

from typing import Literal

import torch
from torch.nn.functional import gelu

from plumbline.model.projections.identity_query import IdentityQuery
from plumbline.model.roles import linear
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class ResidualQuery(IdentityQuery):
    """Q = X + X W_Q (`activation` none) or X + GELU(X W_Q) (gelu, by the error function), cut into heads.

    Source: query_free study, section 6, which proposes queries that are not linear in place of a matrix that could be
    absorbed; the form is that of its authors' public code.
    """

    def __init__(
        self,
        model: ModelSpec,
        layer: int,
        output_heads: int,
        *,
        bias: bool = False,
        activation: Literal["none", "gelu"] = "gelu",
    ) -> None:
        super().__init__(model, layer, output_heads, bias=bias)
        self.activation = activation
        self.change = linear(model.width, model.width, role="query", layer=layer, bias=bias)

    def query(self, x_BTD: torch.Tensor) -> torch.Tensor:
        """All heads' queries side by side (B, T, D): the input plus a map of it."""
        change_BTD = self.change(x_BTD)
        return x_BTD + (gelu(change_BTD) if self.activation == "gelu" else change_BTD)
