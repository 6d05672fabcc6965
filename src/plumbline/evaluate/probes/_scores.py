"""Computes what probes need of the scores of a causal softmax, some query rows at a time: never a T x T matrix.

With z_ij = scale q_i . k_j over the visible keys j <= i and LSE_i = log sum_j exp z_ij, attention is P_ij = exp(z_ij -
LSE_i), so that

- entropy is H_i = LSE_i - sum_j P_ij z_ij, computed with the row's maximum taken off every z, which changes neither
  side and keeps large scores from cancelling;
- the weight of one key per row, j(i), is exp(scale q_i . k_j(i) - LSE_i): a gather and a dot product.

Memory is O(T x ROWS). Query head h reads key head h // (H / G).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch

from plumbline.model.float32_widening import widen, without_autocast

#: Query rows at a time.
ROWS = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class RowSums:
    """Sums over the visible keys of each row, all (B, H, T), in float32 or wider.

    Attributes:
        lse: logarithm of the sum of exp z.
        maximum: largest z.
        absolute: sum of |z|.
        square: sum of z^2.
        entropy: of the attention, in nats.
    """

    lse: torch.Tensor
    maximum: torch.Tensor
    absolute: torch.Tensor
    square: torch.Tensor
    entropy: torch.Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionWeights:
    """The attention weights of some queries, with keys up to the last of these.

    Attributes:
        visible: which keys each query sees (B or 1, 1, Q, K).
        logits: what the weights were made of, before any cap (B, M, Q, K); M is a multiple of N, with the maps of one
            head next to each other. Meaningless where a key is not visible.
        weights: of each head (B, N, Q, K); zero where a key is not visible.
    """

    visible: torch.Tensor
    logits: torch.Tensor
    weights: torch.Tensor


class AttentionScores:
    """Scores of queries (B, H, T, W) and keys (B, G, T, W), both after positions; all keys up to a query are visible.

    Products are in float32, or in float64 where queries are.
    """

    def __init__(self, q_BHTW: torch.Tensor, k_BGTW: torch.Tensor, scale: float) -> None:
        with without_autocast(q_BHTW):
            self.q_BHTW, self.k_BGTW = widen(q_BHTW) * scale, widen(k_BGTW)

    @cached_property
    def lse_BHT(self) -> torch.Tensor:
        """Logarithm of the sum of exp z over the visible keys of each row."""
        if "rows" in self.__dict__:
            return self.rows.lse
        return torch.cat([z_BHQK.logsumexp(-1) for z_BHQK in self._chunks(float("-inf"))], dim=-1)

    @cached_property
    def rows(self) -> RowSums:
        """All sums over keys of each row, computed in one walk."""
        parts_by_name: dict[str, list[torch.Tensor]] = {name: [] for name in RowSums.__dataclass_fields__}
        for z_BHQK in self._chunks(0.0):
            parts_by_name["absolute"].append(z_BHQK.abs().sum(-1))
            parts_by_name["square"].append(z_BHQK.square().sum(-1))
            block_BHQQ = z_BHQK[..., -z_BHQK.shape[2] :]
            unseen_QQ = _upper_triangle(block_BHQQ)
            block_BHQQ.masked_fill_(unseen_QQ, float("-inf"))
            maximum_BHQ1 = z_BHQK.amax(-1, keepdim=True)
            z_BHQK -= maximum_BHQ1
            weights_BHQK = z_BHQK.exp()
            total_BHQ = weights_BHQK.sum(-1)
            block_BHQQ.masked_fill_(unseen_QQ, 0.0)  # 0 x -inf is no number
            logarithm_BHQ = total_BHQ.log()
            parts_by_name["maximum"].append(maximum_BHQ1[..., 0])
            parts_by_name["lse"].append(logarithm_BHQ + maximum_BHQ1[..., 0])
            parts_by_name["entropy"].append(logarithm_BHQ - weights_BHQK.mul_(z_BHQK).sum(-1) / total_BHQ)
        return RowSums(**{name: torch.cat(parts, dim=-1) for name, parts in parts_by_name.items()})

    def weight(self, key_BT: torch.Tensor) -> torch.Tensor:
        """Attention weight P_{i,j(i)} (B, H, T) of one visible key per row; `key_BT` are the keys' positions."""
        batch, heads, time, width = self.q_BHTW.shape
        groups = self.k_BGTW.shape[1]
        index = key_BT[:, None, :, None].expand(batch, groups, time, width)
        with without_autocast(self.q_BHTW):
            q_BGRTW = self.q_BHTW.unflatten(1, (groups, heads // groups))
            z_BHT = (q_BGRTW * self.k_BGTW.gather(2, index)[:, :, None]).sum(-1).flatten(1, 2)
            return (z_BHT - self.lse_BHT).exp()

    def iterate_weights(self) -> Iterator[AttentionWeights]:
        """Yield the softmax's weights, ROWS queries at a time."""
        start = 0
        for z_BHQK in self._chunks(float("-inf")):
            queries, keys = z_BHQK.shape[2:]
            visible_QK = torch.ones(queries, keys, dtype=torch.bool, device=z_BHQK.device).tril(start)
            yield AttentionWeights(visible=visible_QK[None, None], logits=z_BHQK, weights=z_BHQK.softmax(-1))
            start += queries

    def _chunks(self, unseen: float) -> Iterator[torch.Tensor]:
        """z of ROWS queries at a time, with keys up to the last of them; `unseen` stands where a key is later than
        its query. The last queries' own keys are the last columns, as many as there are rows."""
        batch, heads, time, width = self.q_BHTW.shape
        groups = self.k_BGTW.shape[1]
        for start in range(0, time, ROWS):
            stop = min(start + ROWS, time)
            with without_autocast(self.q_BHTW):
                q_BGXW = self.q_BHTW[:, :, start:stop].reshape(batch, groups, -1, width)
                z_BGXK = q_BGXW @ self.k_BGTW[:, :, :stop].transpose(-1, -2)
            z_BHQK = z_BGXK.view(batch, heads, stop - start, stop)
            z_BHQK[..., start:].masked_fill_(_upper_triangle(z_BHQK[..., start:]), unseen)
            yield z_BHQK


def _upper_triangle(block_BHQQ: torch.Tensor) -> torch.Tensor:
    """True above the diagonal (Q, Q)."""
    queries = block_BHQQ.shape[-1]
    return torch.ones(queries, queries, dtype=torch.bool, device=block_BHQQ.device).triu(1)
