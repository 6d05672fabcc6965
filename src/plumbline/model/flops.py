"""Counts the operations of a decoder: from its modules, and as torch sees them run.

What counts is matrix products, a multiplication and an addition as two operations: linear maps, scores and weighted
values. Softmax, norms, rotations, activations and residual arithmetic do not count.
"""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode

from plumbline.model.decoder import Decoder, on_meta
from plumbline.model.mixers._base import Mixer
from plumbline.model.roles import ATTENTION, ORTHOGONALISED
from plumbline.specs.spec import ModelSpec


def count_operations(
    spec: ModelSpec, *, sequences: int = 1, head: bool = True, causal: bool = False, training: bool = True
) -> int:
    """Count the `operations` of the decoder that a spec describes, built without memory."""
    return operations(on_meta(spec), sequences=sequences, head=head, causal=causal, training=training)


def operations(
    model: Decoder, *, sequences: int = 1, head: bool = True, causal: bool = False, training: bool = True
) -> int:
    """Operations on `sequences` sequences of the training context, from the shapes of the real modules.

    Args:
        head: count the logits too.
        causal: count only the visible pairs of query and key, not all pairs, which is what a kernel without masked
            tiles computes.
        training: count three times the forward pass, as backward has two products for each of forward's.
    """
    time = model.spec.context
    pairs = time * (time + 1) // 2 if causal else time * time
    attention = sum(products_per_pair(block.attention.mixer, model.spec) for block in model.blocks)
    products = time * products_per_token(model, head=head) + pairs * attention
    return 2 * products * sequences * (3 if training else 1)


def products_per_token(model: Decoder, *, head: bool) -> int:
    """Multiplications per token outside of attention: one for each weight of a linear map and layer that uses it."""
    values = dict(model.named_parameters())
    other_roles = {"head", "stream_mixing"}
    layers = model.spec.layers if model.spec.shared_layers else 1
    linear = sum(
        values[name].numel() * (1 if role.layer is None else layers)
        for name, role in model.parameter_roles.items()
        if role.matrix and role.role not in other_roles
    )
    logits = model.spec.vocabulary * model.spec.width if head else 0
    return linear + logits + model.residual.products_per_token


def products_per_pair(mixer: Mixer, spec: ModelSpec) -> int:
    """Multiplications of a mixer per pair of query and key: scores of all heads, values of its output heads, extras."""
    return (spec.heads + mixer.output_heads) * spec.head_width + mixer.extra_products


def orthogonalisation(model: Decoder, *, concatenated: bool) -> int:
    """Operations of one of Muon's steps of orthogonalising all matrices: X X^T, its square, their product with X.

    Args:
        concatenated: attention's four matrices of a layer as one, wherever they have as many columns.
    """
    shapes: list[tuple[int, int]] = []
    values = dict(model.named_parameters())
    stacks: dict[int | None, list[tuple[int, int]]] = {}
    for name, role in model.parameter_roles.items():
        if role.role in ORTHOGONALISED:
            rows, columns = values[name].shape
            is_stacked = concatenated and role.role in ATTENTION
            (stacks.setdefault(role.layer, []) if is_stacked else shapes).append((rows, columns))
    for stack in stacks.values():
        has_one_width = len({columns for _, columns in stack}) == 1
        shapes += [(sum(rows for rows, _ in stack), stack[0][1])] if has_one_width else stack
    return sum(2 * short * short * (2 * long + short) for short, long in map(sorted, shapes))


def measure_operations(spec: ModelSpec, *, sequences: int = 1, head: bool = True) -> int:
    """Operations of one forward pass as torch's own counter sees them, without memory, at any size.

    It sees what really runs: a fused kernel as all pairs, mixers that work in chunks as the keys each chunk reads.
    """
    model = on_meta(spec)
    tokens_BT = torch.zeros(sequences, spec.context, dtype=torch.long, device="meta")
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(tokens_BT)
    logits = 2 * spec.vocabulary * spec.width * spec.context * sequences
    return counter.get_total_flops() - (0 if head else logits)
