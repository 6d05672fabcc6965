"""Sizes the premature study's decoders (section 4, appendix H). Rotary, with GPT-2's vocabulary."""

from __future__ import annotations

from dataclasses import replace

from plumbline.audit.parameter_counts import DecoderSize, head_width
from plumbline.published.printed_cells import PrintedSetup


def base(settings: PrintedSetup) -> DecoderSize:
    """The GPT-style 270M decoder."""
    return _gpt(settings, "model_270m")


def large(settings: PrintedSetup) -> DecoderSize:
    """The GPT-style 0.7B decoder."""
    return _gpt(settings, "model_0p7b")


def llama(settings: PrintedSetup) -> DecoderSize:
    """The LLaMA-style 270M decoder: RMSNorm, a gated feed-forward layer."""
    entry = "llama_variant"
    return replace(
        base(settings),
        norm_vectors=1,
        biases=settings.flag(entry, "bias"),
        ffn_matrices=3,
        ffn_width=settings.whole(entry, "ffn_width"),
    )


def _gpt(settings: PrintedSetup, entry: str) -> DecoderSize:
    """LayerNorm with bias and one feed-forward branch; appendix H takes biases and tying from section 4."""
    width, heads = settings.whole(entry, "width"), settings.whole(entry, "heads")
    return DecoderSize(
        layers=settings.whole(entry, "layers"),
        width=width,
        heads=heads,
        key_value_heads=heads,
        head_width=head_width(width, heads),
        ffn_width=settings.whole(entry, "ffn"),
        vocabulary=settings.whole("external_tokenizer", "vocab"),
        ffn_matrices=2,
        norm_vectors=2,
        biases=settings.flag("model_270m", "bias"),
        tied=settings.flag("model_270m", "tied"),
    )
