"""Runs a decoder of Plumbline as a model of transformers: the same modules, the same arithmetic, the same logits."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import DynamicCache, GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from plumbline.model.attention_mask import AttentionMask
from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder
from plumbline.model.export.carried.configuration_plumbline import PlumblineConfig
from plumbline.model.init import initial_value
from plumbline.specs.spec import ModelSpec

# Before 5, parameters that carry more than their values cannot be loaded.
if int(transformers.__version__.partition(".")[0]) < 5:
    raise ImportError(f"this model needs transformers 5 or later, and here is {transformers.__version__}")


class PlumblineForCausalLM(PreTrainedModel, GenerationMixin):
    """A causal language model. The mask decides the positions of tokens, so no `position_ids=` is taken."""

    config_class = PlumblineConfig
    main_input_name = "input_ids"
    # Layers hand each other more than one stream: a model is on one device.
    _no_split_modules = ["Decoder"]

    def __init__(self, config: PlumblineConfig) -> None:
        super().__init__(config)
        self.decoder = Decoder(ModelSpec.from_dict(config.plumbline))
        self.embeddings = EmbeddingAdapter(self.decoder)
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        inputs_embeds: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> CausalLMOutputWithPast | tuple[Any, ...]:
        """Logits (B, T, V) in float32 for the token after each position.

        Args:
            input_ids: (B, T) tokens; or else `inputs_embeds`, what `get_input_embeddings` gives of them (B, T, D).
            attention_mask: (B, T), 0 at padding, left or right; tokens in the cache have columns too.
            past_key_values: what earlier calls kept; the tokens continue from there.
            labels: (B, T) the tokens again, -100 where none counts: the loss is the mean over the others of the
                cross-entropy, in nats, of predicting each from those before it.
            use_cache: keep keys and values, even if none were given.
            output_hidden_states: return the stream that enters each layer, and last what the head reads: L + 1 of (B,
                T, D).

        Raises:
            ValueError: a mask that does not fit, or padding, a cache or an output that this model does not have.
        """
        streams = self._streams(output_hidden_states, output_attentions)
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("give either input_ids or inputs_embeds")
        embedded_BTD = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        places_BT = embedded_BTD[..., 0]
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache(config=self.config)
        self._require_cache(past_key_values)
        past_tokens = 0 if past_key_values is None else past_key_values.get_seq_length()
        padding_BK = self._padding(places_BT, attention_mask, past_tokens)
        padding_BT = None if padding_BK is None else padding_BK[:, past_tokens:]
        cache = (
            None
            if past_key_values is None
            else DecodingCacheAdapter(past_key_values, _mask_cache(places_BT, padding_BK, past_tokens))
        )
        hidden_BTD = self.decoder.carried(embedded_BTD, self.decoder.context(places_BT, padding_BT, cache), streams)
        logits_BTV = self.decoder.logits(hidden_BTD)
        loss = None
        if labels is not None:
            targets = labels[:, 1:].flatten().to(logits_BTV.device)
            loss = cross_entropy(logits_BTV[:, :-1].flatten(0, 1), targets, ignore_index=-100)
        hidden_states = None if streams is None else (*streams, hidden_BTD)
        output = CausalLMOutputWithPast(
            loss=loss, logits=logits_BTV, past_key_values=past_key_values, hidden_states=hidden_states
        )
        return output.to_tuple() if return_dict is False else output

    # What `generate` takes is read off the names `kwargs` here and of `forward`.
    def prepare_inputs_for_generation(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Prepare inputs as transformers does, without the empty ones and the position that early releases of 5 add."""
        prepared = super().prepare_inputs_for_generation(*args, **kwargs)
        return {key: value for key, value in prepared.items() if value is not None and key != "cache_position"}

    def get_input_embeddings(self) -> nn.Module:
        """The module from tokens (B, T) to embeddings (B, T, D), before positions and whatever else the model adds.

        Its `weight` is the model's own.
        """
        return self.embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Copy the values of another embedding's `weight` (V, D) into the model's own.

        Raises:
            ValueError: it has another shape.
        """
        if value.weight.shape != self.embeddings.weight.shape:
            raise ValueError(
                f"the embedding is {tuple(self.embeddings.weight.shape)}, and this one is {tuple(value.weight.shape)}; "
                "a model with another vocabulary would be another one"
            )
        with torch.no_grad():
            self.embeddings.weight.copy_(value.weight)

    def get_output_embeddings(self) -> nn.Module | None:
        """The output head; None where it is tied to the embedding."""
        return self.decoder.head

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Refuse another output head, which this model cannot take.

        Raises:
            ValueError: always; the message says how to copy values instead.
        """
        raise ValueError("this model's head cannot be replaced; copy values into get_output_embeddings().weight")

    def resize_token_embeddings(self, new_num_tokens: int | None = None, *_: Any, **__: Any) -> nn.Module:
        """Return the embedding, whose size cannot change.

        Raises:
            ValueError: another number of tokens is asked for.
        """
        if new_num_tokens not in (None, self.config.vocab_size):
            raise ValueError(f"the vocabulary has {self.config.vocab_size} rows, some of them spare, and keeps them")
        return self.embeddings

    def _streams(self, hidden_states: bool | None, attentions: bool | None) -> list[torch.Tensor] | None:
        """A list for what is asked for of the layers; None for nothing."""
        if attentions or (attentions is None and getattr(self.config, "output_attentions", False)):
            raise ValueError("this model gives no attention weights; leave output_attentions out")
        if hidden_states is None:
            hidden_states = getattr(self.config, "output_hidden_states", False)
        if hidden_states and not self.decoder.residual.single_stream:
            raise ValueError(
                "this model's layers hand each other more than one stream, and none of them is its hidden state; leave "
                "output_hidden_states out"
            )
        return [] if hidden_states else None

    def _require_cache(self, past_key_values: Any) -> None:
        if past_key_values is None:
            return
        if not self.config.keeps_cache:
            raise ValueError(
                "decoding token by token does not give this model's logits: its attention looks at more of the call "
                "than keys and values; give use_cache=False"
            )
        if getattr(past_key_values, "is_compileable", False):
            raise ValueError("a cache of fixed size is not supported; leave cache_implementation out, or 'dynamic'")

    def _padding(
        self, places_BT: torch.Tensor, attention_mask: torch.Tensor | None, past_tokens: int
    ) -> torch.Tensor | None:
        """True at padding, of the tokens in the cache and of this call's (B, K); None where there is none."""
        if attention_mask is None:
            return None
        batch, length = places_BT.shape
        if attention_mask.shape != (batch, past_tokens + length):
            raise ValueError(
                f"attention_mask is {tuple(attention_mask.shape)}, and {batch} rows have {past_tokens + length} "
                "tokens, those in the cache included; give a column for each"
            )
        padding_BK = attention_mask == 0
        if not padding_BK.any():
            return None
        if not self.config.takes_padding:
            raise ValueError(
                "what a token sees depends on the length of the call in this model, padding included; give sequences "
                "of one length, without padding"
            )
        return padding_BK.to(places_BT.device)

    def _init_weights(self, module: nn.Module) -> None:
        """Start parameters that were not loaded as training starts them; torch's own seed is the seed."""
        place = next((name for name, part in self.decoder.named_modules() if part is module), None)
        if place is None:
            return
        with torch.no_grad():
            for attribute, value in module.named_parameters(recurse=False):
                name = f"{place}.{attribute}" if place else attribute
                if not getattr(value, "_is_hf_initialized", False):
                    start = self.decoder.parameter_roles[name].init
                    value.copy_(initial_value(start, value.shape, torch.initial_seed(), name, self.decoder.spec))


