"""Reads Hugging Face models in this package's terms: a spec of any family, the weights of those in `CONVERTERS`."""

from __future__ import annotations

from typing import Any

import torch

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import Decoder
from plumbline.model.hf_families import FAMILIES, LLAMA
from plumbline.specs.spec import ModelSpec


def spec_of(config: Any) -> ModelSpec:
    """Describe a Hugging Face model as a spec, as far as the slots can; the description is complete of a GPT-2 alone.

    Args:
        config: the library's configuration, of a model type in `FAMILIES`; of a model that sees, its text is described.
    """
    kind, text = config.model_type, config.get_text_config()
    family, heads = FAMILIES[kind], text.num_attention_heads
    sizes = {
        "layers": text.num_hidden_layers,
        "width": text.hidden_size,
        "heads": heads,
        "key_value_heads": getattr(text, "num_key_value_heads", None) or heads,
        "head_width": getattr(text, "head_dim", None) or text.hidden_size // heads,
        "ffn_width": family.inner(text),
        "vocabulary": text.vocab_size,
        "context": text.max_position_embeddings,
        "norm_eps": getattr(text, family.eps),
        "init_std": text.initializer_range,
        "residual_init_scaling": family.scales_init,
        "tied_embeddings": text.tie_word_embeddings,
    }
    return ModelSpec.from_dict(sizes | LLAMA | family.describe(text), f"{kind}: ")


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


#: Model types whose weights become a decoder of this package.
CONVERTERS = {"gpt2": gpt2}
