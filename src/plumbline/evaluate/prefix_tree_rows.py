"""Lays trees of tokens out as rows of a batch: all nodes of a tree lie side by side, and a token sees those of the
nodes above.

A row of a whole tree is as long as its nodes together, and attention's work grows with the square of that. So a tree
whose branches are long beside what they share falls into several, each of which reads the shared part again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from plumbline.evaluate.prefix_trees import ContinuationQuery, PrefixNode
from plumbline.model.attention_mask import AttentionMask


@dataclass(frozen=True, slots=True)
class TreeAsRow:
    """A tree as a row, a node after the one above it.

    `positions`: how many tokens each token has before it on its path. `until`: the place of the row at which the nodes
    below its own end. `asked`: with the place in the row instead of the node.
    """

    tokens: list[int]
    positions: list[int]
    until: list[int]
    queries: list[ContinuationQuery]
    plain: bool


def make_row(root: PrefixNode) -> TreeAsRow:
    """One tree as one row."""
    row = TreeAsRow([], [], [], [], plain=not root.children)

    def add(node: PrefixNode, depth: int) -> None:
        start, length = len(row.tokens), len(node.tokens)
        row.tokens.extend(node.tokens)
        row.positions.extend(range(depth, depth + length))
        row.until.extend([0] * length)
        row.queries.extend(ContinuationQuery(start + place, tokens, request) for place, tokens, request in node.queries)
        for child in node.children:
            add(child, depth + length)
        row.until[start : start + length] = [len(row.tokens)] * length

    add(root, 0)
    return row


def split_trees(roots: Sequence[PrefixNode], worth: float) -> Iterator[PrefixNode]:
    """Trees that are read as a row each, of which every branch pays for its part in the others' attention.

    `worth`: with how many keys a query's attention costs what a token costs beside attention. What is asked of nodes
    that several trees have is asked in the first.
    """
    for root in roots:
        for tree, _ in _split_tree(root, 0, worth):
            yield tree


def _split_tree(node: PrefixNode, depth: int, worth: float) -> list[tuple[PrefixNode, int]]:
    """(tree, number of its tokens) of each tree that `node`, `depth` tokens below its root, falls into."""
    shared = len(node.tokens)
    above = depth + shared
    trees = [(PrefixNode(node.tokens, node.queries), shared)]
    for child in node.children:
        for branch, length in _split_tree(child, above, worth):
            tree, size = trees[-1]
            # Together: (size + length)^2 keys and queries. Apart: the shared tokens once more, and their attention.
            if tree.children and 2 * length * (size - shared) > shared * (worth + shared):
                tree, size = PrefixNode(node.tokens), shared
                trees.append((tree, size))
            tree.children.append(branch)
            trees[-1] = (tree, size + length)
    return trees


def join_rows(rows: Sequence[TreeAsRow]) -> TreeAsRow:
    """Several rows as one, no token of which sees those of another."""
    if len(rows) == 1:
        return rows[0]
    joined = TreeAsRow([], [], [], [], plain=False)
    for row in rows:
        start = len(joined.tokens)
        joined.tokens.extend(row.tokens)
        joined.positions.extend(row.positions)
        joined.until.extend(start + stop for stop in row.until)
        joined.queries.extend(
            ContinuationQuery(start + place, tokens, request) for place, tokens, request in row.queries
        )
    return joined


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeAttentionMask(AttentionMask):
    """The attention mask of rows of trees: `mask` (B, Q, K) says what positions alone do not.

    `bias_BQK`: on a CPU, the same as an addend in float32: its fused attention would make one at every layer.
    """

    mask: torch.Tensor
    bias_BQK: torch.Tensor | None

    @property
    def triangular(self) -> bool:
        """True: nodes come after those above them."""
        return True

    @property
    def mask_BQK(self) -> torch.Tensor:
        """Which keys each query sees: its own node's and those of the nodes above, up to itself."""
        return self.mask

    def kernel_mask_B1QK(self, dtype: torch.dtype) -> torch.Tensor:
        """The addend where there is one of this type."""
        has_bias = self.bias_BQK is not None and self.bias_BQK.dtype == dtype
        return self.bias_B1QK(dtype) if has_bias else self.mask_B1QK

    def bias_B1QK(self, dtype: torch.dtype) -> torch.Tensor:
        """The mask as an addend to scores: 0 where a query sees a key, else -inf."""
        if self.bias_BQK is None or self.bias_BQK.dtype != dtype:
            return AttentionMask.bias_B1QK(self, dtype)
        return self.bias_BQK[:, None]

    def rows(self, start: int, stop: int) -> TreeAttentionMask:
        """The part for the queries start..stop-1, without the keys after them: nodes come after those above them."""
        return TreeAttentionMask(
            query_positions_BQ=self.query_positions_BQ[:, start:stop],
            key_positions_BK=self.key_positions_BK[:, :stop],
            plain=False,
            length=self.length,
            mask=self.mask[:, start:stop, :stop],
            bias_BQK=None if self.bias_BQK is None else self.bias_BQK[:, start:stop, :stop],
        )


def attention_mask(rows: Sequence[TreeAsRow], longest: int, device: torch.device) -> AttentionMask:
    """Of rows that are filled up on the right to `longest` tokens, which see themselves and each other, and which no
    token of a row sees."""
    if all(row.plain for row in rows):  # what comes later changes nothing before it: padding need not be told from it
        positions_1T = torch.arange(longest, device=device)[None]
        return AttentionMask(query_positions_BQ=positions_1T, key_positions_BK=positions_1T, plain=True, length=longest)
    positions_BT = torch.from_numpy(pad_rows([row.positions for row in rows], longest, 0)).to(device)
    until_BT = torch.from_numpy(pad_rows([row.until for row in rows], longest, longest)).to(device)
    places_T = torch.arange(longest, device=device)
    mask_BTT = (places_T[:, None] < until_BT[:, None, :]) & (places_T <= places_T[:, None])
    bias_BTT = torch.zeros(mask_BTT.shape).masked_fill_(~mask_BTT, float("-inf")) if device.type == "cpu" else None
    return TreeAttentionMask(
        query_positions_BQ=positions_BT,
        key_positions_BK=positions_BT,
        plain=False,
        length=longest,
        mask=mask_BTT,
        bias_BQK=bias_BTT,
    )


def pad_rows(rows: Sequence[Sequence[int]], longest: int, padding: int) -> np.ndarray:
    """Rows (B, T) with `padding` on the right."""
    found_BT = np.full((len(rows), longest), padding)
    held_BT = np.arange(longest) < np.array([len(row) for row in rows])[:, None]
    found_BT[held_BT] = [value for row in rows for value in row]
    return found_BT
