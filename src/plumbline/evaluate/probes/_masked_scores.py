"""Computes scores and weights of an attention that caps its scores or masks more than what is later.

Scores that enter the softmax are cap x tanh(z / cap) of the scaled products z (Gemma 2); a mask leaves out what is
before a sliding window.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.probes._scores import AttentionScores, AttentionWeights


class MaskedScores(AttentionScores):
    """Scores of queries (B, H, T, W) and keys (B, G, T, W), both after positions.

    Args:
        cap: of scores; None where they are not capped.
        visible_BXTT: which keys each query sees (X = 1, or a head's own); None: all up to its own.
    """

    def __init__(
        self,
        q_BHTW: torch.Tensor,
        k_BGTW: torch.Tensor,
        scale: float,
        cap: float | None,
        visible_BXTT: torch.Tensor | None,
    ) -> None:
        super().__init__(q_BHTW, k_BGTW, scale)
        self.cap, self.visible_BXTT = cap, visible_BXTT

    def require_unmasked(self) -> MaskedScores:
        """These scores, for who sums over all keys up to a query.

        Raises:
            PlumblineError: a mask leaves some of them out.
        """
        if self.visible_BXTT is not None:
            raise PlumblineError(
                "--checkpoint: attention with a mask that is not causal alone (a sliding window, perhaps); what is "
                "summed over all earlier keys is exact without one only; leave these probes out, or give a --context "
                "within the window"
            )
        return self

    def weight(self, key_BT: torch.Tensor) -> torch.Tensor:
        """Attention weight P_{i,j(i)} (B, H, T) of one visible key per row; `key_BT` are the keys' positions."""
        if self.cap is None:
            return super().weight(key_BT)
        start, parts = 0, []
        for part in self.iterate_weights():
            heads, queries = part.weights.shape[1:3]
            key_BHQ1 = key_BT[:, None, start : start + queries, None].expand(-1, heads, -1, -1)
            parts.append(part.weights.gather(-1, key_BHQ1)[..., 0])
            start += queries
        return torch.cat(parts, dim=-1)

    def iterate_weights(self) -> Iterator[AttentionWeights]:
        """Yield the softmax's weights, some queries at a time, with the scores as they are before the cap."""
        start = 0
        for z_BHQK in super()._chunks(0.0):
            queries, keys = z_BHQK.shape[2:]
            if self.visible_BXTT is None:
                visible_BXQK = torch.ones(1, 1, queries, keys, dtype=torch.bool, device=z_BHQK.device).tril(start)
            else:
                visible_BXQK = self.visible_BXTT[:, :, start : start + queries, :keys]
            seen_BHQK = self._capped(z_BHQK).masked_fill(~visible_BXQK, float("-inf"))
            yield AttentionWeights(visible=visible_BXQK, logits=z_BHQK, weights=seen_BHQK.softmax(-1))
            start += queries

    def mix(self, v_BGTW: torch.Tensor) -> torch.Tensor:
        """The attention's output (B, H, T, W): values (B, G, T, W) by their weights."""
        v_BHTW = v_BGTW.repeat_interleave(self.q_BHTW.shape[1] // v_BGTW.shape[1], dim=1)
        parts = [
            part.weights.to(v_BHTW.dtype) @ v_BHTW[:, :, : part.weights.shape[-1]] for part in self.iterate_weights()
        ]
        return torch.cat(parts, dim=2)

    def _chunks(self, unseen: float) -> Iterator[torch.Tensor]:
        """Scores as they enter the softmax, as of the class above."""
        if self.cap is None:
            yield from super()._chunks(unseen)
            return
        for z_BHQK in super()._chunks(0.0):
            queries, keys = z_BHQK.shape[2:]
            later_QK = torch.ones(queries, keys, dtype=torch.bool, device=z_BHQK.device).triu(1 + keys - queries)
            yield self._capped(z_BHQK).masked_fill_(later_QK, unseen)

    def _capped(self, z_BHQK: torch.Tensor) -> torch.Tensor:
        return z_BHQK if self.cap is None else self.cap * (z_BHQK / self.cap).tanh()
