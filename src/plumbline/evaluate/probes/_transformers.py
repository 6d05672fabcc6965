"""Finds the sites at which probes read Hugging Face models, of the families of `plumbline.model.hf_families`.

Modules are watched from outside, as anybody could with a forward hook. Queries and keys after positions, the factor
that scales their products, a cap of these and a mask are what the library itself hands to its attention function: one
of our own is registered there, which tells the probes and then calls torch's fused one, or, where scores are capped,
multiplies what it told them with the values.
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
from plumbline.evaluate.probes._base import Probe, ProbedModel, SiteCallback
from plumbline.evaluate.probes._decoder import hold_hooks
from plumbline.evaluate.probes._masked_scores import MaskedScores
from plumbline.model import hugging_face_folder
from plumbline.model.hf_families import FAMILIES

ATTENTION = "plumbline_probes"

#: Probes of the form W_Q^T W_K, which makes the scores where nothing stands between.
OF_THE_FORM = ("bilinear",)


@dataclass(kw_only=True, slots=True)
class QueryKeyHook:
    """What is done with an attention module's queries and keys before they are used.

    Attributes:
        tell: functions that are called with the scores.
        no_query, no_key: replace queries or keys by zeros.
    """

    tell: list[Callable[[MaskedScores], None]] = field(default_factory=list)
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
    """Tell probes of an attention call, and then compute it; called by the library.

    Raises:
        PlumblineError: the attention is more than a softmax of scaled, capped and masked products.
    """
    unusual = [name for name in ("s_aux", "position_bias") if others.get(name) is not None]
    if unusual:
        raise PlumblineError(
            f"--checkpoint: attention with {', '.join(unusual)}; what probes read of attention weights is exact for a "
            "causal softmax only; leave these probes out"
        )
    hook, cap = HOOKS.get(module, QueryKeyHook()), others.pop("softcap", None)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if hook.tell:
        scores = MaskedScores(query, key, scaling, cap, attention_mask)
        for callback in hook.tell:
            callback(scores)
    query = torch.zeros_like(query) if hook.no_query else query
    key = torch.zeros_like(key) if hook.no_key else key
    if cap is None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **others)
    return MaskedScores(query, key, scaling, cap, attention_mask).mix(value).transpose(1, 2), None


AttentionInterface.register(ATTENTION, attention_with_hooks)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


class ProbedTransformers(ProbedModel):
    """A Hugging Face model as probes read it, of a family in `FAMILIES`; its attention is replaced by `ATTENTION`."""

    def __init__(self, model: Any) -> None:
        self.module = self.model = model
        self.kind, self.config = model.config.model_type, model.config.get_text_config()
        self.family = FAMILIES[self.kind]
        self.blocks = model.get_submodule(self.family.layers)
        self.layers = len(self.blocks)
        self.heads = self.config.num_attention_heads
        self.groups = getattr(self.config, "num_key_value_heads", None) or self.heads
        self.head_width = getattr(self.config, "head_dim", None) or self.config.hidden_size // self.heads
        norms = self.family.norms
        self.norms = norms if norms is not None and hasattr(self._attention(0), norms.modules[0]) else None
        model.set_attn_implementation(ATTENTION)

    def _attention(self, layer: int) -> nn.Module:
        return self.blocks[layer].get_submodule(self.family.attention)

    def explain_unreadable(self, name: str, probe: Probe, tokens: int) -> str | None:
        """Say why a probe's numbers on sequences of `tokens` would not be what they are called; None if they are."""
        if name in OF_THE_FORM and self.norms is not None:
            return (
                f"a {self.kind} normalises queries and keys between W_Q, W_K and their products, so that W_Q^T W_K is "
                "not the form that makes its scores; attention_statistics and query_key_norms read these"
            )
        window = min(filter(None, map(self._window, range(self.layers))), default=None)
        if type(probe).scores is not Probe.scores and window is not None and tokens >= window:
            return (
                f"a {self.kind} has layers that see {window} tokens back at most (a sliding window), and this probe is "
                f"of rows that see all tokens before theirs; give --context {window} or less, or "
                "attention_concentration, which reads windows"
            )
        return None

    def _window(self, layer: int) -> int | None:
        """How many tokens a layer sees; None if all."""
        types = getattr(self.config, "layer_types", None)
        sliding = types is None or types[layer] == "sliding_attention"
        return getattr(self.config, "sliding_window", None) if sliding else None

    def normalises_query_key(self, layer: int) -> bool:
        """Whether queries and keys of a layer are normalised within each head, with a gain."""
        return self.norms is not None and self.norms.by_head

    def logits(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        """Compute logits (B, T, V) in float32."""
        return self.model(input_ids=tokens_BT, use_cache=False).logits.float()

    def watch(self, site: str, layer: int, callback: SiteCallback) -> contextlib.AbstractContextManager[None]:
        """In the block, call `callback` with what passes a site of a layer, by hooks or in the attention function."""
        attention = self._attention(layer)
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
                return _watch_attention(attention, lambda scores: callback(layer, scores.require_unmasked()))
            case "weights":
                return _watch_attention(attention, lambda scores: callback(layer, scores.iterate_weights))
            case "ffn_write":
                ffn = self.blocks[layer].get_submodule(self.family.ffn)
                return hold_hooks(ffn.register_forward_hook(lambda _, __, output: callback(layer, output)))
        raise AssertionError(f"unknown site {site!r}")

    def _watch_projections(
        self, attention: nn.Module, layer: int, callback: SiteCallback
    ) -> contextlib.AbstractContextManager[None]:
        outputs: list[torch.Tensor] = []
        source = self.family if self.norms is None else self.norms
        paths = self.family.projections if self.norms is None else self.norms.modules

        def gather(_: nn.Module, __: Any, output: torch.Tensor) -> None:
            outputs.append(output)
            if len(outputs) == len(paths):
                q_BTHW, k_BTGW = source.split(outputs, self.heads, self.groups, self.head_width)
                outputs.clear()
                callback(layer, q_BTHW.transpose(1, 2), k_BTGW.transpose(1, 2))

        return hold_hooks(*(attention.get_submodule(path).register_forward_hook(gather) for path in paths))

    def silence(self, layer: int, *, query: bool, key: bool) -> contextlib.AbstractContextManager[None]:
        """In the block, replace the queries or keys of a layer by zeros in its attention function, or both."""
        return _silence_attention(self._attention(layer), query, key)

    def query_key_weights(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights of queries (H, W, D) and keys (G, W, D) of a layer in float64, biases left out."""
        modules = [self._attention(layer).get_submodule(path) for path in self.family.projections]
        # GPT-2's maps keep their weights as (inputs, outputs), unlike nn.Linear.
        features = [
            (module.weight.T if isinstance(module, nn.Linear) else module.weight).detach().double()
            for module in modules
        ]
        query_DHW, key_DGW = self.family.split(features, self.heads, self.groups, self.head_width)
        return query_DHW.permute(1, 2, 0), key_DGW.permute(1, 2, 0)


@contextlib.contextmanager
def _watch_attention(attention: nn.Module, callback: Callable[[MaskedScores], None]) -> Iterator[None]:
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
        PlumblineError: it cannot be read, or its model type is not in `FAMILIES`.
    """
    kind = hugging_face_folder.read_model_type(folder)
    if kind not in FAMILIES:
        raise PlumblineError(
            f"{folder} is a {kind!r} (model_type in its config.json); what can be read is one of {sorted(FAMILIES)}"
            f"{nearest(kind, FAMILIES)}"
        )
    config = hugging_face_folder.read_config(folder)
    if getattr(config.get_text_config(), "use_bidirectional_attention", None):
        raise PlumblineError(
            f"{folder} is a {kind} whose tokens see those after them (use_bidirectional_attention in its config.json); "
            "give a causal model"
        )
    return config


def load(folder: Path) -> ProbedTransformers:
    """Load the model of a folder that `save_pretrained` wrote, in float32 on the CPU; nothing is fetched.

    Raises:
        PlumblineError: as `read_config`, or as `hugging_face_folder.read_model`.
    """
    read_config(folder)
    return ProbedTransformers(hugging_face_folder.read_model(folder))
