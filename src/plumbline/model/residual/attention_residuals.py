"""Implements attention residuals: sublayers read softmax averages of all earlier outputs (transfer study, App. B.1)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from plumbline.model.float32_widening import widen
from plumbline.model.residual._base import Residual, State
from plumbline.model.residual._sources import SourceMixture, SourceScores
from plumbline.model.roles import ConstantInit, NormalInit, parameter
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec


@component
class AttentionResiduals(Residual):
    """h = sum_i a_i v_i with a = softmax_i(w . norm(v_i) / sqrt(width)); v_0 is the embedding, v_i what was written.

    There is no residual stream: `h` is what a sublayer reads, and what the final norm reads where `final_mix`
    (otherwise it reads the sum of all v). Each reader has a pseudo-query w and the gain of a root-mean-square norm.

    `sources`: an output of each sublayer, or of each layer, where the current layer counts with its attention's output
    until its FFN has written. `queries`: a pair for each sublayer, which Table 4's count needs, or one for both
    sublayers of a layer, as B.1 words it. `query_std`: w starts at N(0, query_std^2); the method's authors start at 0,
    a plain mean. `inverse_sqrt_width`: the factor 1/sqrt(width), which the authors do not have.
    """

    single_stream = False

    def __init__(
        self,
        model: ModelSpec,
        *,
        sources: Literal["sublayers", "layers"] = "sublayers",
        queries: Literal["per_sublayer", "per_layer"] = "per_sublayer",
        query_std: float = 0.02,
        inverse_sqrt_width: bool = True,
        final_mix: bool = True,
    ) -> None:
        super().__init__()
        self.eps = model.norm_eps
        self.scale = model.width**-0.5 if inverse_sqrt_width else 1.0
        self.sublayers_each = 2 if queries == "per_layer" else 1
        self.final_mix, self.whole_layers = final_mix, sources == "layers"
        layers: list[int | None] = [
            index * self.sublayers_each // 2 for index in range(2 * model.layers // self.sublayers_each)
        ]
        if final_mix:
            layers.append(None)
        self.queries = nn.ParameterList(
            parameter(model.width, role="pseudo_query", layer=layer, init=NormalInit(std=query_std)) for layer in layers
        )
        self.gains = nn.ParameterList(
            parameter(model.width, role="norm", layer=layer, init=ConstantInit(value=1.0)) for layer in layers
        )
        # Each source meets the readers that come after it: the embedding all of them, then those after each sublayer.
        earlier_readers = [(index + 1) // self.sublayers_each for index in range(-1, 2 * model.layers)]
        self.products_per_token = sum(len(layers) - before for before in earlier_readers) * model.width

    def start(self, x_BTD: torch.Tensor) -> State:
        """The state with the embedding as its first source.

        A state is all readers' queries with their gains (R, D), and then for each source the source itself (B, T, D)
        and its scores for the readers that come after it (readers, B, T), of which the last is the last reader's.
        """
        pairs = zip(self.queries, self.gains, strict=True)
        query_RD = torch.stack([widen(query) * widen(gain) for query, gain in pairs]) * self.scale
        return self._add_source((query_RD,), x_BTD, 0)

    def layer_inputs(self, layer: int) -> int:
        """The layer's number, and so a graph for each: a layer has more sources, fewer readers than the one before."""
        return layer

    def read(self, state: State, sublayer: int, inputs: int) -> torch.Tensor:
        """The sublayer's input (B, T, D): the weighted average of all sources so far."""
        return self._mix(state, (2 * inputs + sublayer) // self.sublayers_each)

    def write(self, state: State, sublayer: int, inputs: int, branch_BTD: torch.Tensor) -> State:
        """The state with the sublayer's output as a new source, or added to that of its layer."""
        source_BTD = branch_BTD.to(state[1].dtype)
        if self.whole_layers and sublayer:
            source_BTD, state = state[-2] + source_BTD, state[:-2]
        return self._add_source(state, source_BTD, (2 * inputs + sublayer + 1) // self.sublayers_each)

    def select_tokens(self, state: State, selected_S: torch.Tensor) -> State:
        """The state of some tokens as one row: sources (1, S, D) and scores (readers, 1, S)."""
        queries_RD, *parts = state
        sources = super().select_tokens(tuple(parts[::2]), selected_S)
        scores = (scores_RBT.flatten(1)[:, None, selected_S] for scores_RBT in parts[1::2])
        return queries_RD, *(part for pair in zip(sources, scores, strict=True) for part in pair)

    def finish(self, state: State) -> torch.Tensor:
        """The final norm's input (B, T, D): the last weighted average, or the sum of all sources."""
        if self.final_mix:
            return self._mix(state, len(self.queries) - 1)
        return torch.stack(state[1::2]).sum(dim=0)

    def weights(self, state: State, reader: int) -> torch.Tensor:
        """The softmax weights (B, T, sources) of one reader, in float32 or wider."""
        from_the_end = reader - len(self.queries)
        scores_SBT = torch.stack([scores_RBT[from_the_end] for scores_RBT in state[2::2]])
        return scores_SBT.softmax(dim=0).movedim(0, -1)

    def _add_source(self, state: State, source_BTD: torch.Tensor, reader: int) -> State:
        """The state with one more source, which `reader` is the first to read."""
        return (*state, source_BTD, SourceScores.apply(source_BTD, state[0][reader:], self.eps))

    def _mix(self, state: State, reader: int) -> torch.Tensor:
        return SourceMixture.apply(self.weights(state, reader), *state[1::2])
