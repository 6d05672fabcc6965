"""Closed formulas of parameter counts and FLOPs: what the printed configurations come to. Needs no torch.

Every count is an exact integer. The readings that the documents leave open are named in the docstrings; the
real modules are counted elsewhere, on the meta device, and must agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mpmath import iv

from plumbline.audit.formulas import formula
from plumbline.audit.interval import Interval, low
from plumbline.cli import PlumblineError


@dataclass(frozen=True, kw_only=True, slots=True)
class DecoderSize:
    """Sizes of a decoder with grouped queries; `ffn_matrices` is 3 for a gated layer, 2 for a single branch."""

    layers: int
    width: int
    heads: int
    key_value_heads: int
    head_width: int
    ffn_width: int
    vocabulary: int
    ffn_matrices: int = 3
    norm_vectors: int = 1
    biases: bool = False
    learned_positions: int = 0
    tied: bool = True
    query_key_norm: bool = False
    learned_query: bool = True

    @property
    def query_width(self) -> int:
        """Width of all query heads side by side."""
        return self.heads * self.head_width

    @property
    def key_width(self) -> int:
        """Width of all key (or value) heads side by side."""
        return self.key_value_heads * self.head_width

    def attention(self) -> int:
        """Parameters of one layer's projections, biases included."""
        query = self.width * self.query_width if self.learned_query else 0
        matrices = query + 2 * self.width * self.key_width + self.query_width * self.width
        biases = self.query_width + 2 * self.key_width + self.width if self.biases else 0
        return matrices + biases + (2 * self.head_width if self.query_key_norm else 0)

    def feed_forward(self) -> int:
        """Parameters of one layer's feed-forward maps, biases included."""
        biases = (self.ffn_matrices - 1) * self.ffn_width + self.width if self.biases else 0
        return self.ffn_matrices * self.width * self.ffn_width + biases

    def body(self) -> int:
        """All parameters but the token and position embeddings."""
        norms = self.norm_vectors * self.width
        return self.layers * (self.attention() + self.feed_forward() + 2 * norms) + norms

    def total(self) -> int:
        """All parameters; a tied head counts once."""
        embeddings = self.vocabulary * self.width * (1 if self.tied else 2)
        return self.body() + embeddings + self.learned_positions * self.width


#: Transfer study, section 3.2; `large` with the feed-forward width that makes it 3B.
TRANSFER_BASE = DecoderSize(
    layers=24, width=2048, heads=32, key_value_heads=8, head_width=64, ffn_width=5632, vocabulary=65664
)
TRANSFER_LARGE = DecoderSize(
    layers=28, width=3072, heads=32, key_value_heads=8, head_width=96, ffn_width=8448, vocabulary=65664
)
#: "All other details identical", read literally: only depth and width grow.
TRANSFER_LARGE_AS_PRINTED = DecoderSize(
    layers=28, width=3072, heads=32, key_value_heads=8, head_width=96, ffn_width=5632, vocabulary=65664
)


