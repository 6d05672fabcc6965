"""Transfer study: its decoders (section 3.2), what a method adds to them (table 4), and appendix C.1's FLOPs."""

from __future__ import annotations

from dataclasses import replace

from plumbline.audit.parameters import DecoderSize, head_width
from plumbline.audit.settings import Settings
from plumbline.cli import PlumblineError, nearest


def base(settings: Settings) -> DecoderSize:
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


def large_as_printed(settings: Settings) -> DecoderSize:
    """The 3B decoder with "all other details identical", read literally: only depth and width grow."""
    small, width = base(settings), settings.whole("model_3b", "hidden")
    return replace(
        small,
        layers=settings.whole("model_3b", "layers"),
        width=width,
        head_width=head_width(width, small.heads),
    )


def large(settings: Settings) -> DecoderSize:
    """The reading that has 3B parameters: the feed-forward width grows with the width."""
    small, printed = base(settings), large_as_printed(settings)
    return replace(printed, ffn_width=small.ffn_width * printed.width // small.width)


def extra(method: str, size: DecoderSize) -> int:
    """Parameters that a method adds to a decoder of `size`, in the reading that its printed row allows.

    Selective attention masks with one head of each key/value group, whose output the output projection does not
    take; LayerScale has one gain vector a layer, AttnRes a query and an affine norm per sublayer, Diff-Attn an
    affine per-head norm and four vectors of half a head for lambda a layer.

    Raises:
        PlumblineError: a method that is not in the document.
    """
    layers, width = size.layers, size.width
    query_key_norm = 2 * size.head_width * layers
    selective = -size.key_value_heads * size.head_width * width * layers
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
        "relu_squared": 0,
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


def sequence_flops(size: DecoderSize, context: int, *, score_products: int = 1) -> int:
    """FLOPs of one training step over one sequence by appendix C.1.

    `score_products` is 1 as printed (2 s^2 d); counting both the scores and their use on the values gives 2.
    """
    scores = 2 * score_products * context**2 * size.width
    projections = 2 * (2 * size.width**2 + 2 * size.width * size.key_width)
    feed_forward = 2 * size.ffn_matrices * size.width * size.ffn_width
    return 3 * size.layers * (scores + context * (projections + feed_forward))
