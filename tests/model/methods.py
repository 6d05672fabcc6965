"""The transfer study's methods as overlays on the baseline's model spec, for tests.

They are read from the study's own YAML where that exists; what follows is its first draft and the list of
alternative readings, which the study does not run but the tests do.
"""

from __future__ import annotations

from typing import Any

import yaml
from tests.conftest import REPOSITORY
from tests.model_specs import BASELINE

Overlay = dict[str, Any]

_QK_NORM: Overlay = {"query_key": {"name": "qk_norm"}}

_DRAFT: dict[str, Overlay] = {
    "baseline": {},
    "softpick": {"mixer": {"name": "softpick"}},
    "hybrid_norm": {"placement": {"name": "hybrid_norm"}},
    "qknorm": _QK_NORM,
    "sandwich_norm": {"placement": {"name": "sandwich_norm"}},
    "relu_squared": {"ffn": {"name": "relu_squared"}},
    "selective_attn": {"mixer": {"name": "selective"}},
    "qknorm_geglu": _QK_NORM | {"ffn": {"name": "geglu"}},
    "gated_attn_qknorm": _QK_NORM | {"output": {"name": "head_gate"}},
    "softmax_cap": {"mixer": {"name": "softmax_cap"}},
    "selective_qknorm": _QK_NORM | {"mixer": {"name": "selective"}},
    "value_residual": {"values": {"name": "value_residual"}},
    "geglu_ffn": {"ffn": {"name": "geglu"}},
    "denseformer": {"residual": {"name": "dense_former"}},
    "diff_attn": {"mixer": {"name": "differential"}},
    "layerscale": {"residual": {"name": "layer_scale"}},
    "hyper": {"residual": {"name": "hyper_connections"}},
    "attnres": {"residual": {"name": "attention_residuals"}},
    "ssmax": {"mixer": {"name": "ssmax"}},
    "sigmoid_attn": {"mixer": {"name": "sigmoid"}},
}


def _study() -> dict[str, Overlay] | None:
    """The overlays of config/studies/transfer.yaml, or None before it exists."""
    path = REPOSITORY / "config" / "studies" / "transfer.yaml"
    if not path.exists():
        return None
    methods = yaml.safe_load(path.read_text(encoding="utf-8"))["methods"]
    return {name: (entry or {}).get("model") or {} for name, entry in methods.items()}


#: Method -> overlay of its model spec, the baseline included.
METHODS: dict[str, Overlay] = _study() or _DRAFT

#: Other readings of the same methods, as options of their components.
ALTERNATIVES: dict[str, Overlay] = {
    "softpick_context": {"mixer": {"name": "softpick", "n": "context"}},
    "softpick_sequence": {"mixer": {"name": "softpick", "n": "sequence"}},
    "softpick_original": {"mixer": {"name": "softpick", "variant": "original"}},
    "softpick_masked_negative": {"mixer": {"name": "softpick", "variant": "masked_negative"}},
    "selective_halved_key_values": {"mixer": {"name": "selective", "variant": "halved_key_values"}},
    "selective_original": {"mixer": {"name": "selective", "variant": "original"}},
    "sigmoid_sequence": {"mixer": {"name": "sigmoid", "n": "sequence"}},
    "sigmoid_visible": {"mixer": {"name": "sigmoid", "n": "visible"}},
    "sigmoid_original": {"mixer": {"name": "sigmoid", "variant": "original"}},
    "sigmoid_original_sequence": {"mixer": {"name": "sigmoid", "variant": "original", "n": "sequence"}},
    "ssmax_context": {"mixer": {"name": "ssmax", "n": "context"}},
    "ssmax_divide": {"mixer": {"name": "ssmax", "variant": "divide"}},
    "ssmax_original": {"mixer": {"name": "ssmax", "variant": "original"}},
    "differential_per_head_lambda": {"mixer": {"name": "differential", "variant": "per_head_lambda"}},
    "differential_official": {"mixer": {"name": "differential", "variant": "official"}},
    "differential_no_factor": {"mixer": {"name": "differential", "one_minus_lambda_init": False}},
    "hybrid_norm_official": _QK_NORM
    | {"values": {"name": "rms_norm"}, "placement": {"name": "hybrid_norm", "variant": "official"}},
    "layerscale_two_vectors": {"residual": {"name": "layer_scale", "vectors": 2}},
    "layerscale_deep": {"residual": {"name": "layer_scale", "initial": 1e-5}},
    "denseformer_official": {"residual": {"name": "dense_former", "variant": "official"}},
    "hyper_per_layer": {"residual": {"name": "hyper_connections", "variant": "per_layer"}},
    "hyper_official": {"residual": {"name": "hyper_connections", "variant": "official"}},
    "attnres_official": {"residual": {"name": "attention_residuals", "query_std": 0.0, "inverse_sqrt_width": False}},
    "attnres_per_layer": {"residual": {"name": "attention_residuals", "queries": "per_layer"}},
    "geglu_tanh": {"ffn": {"name": "geglu", "gelu": "tanh"}},
}

#: Readings in which n is the length of the call: what a token sees depends on how many follow it.
LENGTH_DEPENDENT = ("softpick_sequence", "sigmoid_sequence", "sigmoid_original_sequence")

ALL: dict[str, Overlay] = METHODS | ALTERNATIVES

#: Sizes at which the study's parameter counts were printed (methods dossier 2.0).
PAPER: dict[str, Any] = {
    "layers": 24,
    "width": 2048,
    "heads": 32,
    "key_value_heads": 8,
    "head_width": 64,
    "ffn_width": 5632,
    "vocabulary": 65_664,
    "context": 1024,
}


def overlay(name: str, **sizes: Any) -> dict[str, Any]:
    """The flat model spec of a method or alternative at the tests' size, or with other sizes."""
    return BASELINE | sizes | ALL[name]
