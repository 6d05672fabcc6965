"""Computes the difference of two causal softmax maps times values explicitly, for short calls on a processor.

Torch's fused call takes twice the heads for it, half of whose queries and keys are zeros, and multiplies values by each
map. Here the maps are subtracted first, and only real queries and keys are multiplied.
"""

from __future__ import annotations

from typing import Any

import torch

Spans = list[tuple[int, int]]


class DifferenceFunction(torch.autograd.Function):
    """(p1 - lambda p2) v of a plain causal call, p = softmax(scale q k), some queries at a time (`spans`).

    Queries (2, B, H, Q, W), keys (2, B, G, Q, W) and v (B, F, Q, X), head h with keys h // (H / G) and values
    h // (H / F); lambda (1, 1, 1) or (H, 1, 1). Out come (B, H, Q, X), heads next to channels in memory, as the output
    projection takes them. For the gradient (`keep`) both maps are kept, so this is for calls of few queries. With do
    the gradient of the output:

        da = do v^T    dv = (p1 - lambda p2)^T do    dlambda = -sum p2 da
        dz1 = p1 (da - sum_j p1 da)    dz2 = -lambda p2 (da - sum_j p2 da)    dq = scale dz k    dk = scale dz^T q

    Heads are narrow: a product with one of them for its result is made with the weights on its long side, several
    times as fast as the other way round.
    """

    @staticmethod
    def forward(ctx, q_2BHQW, k_2BGKW, v_BFKX, lambda_H11, scale: float, spans: Spans, keep: bool):
        """Compute the head outputs (B, H, Q, X) in chunks of queries; `keep` keeps both maps for the gradient."""
        _, batch, heads, queries, _ = q_2BHQW.shape
        out_BQHX = v_BFKX.new_empty(batch, queries, heads, v_BFKX.shape[-1])
        q_2BHQW, maps = q_2BHQW * scale, []
        for start, stop in spans:
            first, second = (
                _softmax_map(q_BHQW[:, :, start:stop], k_BGKW[:, :, :stop])
                for q_BHQW, k_BGKW in zip(q_2BHQW, k_2BGKW, strict=True)
            )
            weights_BHQK = torch.addcmul(first, second, -lambda_H11)
            mixed_YX = _stack_by_group(weights_BHQK, v_BFKX) @ _flatten_groups(v_BFKX[:, :, :stop])
            out_BQHX[:, start:stop] = mixed_YX.view(batch, heads, stop - start, -1).transpose(1, 2)
            if keep:
                maps += [first, second]
        ctx.save_for_backward(q_2BHQW, k_2BGKW, v_BFKX, lambda_H11, *maps)
        ctx.scale, ctx.spans = scale, spans
        return out_BQHX.transpose(1, 2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do_BHQX: torch.Tensor) -> tuple[Any, ...]:
        """Compute the gradients of queries, keys, values and lambda by the formulas of the class."""
        q_2BHQW, k_2BGKW, v_BFKX, lambda_H11, *maps = ctx.saved_tensors
        _, batch, heads, _, width = q_2BHQW.shape
        dq_2BHQW, dk_2BGKW, dv_BFKX = torch.empty_like(q_2BHQW), torch.zeros_like(k_2BGKW), torch.zeros_like(v_BFKX)
        dlambda_BH = do_BHQX.new_zeros(batch, heads)
        # What a map's scores are made of, and what its gradients go to; -lambda of the second map is with the queries.
        q_BHQW, scaled_2BGKW = (q_2BHQW[0], q_2BHQW[1] * -lambda_H11), k_2BGKW * ctx.scale
        sides = list(zip(q_BHQW, scaled_2BGKW, dq_2BHQW, dk_2BGKW, strict=True))
        for (start, stop), *pair in zip(ctx.spans, maps[::2], maps[1::2], strict=True):
            do_YX = _stack_by_group(do_BHQX[:, :, start:stop], v_BFKX)
            da_BHQK = (do_YX @ _flatten_groups(v_BFKX[:, :, :stop]).mT).view(pair[0].shape)
            weights_YK = _stack_by_group(torch.addcmul(*pair, -lambda_H11), v_BFKX)
            dv_BFKX[:, :, :stop] += (do_YX.mT @ weights_YK).mT.unflatten(0, (batch, -1))
            dlambda_BH -= torch.linalg.vecdot(pair[1].flatten(2), da_BHQK.flatten(2))
            for weights_BHQK, (q_BHQW, k_BGKW, dq_BHQW, dk_BGKW) in zip(pair, sides, strict=True):
                dz_BHQK = torch._softmax_backward_data(da_BHQK, weights_BHQK, -1, da_BHQK.dtype)
                dz_YK, q_YW = _stack_by_group(dz_BHQK, k_BGKW), _stack_by_group(q_BHQW[:, :, start:stop], k_BGKW)
                dk_BGKW[:, :, :stop] += (q_YW.mT @ dz_YK).mT.unflatten(0, (batch, -1))
                dq_YW = (_flatten_groups(k_BGKW[:, :, :stop]).mT @ dz_YK.mT).mT
                dq_BHQW[:, :, start:stop] = dq_YW.reshape(batch, heads, stop - start, width)
        dq_2BHQW[1] *= -lambda_H11
        dlambda_H11 = dlambda_BH.sum(0)[:, None, None].sum_to_size(lambda_H11.shape)
        return dq_2BHQW, dk_2BGKW, dv_BFKX, dlambda_H11, None, None, None


def _softmax_map(q_BHQW: torch.Tensor, k_BGKW: torch.Tensor) -> torch.Tensor:
    """Softmax weights (B, H, Q, K) of the last Q queries of K positions."""
    batch, heads, queries, _ = q_BHQW.shape
    z_BHQK = (_stack_by_group(q_BHQW, k_BGKW) @ _flatten_groups(k_BGKW).mT).view(batch, heads, queries, -1)
    # All earlier keys are visible: what is barred lies in the last square.
    barred_QQ = torch.full((queries, queries), float("-inf"), dtype=q_BHQW.dtype, device=q_BHQW.device).triu_(1)
    z_BHQK[..., -queries:] += barred_QQ
    return z_BHQK.softmax(dim=-1)


def _stack_by_group(x_BHQY: torch.Tensor, groups_BGKW: torch.Tensor) -> torch.Tensor:
    """The heads and queries of each of B G groups as the rows of one matrix."""
    return x_BHQY.reshape(groups_BGKW.shape[0] * groups_BGKW.shape[1], -1, x_BHQY.shape[-1])


def _flatten_groups(x_BGKW: torch.Tensor) -> torch.Tensor:
    return x_BGKW.flatten(0, 1)
