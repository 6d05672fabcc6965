"""Reads Hugging Face models in this package's terms: a spec of any known kind of model, the weights of a GPT-2.

Source of the layouts: the library's own GPT-2, Llama, Mistral, Qwen2 and GPT-NeoX (transformers 5). GPT-2 keeps its
matrices as (inputs, outputs), and queries, keys and values one after another in `c_attn`.
"""

from __future__ import annotations

from typing import Any

import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import Decoder
from plumbline.specs.spec import ModelSpec

#: The library's activations of a GPT-2 -> our option of `gelu`.
GELU = {"gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu": "erf"}
#: Slots that all of these models leave alone.
PLAIN = {"query_key": "identity", "values": "identity", "mixer": "softmax", "output": "identity"}


def spec_of(config: Any) -> ModelSpec:
    """Describe a Hugging Face model as a spec, as far as the slots can; the description is complete of a GPT-2 alone.

    Args:
        config: the library's configuration; its `model_type` is one of `plumbline.probes._transformers.LAYOUTS`.
    """
    kind, heads = config.model_type, config.num_attention_heads
    slots: dict[str, Any] = {slot: {"name": name} for slot, name in PLAIN.items()}
    slots |= {"placement": {"name": "pre_norm"}, "residual": {"name": "standard"}}
    if kind == "gpt2":
        slots |= _gpt2_slots(config)
        inner, eps = config.n_inner or 4 * config.n_embd, config.layer_norm_epsilon
    elif kind == "gpt_neox":
        slots |= {"positions": {"name": "rotary"}, "norm": {"name": "layer_norm"}}
        slots |= {"ffn": {"name": "gelu", "bias": True}}
        slots |= {"projections": {"name": "grouped_query", "bias": config.attention_bias}}
        inner, eps = config.intermediate_size, config.layer_norm_eps
    else:
        slots |= {"positions": {"name": "rotary"}, "norm": {"name": "rms_norm"}, "ffn": {"name": "swiglu"}}
        slots |= {"projections": {"name": "grouped_query", "bias": getattr(config, "attention_bias", kind == "qwen2")}}
        inner, eps = config.intermediate_size, config.rms_norm_eps
    sizes = {
        "layers": config.num_hidden_layers,
        "width": config.hidden_size,
        "heads": heads,
        "key_value_heads": getattr(config, "num_key_value_heads", None) or heads,
        "head_width": getattr(config, "head_dim", None) or config.hidden_size // heads,
        "ffn_width": inner,
        "vocabulary": config.vocab_size,
        "context": config.max_position_embeddings,
        "norm_eps": eps,
        "init_std": config.initializer_range,
        "residual_init_scaling": kind == "gpt2",
        "tied_embeddings": config.tie_word_embeddings,
    }
    return ModelSpec.from_dict(sizes | slots, f"{kind}: ")


def gpt2(model: Any) -> Decoder:
    """Convert a Hugging Face GPT-2 to a decoder of this package, in float32.

    Args:
        model: the library's GPT2LMHeadModel.

    Raises:
        PlumblineError: it does something that no component here does.
    """
    config = model.config
    unusual = [
        f"{name} = {getattr(config, name)}"
        for name, usual in (("scale_attn_weights", True), ("scale_attn_by_inverse_layer_idx", False))
        if getattr(config, name) != usual
    ]
    if unusual:
        raise PlumblineError(f"config.json: {', '.join(unusual)}; no component of this package scales scores so")
    theirs = {name: value.detach().float() for name, value in model.named_parameters()}
    weights = {
        "embedding": theirs["transformer.wte.weight"],
        "positions.embedding": theirs["transformer.wpe.weight"],
        "final_norm.gain": theirs["transformer.ln_f.weight"],
        "final_norm.bias": theirs["transformer.ln_f.bias"],
    }
    if not config.tie_word_embeddings:
        weights["head.weight"] = theirs["lm_head.weight"]
    for layer in range(config.num_hidden_layers):
        weights |= {f"blocks.{layer}.{name}": value for name, value in _gpt2_layer(theirs, layer).items()}
    decoder = Decoder(spec_of(config))
    decoder.load_state_dict(weights)
    return decoder


def _gpt2_slots(config: Any) -> dict[str, Any]:
    if config.activation_function not in GELU:
        raise PlumblineError(
            f"config.json: activation_function {config.activation_function!r} is none of {sorted(GELU)}, which "
            "model.ffn 'gelu' has"
        )
    return {
        "positions": {"name": "learned"},
        "norm": {"name": "layer_norm", "bias": True},
        "projections": {"name": "grouped_query", "bias": True},
        "ffn": {"name": "gelu", "bias": True, "gelu": GELU[config.activation_function]},
    }


def _gpt2_layer(theirs: dict[str, torch.Tensor], layer: int) -> dict[str, torch.Tensor]:
    """One layer's parameters under our names."""
    place, weights_by_name = f"transformer.h.{layer}.", {}
    for number, norm in enumerate(("ln_1", "ln_2")):
        for ours, end in (("gain", "weight"), ("bias", "bias")):
            weights_by_name[f"placement.norms.{number}.{ours}"] = theirs[f"{place}{norm}.{end}"]
    weights = theirs[f"{place}attn.c_attn.weight"].chunk(3, dim=1)
    biases = theirs[f"{place}attn.c_attn.bias"].chunk(3)
    for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
        weights_by_name |= {
            f"attention.projections.{name}.weight": weight.T,
            f"attention.projections.{name}.bias": bias,
        }
    renamed = {"attention.projections.output": "attn.c_proj", "ffn.up": "mlp.c_fc", "ffn.down": "mlp.c_proj"}
    for ours, name in renamed.items():
        weights_by_name |= {
            f"{ours}.weight": theirs[f"{place}{name}.weight"].T,
            f"{ours}.bias": theirs[f"{place}{name}.bias"],
        }
    return weights_by_name
