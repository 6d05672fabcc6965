"""Builds one layer: attention and FFN, each read from and written to the residual stream through a norm placement."""

from __future__ import annotations

from torch import nn

from plumbline.model.attention import Attention
from plumbline.model.component import build
from plumbline.model.context import ForwardContext
from plumbline.model.residual._base import Residual, State
from plumbline.specs.spec import ModelSpec


class Block(nn.Module):
    """One layer of the decoder: the attention sublayer, then the FFN sublayer."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.last = layer == model.layers - 1
        self.placement = build("placement", model, layer)
        self.attention = Attention(model, layer)
        self.ffn = build("ffn", model, layer)

    def forward(self, state: State, residual: Residual, context: ForwardContext, positions: nn.Module) -> State:
        """The residual state after this layer."""
        placement = self.placement
        state = residual.begin_layer(state, self.layer)
        for sublayer in (0, 1):
            index = 2 * self.layer + sublayer
            if sublayer and self.last and context.selected_S is not None:
                state = residual.select_tokens(state, context.selected_S)
            if placement.changes_stream:
                state = residual.replace(state, placement.enter(sublayer, state[0]))
            x_BTD = placement.before(sublayer, residual.read(state, index))
            branch_BTD = self.ffn(x_BTD) if sublayer else self.attention(x_BTD, context, positions)
            state = residual.write(state, index, placement.after(sublayer, branch_BTD))
            if placement.changes_stream:
                state = residual.replace(state, placement.leave(sublayer, state[0]))
        return residual.end_layer(state, self.layer)
