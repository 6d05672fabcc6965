"""The blocks of the studies but transfer's methods, as overlays of slots, and the sizes that the documents print.

The premature study's seven architectures differ in norm, biases of linear maps and FFN alone;
`gpt_gelu2560` differs from `gpt` in a size. "Biasless" is used of linear maps: its LayerNorm keeps its bias (8.2).
"""

from __future__ import annotations

from typing import Any

Overlay = dict[str, Any]

LAYER_NORM: Overlay = {"norm": {"name": "layer_norm"}}
RMS_NORM: Overlay = {"norm": {"name": "rms_norm"}}
BIASED: Overlay = {"projections": {"name": "grouped_query", "bias": True}}
BIASLESS: Overlay = {"projections": {"name": "grouped_query", "bias": False}}


def ffn(name: str, bias: bool) -> Overlay:
    return {"ffn": {"name": name, "bias": bias}}


#: Architecture of the premature study -> its slots.
PREMATURE: dict[str, Overlay] = {
    "gpt": LAYER_NORM | BIASED | ffn("gelu", True),
    "gpt_rmsnorm": RMS_NORM | BIASED | ffn("gelu", True),
    "gpt_biasless": LAYER_NORM | BIASLESS | ffn("gelu", False),
    "gpt_swiglu": LAYER_NORM | BIASED | ffn("swiglu", True),
    "gpt_geglu": LAYER_NORM | BIASED | ffn("geglu", True),
    "llama_layernorm": LAYER_NORM | BIASLESS | ffn("swiglu", False),
    "llama": RMS_NORM | BIASLESS | ffn("swiglu", False),
}

#: The block of the key_norms study (6): squared ReLU of the FFN's own width, and a stream that starts scaled.
KEY_NORMS: Overlay = RMS_NORM | {
    "query_key": {"name": "qk_norm"},
    "ffn": {"name": "relu_squared", "width_ratio": 1.0},
    "residual": {"name": "scaled_embedding"},
}

#: The nanoGPT of the query_free study (5), and the same without a query matrix, with the scale that goes with it, and
#: with the queries of its section 6; what its theorem 4.2 is about; and the same without keys' or values' matrix.
NANO_GPT: Overlay = {
    "positions": {"name": "learned"},
    "norm": {"name": "layer_norm", "bias": False},
    "ffn": {"name": "gelu"},
}
HALF_SCALE: Overlay = {"mixer": {"name": "scaled_softmax", "divisor": 2.0}}
QUERY_FREE: dict[str, Overlay] = {
    "nano_gpt": NANO_GPT,
    "query_free": NANO_GPT | HALF_SCALE | {"projections": {"name": "identity_query"}},
    "residual_query": NANO_GPT | HALF_SCALE | {"projections": {"name": "residual_query", "activation": "none"}},
    "residual_query_gelu": NANO_GPT | HALF_SCALE | {"projections": {"name": "residual_query", "activation": "gelu"}},
    # Without norms and FFN skips a stream of the others' initial values fades, and nothing is learned.
    "norm_free": NANO_GPT | {"norm": {"name": "none"}, "residual": {"name": "attention_skip"}, "init_std": 0.1},
    "query_free_in_a_layer": NANO_GPT | {"projections": {"name": "partial_identity_query", "layers": "1"}},
    "key_free": NANO_GPT | HALF_SCALE | {"key_value_heads": 8, "projections": {"name": "identity_key"}},
    "value_free": NANO_GPT | {"key_value_heads": 8, "projections": {"name": "identity_value"}},
}

#: Multi-head latent attention (quack study, algorithm 2) with the blocks of a Qwen3, and with norms on the latents.
LATENT: Overlay = {
    "key_value_heads": 8,
    "projections": {"name": "latent", "query_latent": 24, "key_value_latent": 12, "rotary_width": 4},
}
LATENT_NORM: Overlay = LATENT | {"projections": LATENT["projections"] | {"latent_norm": True}}

#: What the universal tests run over in addition to the methods. (`llama` is those tests' baseline.)
BLOCKS: dict[str, Overlay] = {name: slots for name, slots in PREMATURE.items() if name != "llama"} | {
    "tanh_cap": {"mixer": {"name": "tanh_cap", "cap": 1.0}},
    "gpt_unbiased_norm": {"norm": {"name": "layer_norm", "bias": False}, "ffn": {"name": "gelu", "gelu": "tanh"}},
    "key_norms": KEY_NORMS,
    **QUERY_FREE,
    "latent": LATENT,
    "latent_norm": LATENT_NORM,
}

#: Sizes of the premature study: 270M, and 0.7B with the FFN of the GPT. The gated FFNs have 2560 at 270M.
BASE: Overlay = {
    "layers": 20,
    "width": 960,
    "heads": 15,
    "key_value_heads": 15,
    "head_width": 64,
    "ffn_width": 3840,
    "vocabulary": 50_257,
    "context": 1024,
    "residual_init_scaling": True,
}
LARGE: Overlay = BASE | {
    "layers": 22,
    "width": 1536,
    "heads": 12,
    "key_value_heads": 12,
    "head_width": 128,
    "ffn_width": 6144,
}
GATED: Overlay = {"ffn_width": 2560}

#: Sizes of the key_norms study.
KEY_NORMS_SIZES: Overlay = {
    "layers": 22,
    "width": 512,
    "heads": 8,
    "key_value_heads": 4,
    "head_width": 64,
    "ffn_width": 2048,
    "vocabulary": 49_152,
    "context": 2048,
    "norm_eps": 1.1920928955078125e-07,
}

#: Sizes of the query_free study: 124M.
NANO_GPT_SIZES: Overlay = {
    "layers": 12,
    "width": 768,
    "heads": 12,
    "key_value_heads": 12,
    "head_width": 64,
    "ffn_width": 3072,
    "vocabulary": 50_304,
    "context": 1024,
    "residual_init_scaling": True,
}

#: Sizes of the quack study, with attention of many heads and with latent attention.
QUACK_SIZES: Overlay = {
    "layers": 14,
    "width": 2048,
    "heads": 32,
    "key_value_heads": 32,
    "head_width": 64,
    "ffn_width": 8192,
    "vocabulary": 49_152,
    "context": 2048,
}
QUACK_LATENT: Overlay = {
    "head_width": 128,
    "projections": {"name": "latent", "query_latent": 512, "key_value_latent": 256, "rotary_width": 64},
}
