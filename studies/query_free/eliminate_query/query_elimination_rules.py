"""Determines which of the query_free study's results takes W_Q out of a decoder of ours, and why the others do not
apply.

Propositions and theorems as in `theory.query_elimination`; here they are read off a model's slots. Theorems 4.1 and 4.2
leave open what attention does with X W_Q, X W_K and X W_V (Lemma 3.1, section 6), so that rotary positions, shared keys
and values, a QK-norm and any mixer are not obstacles to them; Proposition 4.1 merges W_Q with W_K, so that nothing may
stand between the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from plumbline.specs.spec import ModelSpec

from .query_absorption import DecoderWeights, absorb_one_head, change_bases

#: Mixers whose weights depend on a query and a key through their product alone.
OF_PRODUCTS = ("softmax", "scaled_softmax", "softmax_cap", "ssmax", "sigmoid", "softpick")
#: Feed-forward networks that read the stream through matrices and write to it through one.
OF_MATRICES = ("gelu", "relu_squared", "swiglu", "geglu")
#: What becomes of queries in projections that have no W_Q to take out.
NO_QUERY_MATRIX = {
    "identity_query": "there is no W_Q any more",
    "partial_identity_query": "W_Q is gone from a layer already; start from the model that it was taken out of",
    "residual_query": "queries are the stream plus a map of it, which is no product X W_Q",
    "latent": "queries are made of a latent by several matrices, none of which is a W_Q",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class EliminationRule:
    """One way to take W_Q out of a model.

    Attributes:
        every_layer: it is for all layers at once; else for one layer.
        local: it works for any single layer, too.
        always_inverts: it divides by W_Q, and not only where there is a query bias.
        obstacles: reasons in the architecture why it does not apply.
        faults: reasons in the weights of the chosen layers.
        apply: changes the weights of the chosen layers.
    """

    name: str
    every_layer: bool
    local: bool
    always_inverts: bool
    obstacles: Callable[[ModelSpec], list[str]]
    faults: Callable[[DecoderWeights, list[int], float], list[str]]
    apply: Callable[[DecoderWeights, list[int]], None]


def single_head(spec: ModelSpec) -> list[str]:
    """Reasons why Proposition 4.1 does not apply to a model; empty if it does."""
    reasons = _projection_obstacles(spec)
    if spec.heads > 1:
        reasons.append(f"model.heads is {spec.heads}, and the product W_Q W_K^t is one matrix for one head alone")
    if spec.key_value_heads != spec.heads:
        reasons.append(
            f"model.key_value_heads is {spec.key_value_heads}: W_K has not the columns of W_Q, and each of its heads "
            "would have to take in several of W_Q's"
        )
    between = {"positions": ("learned",), "query_key": ("identity",), "mixer": OF_PRODUCTS}
    for slot, allowed in between.items():
        name = spec.slot(slot).name
        if name not in allowed:
            reasons.append(f"model.{slot} {name!r} stands between W_Q and W_K^t, which are to be multiplied")
    return reasons


def attention_skip_only(spec: ModelSpec) -> list[str]:
    """Reasons why Theorem 4.2 does not apply to a model; empty if it does."""
    reasons = _basis_obstacles(spec)
    residual = spec.slot("residual").name
    if residual == "standard":
        reasons.append(
            "model.residual 'standard' has a skip around the FFN, which keeps one basis for all layers, and each W_Q "
            "wants its own"
        )
    elif residual != "attention_skip":
        reasons.append(_other_residual(residual))
    return reasons


def one_layer(spec: ModelSpec) -> list[str]:
    """Reasons why Theorem 4.1 does not apply to a model; empty if it does."""
    reasons, residual = _basis_obstacles(spec), spec.slot("residual").name
    if residual not in ("standard", "attention_skip"):
        reasons.append(_other_residual(residual))
    return reasons


def conditions(parts: DecoderWeights, layers: list[int]) -> dict[int, float]:
    """Condition number of each layer's W_Q; infinite if it is singular, NaN if it is not finite."""
    weights = {layer: parts.weight("query", layer) for layer in layers}
    return {
        layer: float(torch.linalg.cond(weight)) if weight.isfinite().all() else math.nan
        for layer, weight in weights.items()
        if weight is not None
    }


