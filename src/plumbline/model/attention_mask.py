"""Determines which keys a query may see: causality, padding and the decoding cache in one object.

Attention may cross documents inside a packed sequence, as in the papers; padding is never seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

#: What "the number of keys n" of a row may mean: the keys that its query sees, the training context, or all keys of
#: the call. With the last one, what a token sees depends on the tokens after it and on padding.
KeyCount = Literal["visible", "context", "sequence"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionMask:
    """Positions of queries and keys, counted without padding, which say what each query may see.

    Attributes:
        query_positions_BQ: 0-based position of each query; -1 for a padding row. B is 1 where all rows are alike.
        key_positions_BK: the same for keys.
        plain: queries and keys are the same unpadded positions 0..T-1, so that a fused causal kernel may be used.
        length: number of keys of the call, padding and the cache's included.
    """

    query_positions_BQ: torch.Tensor
    key_positions_BK: torch.Tensor
    plain: bool
    length: int

    @property
    def triangular(self) -> bool:
        """Whether the mask hides every key after a query's own place, and `rows` leaves those out although it is not
        plain."""
        return False

    @property
    def mask_BQK(self) -> torch.Tensor:
        """True where a query sees a key. A padding query sees everything (its row is never read)."""
        query, key = self.query_positions_BQ[:, :, None], self.key_positions_BK[:, None, :]
        return ((key <= query) & (key >= 0)) | (query < 0)

    @property
    def mask_B1QK(self) -> torch.Tensor:
        """`mask_BQK` with an axis for heads."""
        return self.mask_BQK[:, None]

    def kernel_mask_B1QK(self, dtype: torch.dtype) -> torch.Tensor:
        """The mask as torch's fused attention of so wide numbers takes it: of either kind, what is at hand."""
        return self.mask_B1QK

    def bias_B1QK(self, dtype: torch.dtype) -> torch.Tensor:
        """The mask as an addend to scores: 0 where a query sees a key, else -inf."""
        mask = self.mask_B1QK
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, float("-inf"))

    @property
    def visible_B1Q1(self) -> torch.Tensor:
        """Number of keys that each query sees, position + 1, as float32; 1 for a padding query."""
        return (self.query_positions_BQ.clamp(min=0) + 1).float()[:, None, :, None]

    def count_B1Q1(self, n: KeyCount, context: int) -> torch.Tensor:
        """Number of keys n in each query's row, in float32, for formulas that depend on it.

        Args:
            n: "visible" counts the keys that the query sees, "context" the training length, "sequence" all keys of the
                call.
            context: the training length in tokens.
        """
        number = self.same_count(n, context)
        return self.visible_B1Q1 if number is None else torch.full_like(self.visible_B1Q1, number)

    def same_count(self, n: KeyCount, context: int) -> float | None:
        """The number that `count_B1Q1` gives every row; None for "visible", where each row has its own."""
        return None if n == "visible" else float(context if n == "context" else self.length)

    def rows(self, start: int, stop: int) -> AttentionMask:
        """The mask of the queries start..stop-1 alone; where positions are plain, without the keys after them."""
        keys = stop if self.plain else self.key_positions_BK.shape[1]
        return AttentionMask(
            query_positions_BQ=self.query_positions_BQ[:, start:stop],
            key_positions_BK=self.key_positions_BK[:, :keys],
            plain=self.plain and start == 0,
            length=self.length,
        )

    @classmethod
    def for_call(
        cls, tokens_BT: torch.Tensor, padding_BT: torch.Tensor | None, past: AttentionMask | None
    ) -> AttentionMask:
        """Make the attention mask of one forward call.

        Args:
            padding_BT: True at padding; None without any.
            past: the mask of the tokens already in the decoding cache; None without a cache.
        """
        device = tokens_BT.device
        if padding_BT is None:
            positions = torch.arange(tokens_BT.shape[1], device=device)[None]
        else:
            real_BT = ~padding_BT
            positions = torch.where(real_BT, real_BT.cumsum(1) - 1, -1)
        if past is None:
            return cls(
                query_positions_BQ=positions,
                key_positions_BK=positions,
                plain=padding_BT is None,
                length=positions.shape[1],
            )
        past_positions_BK = past.key_positions_BK
        start = past_positions_BK.amax(dim=1, keepdim=True) + 1
        positions = torch.where(positions >= 0, positions + start, -1)
        rows = max(past_positions_BK.shape[0], positions.shape[0])
        keys = torch.cat([past_positions_BK.expand(rows, -1), positions.expand(rows, -1)], dim=1)
        return cls(query_positions_BQ=positions, key_positions_BK=keys, plain=False, length=keys.shape[1])
