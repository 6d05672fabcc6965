"""Computes the loss of the next tokens without the logits of a whole batch: they are made, used and dropped in chunks.

Shape suffixes: N predictions (batch and time in one), D width, V vocabulary.
"""

from __future__ import annotations

import torch

from plumbline.model.cpu_matmul import product, weight_gradient
from plumbline.model.float32_widening import widen, without_autocast

#: Predictions at a time on a processor. For each so many, a gradient as large as the weights is added up: with half as
#: many a step is 2 to 4 % slower; with four times as many the logits are far larger than the caches.
ROWS = 512
#: On an accelerator, which wants to be kept busy: as many as have logits of so many bytes in float32.
CHUNK_BYTES = 512 * 2**20


def next_token_loss(hidden_ND: torch.Tensor, weight_VD: torch.Tensor, targets_N: torch.Tensor) -> torch.Tensor:
    """Summed cross-entropy (nats, float32 or wider) of `targets_N` under the logits hidden W^T.

    Matrix products are computed in autocast's type where it is on, logits and their softmax in float32 or wider.
    """
    if not torch.is_grad_enabled():  # else a weight asks for its gradient wherever it is used
        hidden_ND, weight_VD = hidden_ND.detach(), weight_VD.detach()
    loss: torch.Tensor = _NextTokenLoss.apply(hidden_ND, weight_VD, targets_N)
    return loss


class _NextTokenLoss(torch.autograd.Function):
    """With p = softmax(logits), y the one-hot target and g the gradient of the sum, the gradients are

        d logits = g (p - y)      d hidden = g (p - y) W      d W = g (p - y)^T hidden

    all but g known as soon as the logits are: both are made in the forward pass, chunk by chunk, and scaled by g in the
    backward pass. What is kept for it is as large as `hidden` and W, instead of N times V numbers.
    """

    @staticmethod
    def forward(ctx, hidden_ND: torch.Tensor, weight_VD: torch.Tensor, targets_N: torch.Tensor) -> torch.Tensor:
        kind = hidden_ND.device.type
        narrow = torch.get_autocast_dtype(kind) if _autocast(kind) else hidden_ND.dtype
        needs_gradient = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        rows = ROWS if kind == "cpu" else max(ROWS, CHUNK_BYTES // (4 * weight_VD.shape[0]))
        losses, hidden_parts = [], []
        with without_autocast(hidden_ND):
            h_ND, w_VD = hidden_ND.to(narrow), weight_VD.to(narrow)
            # Held the way round in which `weight_gradient` makes it.
            grad_VD = torch.zeros_like(widen(weight_VD).T).T if needs_gradient else None
            for h_CD, targets_C in zip(h_ND.split(rows), targets_N.split(rows)):
                # One buffer holds logits, then their exponentials, then probabilities, then these less the target.
                z_CV = widen(product(h_CD, w_VD))
                z_CV -= z_CV.amax(dim=1, keepdim=True)
                chosen_C1 = z_CV.gather(1, targets_C[:, None])
                sum_C1 = z_CV.exp_().sum(dim=1, keepdim=True)
                losses.append((sum_C1.log() - chosen_C1)[:, 0])
                if grad_VD is not None:
                    z_CV /= sum_C1
                    if torch.compiler.is_compiling():
                        # What writes to single places is a kernel of its own, for which all is stored in float32 before
                        # and read after it. So this has the same bits, and goes into one kernel with all of the above.
                        hit_CV = torch.arange(len(w_VD), device=z_CV.device) == targets_C[:, None]
                        z_CV = torch.where(hit_CV, z_CV - 1, z_CV)
                    else:
                        z_CV.scatter_add_(1, targets_C[:, None], -torch.ones_like(sum_C1))
                    difference_CV = z_CV.to(narrow)
                    hidden_parts.append(product(difference_CV, w_VD.T))
                    grad_VD += weight_gradient(difference_CV, h_CD)
        if grad_VD is not None:
            ctx.save_for_backward(torch.cat(hidden_parts).to(hidden_ND.dtype), grad_VD.to(weight_VD.dtype))
        return torch.cat(losses).sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad: torch.Tensor):
        hidden_ND, weight_VD = ctx.saved_tensors
        return hidden_ND * grad, weight_VD * grad, None


def _autocast(kind: str) -> bool:
    return kind != "meta" and torch.is_autocast_enabled(kind)
