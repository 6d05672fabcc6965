"""Model specs that tests share."""

from __future__ import annotations

from typing import Any

from plumbline.specs.spec import ModelSpec

BASELINE: dict[str, Any] = {
    "layers": 4,
    "width": 64,
    "heads": 8,
    "key_value_heads": 2,
    "head_width": 8,
    "ffn_width": 176,
    "vocabulary": 97,
    "context": 32,
    "norm_eps": 1e-5,
    "init_std": 0.02,
    "residual_init_scaling": False,
    "tied_embeddings": True,
    "positions": {"name": "rotary"},
    "norm": {"name": "rms_norm"},
    "projections": {"name": "grouped_query"},
    "query_key": {"name": "identity"},
    "values": {"name": "identity"},
    "mixer": {"name": "softmax"},
    "output": {"name": "identity"},
    "ffn": {"name": "swiglu"},
    "placement": {"name": "pre_norm"},
    "residual": {"name": "standard"},
}


def small(**overrides: Any) -> ModelSpec:
    """A small baseline with some sizes or components changed."""
    return ModelSpec.from_dict(BASELINE | overrides)