def _projection_obstacles(spec: ModelSpec) -> list[str]:
    name, reasons = spec.slot("projections").name, []
    if name != "grouped_query":
        why = NO_QUERY_MATRIX.get(name, "of its queries nothing is known here")
        reasons.append(f"model.projections {name!r}: {why}")
    if spec.shared_layers:
        reasons.append("model.shared_layers: one set of weights is all layers', and it is rewritten layer by layer")
    if spec.heads * spec.head_width != spec.width:
        reasons.append(
            f"model.heads x model.head_width is {spec.heads * spec.head_width}, not model.width ({spec.width}), so "
            "that W_Q is not square"
        )
    return reasons


def _basis_obstacles(spec: ModelSpec) -> list[str]:
    """What keeps the stream in its basis, or something from following it into another."""
    reasons = _projection_obstacles(spec)
    norm = spec.slot("norm").name
    if norm != "none":
        reasons.append(
            f"model.norm {norm!r} between the stream and its sublayers does not commute with a change of basis"
        )
    if spec.slot("output").name != "identity":
        reasons.append(f"model.output {spec.slot('output').name!r} reads the stream by itself")
    if spec.slot("ffn").name not in OF_MATRICES:
        reasons.append(f"model.ffn {spec.slot('ffn').name!r} is not one of {', '.join(OF_MATRICES)}")
    if spec.slot("positions").name not in ("learned", "rotary"):
        reasons.append(f"model.positions {spec.slot('positions').name!r} is neither learned nor rotary")
    return reasons


def _other_residual(name: str) -> str:
    return f"model.residual {name!r} is neither a standard stream nor a skip around attention only"


def _ill_conditioned(parts: DecoderWeights, layers: list[int], limit: float) -> list[str]:
    return [
        f"W_Q of layer {layer} has the condition number {condition:.3g}, and the limit is {limit:g} "
        "(--max-condition-number)"
        for layer, condition in conditions(parts, layers).items()
        if not condition <= limit
    ]


def _basis_faults(parts: DecoderWeights, layers: list[int], limit: float) -> list[str]:
    """A W_Q that is not to be inverted; query biases that no parameter before the layer can bring into the stream."""
    spec, reasons = parts.spec, _ill_conditioned(parts, layers, limit)
    biased = parts.layers_with_query_bias(layers)
    later = [layer for layer in biased if layer > 0 and parts.bias("down", layer - 1) is None]
    if later:
        reasons.append(
            f"the query bias of layer {_join(later)} would have to come from a bias of the FFN before it, and "
            f"model.ffn {spec.slot('ffn').name!r} has none"
        )
    if 0 in biased and spec.slot("positions").name != "learned" and parts.head_stays_tied():
        reasons.append(
            "the query bias of layer 0 would have to come from the positions, which are not learned, or from the "
            "embedding, which is the head's too (model.tied_embeddings)"
        )
    return reasons


def _norm_faults(parts: DecoderWeights, layers: list[int], limit: float) -> list[str]:
    """Query biases that the bias of the norm before attention cannot bring."""
    biased = parts.layers_with_query_bias(layers)
    if not biased:
        return []
    if parts.norm_bias(biased[0]) is None or parts.spec.slot("output").name != "identity":
        return [
            f"the query bias of layer {_join(biased)} would have to come from the bias of a norm that attention "
            "alone reads (model.placement 'pre_norm', model.norm 'layer_norm' with its bias, model.output 'identity')"
        ]
    return _ill_conditioned(parts, biased, limit)


def _join(layers: list[int]) -> str:
    return ", ".join(map(str, layers))


#: In the order in which they are tried.
RULES = (
    EliminationRule(
        name="Proposition 4.1 (one head, any norms)",
        every_layer=True,
        local=True,
        always_inverts=False,
        obstacles=single_head,
        faults=_norm_faults,
        apply=absorb_one_head,
    ),
    EliminationRule(
        name="Theorem 4.2 (no norms, skip around attention only)",
        every_layer=True,
        local=False,
        always_inverts=True,
        obstacles=attention_skip_only,
        faults=_basis_faults,
        apply=change_bases,
    ),
    EliminationRule(
        name="Theorem 4.1 (no norms, one layer)",
        every_layer=False,
        local=False,
        always_inverts=True,
        obstacles=one_layer,
        faults=_basis_faults,
        apply=change_bases,
    ),
)
