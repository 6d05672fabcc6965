"""Implements softpick: rectified softmax attention, whose rows may be sparse and need not sum to one."""

from __future__ import annotations

from typing import Literal

import torch

from plumbline.model.attention_mask import AttentionMask, KeyCount
from plumbline.model.cache import DecodingCache
from plumbline.model.float32_widening import without_autocast
from plumbline.model.mixers._base import Mixer, cast_for_kernel, grouped_matmul, masked_softmax, widen
from plumbline.specs.components import component
from plumbline.specs.spec import ModelSpec

#: Keeps the original's denominator from zero, as in its authors' GPU kernel.
EPSILON = 1e-6

KERNELS = {"rectified": "softpick", "original": "softpick_original", "masked_negative": "bounded"}


@component
class Softpick(Mixer):
    """Rectified weights, made from the scaled scores z of the visible keys:

    - "rectified": relu(softmax(z) - 1 / n), not normalised again (transfer study, appendix B.2). A row of equal
      scores gives nothing, and no row sums to more than 1 - 1 / n.
    - "original": relu(e^z - 1) / sum |e^z - 1| (Zuhri et al. 2025). Not invariant to a shift of z.
    - "masked_negative": softmax over the keys with z >= 0, nothing where there are none (its authors' rectified form).

    `n` of the first: the keys that the query sees, the training context, or all keys of the call; the study does not
    say which. With the last one what a token sees depends on how many tokens follow.
    """

    def __init__(
        self,
        model: ModelSpec,
        layer: int,
        *,
        variant: Literal["rectified", "original", "masked_negative"] = "rectified",
        n: Literal["visible", "context", "sequence"] = "visible",
    ) -> None:
        super().__init__(model, layer)
        self.variant, self.context, self.kernel = variant, model.context, KERNELS[variant]
        self.n: KeyCount = n

    def weights(self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Rectified weights of the chosen variant (B, H, Q, K)."""
        scores_BHQK = self.scores(q_BHQW, k_BGKW)
        if self.variant == "original":
            return _original_weights(scores_BHQK, attention_mask)
        return self.rectify(self.shares(scores_BHQK, attention_mask), attention_mask)

    def shares(self, scores_BHQK: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """The softmax (B, H, Q, K) that `rectify` makes weights of, in every variant but "original"."""
        if self.variant == "masked_negative":
            return _softmax_of_positive(scores_BHQK, attention_mask)
        return masked_softmax(scores_BHQK, attention_mask)

    def rectify(self, shares_BHQK: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
        """Weights from the softmax `shares`: relu(shares - 1 / n), or with "masked_negative" the shares themselves."""
        if self.variant == "masked_negative":
            return shares_BHQK
        return (shares_BHQK - self.threshold(attention_mask)).relu_()

    def threshold(self, attention_mask: AttentionMask) -> torch.Tensor:
        """1 / n (B or 1, 1, Q, 1)."""
        return 1 / attention_mask.count_B1Q1(self.n, self.context)

    def forward(
        self,
        q_BHQW: torch.Tensor,
        k_BGKW: torch.Tensor,
        v_BGKW: torch.Tensor,
        attention_mask: AttentionMask,
        cache: DecodingCache | None = None,
    ) -> torch.Tensor:
        """Head outputs by the Triton kernel where it can run, else in chunks (B, H, Q, W)."""
        if self.kernel_for_call(q_BHQW, attention_mask) == self.kernel:
            return self._attend_by_kernel(*cast_for_kernel(q_BHQW, k_BGKW, v_BGKW), attention_mask)
        if self.variant == "original" or self.attention == "reference":
            return self.attend_in_chunks(q_BHQW, k_BGKW, v_BGKW, attention_mask)
        keep = torch.is_grad_enabled() and q_BHQW.shape[2] <= self.recompute_above
        return RectifiedFunction.apply(q_BHQW, k_BGKW, v_BGKW, self, attention_mask, keep)

    def _attend_by_kernel(
        self, q_BHQW: torch.Tensor, k_BGKW: torch.Tensor, v_BGKW: torch.Tensor, attention_mask: AttentionMask
    ) -> torch.Tensor:
        if self.variant == "rectified":
            from plumbline.model.kernels.softpick import softpick

            count = attention_mask.same_count(self.n, self.context)
            return softpick(q_BHQW, k_BGKW, v_BGKW, scale=self.scale, count=count)
        if self.variant == "original":
            from plumbline.model.kernels.softpick_original import softpick_original

            return softpick_original(q_BHQW, k_BGKW, v_BGKW, scale=self.scale, epsilon=EPSILON)
        from plumbline.model.kernels.bounded import bounded_softmax

        return bounded_softmax(q_BHQW, k_BGKW, v_BGKW, scale=self.scale, cap=None)


class RectifiedFunction(torch.autograd.Function):
    """relu(p - c) v with p = softmax(z) and c = 1 / n, or p v where p is zero for z < 0, computed in chunks of queries.

    For the gradient p is kept (`keep`), or computed again. With w = relu(p - c), step = 1 where p > c, and do the
    gradient of the output:

        dp = step (do . v)      dz = p (dp - delta)      delta = sum_j p_j dp_j = do . o + c (do . u),  u = sum step v

    The second form of delta is what a kernel without rows of p must use: flash attention's do . o alone misses u. Here
    rows of p are at hand, and delta is their sum.
    """

    @staticmethod
    def forward(
        ctx, q_BHQW, k_BGKW, v_BGKW, mixer: Softpick, attention_mask: AttentionMask, keep: bool
    ) -> torch.Tensor:
        """Compute the head outputs (B, H, Q, W) in chunks of queries; `keep` keeps the softmax for the gradient."""
        outputs, softmax_parts = [], []
        with without_autocast(q_BHQW):
            for start, stop in mixer.spans(q_BHQW.shape[2]):
                part = attention_mask.rows(start, stop)
                keys = part.key_positions_BK.shape[1]
                p_BHQK = mixer.shares(mixer.scores(q_BHQW[:, :, start:stop], k_BGKW[:, :, :keys]), part)
                w_BHQK = mixer.rectify(p_BHQK, part)
                outputs.append(grouped_matmul(w_BHQK, widen(v_BGKW[:, :, :keys])).to(v_BGKW.dtype))
                if keep:
                    softmax_parts.append(p_BHQK)
        ctx.save_for_backward(q_BHQW, k_BGKW, v_BGKW, *softmax_parts)
        ctx.mixer, ctx.attention_mask = mixer, attention_mask
        return torch.cat(outputs, dim=2)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, do_BHQW: torch.Tensor):
        """Compute the gradients of queries, keys and values by the formulas of the class."""
        q_BHQW, k_BGKW, v_BGKW, *softmax_parts = ctx.saved_tensors
        mixer, attention_mask = ctx.mixer, ctx.attention_mask
        groups = k_BGKW.shape[1]
        dq_parts = []
        dk_BGKW, dv_BGKW = torch.zeros_like(widen(k_BGKW)), torch.zeros_like(widen(v_BGKW))
        with without_autocast(q_BHQW):
            for index, (start, stop) in enumerate(mixer.spans(q_BHQW.shape[2])):
                part = attention_mask.rows(start, stop)
                keys = part.key_positions_BK.shape[1]
                q, do = widen(q_BHQW[:, :, start:stop]), widen(do_BHQW[:, :, start:stop])
                k, v = widen(k_BGKW[:, :, :keys]), widen(v_BGKW[:, :, :keys])
                p_BHQK = softmax_parts[index] if softmax_parts else mixer.shares(mixer.scores(q, k), part)
                w_BHQK = mixer.rectify(p_BHQK, part)
                dp_BHQK = grouped_matmul(do, v.transpose(-1, -2))
                if w_BHQK is not p_BHQK:
                    dp_BHQK.mul_(w_BHQK > 0)
                dz_BHQK = torch._softmax_backward_data(dp_BHQK, p_BHQK, -1, dp_BHQK.dtype)
                # A group's heads and queries are one long axis, so that the sum over its heads is part of the product.
                w_BGXK, dz_BGXK = (x.reshape(x.shape[0], groups, -1, keys) for x in (w_BHQK, dz_BHQK))
                q_BGXW, do_BGXW = (x.reshape(x.shape[0], groups, -1, x.shape[-1]) for x in (q * mixer.scale, do))
                dv_BGKW[:, :, :keys] += w_BGXK.transpose(-1, -2) @ do_BGXW
                dk_BGKW[:, :, :keys] += dz_BGXK.transpose(-1, -2) @ q_BGXW
                dq_parts.append(grouped_matmul(dz_BHQK, k * mixer.scale))
        dq_BHQW = torch.cat(dq_parts, dim=2).to(q_BHQW.dtype)
        return dq_BHQW, dk_BGKW.to(k_BGKW.dtype), dv_BGKW.to(v_BGKW.dtype), None, None, None


def _softmax_of_positive(scores_BHQK: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
    """Softmax over the visible keys with a score of at least zero; zeros in rows without any."""
    barred = (scores_BHQK < 0) | ~attention_mask.mask_B1QK
    # Finite, and zeroed afterwards: a softmax over nothing would put NaN into a row and its gradient.
    lowest = torch.finfo(scores_BHQK.dtype).min
    return scores_BHQK.masked_fill(barred, lowest).softmax(dim=-1).masked_fill(barred, 0.0)


def _original_weights(scores_BHQK: torch.Tensor, attention_mask: AttentionMask) -> torch.Tensor:
    """relu(e^z - 1) / (sum |e^z - 1| + EPSILON), both shifted by m = max(z, 0) so that nothing overflows."""
    mask = attention_mask.mask_B1QK
    scores_BHQK = scores_BHQK.masked_fill(~mask, 0.0)  # e^0 - 1 counts for nothing
    shift = scores_BHQK.detach().amax(dim=-1, keepdim=True)
    difference = (scores_BHQK - shift).exp() - (-shift).exp()
    return difference.relu() / (difference.abs().sum(dim=-1, keepdim=True) + EPSILON)
