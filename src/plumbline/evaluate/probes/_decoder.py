"""Finds the sites at which probes read models of this package."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes._base import ProbedModel, SiteCallback
from plumbline.evaluate.probes._scores import AttentionScores, AttentionWeights
from plumbline.model.attention_mask import AttentionMask
from plumbline.model.decoder import Decoder
from plumbline.model.distributed import gather_full
from plumbline.model.init import initial_value
from plumbline.model.mixers._base import Mixer
from plumbline.model.mixers.softmax import Softmax
from plumbline.model.numerics import autocast
from plumbline.specs.spec import Precision

#: Site -> (module of a block, whether it is the module's input or output).
PLACES = {
    "attention_input": ("attention", "input"),
    "query_key": ("attention.query_key", "output"),
    "scores": ("attention.mixer", "input"),
    "weights": ("attention.mixer", "input"),
    "ffn_write": ("ffn", "output"),
}


class ProbedDecoder(ProbedModel):
    """A decoder as probes read it, which may be sharded.

    `init_seed` is that of its run, from which its initial weights are drawn again.
    """

    def __init__(self, model: Decoder, precision: Precision = "float32", init_seed: int | None = None) -> None:
        self.module = self.model = model
        self.layers = model.spec.layers
        self.precision, self.init_seed = precision, init_seed

    def logits(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        """Compute logits (B, T, V) in float32, with the forward call at the subject's precision."""
        with autocast(self.precision, tokens_BT.device):
            return self.model(tokens_BT)

    def watch(self, site: str, layer: int, callback: SiteCallback) -> contextlib.AbstractContextManager[None]:
        """In the block, call `callback` with what passes at a site of a layer, by hooks on its modules.

        Raises:
            PlumblineError: the site is `scores`, and the mixer is no softmax.
        """
        path, side = PLACES[site]
        module = self.model.blocks[layer].get_submodule(path)
        if site == "scores":
            return self._watch_scores(module, layer, callback)
        if site == "weights":
            return _watch_weights(module, layer, callback)
        if side == "input":
            return hold_hooks(module.register_forward_pre_hook(lambda _, inputs: callback(layer, inputs[0])))
        return hold_hooks(
            module.register_forward_hook(
                lambda _, __, output: callback(layer, *(output if isinstance(output, tuple) else (output,)))
            )
        )

    def _watch_scores(
        self, mixer: nn.Module, layer: int, callback: SiteCallback
    ) -> contextlib.AbstractContextManager[None]:
        if not isinstance(mixer, Softmax):
            raise PlumblineError(
                f"model.mixer {self.model.spec.slot('mixer').name!r}: what probes read of attention weights is exact "
                "for model.mixer 'softmax' only; leave these probes out"
            )
        return hold_hooks(
            mixer.register_forward_pre_hook(
                lambda _, inputs: callback(layer, AttentionScores(inputs[0], inputs[1], mixer.scale))
            )
        )

    def silence(self, layer: int, *, query: bool, key: bool) -> contextlib.AbstractContextManager[None]:
        """In the block, set the queries or keys of a layer to zero as its mixer receives them, or both."""

        def zero_inputs(_: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
            q, k, *others = inputs
            return (torch.zeros_like(q) if query else q, torch.zeros_like(k) if key else k, *others)

        return hold_hooks(self.model.blocks[layer].attention.mixer.register_forward_pre_hook(zero_inputs))

    def query_key_weights(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights of queries (H, W, D) and keys (G, W, D) of a layer in float64, gathered if they are sharded.

        Raises:
            PlumblineError: the layer does not have one weight of queries and one of keys.
        """
        parameters = dict(self.model.named_parameters())
        return self._query_and_key(layer, lambda name: gather_full(parameters[name].detach()))

    def initial_query_key_weights(self, layer: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The same weights at the start of training, drawn again from the run's seed; None without a seed."""
        if self.init_seed is None:
            return None
        parameters, seed, spec = dict(self.model.named_parameters()), self.init_seed, self.model.spec

        def draw(name: str) -> torch.Tensor:
            start, shape = self.model.parameter_roles[name].init, parameters[name].shape
            return initial_value(start, shape, seed, name, spec).to(parameters[name].device)

        return self._query_and_key(layer, draw)

    def _query_and_key(self, layer: int, weight: Any) -> tuple[torch.Tensor, torch.Tensor]:
        query, key = (self._weight_name(role, layer) for role in ("query", "key"))
        width = self.model.spec.head_width
        return tuple(weight(name).double().unflatten(0, (-1, width)) for name in (query, key))  # type: ignore[return-value]

    def _weight_name(self, role: str, layer: int) -> str:
        """The one weight of a layer that has a role."""
        names = [name for name, own in self.model.parameter_roles.items() if (own.role, own.layer) == (role, layer)]
        if len(names) != 1:
            raise PlumblineError(
                f"model.projections {self.model.spec.slot('projections').name!r}: layer {layer} has {len(names)} "
                f"weights with the role {role!r}, and probes of the bilinear form need one; leave these probes out"
            )
        return names[0]

    def normalises_query_key(self, layer: int) -> bool:
        """Whether the query/key transform of a layer has a norm's gain."""
        place = f"blocks.{layer}.{PLACES['query_key'][0]}."
        return any(own.role == "norm" for name, own in self.model.parameter_roles.items() if name.startswith(place))


def _watch_weights(mixer: nn.Module, layer: int, callback: SiteCallback) -> contextlib.AbstractContextManager[None]:
    """What a mixer's own reference says, whichever path its forward takes; nothing of one that defines no weights."""
    if not isinstance(mixer, Mixer) or type(mixer).weights is Mixer.weights:
        return contextlib.nullcontext()

    def pass_weights(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        q_BHTW, k_BGTW, _, attention_mask = inputs[:4]
        callback(layer, lambda: iterate_weights(mixer, q_BHTW, k_BGTW, attention_mask))

    return hold_hooks(mixer.register_forward_pre_hook(pass_weights))


def iterate_weights(
    mixer: Mixer, q_BHTW: torch.Tensor, k_BGTW: torch.Tensor, attention_mask: AttentionMask
) -> Iterator[AttentionWeights]:
    """Compute a mixer's weights and the logits they are made of, in the mixer's own chunks of queries."""
    for start, stop in mixer.spans(q_BHTW.shape[2]):
        part = attention_mask.rows(start, stop)
        inputs = (q_BHTW[:, :, start:stop], k_BGTW[:, :, : part.key_positions_BK.shape[1]], part)
        yield AttentionWeights(visible=part.mask_B1QK, logits=mixer.logits(*inputs), weights=mixer.weights(*inputs))


@contextlib.contextmanager
def hold_hooks(*handles: Any) -> Iterator[None]:
    """Keep hooks registered until the block ends."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
