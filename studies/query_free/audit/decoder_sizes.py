"""Sizes query_free's decoder, which is nanoGPT's (section 5.1) at the widths and feed-forward multiples of Table 2."""

from __future__ import annotations

from plumbline.audit.parameter_counts import DecoderSize, head_width
from plumbline.published.printed_cells import PrintedSetup


def decoder(
    settings: PrintedSetup, *, narrow: bool = False, multiple: float | None = None, learned_query: bool = True
) -> DecoderSize:
    """A configuration of Table 2: learned positions, LayerNorm without bias, one feed-forward branch.

    Args:
        settings: the stated configuration.
        narrow: the narrower baseline's width.
        multiple: feed-forward width over width; None: the stated feed-forward width.
        learned_query: False where the query is the identity.
    """
    entry = "model"
    width, heads = settings.whole("small_d" if narrow else entry, "d"), settings.whole(entry, "heads")
    return DecoderSize(
        layers=settings.whole(entry, "layers"),
        width=width,
        heads=heads,
        key_value_heads=heads,
        head_width=head_width(width, heads),
        ffn_width=settings.whole(entry, "mlp_hidden") if multiple is None else round(multiple * width),
        vocabulary=settings.whole("external_nanogpt", "vocab"),
        ffn_matrices=2,
        biases=settings.flag(entry, "bias"),
        learned_positions=settings.whole(entry, "context"),
        tied=settings.flag(entry, "tied"),
        learned_query=learned_query,
    )
