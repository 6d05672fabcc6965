"""Finds the sites at which probes read Hugging Face models: Llama, Mistral, Qwen2, GPT-2 and GPT-NeoX.

Modules are watched from outside, as anybody could with a forward hook. Queries and keys after positions, and the factor
that scales their products, are what the library itself hands to its attention function: one of our own is registered
there, which tells the probes and then calls torch's fused one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from plumbline.core.errors import PlumblineError, nearest
from plumbline.model import hugging_face_folder
from plumbline.probes._base import ProbedModel, SiteCallback
from plumbline.probes._decoder import hold_hooks
from plumbline.probes._scores import AttentionScores

ATTENTION = "plumbline_probes"

#: Outputs or transposed weights (..., features) of the modules that make queries and keys, and the heads of queries ->
#: queries (..., H, W) and keys (..., G, W).
Split = Callable[[list[torch.Tensor], int, int], tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModuleLayout:
    """Where things are in a family of models: paths of modules, and how their outputs hold queries and keys."""

    layers: str
    attention: str
    ffn: str
    projections: tuple[str, ...]
    split: Split


def _split_separate(features: list[torch.Tensor], heads: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries from one module, keys from another."""
    query, key = features
    return query.unflatten(-1, (heads, width)), key.unflatten(-1, (-1, width))


