"""Arranges rows of tokens as trees, so that what several of them begin with is read once: the context of an item's
answers, a passage with its questions, a sentence up to the word that differs.

Trees are made of the tokens alone, after they were cut to the context. Two rows that lost different numbers of tokens
on the left begin with different ones, and share nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

#: Rows go on from common tokens where these are at least so many: fewer are not worth a node.
SHORTEST = 8

Row = tuple[int, ...]


class TokenSegment(NamedTuple):
    """Tokens that go through the model at once, and how many at their end are scored.

    `request` is the index of the request that the score is added to. `tokens` holds one more than the model reads:
    the last is only predicted.
    """

    request: int
    tokens: list[int]
    scored: int


class ContinuationQuery(NamedTuple):
    """After reading the token at `place` of a node, and those that follow, how likely is each of `tokens`?"""

    place: int
    tokens: list[int]
    request: int


@dataclass(slots=True)
class PrefixNode:
    """Tokens that are read after those of the nodes above."""

    tokens: Row
    queries: list[ContinuationQuery] = field(default_factory=list)
    children: list[PrefixNode] = field(default_factory=list)


def trees(segments: Iterable[TokenSegment], *, shared: bool = True) -> list[PrefixNode]:
    """The roots of trees in which every segment is a path.

    `shared`: whether rows go on from what they begin with together. Without it every row is a root by itself; rows that
    are equal are one in either case (answers of one token).
    """
    rows: dict[Row, list[TokenSegment]] = defaultdict(list)
    for segment in segments:
        rows[tuple(segment.tokens[:-1])].append(segment)
    ordered = sorted(rows)
    common = [_count_common(*pair) if shared else 0 for pair in pairwise(ordered)]
    roots: list[PrefixNode] = []

    def grow(first: int, stop: int, base: int, path: list[tuple[int, PrefixNode]], siblings: list[PrefixNode]) -> None:
        """Add the rows first..stop-1, all of which begin with the `base` tokens of `path`, to `siblings`."""
        start = first
        for end in range(first + 1, stop + 1):
            if end < stop and common[end - 1] - base >= SHORTEST:
                continue
            depth = min(common[start : end - 1], default=len(ordered[start]))
            if depth > base:  # else the path itself is the row: it is what another answer begins with
                siblings.append(PrefixNode(ordered[start][base:depth]))
                child_path = [*path, (base, siblings[-1])]
            else:
                child_path = path
            if end - start > 1:
                grow(start, end, depth, child_path, siblings[-1].children)
            else:
                _add_queries(rows[ordered[start]], child_path)
            start = end

    grow(0, len(ordered), 0, [], roots)
    return roots


def _count_common(row: Sequence[int], other: Sequence[int]) -> int:
    """With how many equal tokens two rows begin."""
    for index, (token, other_token) in enumerate(zip(row, other)):
        if token != other_token:
            return index
    return min(len(row), len(other))


def _add_queries(segments: list[TokenSegment], path: list[tuple[int, PrefixNode]]) -> None:
    """Assign each row's requests to the tree nodes that compute them; `path` is (tokens above, node)."""
    for request, tokens, scored in segments:
        first = len(tokens) - 1 - scored
        for base, node in path:
            start, stop = max(first, base), base + len(node.tokens)
            if start < stop:
                node.queries.append(ContinuationQuery(start - base, tokens[start + 1 : stop + 1], request))