class EmbeddingAdapter(nn.Module):
    """The decoder's embedding in the form that transformers expects; the parameter remains the decoder's."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        # Else it would be a part of this one, and each of its parameters there twice.
        object.__setattr__(self, "decoder", decoder)

    @property
    def weight(self) -> torch.Tensor:
        """The decoder's embedding matrix (V, D)."""
        return self.decoder.embedding

    def forward(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        """Look up the embeddings (B, T, D) of tokens (B, T)."""
        return self.weight[tokens_BT]


class DecodingCacheAdapter(DecodingCache):
    """A cache of transformers in the form that the decoder expects; `attention_mask` is that of the tokens in it."""

    def __init__(self, cache: Any, attention_mask: AttentionMask | None) -> None:
        super().__init__()
        self.kept, self.attention_mask = cache, attention_mask

    def extend(self, layer: int, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Append a call's keys and values to the cache of transformers, and return all of them."""
        return self.kept.update(k_BGKW, v_BGKW, layer)


def _mask_cache(places_BT: torch.Tensor, padding_BK: torch.Tensor | None, past_tokens: int) -> AttentionMask | None:
    """The mask of the tokens in the cache; None where it is empty."""
    if not past_tokens:
        return None
    places = places_BT.new_zeros((1, past_tokens))
    return AttentionMask.for_call(places, None if padding_BK is None else padding_BK[:, :past_tokens], None)
