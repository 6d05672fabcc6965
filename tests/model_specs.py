"""Model and run specs that tests share."""

from __future__ import annotations

import copy
from typing import Any

from plumbline.specs.spec import ModelSpec, RunSpec

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

#: A run that is trained in a fraction of a second, as a file holds it.
RUN: dict[str, Any] = {
    "study": "transfer",
    "preset": "smoke",
    "scale": "base",
    "method": "baseline",
    "init_seed": 42,
    "data_seed": 0,
    "model": BASELINE | {"layers": 2, "width": 32, "heads": 4, "ffn_width": 48},
    "optimizer": {
        "name": "adamw",
        "learning_rate": 0.003,
        "beta1": 0.9,
        "beta2": 0.95,
        "eps": 1e-8,
        "weight_decay": 0.1,
        "decay_embeddings": True,
        "decay_norms": False,
        "decay_scalars": False,
        "gradient_clip": 1.0,
    },
    "schedule": {"name": "cosine", "warmup_steps": 3, "floor": 0.1},
    "train": {
        "steps": 12,
        "batch_tokens": 256,
        "precision": "float32",
        "validate_every": 5,
        "validation_sequences": 10,
    },
    "data": {
        "corpus": "climbmix",
        "source": "packaged",
        "pack": "base",
        "tokenizer": "byte_level_bpe",
        "tokenizer_vocabulary": 97,
    },
}


def small(**overrides: Any) -> ModelSpec:
    """A small baseline with some sizes or components changed."""
    return ModelSpec.from_dict(BASELINE | overrides)


def run(**overrides: Any) -> dict[str, Any]:
    """A copy of RUN with some keys changed, given as ``section__key=value`` or ``key=value``."""
    spec = copy.deepcopy(RUN)
    for name, value in overrides.items():
        *sections, key = name.split("__")
        target = spec
        for section in sections:
            target = target[section]
        target[key] = value
    return spec


def run_spec(**overrides: Any) -> RunSpec:
    """The spec of `run`, checked and complete."""
    return RunSpec.from_dict(run(**overrides))
