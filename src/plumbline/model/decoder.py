"""Builds the decoder: embedding, layers on a residual stream, final norm, head, as its spec chooses them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import embedding
from torch.utils.checkpoint import checkpoint

from plumbline.core.errors import PlumblineError
from plumbline.model import cpu_matmul
from plumbline.model.attention import Attention
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.component import build
from plumbline.model.context import ForwardContext
from plumbline.model.init import initialise
from plumbline.model.next_token_loss import next_token_loss
from plumbline.model.residual._base import LayerInputs, Residual, State
from plumbline.model.roles import NormalInit, collect_roles, linear, parameter
from plumbline.model.shared_layers import share_weights
from plumbline.specs.spec import ModelSpec


class Block(nn.Module):
    """One layer of the decoder: the attention sublayer, then the FFN sublayer."""

    def __init__(self, model: ModelSpec, layer: int) -> None:
        super().__init__()
        self.last = layer == model.layers - 1
        self.placement = build("placement", model, layer)
        self.attention = Attention(model, layer)
        self.ffn = build("ffn", model, layer)

    def forward(
        self, state: State, residual: Residual, inputs: LayerInputs, context: ForwardContext, positions: nn.Module
    ) -> State:
        """The residual state after this layer; `inputs` are those of the residual's for this layer.

        Nothing in here may hang on the layer's number as a Python number: equal layers are one graph of torch.compile.
        """
        placement = self.placement
        state = residual.begin_layer(state, inputs)
        for sublayer in (0, 1):
            if sublayer and context.selected_S is not None and self.last:
                state = residual.select_tokens(state, context.selected_S)
            if placement.changes_stream:
                state = residual.replace(state, placement.enter(sublayer, state[0]))
            x_BTD = placement.before(sublayer, residual.read(state, sublayer, inputs))
            branch_BTD = self.ffn(x_BTD) if sublayer else self.attention(x_BTD, context, positions)
            state = residual.write(state, sublayer, inputs, placement.after(sublayer, branch_BTD))
            if placement.changes_stream:
                state = residual.replace(state, placement.leave(sublayer, state[0]))
        return residual.end_layer(state, inputs)


class Decoder(nn.Module):
    """A causal language model, built from the components that its spec names.

    Set `recompute` to keep only the residual state between layers, and compute each layer again for the gradient.

    Raises:
        PlumblineError: a norm placement that changes the stream meets a residual with several streams, or layers that
            are to share their weights have different ones.
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        self.recompute = False
        self.embedding = parameter(spec.vocabulary, spec.width, role="embedding", layer=None, init=NormalInit())
        self.positions = build("positions", spec)
        self.residual = build("residual", spec)
        self.blocks = nn.ModuleList(Block(spec, layer) for layer in range(spec.layers))
        if spec.shared_layers:
            share_weights(self.blocks)
        self.final_norm = build("norm", spec, None, spec.width)
        self.head = None if spec.tied_embeddings else linear(spec.width, spec.vocabulary, role="head", layer=None)
        if self.blocks[0].placement.changes_stream and not self.residual.single_stream:
            raise PlumblineError(
                f"model.placement {spec.slot('placement').name!r} normalises the residual stream, which "
                f"model.residual {spec.slot('residual').name!r} does not have; change one of the two"
            )
        self.rotated_widths = {block.attention.rotated_width for block in self.blocks}
        self.parameter_roles = collect_roles(self)

    def forward(
        self,
        tokens_BT: torch.Tensor,
        *,
        padding_BT: torch.Tensor | None = None,
        cache: DecodingCache | None = None,
        loss: bool = False,
    ) -> torch.Tensor:
        """Logits (B, T, V) in float32 for the token after each position.

        Args:
            padding_BT: True at padding, left or right; it changes nothing at real positions.
            cache: the tokens continue those already in it.
            loss: return the summed cross-entropy (nats) of each sequence's tokens after its first instead of logits.
                All T positions are computed, so that kernels run at the training context, and the last one predicts
                nothing. (Wrappers for many ranks only know of `forward`.)
        """
        context = self.context(tokens_BT, padding_BT, cache)
        if loss:
            return self.final_loss(self._states(self._embed(tokens_BT), context), tokens_BT)
        return self.logits(self.hidden(tokens_BT, context))

    def final_loss(self, state: State, tokens_BT: torch.Tensor) -> torch.Tensor:
        """The loss that `forward` returns, from the residual state after the last layer."""
        hidden_BTD = self.final_norm(self.residual.finish(state))
        return next_token_loss(hidden_BTD[:, :-1].flatten(0, 1), self.head_weight, tokens_BT[:, 1:].flatten())

    def context(
        self, places_BT: torch.Tensor, padding_BT: torch.Tensor | None, cache: DecodingCache | None
    ) -> ForwardContext:
        """Make the context that all layers share in one forward call, and extend the mask of a `cache`.

        Args:
            places_BT: any tensor with an element for each token of the call.
            padding_BT: True at padding; None without any.
        """
        attention_mask = AttentionMask.for_call(
            places_BT, padding_BT, cache.attention_mask if cache is not None else None
        )
        if cache is not None:
            cache.attention_mask = attention_mask
        return ForwardContext(attention_mask=attention_mask, cache=cache)

    def hidden(self, tokens_BT: torch.Tensor, context: ForwardContext) -> torch.Tensor:
        """The normalised residual stream after the last layer (B, T, D)."""
        return self.carried(self._embed(tokens_BT), context)

    def carried(
        self, embedded_BTD: torch.Tensor, context: ForwardContext, streams: list[torch.Tensor] | None = None
    ) -> torch.Tensor:
        """The normalised residual stream after the last layer (B, T, D), computed from the tokens' embeddings.

        Args:
            streams: if given, the stream before each layer (B, T, D) is appended to it; for residuals with a single
                stream.
        """
        return self.final_norm(self.residual.finish(self._states(embedded_BTD, context, streams)))

    def _embed(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        # The gradient of an index, embedding[tokens], is on a GPU the general one, which sorts all places first.
        return embedding(tokens_BT, self.embedding)

    def _states(
        self, embedded_BTD: torch.Tensor, context: ForwardContext, streams: list[torch.Tensor] | None = None
    ) -> State:
        """The residual state after the last layer."""
        state = self.residual.start(self.positions.embed(embedded_BTD, context))
        for width in self.rotated_widths:
            self.positions.prepare(width, context)
        for layer, block in enumerate(self.blocks):
            if streams is not None:
                streams.append(state[0])
            inputs = (state, self.residual, self.residual.layer_inputs(layer), context, self.positions)
            if self.recompute and torch.is_grad_enabled() and context.cache is None:
                state = checkpoint(block, *inputs, use_reentrant=False, preserve_rng_state=False)
            else:
                state = block(*inputs)
        return state

    def logits(self, hidden_BTD: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, V) of hidden states, in float32."""
        return cpu_matmul.linear(hidden_BTD, self.head_weight).float()

    @property
    def head_weight(self) -> nn.Parameter:
        """The output head's matrix (V, D); the embedding where the two are tied."""
        return self.embedding if self.head is None else self.head.weight


def on_meta(spec: ModelSpec) -> Decoder:
    """Build the decoder on the meta device, without memory, for exact counts at any size."""
    with torch.device("meta"):
        return Decoder(spec)


def create(spec: ModelSpec, init_seed: int, device: str | torch.device = "cpu") -> Decoder:
    """Build a decoder on `device`, and initialise it from `init_seed`."""
    with torch.device(device):
        model = Decoder(spec)
    initialise(model, init_seed)
    return model
