"""Implements hyper-connections: the study's two lanes, and their authors' n streams (transfer study, App. B.11)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.model.residual._base import Residual, State
from plumbline.model.residual._streams import StreamConnection
from plumbline.model.roles import ConstantInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class HyperConnections(Residual):
    """Next to the stream x a slow lane s, a moving average of what sublayers write, flows into the stream:

        s <- (1 - beta) s + beta f,  x <- x + f + alpha s,  beta = sigmoid(beta_logit)

    `beta_logit` starts at -2.2 (beta near 0.1) and alpha at 0, the standard stream. `variant`: "per_sublayer" has an
    (alpha, beta_logit) for each sublayer, "per_layer" one for both sublayers of a layer. "at_output" leaves the slow
    lane out of the stream, x <- x + f, and adds alpha s once, to what the final norm reads. "official" is another
    method: `streams` copies of the embedding that each sublayer reads from, mixes and writes to by learned static and
    dynamic weights, summed at the end (Zhu et al. 2024).
    """

    def __init__(
        self,
        model: ModelSpec,
        *,
        variant: Literal["per_sublayer", "per_layer", "at_output", "official"] = "per_sublayer",
        streams: int = 4,
    ) -> None:
        super().__init__()
        self.official = variant == "official"
        self.single_stream = not self.official
        self.at_output = variant == "at_output"
        self.streams = streams
        self.sublayers_each = 2 if variant == "per_layer" else 1
        if streams < 1:
            raise PlumblineError(f"model.residual.streams: {streams} is too few; at least 1")
        if self.official:
            self.connections = nn.ModuleList(
                StreamConnection(model, index, streams) for index in range(2 * model.layers)
            )
            self.products_per_token = sum(connection.products_per_token for connection in self.connections)
            return
        layers = [index * self.sublayers_each // 2 for index in range(2 * model.layers // self.sublayers_each)]
        self.alphas = nn.ParameterList(
            parameter(1, role="scalar", layer=layer, init=ConstantInit(value=0.0))
            for layer in (layers[-1:] if self.at_output else layers)
        )
        self.beta_logits = nn.ParameterList(
            parameter(1, role="scalar", layer=layer, init=ConstantInit(value=-2.2)) for layer in layers
        )

    def start(self, x_BTD: torch.Tensor) -> State:
        """The state (x, s), or in "official" all streams (B, T, S, D) and the weights of the next sublayer."""
        if self.official:
            return self._connect_next(x_BTD[:, :, None].expand(-1, -1, self.streams, -1), self.connections[0])
        slow_BTD = torch.zeros_like(x_BTD)
        if not torch.compiler.is_compiling():
            # With a gradient, which nobody reads, where the stream has one: else the first layer's state alone would
            # have a part without, and torch.compile make a graph of that layer.
            slow_BTD.requires_grad_(x_BTD.requires_grad)
        return (x_BTD, slow_BTD)

    def layer_inputs(self, layer: int) -> tuple:
        """For each of a layer's sublayers its alpha (unused in "at_output") and beta_logit, or in "official" its
        connection and that of the sublayer after it, None after the last one."""
        sublayers = (2 * layer, 2 * layer + 1)
        if self.official:
            return tuple((self.connections[index], self._connection(index + 1)) for index in sublayers)
        pairs = (index // self.sublayers_each for index in sublayers)
        return tuple((self.alphas[0 if self.at_output else pair], self.beta_logits[pair]) for pair in pairs)

    def read(self, state: State, sublayer: int, inputs: tuple) -> torch.Tensor:
        """The sublayer's input (B, T, D): the stream, or in "official" a weighted sum of all streams."""
        return inputs[sublayer][0].read(*state) if self.official else state[0]

    def write(self, state: State, sublayer: int, inputs: tuple, branch_BTD: torch.Tensor) -> State:
        """Add the sublayer's output to the stream and the slow lane, or in "official" to all streams, mixed before."""
        if self.official:
            connection, next_connection = inputs[sublayer]
            return self._connect_next(connection.write(*state, branch_BTD), next_connection)
        alpha, beta_logit = inputs[sublayer]
        beta = beta_logit.sigmoid()
        x_BTD, slow_BTD = state
        slow_BTD = (1 - beta) * slow_BTD + beta * branch_BTD
        if self.at_output:
            return (x_BTD + branch_BTD, slow_BTD)
        return (x_BTD + branch_BTD + alpha * slow_BTD, slow_BTD)

    def finish(self, state: State) -> torch.Tensor:
        """The final norm's input (B, T, D): the stream, plus alpha s in "at_output", or the sum of all streams."""
        if self.official:
            return state[0].sum(dim=2)
        return state[0] + self.alphas[0] * state[1] if self.at_output else state[0]

    def _connection(self, sublayer: int) -> StreamConnection | None:
        """The official connection of a sublayer, counted through all layers; None after the last one."""
        return self.connections[sublayer] if sublayer < len(self.connections) else None

    def _connect_next(self, streams_BTSD: torch.Tensor, connection: StreamConnection | None) -> State:
        """The official state before a sublayer; after the last one nothing is connected any more."""
        if connection is None:
            return (streams_BTSD,)
        return (streams_BTSD, connection.weights(streams_BTSD))
