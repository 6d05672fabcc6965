"""Models of the Hugging Face library with random weights, and the command that probes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import transformers

from plumbline.core import frames
from plumbline.evaluate.probes import __main__ as command

SIZES = {
    "vocab_size": 90,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "max_position_embeddings": 160,
    "initializer_range": 0.25,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 10000.0, "original_max_position_embeddings": 40}
GPT2 = {
    name: SIZES[old]
    for name, old in {
        "vocab_size": "vocab_size", "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head":
        "num_attention_heads", "n_positions": "max_position_embeddings", "initializer_range": "initializer_range",
        "bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id"}.items()
}  # fmt: skip
#: No factor of scores is the usual one, and no layer's window is within the context.
GEMMA = SIZES | {
    "num_key_value_heads": 2, "head_dim": 16, "query_pre_attn_scalar": 9, "sliding_window": 400, "pad_token_id": 0
}  # fmt: skip
TYPES = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "full_attention"]
VISION = {
    "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "image_size": 4,
    "patch_size": 2
}  # fmt: skip
PHI3 = SIZES | {"num_key_value_heads": 2, "pad_token_id": 0, "original_max_position_embeddings": 160}
CONFIGS: dict[str, Callable[[], Any]] = {
    "llama": lambda: transformers.LlamaConfig(**SIZES, num_key_value_heads=2),
    "llama-biased-yarn-head-dim": lambda: transformers.LlamaConfig(
        **SIZES, num_key_value_heads=4, attention_bias=True, head_dim=16, rope_parameters=YARN
    ),
    "mistral": lambda: transformers.MistralConfig(**SIZES, num_key_value_heads=1, sliding_window=None),
    "qwen2": lambda: transformers.Qwen2Config(**SIZES, num_key_value_heads=2),
    "gpt2": lambda: transformers.GPT2Config(**GPT2),
    "gpt2-scaled-by-layer": lambda: transformers.GPT2Config(**GPT2, scale_attn_by_inverse_layer_idx=True),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(**SIZES, rotary_pct=0.25),
    "gpt_neox-sequential": lambda: transformers.GPTNeoXConfig(**SIZES, use_parallel_residual=False),
    "qwen3": lambda: transformers.Qwen3Config(**SIZES, num_key_value_heads=2, head_dim=16),
    "gemma2": lambda: transformers.Gemma2Config(**GEMMA, attn_logit_softcapping=3.0, final_logit_softcapping=5.0),
    "gemma3_text": lambda: transformers.Gemma3TextConfig(**GEMMA, layer_types=TYPES),
    "gemma3": lambda: transformers.Gemma3Config(text_config=GEMMA | {"layer_types": TYPES}, vision_config=VISION),
    "olmo2": lambda: transformers.Olmo2Config(**SIZES, num_key_value_heads=2),
    "phi": lambda: transformers.PhiConfig(**SIZES, num_key_value_heads=2),
    "phi3": lambda: transformers.Phi3Config(**PHI3),
    "phi3-partial": lambda: transformers.Phi3Config(**PHI3, partial_rotary_factor=0.5),
}


def save_model(name: str, folder: Path, **config: Any) -> Path:
    """A model with random weights and biases, saved; `config` changes the configuration."""
    torch.manual_seed(7)
    stated = CONFIGS[name]()
    for key, value in config.items():
        setattr(stated.get_text_config(), key, value)
    model = transformers.AutoModelForCausalLM.from_config(stated)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    return folder


def probe_folder(monkeypatch: pytest.MonkeyPatch, folder: Path, *args: Any) -> pd.DataFrame:
    """The frame that the command writes."""
    out = folder.parent / "probes.parquet"
    argv = ["probes", "--checkpoint", folder, "--out", out, "--device", "cpu", *args]
    monkeypatch.setattr(sys, "argv", [str(word) for word in argv])
    command.main()
    return frames.read(out, "probes")
