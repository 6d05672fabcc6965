"""The blocks of the premature and key_norms studies, as overlays of slots, and the sizes that the documents print.

The premature study's seven architectures differ in norm, biases of linear maps and FFN alone;
`gpt_gelu2560` differs from `gpt` in a size. "Biasless" is said of linear maps: its LayerNorm keeps its bias (8.2).
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

#: What the universal tests run over beside the methods. (`llama` is those tests' baseline.)
BLOCKS: dict[str, Overlay] = {name: slots for name, slots in PREMATURE.items() if name != "llama"} | {
    "gpt_unbiased_norm": {"norm": {"name": "layer_norm", "bias": False}, "ffn": {"name": "gelu", "gelu": "tanh"}},
    "key_norms": KEY_NORMS,
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
