"""A decoder of Plumbline as a model of transformers: the same modules, the same arithmetic, the same logits."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import DynamicCache, GenerationMixin, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast

from plumbline.export.carried.configuration_plumbline import PlumblineConfig
from plumbline.model.cache import Cache
from plumbline.model.decoder import Decoder
from plumbline.model.init import initial_value
from plumbline.model.visibility import Visibility
from plumbline.specs.spec import ModelSpec

# Before 5, parameters that carry more than their values cannot be loaded.
if int(transformers.__version__.partition(".")[0]) < 5:
    raise ImportError(f"this model needs transformers 5 or later, and here is {transformers.__version__}")


class PlumblineForCausalLM(PreTrainedModel, GenerationMixin):
    """A causal language model. Positions count the tokens that a mask leaves, so that no `position_ids` are taken."""

    config_class = PlumblineConfig
    main_input_name = "input_ids"
    # Layers hand each other more than one stream: a model is on one device.
    _no_split_modules = ["Decoder"]

    def __init__(self, config: PlumblineConfig) -> None:
        super().__init__(config)
        self.decoder = Decoder(ModelSpec.from_dict(config.plumbline))
        self.post_init()

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        labels: torch.Tensor | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
    ) -> CausalLMOutputWithPast | tuple[Any, ...]:
        """Logits (B, T, V) in float32 for the token after each position.

        Args:
            attention_mask: (B, T), 0 at padding, left or right; tokens in the cache have columns too.
            past_key_values: what earlier calls kept; the tokens go on from there.
            labels: (B, T) the tokens again, -100 where none counts: the loss is the mean over the others of the
                cross-entropy, in nats, of predicting each from those before it.
            use_cache: keep keys and values, though none were given.

        Raises:
            ValueError: a mask that does not fit, or padding or a cache that this model does not bear.
        """
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache(config=self.config)
        self._require_cache(past_key_values)
        before = 0 if past_key_values is None else past_key_values.get_seq_length()
        padding_BK = self._padding(input_ids, attention_mask, before)
        padding_BT = None if padding_BK is None else padding_BK[:, before:]
        cache = None if past_key_values is None else Decoding(past_key_values, _seen(input_ids, padding_BK, before))
        logits_BTV = self.decoder(input_ids, padding_BT=padding_BT, cache=cache)
        loss = None
        if labels is not None:
            wanted = labels[:, 1:].flatten().to(logits_BTV.device)
            loss = cross_entropy(logits_BTV[:, :-1].flatten(0, 1), wanted, ignore_index=-100)
        found = CausalLMOutputWithPast(loss=loss, logits=logits_BTV, past_key_values=past_key_values)
        return found.to_tuple() if return_dict is False else found

    # What `generate` takes is read off the names `kwargs` here and of `forward`.
    def prepare_inputs_for_generation(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """As transformers prepares them. Early releases of 5 add empty ones, and a position: the cache knows it."""
        prepared = super().prepare_inputs_for_generation(*args, **kwargs)
        return {key: value for key, value in prepared.items() if value is not None and key != "cache_position"}

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
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None, before: int
    ) -> torch.Tensor | None:
        """True at padding, of the tokens in the cache and of this call's (B, K); None where there is none."""
        if attention_mask is None:
            return None
        batch, length = input_ids.shape
        if attention_mask.shape != (batch, before + length):
            raise ValueError(
                f"attention_mask is {tuple(attention_mask.shape)}, and {batch} rows have {before + length} tokens, "
                "those in the cache included; give a column for each"
            )
        padding_BK = attention_mask == 0
        if not padding_BK.any():
            return None
        if not self.config.takes_padding:
            raise ValueError(
                "what a token sees depends on the length of the call in this model, padding included; give sequences "
                "of one length, without padding"
            )
        return padding_BK.to(input_ids.device)

    def _init_weights(self, module: nn.Module) -> None:
        """Start parameters that were not loaded as training starts them; torch's own seed is the seed."""
        place = next((name for name, part in self.decoder.named_modules() if part is module), None)
        if place is None:
            return
        with torch.no_grad():
            for own, value in module.named_parameters(recurse=False):
                name = f"{place}.{own}" if place else own
                if not getattr(value, "_is_hf_initialized", False):
                    start = self.decoder.parameter_roles[name].init
                    value.copy_(initial_value(start, value.shape, torch.initial_seed(), name, self.decoder.spec))


class Decoding(Cache):
    """A cache of transformers in the form that the decoder asks; `visibility` is that of the tokens in it."""

    def __init__(self, kept: Any, visibility: Visibility | None) -> None:
        super().__init__()
        self.kept, self.visibility = kept, visibility

    def extend(self, layer: int, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.kept.update(k_BGKW, v_BGKW, layer)


def _seen(input_ids: torch.Tensor, padding_BK: torch.Tensor | None, before: int) -> Visibility | None:
    """The visibility of the tokens in the cache; None where it is empty."""
    if not before:
        return None
    tokens = input_ids.new_zeros((1, before))
    return Visibility.of(tokens, None if padding_BK is None else padding_BK[:, :before], None)
