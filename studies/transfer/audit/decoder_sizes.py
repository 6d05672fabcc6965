"""Sizes the transfer study's decoders (section 3.2), what a method adds to them (table 4), and appendix C.1's FLOPs."""

from __future__ import annotations

from dataclasses import replace

from plumbline.audit.parameter_counts import DecoderSize, head_width
from plumbline.core.errors import PlumblineError, nearest
from plumbline.published.printed_cells import PrintedSetup


def base(settings: PrintedSetup) -> DecoderSize:
    """The 1.2B decoder. Tied: only so does it have the printed count."""
    entry = "model_1p2b"
    width, heads = settings.whole(entry, "hidden"), settings.whole(entry, "heads")
    return DecoderSize(
        layers=settings.whole(entry, "layers"),
        width=width,
        heads=heads,
        key_value_heads=settings.whole(entry, "kv_heads"),
        head_width=head_width(width, heads),
        ffn_width=settings.whole(entry, "ffn_inter"),
        vocabulary=settings.whole(entry, "vocab"),
    )


def large_as_printed(settings: PrintedSetup) -> DecoderSize:
    """The 3B decoder with "all other details identical", read literally: only depth and width grow."""
    small, width = base(settings), settings.whole("model_3b", "hidden")
    return replace(
        small, layers=settings.whole("model_3b", "layers"), width=width, head_width=head_width(width, small.heads)
    )


def large(settings: PrintedSetup) -> DecoderSize:
    """The interpretation that has 3B parameters: the feed-forward width grows with the width."""
    small, printed = base(settings), large_as_printed(settings)
    return replace(printed, ffn_width=small.ffn_width * printed.width // small.width)


def _use_squared_relu(size: DecoderSize) -> DecoderSize:
    """The decoder with ReLU^2's two matrices of one and a half times the feed-forward width (B.16)."""
    return replace(size, ffn_matrices=2, ffn_width=3 * size.ffn_width // 2)


def masking_outputs(size: DecoderSize) -> int:
    """Weights a layer of the output projection for one masking head of each key/value group."""
    return size.key_value_heads * size.head_width * size.width


def extra(method: str, size: DecoderSize) -> int:
    """Parameters that a method adds to a decoder of `size`, in the interpretation that its printed row allows.

    Selective attention masks with one head of each key/value group, whose output the output projection does not
    take; LayerScale has one gain vector a layer, AttnRes a query and an affine norm per sublayer, Diff-Attn an
    affine per-head norm and four vectors of half a head for lambda a layer.

    Raises:
        PlumblineError: a method that is not in the paper.
    """
    layers, width = size.layers, size.width
    query_key_norm = 2 * size.head_width * layers
    selective = -masking_outputs(size) * layers
    other_feed_forward = _use_squared_relu(size).total() - size.total()
    added = {
        "baseline": 0,
        "softpick": 0,
        "qknorm": query_key_norm,
        "selective_attn": selective,
        "selective_qknorm": selective + query_key_norm,
        "value_residual": layers,
        "diff_attn": (2 * width + 2 * size.head_width) * layers,
        "sigmoid_attn": layers,
        "ssmax": size.heads * layers,
        "softmax_cap": 0,
        "gated_attn_qknorm": width * size.heads * layers + query_key_norm,
        "geglu_ffn": 0,
        "qknorm_geglu": query_key_norm,
        "relu_squared": other_feed_forward,
        "sandwich_norm": 2 * width * layers,
        "hybrid_norm": 0,
        "denseformer": layers * (layers + 1) // 2,
        "layerscale": width * layers,
        "hyper": 2 * layers,
        "attnres": 4 * width * layers,
    }
    if method not in added:
        raise PlumblineError(f"table 4 of the transfer study has no method {method!r}{nearest(method, added)}")
    return added[method]


def literal_extra(method: str, size: DecoderSize) -> int:
    """The same as appendix B has it, where that is another number.

    Selective attention "adds zero new parameters" (B.4); LayerScale gates "the sublayer output", and a layer has two
    sublayers (B.10); AttnRes has "a learnable per-layer pseudo-query", and a norm whose gain is not mentioned (B.1).
    """
    literal = {
        "selective_attn": 0,
        "selective_qknorm": extra("qknorm", size),
        "layerscale": 2 * size.width * size.layers,
        "attnres": size.width * size.layers,
    }
    return literal[method] if method in literal else extra(method, size)


def matrices(method: str, size: DecoderSize) -> int:
    """Weights of matrix products that a method adds to all layers, in the interpretation that its parameters allow.

    Appendix C.1 counts the scores and the products with weight matrices: gains, scalars and elementwise maps are free.
    """
    if method.startswith("selective"):
        return -masking_outputs(size) * size.layers
    return literal_matrices(method, size)


def literal_matrices(method: str, size: DecoderSize) -> int:
    """The same as appendix B has it."""
    gate = size.width * size.heads if method == "gated_attn_qknorm" else 0
    other = _use_squared_relu(size) if method == "relu_squared" else size
    return size.layers * (gate + other.feed_forward() - size.feed_forward())


def product_flops(weights: int, context: int) -> int:
    """FLOPs of one training step over one sequence for products with that many weights (appendix C.1)."""
    return 3 * 2 * context * weights


def sequence_flops(size: DecoderSize, context: int, *, score_products: int = 1) -> int:
    """FLOPs of one training step over one sequence by appendix C.1.

    `score_products` is 1 as printed (2 s^2 d); counting both the scores and their use on the values gives 2.
    """
    scores = 3 * size.layers * 2 * score_products * context**2 * size.width
    return scores + product_flops(size.layers * (size.attention() + size.feed_forward()), context)
