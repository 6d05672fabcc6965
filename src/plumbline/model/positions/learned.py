"""Implements learned absolute positions, which are added to the embedding."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from plumbline.core.errors import PlumblineError
from plumbline.model.context import ForwardContext
from plumbline.model.roles import NormalInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class Learned(nn.Module):
    """A vector for each position of the training context, from N(0, init_std^2), is added to the token's embedding.

    As in GPT-2 and nanoGPT (query_free study, section 5.1). Nothing is rotated. The vectors have the role of an
    embedding: they are decayed like one, and counts of parameters without embeddings leave them out.
    """

    def __init__(self, model: ModelSpec) -> None:
        super().__init__()
        self.context = model.context
        self.embedding = parameter(model.context, model.width, role="embedding", layer=None, init=NormalInit())

    def embed(self, x_BTD: torch.Tensor, context: ForwardContext) -> torch.Tensor:
        """Add to the embedding (B, T, D) the vector of each token's position; padding gets that of position 0 (never
        read).

        Raises:
            PlumblineError: a sequence is longer than the training context.
        """
        attention_mask = context.attention_mask
        if attention_mask.length > self.context:
            longest = int(attention_mask.query_positions_BQ.max()) + 1
            if longest > self.context:
                raise PlumblineError(
                    f"model.positions 'learned': a sequence of {longest} tokens, and positions up to model.context "
                    f"({self.context}) are learned; give shorter sequences"
                )
        positions_BQ = attention_mask.query_positions_BQ.clamp(min=0)
        # A look-up: the gradient of an index is made by sorting on a GPU.
        return x_BTD + functional.embedding(positions_BQ, self.embedding).to(x_BTD.dtype)

    def prepare(self, width: int, context: ForwardContext) -> None:
        """Do nothing: no layer needs anything of positions."""

    def rotate(self, x_BHTW: torch.Tensor, context: ForwardContext, splits: int = 1) -> torch.Tensor:
        """Return queries or keys unchanged."""
        return x_BHTW
