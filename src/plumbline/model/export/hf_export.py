"""Exports a model to the Hugging Face Llama format, for tools that do not know this package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_bytes, atomic_write_json, open_atomically
from plumbline.model.decoder import Decoder
from plumbline.specs.components import SLOTS
from plumbline.specs.spec import ModelSpec

#: The components that a Llama is made of.
LLAMA = {
    "positions": "rotary",
    "norm": "rms_norm",
    "projections": "grouped_query",
    "query_key": "identity",
    "values": "identity",
    "mixer": "softmax",
    "output": "identity",
    "ffn": "swiglu",
    "placement": "pre_norm",
    "residual": "standard",
}

#: Our names within a layer -> theirs.
LAYER_NAMES = {
    "placement.norms.0.gain": "input_layernorm.weight",
    "placement.norms.1.gain": "post_attention_layernorm.weight",
    "attention.projections.query": "self_attn.q_proj",
    "attention.projections.key": "self_attn.k_proj",
    "attention.projections.value": "self_attn.v_proj",
    "attention.projections.output": "self_attn.o_proj",
    "ffn.gate": "mlp.gate_proj",
    "ffn.up": "mlp.up_proj",
    "ffn.down": "mlp.down_proj",
}


def export(model: Decoder, tokenizer_path: str | Path, directory: str | Path) -> None:
    """Write `config.json`, `model.safetensors`, `tokenizer.json` and `tokenizer_config.json` into `directory`.

    `AutoModelForCausalLM` and `AutoTokenizer` read them. Weights keep their type. Vocabulary entries beyond the
    tokenizer's, which pad the embedding, are kept too.

    Raises:
        PlumblineError: a Llama cannot have one of the model's components, or the tokenizer does not fit the model.
    """
    check_expressible(model.spec)
    directory = Path(directory)
    special = write_tokenizer(model.spec, tokenizer_path, directory)
    weights = llama_weights(model)
    with open_atomically(directory / "model.safetensors") as file:
        save_file(weights, file.name, metadata={"format": "pt"})
    atomic_write_json(directory / "config.json", llama_config(model.spec, special, model.embedding.dtype))


def write_tokenizer(spec: ModelSpec, tokenizer_path: str | Path, directory: Path) -> dict[str, int]:
    """Write `tokenizer.json` and `tokenizer_config.json`; returns the special tokens with their ids.

    Raises:
        PlumblineError: the tokenizer is not there, or does not fit the model.
    """
    tokenizer_path = Path(tokenizer_path)
    special = _special_tokens(spec, tokenizer_path)
    directory.mkdir(parents=True, exist_ok=True)
    atomic_write_bytes(directory / "tokenizer.json", tokenizer_path.read_bytes())
    atomic_write_json(directory / "tokenizer_config.json", _tokenizer_config(spec, special))
    return special


def beyond_llama(spec: ModelSpec) -> list[str]:
    """What a model has and a Llama cannot have: one text per slot; empty for a Llama."""
    return [
        f"model.{slot} {spec.slot(slot).name!r} (Llama has {LLAMA[slot]!r})"
        for slot in SLOTS
        if spec.slot(slot).name != LLAMA[slot]
    ]


def check_expressible(spec: ModelSpec) -> None:
    """Refuse a model that the Llama format cannot express.

    Raises:
        PlumblineError: naming every component at fault.
    """
    if faults := beyond_llama(spec):
        raise PlumblineError(
            f"the Hugging Face Llama format cannot express {', '.join(faults)}; use this package to run it, "
            "or `plumbline export`, which includes its code"
        )


def llama_weights(model: Decoder) -> dict[str, torch.Tensor]:
    """The weights under their Llama names, on the CPU; a tied head is left out, as the format demands."""
    renamed = {"embedding": "model.embed_tokens.weight", "final_norm.gain": "model.norm.weight"}
    renamed["head.weight"] = "lm_head.weight"
    for layer in range(model.spec.layers):
        for ours, theirs in LAYER_NAMES.items():
            suffixes = [""] if ours.endswith("gain") else [".weight", ".bias"]
            renamed |= {f"blocks.{layer}.{ours}{end}": f"model.layers.{layer}.{theirs}{end}" for end in suffixes}
    state = model.state_dict()
    return {renamed[name]: value.detach().cpu().contiguous() for name, value in state.items()}


def llama_config(spec: ModelSpec, special: dict[str, int], dtype: torch.dtype) -> dict[str, Any]:
    """The content of `config.json`; `special` maps special tokens to their ids."""
    bias = spec.slot("projections").options["bias"]
    end = next(iter(special.values()), None)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "vocab_size": spec.vocabulary,
        "hidden_size": spec.width,
        "intermediate_size": spec.ffn_width,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.key_value_heads,
        "head_dim": spec.head_width,
        "max_position_embeddings": spec.context,
        "rope_parameters": {"rope_type": "default", "rope_theta": spec.slot("positions").options["base"]},
        "rms_norm_eps": spec.norm_eps,
        "initializer_range": spec.init_std,
        "tie_word_embeddings": spec.tied_embeddings,
        "attention_bias": bias,
        "mlp_bias": spec.slot("ffn").options["bias"],
        "bos_token_id": end,
        "eos_token_id": end,
        "pad_token_id": None,
        "dtype": str(dtype).removeprefix("torch."),
    }


def _special_tokens(spec: ModelSpec, tokenizer_path: Path) -> dict[str, int]:
    """Special tokens of a `tokenizer.json` and their ids; the first one ends a document."""
    if not tokenizer_path.exists():
        raise PlumblineError(f"there is no tokenizer {tokenizer_path}")
    content = json.loads(tokenizer_path.read_text(encoding="utf-8"))
    added = content.get("added_tokens", [])
    highest = max([*content["model"]["vocab"].values(), *(token["id"] for token in added)])
    if highest >= spec.vocabulary:
        raise PlumblineError(
            f"{tokenizer_path} has ids up to {highest}, model.vocabulary is {spec.vocabulary}; "
            "this tokenizer is not the model's"
        )
    return {token["content"]: token["id"] for token in added if token["special"]}


def _tokenizer_config(spec: ModelSpec, special: dict[str, int]) -> dict[str, Any]:
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": spec.context,
        "clean_up_tokenization_spaces": False,
    }
    if special:
        end = next(iter(special))
        config |= {"bos_token": end, "eos_token": end}
    return config
