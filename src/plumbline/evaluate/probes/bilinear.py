"""Implements a probe of the bilinear form of queries and keys: how far it has moved, and its largest singular value."""

from __future__ import annotations

import math

import torch

from plumbline.evaluate.probes._base import Probe, ProbedModel, ProbeValue
from plumbline.specs.components import component


@component
class Bilinear(Probe):
    """Norms of each query head's form B = W_Q^T W_K (D x D, from the weights W x D of its queries and its keys), in
    float64:

    - ``bilinear_displacement``: Frobenius norm of B - B_0, B_0 where training started;
    - ``bilinear_relative``: the same over the norm of B_0;
    - ``bilinear_top``: the largest singular value of B;

    and of each layer, with the forms of all heads added up, ``bilinear_displacement_summed``.

    The forms themselves are never made. B - B_0 = dW_Q^T W_K + W_Q0^T dW_K is a product X^T Y of two stacks of 2 W
    rows, whose squared norm is the sum of (X X^T) * (Y Y^T); every term is of the order of the displacement, so that
    small ones lose no digits. With W_Q^T = Q_q R_q and W_K^T = Q_k R_k, the singular values of B are those of R_q
    R_k^T. Biases, positions and a norm's gain before the projections are left out. Of a model whose start is not known
    there is only ``bilinear_top``. Source: premature study, sections 3 and G.
    """

    def probe_values(self, model: ProbedModel) -> list[ProbeValue]:
        """The norms of each head's form and of each layer's sum, from the model's weights."""
        probe_values = []
        for layer in range(model.layers):
            now, start = model.query_key_weights(layer), model.initial_query_key_weights(layer)
            heads = {"bilinear_top": top_singular_value(*now)}
            if start is not None:
                heads["bilinear_displacement"] = displacement(now, start)
                heads["bilinear_relative"] = heads["bilinear_displacement"] / form_norm(*start)
                summed = float(displacement(_sum_heads(*now), _sum_heads(*start)))
                probe_values.append(ProbeValue(probe="bilinear_displacement_summed", layer=layer, value=summed))
            probe_values += [
                ProbeValue(probe=name, layer=layer, head=head, value=value)
                for name, value_H in heads.items()
                for head, value in enumerate(value_H.tolist())
            ]
        return probe_values


Weights = tuple[torch.Tensor, torch.Tensor]


def displacement(now: Weights, start: Weights) -> torch.Tensor:
    """Frobenius norm (H,) of W_Q^T W_K - W_Q0^T W_K0; `now` and `start` are weights (H, W, D) and (G, W, D)."""
    (query_HWD, key_GWD), (query0_HWD, key0_GWD) = now, start
    left_HXD = torch.cat([query_HWD - query0_HWD, query0_HWD], dim=1)
    right_GXD = torch.cat([key_GWD, key_GWD - key0_GWD], dim=1)
    return form_norm(left_HXD, right_GXD)


def form_norm(query_HWD: torch.Tensor, key_GWD: torch.Tensor) -> torch.Tensor:
    """Frobenius norm (H,) of W_Q^T W_K for each query head."""
    gram_HWW, gram_GWW = (x @ x.transpose(-1, -2) for x in (query_HWD, key_GWD))
    # Rounding may leave a sum that is nothing a little below it.
    return (gram_HWW * _repeat_for_heads(gram_GWW, len(query_HWD))).sum((-1, -2)).clamp(min=0).sqrt()


def top_singular_value(query_HWD: torch.Tensor, key_GWD: torch.Tensor) -> torch.Tensor:
    """Largest singular value (H,) of W_Q^T W_K; not-a-number where a weight is no finite number."""
    if not bool(torch.isfinite(query_HWD).all() & torch.isfinite(key_GWD).all()):
        return torch.full((len(query_HWD),), math.nan)
    right_HWW, right_GWW = (torch.linalg.qr(x.transpose(-1, -2), mode="r").R for x in (query_HWD, key_GWD))
    product_HWW = right_HWW @ _repeat_for_heads(right_GWW, len(query_HWD)).transpose(-1, -2)
    return torch.linalg.svdvals(product_HWW)[:, 0]


def _sum_heads(query_HWD: torch.Tensor, key_GWD: torch.Tensor) -> Weights:
    """Weights of one head (1, G W, D), whose form is the sum of all heads' forms."""
    groups, width, model_width = key_GWD.shape
    query_GWD = query_HWD.unflatten(0, (groups, -1)).sum(1)
    return query_GWD.reshape(1, groups * width, model_width), key_GWD.reshape(1, groups * width, model_width)


def _repeat_for_heads(x_GWX: torch.Tensor, heads: int) -> torch.Tensor:
    return x_GWX.repeat_interleave(heads // len(x_GWX), dim=0)
