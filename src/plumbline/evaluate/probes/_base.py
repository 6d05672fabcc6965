"""Defines the interface of a probe, and of the models that probes read.

A pass over some sequences is shared by all probes that read there: a probe overrides a method for each site of the
model that it wants to see, is told what passes there, sequence by sequence and layer by layer, and sums up what it
needs. Nothing is kept that a probe does not keep itself, so a pass costs no more memory than a forward call.

In addition to the model's own shape suffixes (`plumbline.model.roles`) there are N, a layer's heads of queries or of
keys, and R, the rank of a projector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn

from plumbline.evaluate.probes._scores import AttentionScores, AttentionWeights


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeValue:
    """One number that a probe reads.

    Attributes:
        layer, head: counted from 0; None where the number belongs to none.
        null: what the number would be if the model did nothing of what the probe looks for; None where there is no
            null.
    """

    probe: str
    value: float
    layer: int | None = None
    head: int | None = None
    null: float | None = None


#: Sites of a layer, which are methods of `Probe`, in the order in which a forward call passes them.
SITES = ("attention_input", "query_key", "scores", "weights", "ffn_write")


class SiteCallback(Protocol):
    """A function that is called with a layer and what passes at one of its sites."""

    def __call__(self, layer: int, *values: Any) -> None: ...


class ProbedModel:
    """A model that probes can read: where its sites are, and its weights of queries and keys.

    The upper half are the layers from floor(layers / 2) on, the lower half those before, as in the premature study,
    which does not say what becomes of the middle one of an odd number.
    """

    module: nn.Module
    layers: int

    @property
    def lower(self) -> range:
        """Layers of the lower half."""
        return range(self.layers // 2)

    @property
    def upper(self) -> range:
        """Layers of the upper half; the middle one of an odd number is among them."""
        return range(self.layers // 2, self.layers)

    def logits(self, tokens_BT: torch.Tensor) -> torch.Tensor:
        """Compute logits (B, T, V) in float32, at the subject's precision."""
        raise TypeError(f"{type(self).__name__} defines no logits")

    def watch(self, site: str, layer: int, callback: SiteCallback) -> AbstractContextManager[None]:
        """In the block, call `callback` with what passes at a site of a layer.

        Args:
            site: one of `SITES`.

        Raises:
            PlumblineError: the layer has no such site.
        """
        raise TypeError(f"{type(self).__name__} defines no sites")

    def silence(self, layer: int, *, query: bool, key: bool) -> AbstractContextManager[None]:
        """In the block, set all queries or keys of a layer to zero, or both (activations, biases included)."""
        raise TypeError(f"{type(self).__name__} cannot be silenced")

    def query_key_weights(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Weights of queries (H, W, D) and keys (G, W, D) of a layer in float64, biases left out.

        Raises:
            PlumblineError: the layer has no such weights.
        """
        raise TypeError(f"{type(self).__name__} defines no weights of queries and keys")

    def initial_query_key_weights(self, layer: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Weights of queries (H, W, D) and keys (G, W, D) at the start of training; None where they are not known."""
        return None

    def normalises_query_key(self, layer: int) -> bool:
        """Whether queries and keys of a layer are normalised within each head, with a gain."""
        return False


class Probe:
    """Base of probes: sees no site of a model. A subclass overrides the sites that it needs and `probe_values`.

    An object is good for one pass. A file ``probes/<family>.py`` holds one subclass, marked ``@component``; its options
    are its keyword-only arguments. Sums over tokens are kept in float64, so that they do not depend on how sequences
    are cut into passes.
    """

    #: The fraction of training whose weights a probe compares with, where it reads two points; it has an option of
    #: this name, and `other` is the model at that point, there before the pass.
    against: float | None = None
    other: ProbedModel | None = None

    def begin(self, subject: ProbedModel, separator: int | None) -> None:
        """Prepare for a pass over `subject`; called before the first sequence.

        Args:
            separator: the token between documents; None where there is none.
        """

    def sequence(self, inputs_BT: torch.Tensor, targets_BT: torch.Tensor) -> None:
        """Note the tokens that are fed to the model next (B, T), and the token after each."""

    def attention_input(self, layer: int, x_BTD: torch.Tensor) -> None:
        """See the input of a layer's attention: the normalised stream (B, T, D)."""

    def query_key(self, layer: int, q_BHTW: torch.Tensor, k_BGTW: torch.Tensor) -> None:
        """See a layer's queries and keys after the query/key transform, before positions."""

    def scores(self, layer: int, scores: AttentionScores) -> None:
        """See a layer's scores, after positions; they are computed only when a probe asks for them."""

    def weights(self, layer: int, iterate_weights: Callable[[], Iterator[AttentionWeights]]) -> None:
        """See the attention weights of a layer, of any mixer: `iterate_weights` computes them, some queries at a time.

        Not called for a mixer that defines no weights.
        """

    def ffn_write(self, layer: int, x_BTD: torch.Tensor) -> None:
        """See the output of a layer's FFN (B, T, D)."""

    def logits(self, logits_BTV: torch.Tensor) -> None:
        """See the model's logits (B, T, V) of the sequence."""

    def probe_values(self, model: ProbedModel) -> list[ProbeValue]:
        """The probe's values, once the pass is over and no site is watched any more.

        `model` is in evaluation mode; its parameters may be sharded, so that all ranks must take part in a forward call
        of it.
        """
        raise TypeError(f"{type(self).__name__} defines no probe values")
