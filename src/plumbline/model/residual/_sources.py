"""Computes scores of a source for all of its readers, and weighted sums of sources: the bulk of attention residuals'
work.

Both are written with their gradients, in few passes over the sources, of which there are as many as sublayers. What is
kept for the gradient are the sources themselves and numbers without a width.
"""

from __future__ import annotations

import torch

from plumbline.model.float32_widening import widen, without_autocast


class SourceScores(torch.autograd.Function):
    """Scores s = r Q v^T (R, B, T) of a source v (B, T, D) for R readers with queries Q (R, D), in float32 or wider.

    Here r = 1 / sqrt(mean(v^2) + eps). With e = r ds:  dQ = e v,  dv = e^T Q - v r^2 (s . ds) / D.
    """

    @staticmethod
    def forward(ctx, v_BTD: torch.Tensor, query_RD: torch.Tensor, eps: float) -> torch.Tensor:
        """Compute the scores (R, B, T) of one source `v_BTD` for R readers."""
        wide_BTD = widen(v_BTD)
        inverse_BT = torch.rsqrt(wide_BTD.square().mean(dim=-1) + eps)
        with without_autocast(v_BTD):
            scores_RBT = (query_RD @ wide_BTD.flatten(0, 1).T).unflatten(1, inverse_BT.shape).mul_(inverse_BT)
        ctx.save_for_backward(v_BTD, query_RD, inverse_BT, scores_RBT)
        return scores_RBT

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, ds_RBT: torch.Tensor):
        """Compute the gradients of the source and of the readers' queries by the formulas of the class."""
        v_BTD, query_RD, inverse_BT, scores_RBT = ctx.saved_tensors
        wide_BTD, e_RBT = widen(v_BTD), ds_RBT * inverse_BT
        drawn_BT = (scores_RBT * e_RBT).sum(dim=0).mul_(inverse_BT).div_(-v_BTD.shape[-1])
        with without_autocast(v_BTD):
            dv_BTD = (e_RBT.flatten(1).T @ query_RD).view(v_BTD.shape).addcmul_(wide_BTD, drawn_BT[..., None])
            dquery_RD = e_RBT.flatten(1) @ wide_BTD.flatten(0, 1)
        return dv_BTD.to(v_BTD.dtype), dquery_RD, None


class SourceMixture(torch.autograd.Function):
    """Weighted sum of sources, sum_i a_i v_i, from weights a (B, T, S) and S sources (B, T, D), in the sources' type.

    da_i = dy . v_i,  dv_i = a_i dy.
    """

    @staticmethod
    def forward(ctx, weights_BTS: torch.Tensor, *sources: torch.Tensor) -> torch.Tensor:
        """Compute the weighted sum (B, T, D) of the sources."""
        ctx.save_for_backward(weights_BTS, *sources)
        mixed_BTD = widen(sources[0]) * weights_BTS[..., :1]
        for index, v_BTD in enumerate(sources[1:], start=1):
            mixed_BTD.addcmul_(widen(v_BTD), weights_BTS[..., index : index + 1])
        return mixed_BTD.to(sources[0].dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy_BTD: torch.Tensor):
        """Compute the gradients of the weights and of each source by the formulas of the class."""
        weights_BTS, *sources = ctx.saved_tensors
        wide_BTD = widen(dy_BTD)
        dweights_SBT = torch.stack([(wide_BTD * widen(v_BTD)).sum(dim=-1) for v_BTD in sources])
        dsources = (
            (wide_BTD * weights_BTS[..., index : index + 1]).to(v_BTD.dtype) for index, v_BTD in enumerate(sources)
        )
        return dweights_SBT.movedim(0, -1), *dsources
