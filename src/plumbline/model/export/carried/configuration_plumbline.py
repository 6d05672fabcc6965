"""Describes a model of Plumbline in the form that transformers reads."""

from __future__ import annotations

from typing import Any

from transformers import PretrainedConfig


class PlumblineConfig(PretrainedConfig):
    """Configuration of a model: `plumbline` is its spec, with its sizes and a component with all of its options for
    each slot.

    `keeps_cache`: whether decoding token by token gives the same as reading all tokens at once, so that `generate` may
    keep keys and values. `takes_padding`: whether padding leaves the other tokens' logits unchanged. Both were tried
    when the folder was written; what does not hold is refused.
    """

    model_type = "plumbline"
    keys_to_ignore_at_inference = ["past_key_values"]

    def __init__(
        self,
        plumbline: dict[str, Any] | None = None,
        keeps_cache: bool = True,
        takes_padding: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.plumbline = spec = plumbline or {}
        self.keeps_cache = self.use_cache = keeps_cache
        self.takes_padding = takes_padding
        if spec:
            self.vocab_size, self.hidden_size = spec["vocabulary"], spec["width"]
            self.num_hidden_layers, self.num_attention_heads = spec["layers"], spec["heads"]
            self.num_key_value_heads, self.max_position_embeddings = spec["key_value_heads"], spec["context"]
            self.tie_word_embeddings = spec["tied_embeddings"]