def _split_stacked(features: list[torch.Tensor], heads: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """All queries, then all keys, then all values."""
    query, key, _ = features[0].unflatten(-1, (3, heads, width)).unbind(-3)
    return query, key


def _split_interleaved(features: list[torch.Tensor], heads: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Query, key and value of the first head, then of the next."""
    query, key, _ = features[0].unflatten(-1, (heads, 3, width)).unbind(-2)
    return query, key


LLAMA = ModuleLayout(
    layers="model.layers", attention="self_attn", ffn="mlp", projections=("q_proj", "k_proj"), split=_split_separate
)
#: The library's model types -> their family.
LAYOUTS = {
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "gpt2": ModuleLayout(
        layers="transformer.h", attention="attn", ffn="mlp", projections=("c_attn",), split=_split_stacked
    ),
    "gpt_neox": ModuleLayout(
        layers="gpt_neox.layers",
        attention="attention",
        ffn="mlp",
        projections=("query_key_value",),
        split=_split_interleaved,
    ),
}


@dataclass(kw_only=True, slots=True)
class QueryKeyHook:
    """What is done with an attention module's queries and keys before they are used.

    Attributes:
        tell: functions that are called with the scores.
        no_query, no_key: replace queries or keys by zeros.
    """

    tell: list[Callable[[AttentionScores], None]] = field(default_factory=list)
    no_query: bool = False
    no_key: bool = False


HOOKS: WeakKeyDictionary[nn.Module, QueryKeyHook] = WeakKeyDictionary()


def attention_with_hooks(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Tell probes of an attention call, and then compute it by the library's fused attention; called by the library.

    Raises:
        PlumblineError: probes watch, and the attention is not a causal softmax.
    """
    hook = HOOKS.get(module, QueryKeyHook())
    if hook.tell:
        unusual = [name for name in ("softcap", "s_aux", "position_bias") if others.get(name) is not None]
        if attention_mask is not None:
            unusual.append("a mask that is not causal alone (a sliding window, perhaps)")
        if unusual:
            raise PlumblineError(
                f"--checkpoint: attention with {', '.join(unusual)}; what probes read of attention weights is exact "
                "for a causal softmax only; leave these probes out, or give a --context within the window"
            )
        scores = AttentionScores(query, key, query.shape[-1] ** -0.5 if scaling is None else scaling)
        for callback in hook.tell:
            callback(scores)
    query = torch.zeros_like(query) if hook.no_query else query
    key = torch.zeros_like(key) if hook.no_key else key
    return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **others)


AttentionInterface.register(ATTENTION, attention_with_hooks)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


class ProbedTransformers(ProbedModel):
    """A Hugging Face model as probes read it, of a family in `LAYOUTS`; its attention is replaced by `ATTENTION`."""

    def __init__(self, model: Any) -> None:
        self.module = self.model = model
        self.config, self.style = model.config, LAYOUTS[model.config.model_type]
        self.blocks = model.get_submodule(self.style.layers)
        self.layers = len(self.blocks)
        self.heads = self.config.num_attention_heads
        self.head_width = getattr(self.config, "head_dim", None) or self.config.hidden_size // self.heads
        model.set_attn_implementation(ATTENTION)

    def logits(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        """Compute logits (B, T, V) in float32."""
        return self.model(input_ids=tokens_BT, use_cache=False).logits.float()

    def watch(self, site: str, layer: int, callback: SiteCallback) -> contextlib.AbstractContextManager[None]:
        """In the block, call `callback` with what passes a site of a layer, by hooks or in the attention function."""
        attention = self.blocks[layer].get_submodule(self.style.attention)
        match site:
            case "attention_input":
                return hold_hooks(
                    attention.register_forward_pre_hook(
                        lambda _, arguments, keywords: callback(
                            layer, arguments[0] if arguments else keywords["hidden_states"]
                        ),
                        with_kwargs=True,
                    )
                )
            case "query_key":
                return self._watch_projections(attention, layer, callback)
            case "scores":
                return _watch_attention(attention, lambda scores: callback(layer, scores))
            case "weights":
                return _watch_attention(attention, lambda scores: callback(layer, scores.iterate_weights))
            case "ffn_write":
                ffn = self.blocks[layer].get_submodule(self.style.ffn)
                return hold_hooks(ffn.register_forward_hook(lambda _, __, output: callback(layer, output)))
        raise AssertionError(f"unknown site {site!r}")

    def _watch_projections(
        self, attention: nn.Module, layer: int, callback: SiteCallback
    ) -> contextlib.AbstractContextManager[None]:
        outputs: list[torch.Tensor] = []

        def gather(_: nn.Module, __: Any, output: torch.Tensor) -> None:
            outputs.append(output)
            if len(outputs) == len(self.style.projections):
                q_BTHW, k_BTGW = self.style.split(outputs, self.heads, self.head_width)
                outputs.clear()
                callback(layer, q_BTHW.transpose(1, 2), k_BTGW.transpose(1, 2))

        return hold_hooks(
            *(attention.get_submodule(path).register_forward_hook(gather) for path in self.style.projections)
        )

    def silence(self, layer: int, *, query: bool, key: bool) -> contextlib.AbstractContextManager[None]:
        """In the block, replace the queries or keys of a layer by zeros in its attention function, or both."""
        return _silence_attention(self.blocks[layer].get_submodule(self.style.attention), query, key)

    def query_key_weights(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights of queries (H, W, D) and keys (G, W, D) of a layer in float64, biases left out."""
        attention = self.blocks[layer].get_submodule(self.style.attention)
        modules = [attention.get_submodule(path) for path in self.style.projections]
        # GPT-2's maps keep their weights as (inputs, outputs), unlike nn.Linear.
        features = [
            (module.weight.T if isinstance(module, nn.Linear) else module.weight).detach().double()
            for module in modules
        ]
        query_DHW, key_DGW = self.style.split(features, self.heads, self.head_width)
        return query_DHW.permute(1, 2, 0), key_DGW.permute(1, 2, 0)


@contextlib.contextmanager
def _watch_attention(attention: nn.Module, callback: Callable[[AttentionScores], None]) -> Iterator[None]:
    hook = HOOKS.setdefault(attention, QueryKeyHook())
    hook.tell.append(callback)
    try:
        yield
    finally:
        hook.tell.remove(callback)


@contextlib.contextmanager
def _silence_attention(attention: nn.Module, query: bool, key: bool) -> Iterator[None]:
    hook = HOOKS.setdefault(attention, QueryKeyHook())
    hook.no_query, hook.no_key = query, key
    try:
        yield
    finally:
        hook.no_query = hook.no_key = False


def read_config(folder: Path) -> Any:
    """Read the library's configuration from a folder that `save_pretrained` wrote; no weights are read.

    Raises:
        PlumblineError: it cannot be read, or its model type is not in `LAYOUTS`.
    """
    config = hugging_face_folder.read_config(folder)
    if config.model_type not in LAYOUTS:
        raise PlumblineError(
            f"--checkpoint: {folder} is a {config.model_type!r}; probes know their way in {sorted(LAYOUTS)}"
            f"{nearest(config.model_type, LAYOUTS)}"
        )
    return config


def load(folder: Path) -> ProbedTransformers:
    """Load the model of a folder that `save_pretrained` wrote, in float32 on the CPU; nothing is fetched.

    Raises:
        PlumblineError: a model type that is not in `LAYOUTS`, or as `hugging_face_folder.read_model`.
    """
    read_config(folder)
    return ProbedTransformers(hugging_face_folder.read_model(folder))