def transfer_extra(method: str) -> int:
    """Parameters that a method adds to `TRANSFER_BASE`, in the reading that its printed row allows.

    Selective attention loses 2^20 weights a layer, LayerScale has one gain vector a layer, AttnRes a query and
    an affine norm per sublayer, Diff-Attn an affine per-head norm and 128 numbers for lambda a layer.

    Raises:
        PlumblineError: a method that is not in the document.
    """
    base = TRANSFER_BASE
    layers, width = base.layers, base.width
    query_key_norm = 2 * base.head_width * layers
    extra = {
        "baseline": 0,
        "softpick": 0,
        "qknorm": query_key_norm,
        "selective_attn": -(2**20) * layers,
        "selective_qknorm": -(2**20) * layers + query_key_norm,
        "value_residual": layers,
        "diff_attn": (2 * width + 128) * layers,
        "sigmoid_attn": layers,
        "ssmax": base.heads * layers,
        "softmax_cap": 0,
        "gated_attn_qknorm": width * base.heads * layers + query_key_norm,
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
    if method not in extra:
        raise PlumblineError(f"unknown method {method!r}; the transfer study has {', '.join(extra)}")
    return extra[method]


def sequence_flops(size: DecoderSize, context: int, *, score_products: int = 1) -> int:
    """FLOPs of one training step over one sequence by the transfer study's appendix C.1.

    `score_products` is 1 as printed (2 s^2 d); counting both the scores and their use on the values gives 2.
    """
    scores = 2 * score_products * context**2 * size.width
    projections = 2 * (2 * size.width**2 + 2 * size.width * size.key_width)
    feed_forward = 2 * size.ffn_matrices * size.width * size.ffn_width
    return 3 * size.layers * (scores + context * (projections + feed_forward))


def premature(
    scale: Literal["base", "large"] = "base",
    *,
    norm_vectors: int = 2,
    biases: bool = True,
    ffn_matrices: int = 2,
    ffn_width: int | None = None,
) -> DecoderSize:
    """The premature study's decoders (section 4, appendix H): 270M and 0.7B, rotary, tied, GPT-2's 50,257 tokens."""
    layers, width, heads, hidden = {"base": (20, 960, 15, 3840), "large": (22, 1536, 12, 6144)}[scale]
    return DecoderSize(
        layers=layers,
        width=width,
        heads=heads,
        key_value_heads=heads,
        head_width=width // heads,
        ffn_width=hidden if ffn_width is None else ffn_width,
        vocabulary=50257,
        ffn_matrices=ffn_matrices,
        norm_vectors=norm_vectors,
        biases=biases,
    )


def query_free(width: int, ffn_width: int, *, learned_query: bool) -> DecoderSize:
    """nanoGPT at 12 layers and 12 heads: learned positions, bias-free, vocabulary padded to 50,304."""
    return DecoderSize(
        layers=12,
        width=width,
        heads=12,
        key_value_heads=12,
        head_width=width // 12,
        ffn_width=ffn_width,
        vocabulary=50304,
        ffn_matrices=2,
        learned_positions=1024,
        learned_query=learned_query,
    )


#: quack: the multi-head model (width, feed-forward width and depth from the full paper, not its summary).
QUACK_MHA = DecoderSize(
    layers=14, width=2048, heads=32, key_value_heads=32, head_width=64, ffn_width=8192, vocabulary=49152
)


def quack_mla(value_width: int = 128) -> int:
    """Parameters of quack's latent-attention model: d_cq 512, d_ckv 256, 64 + 64 query/key width, no latent norms."""
    layers, width, heads, nope, rope, latent_q, latent_kv = 14, 2048, 32, 64, 64, 512, 256
    attention = (
        width * latent_q
        + latent_q * heads * (nope + rope)
        + width * (latent_kv + rope)
        + latent_kv * heads * (nope + value_width)
        + heads * value_width * width
    )
    return layers * (attention + 3 * width * 8192 + 2 * width) + width + 49152 * width


#: key_norms: grouped queries, two-matrix ReLU^2 and the vocabulary of the authors' repository.
KEY_NORMS = DecoderSize(
    layers=22,
    width=512,
    heads=8,
    key_value_heads=4,
    head_width=64,
    ffn_width=2048,
    vocabulary=49152,
    ffn_matrices=2,
    query_key_norm=True,
)


@formula("parameters", "closed count N of the stated configuration, divided by the printed unit")
def in_units(count: Interval, unit: Interval) -> Interval:
    return count / unit


@formula("added parameters", "100 extra / N(baseline) %")
def added(extra: Interval, baseline: Interval) -> Interval:
    return 100 * extra / baseline


@formula("head-wise gate FLOPs", "100 x 3 x layers s 2 d H / F(baseline) %, F by appendix C.1")
def gate_flops(heads: Interval, score_products: Interval) -> Interval:
    gate = 3 * TRANSFER_BASE.layers * 1024 * 2 * TRANSFER_BASE.width * round(low(heads))
    return iv.mpf(100) * gate / sequence_flops(TRANSFER_BASE, 1024, score_products=round(low(score_products)))


@formula("FLOPs of missing weights", "100 x 3 x s 2 extra / F(baseline) %, F by appendix C.1")
def missing_flops(extra: Interval) -> Interval:
    return 100 * 3 * 1024 * 2 * extra / sequence_flops(TRANSFER_BASE, 1024)
