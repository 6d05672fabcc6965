"""Says how each family of Hugging Face models is read: where its queries and keys are, and which slots describe it.

One entry per model type of the library. A new one is an entry here and a configuration in
`tests/evaluate/probes/hugging_face_models.py`, which compares every number with the library's own eager attention.

Source of the layouts: the library's own modules (transformers 5). GPT-2 keeps its matrices as (inputs, outputs), and
queries, keys and values one after another in `c_attn`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from plumbline.core.errors import PlumblineError

#: Outputs or transposed weights of the modules that make queries and keys, and the widths of one head -> queries (...,
#: H, W) and keys (..., G, W), features last.
Split = Callable[[list[torch.Tensor], int, int, int], tuple[torch.Tensor, torch.Tensor]]
Slots = dict[str, dict[str, Any]]

#: The library's activations of a GPT-2 -> our option of `gelu`.
GELU = {"gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu": "erf"}
#: Slots of a Llama, which other families have too where their entry does not say otherwise.
LLAMA: Slots = {
    "positions": {"name": "rotary"},
    "norm": {"name": "rms_norm"},
    "projections": {"name": "grouped_query", "bias": False},
    "query_key": {"name": "identity"},
    "values": {"name": "identity"},
    "mixer": {"name": "softmax"},
    "output": {"name": "identity"},
    "ffn": {"name": "swiglu"},
    "placement": {"name": "pre_norm"},
    "residual": {"name": "standard"},
}


def _split_separate(
    features: list[torch.Tensor], heads: int, groups: int, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries from one module, keys from another."""
    query, key = features
    return query.unflatten(-1, (heads, width)), key.unflatten(-1, (groups, width))


def _split_stacked(
    features: list[torch.Tensor], heads: int, groups: int, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """All queries, then all keys, then all values."""
    query, key, _ = features[0].split([heads * width, groups * width, groups * width], dim=-1)
    return query.unflatten(-1, (heads, width)), key.unflatten(-1, (groups, width))


def _split_interleaved(
    features: list[torch.Tensor], heads: int, groups: int, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Query, key and value of the first head, then of the next."""
    query, key, _ = features[0].unflatten(-1, (heads, 3, width)).unbind(-2)
    return query, key


def _keep_heads(features: list[torch.Tensor], heads: int, groups: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries (..., T, H, W) from one module, keys from another."""
    query, key = features
    return query, key


def _swap_heads(features: list[torch.Tensor], heads: int, groups: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries (..., H, T, W) from one module, keys from another."""
    query, key = features
    return query.transpose(-3, -2), key.transpose(-3, -2)


@dataclass(frozen=True, kw_only=True, slots=True)
class QueryKeyNorms:
    """Modules of an attention that normalise queries and keys before positions; a configuration may leave them out.

    Attributes:
        by_head: each head has a length of its own; else all heads of a token share one.
    """

    modules: tuple[str, str]
    split: Split
    by_head: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """How models of one type are read.

    Attributes:
        layers: path of the list of blocks; `attention` and `ffn` are paths in a block, `projections` in an attention.
        split: how outputs of `projections` hold queries and keys.
        describe: the slots that are not those of a Llama, from the library's configuration.
        inner, eps: what the configuration calls the width of the FFN and the constant of norms.
        scales_init: whether weights that write to the stream start smaller in deep models.
    """

    layers: str = "model.layers"
    attention: str = "self_attn"
    ffn: str = "mlp"
    projections: tuple[str, ...] = ("q_proj", "k_proj")
    split: Split = _split_separate
    norms: QueryKeyNorms | None = None
    describe: Callable[[Any], Slots] = lambda config: {}
    inner: Callable[[Any], int] = lambda config: config.intermediate_size
    eps: str = "rms_norm_eps"
    scales_init: bool = False


def _describe_gpt2(config: Any) -> Slots:
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


def _describe_gpt_neox(config: Any) -> Slots:
    return {
        "norm": {"name": "layer_norm"},
        "ffn": {"name": "gelu", "bias": True},
        "projections": {"name": "grouped_query", "bias": config.attention_bias},
    }


def _describe_phi(config: Any) -> Slots:
    return {
        "norm": {"name": "layer_norm", "bias": True},
        "ffn": {"name": "gelu", "bias": True},
        "projections": {"name": "grouped_query", "bias": True},
        "query_key": {"name": "qk_norm" if config.qk_layernorm else "identity"},
    }


def _describe_gemma(config: Any) -> Slots:
    cap = config.attn_logit_softcapping
    return {
        "placement": {"name": "sandwich_norm"},
        "ffn": {"name": "geglu"},
        "projections": {"name": "grouped_query", "bias": config.attention_bias},
        "mixer": {"name": "softmax"} if cap is None else {"name": "softmax_cap", "cap": float(cap)},
    }


def _describe_bias(config: Any) -> Slots:
    return {"projections": {"name": "grouped_query", "bias": config.attention_bias}}


QK_NORM: Slots = {"query_key": {"name": "qk_norm"}}
GEMMA3 = Family(
    norms=QueryKeyNorms(modules=("q_norm", "k_norm"), split=_swap_heads, by_head=True),
    describe=lambda config: _describe_gemma(config) | QK_NORM,
)

#: The library's model types -> how they are read.
FAMILIES = {
    "llama": Family(describe=_describe_bias),
    "mistral": Family(),
    "qwen2": Family(describe=lambda config: {"projections": {"name": "grouped_query", "bias": True}}),
    "qwen3": Family(
        norms=QueryKeyNorms(modules=("q_norm", "k_norm"), split=_keep_heads, by_head=True),
        describe=lambda config: _describe_bias(config) | QK_NORM,
    ),
    "gemma2": Family(describe=_describe_gemma),
    "gemma3_text": GEMMA3,
    "gemma3": replace(GEMMA3, layers="model.language_model.layers"),
    "olmo2": Family(
        norms=QueryKeyNorms(modules=("q_norm", "k_norm"), split=_split_separate, by_head=False),
        # It has the second norms of a sandwich alone, which no placement here has.
        describe=lambda config: _describe_bias(config) | QK_NORM | {"placement": {"name": "sandwich_norm"}},
    ),
    "phi": Family(
        norms=QueryKeyNorms(modules=("q_layernorm", "k_layernorm"), split=_swap_heads, by_head=True),
        describe=_describe_phi,
        eps="layer_norm_eps",
    ),
    "phi3": Family(projections=("qkv_proj",), split=_split_stacked),
    "gpt2": Family(
        layers="transformer.h",
        attention="attn",
        projections=("c_attn",),
        split=_split_stacked,
        describe=_describe_gpt2,
        inner=lambda config: config.n_inner or 4 * config.n_embd,
        eps="layer_norm_epsilon",
        scales_init=True,
    ),
    "gpt_neox": Family(
        layers="gpt_neox.layers",
        attention="attention",
        projections=("query_key_value",),
        split=_split_interleaved,
        describe=_describe_gpt_neox,
        eps="layer_norm_eps",
    ),
}
