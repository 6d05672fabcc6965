"""Reads log-probabilities of the answers in trees of tokens: each node is read once, many trees at a time."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from plumbline.core.errors import PlumblineError
from plumbline.data.progress import ProgressCounter
from plumbline.evaluate.prefix_tree_rows import TreeAsRow, attention_mask, join_rows, make_row, pad_rows, split_trees
from plumbline.evaluate.prefix_trees import PrefixNode, TokenSegment, trees
from plumbline.model.allocator import keep_memory
from plumbline.model.cache import DecodingCache
from plumbline.model.context import ForwardContext
from plumbline.model.cpu_matmul import varied_shapes
from plumbline.model.decoder import Decoder

#: Tokens in one forward pass: as many as keep the device busy, and on a CPU as fit its caches.
BATCH_TOKENS = {"cpu": 2048, "cuda": 65536}
#: Rows are filled up to a multiple of so many tokens, and states that are wanted to one of so many: products make a
#: kernel for each shape that they have not met.
ROW_STEP, STATES_STEP = 8, 128
#: Pairs of a query and a key in one forward pass: masks are made of them.
BATCH_PAIRS = {"cpu": 2**22, "cuda": 2**28}
#: Logits that exist at once: few on a CPU, where what fits its caches is fastest.
LOGITS = {"cpu": 2**20, "cuda": 2**28}
#: What a pass more costs, and so how much padding may be in one that nothing fills up: so many tokens (weights are read
#: again), and so many multiplications, each token having one for each parameter (calls of torch).
PASS_TOKENS = 100
PASS = {"cpu": 2e8, "cuda": 3e11}
#: States agree within this share of the largest: float32, in another order of sums.
TOLERANCE = 1e-4


class PrefixTreeReader:
    """A decoder that reads trees of tokens.

    Attributes:
        padded: whether rows may be read in a pass with longer ones, which is tested once: if a component's result
            depends on how long the call is (n = "sequence"), rows are read whole, each in a pass with others of its
            length.
        shared: whether what rows begin with is read once. Not where a component remembers more of earlier tokens than
            keys and values: other branches of a tree are not earlier tokens.
    """

    def __init__(self, model: Decoder, *, batch_tokens: int | None, padding: int) -> None:
        """`padding`: a token to fill rows up with."""
        self.model = model
        self.device = model.embedding.device
        kind = self.device.type if self.device.type in BATCH_TOKENS else "cuda"
        self.batch_tokens, self.batch_pairs = batch_tokens or BATCH_TOKENS[kind], BATCH_PAIRS[kind]
        self.padding = padding
        parameters = sum(value.numel() for value in model.parameters())
        self.most_padding = PASS_TOKENS + PASS[kind] / parameters
        spec, layers = model.spec, sum(value.numel() for value in model.blocks.parameters())
        # A key costs a query two products as wide as a head, in each head and layer; a token, each parameter.
        self.worth = layers / (2 * spec.layers * spec.heads * spec.head_width)
        if self.device.type == "cpu":
            keep_memory()
        self.most_states = max(1, LOGITS[kind] // spec.vocabulary)
        self.padded = self.shared = False
        self._test_sharing()

    @torch.inference_mode()
    @varied_shapes()
    def scores(self, segments: Sequence[TokenSegment], requests: int) -> list[tuple[float, bool]]:
        """(log-probability in nats, whether every token is the likeliest) of each request.

        Raises:
            PlumblineError: a log-probability is not a number.
        """
        queries = _Queries()
        rows = [make_row(tree) for tree in split_trees(trees(segments, shared=self.shared), self.worth)]
        with ProgressCounter("scored", "tokens", sum(len(row.tokens) for row in rows)) as progress:
            for batch in self._batches(rows):
                self._read_states(batch, queries)
                if queries.count >= self.most_states:
                    self._score_states(queries)
                progress.add(sum(len(row.tokens) for row in batch))
            self._score_states(queries)
        return queries.totals(requests)

    def _compute_states(self, rows: Sequence[TreeAsRow], selected_S: torch.Tensor | None = None) -> torch.Tensor:
        """Last hidden states (B, T, D) of rows, the longest first, padded on the right; or (1, S, D) of the wanted."""
        longest = self._pad_length(rows)
        tokens_BT = torch.from_numpy(pad_rows([row.tokens for row in rows], longest, self.padding)).to(self.device)
        mask = attention_mask(rows, longest, self.device)
        return self.model.hidden(tokens_BT, ForwardContext(attention_mask=mask, cache=None, selected_S=selected_S))

    def _pad_length(self, rows: Sequence[TreeAsRow]) -> int:
        """Tokens in each of `rows`, padding included."""
        longest = len(rows[0].tokens)
        if not self.padded:
            return longest
        stepped = -(-longest // ROW_STEP) * ROW_STEP
        return stepped if stepped <= self.model.spec.context or longest > self.model.spec.context else longest

    def _read_states(self, rows: Sequence[TreeAsRow], queries: _Queries) -> None:
        """Read rows that have queries, and store the hidden states that the queries need, each once; the output head
        is applied later, to the states of many passes together."""
        length = self._pad_length(rows)
        questions = [(index * length + ask.place, ask) for index, row in enumerate(rows) for ask in row.queries]
        counts = [len(ask.tokens) for _, ask in questions]
        if not questions:
            return
        firsts_A = np.repeat([first for first, _ in questions] - np.cumsum(counts) + counts, counts)
        places_S, states_A = np.unique(firsts_A + np.arange(len(firsts_A)), return_inverse=True)
        selected_S = np.pad(places_S, (0, -len(places_S) % STATES_STEP), mode="edge")
        states_SD = self._compute_states(rows, torch.from_numpy(selected_S).to(self.device))[0]
        queries.states.append(states_SD[: len(places_S)])
        queries.rows.append(states_A + queries.count)
        queries.tokens.append(np.array([token for _, ask in questions for token in ask.tokens]))
        queries.requests.append(np.repeat([ask.request for _, ask in questions], counts))
        queries.count += len(places_S)

    def _score_states(self, queries: _Queries) -> None:
        """Apply the output head, the widest product of a small model, to the states that are needed, some at a time."""
        if not queries.count:
            return
        states_SD, rows_A = torch.cat(queries.states), np.concatenate(queries.rows)
        order_A = np.argsort(rows_A, kind="stable")
        rows_A, tokens_A = rows_A[order_A], np.concatenate(queries.tokens)[order_A]
        queries.answered.append(np.concatenate(queries.requests)[order_A])
        rows_and_tokens = torch.from_numpy(np.stack([rows_A, tokens_A])).to(self.device)
        for start in range(0, queries.count, self.most_states):
            first, stop = np.searchsorted(rows_A, [start, start + self.most_states])
            part_A, targets_A = rows_and_tokens[0, first:stop] - start, rows_and_tokens[1, first:stop]
            logits_SV = self.model.logits(states_SD[start : start + self.most_states])
            queries.right.append(_is_likeliest(logits_SV, part_A, targets_A))
            queries.scores.append(logits_SV.log_softmax(1)[part_A, targets_A])
        queries.clear()

    def _batches(self, rows: list[TreeAsRow]) -> Iterator[list[TreeAsRow]]:
        """Longest first, so that a batch's rows are of nearly one length and memory peaks at the start; shorter ones
        stand where padding would.

        On a GPU many rows that share nothing are read apart: there are kernels that know such rows alone.
        """
        plain = [row for row in rows if row.plain]
        fill = self.shared
        if plain and self.device.type != "cpu" and sum(len(row.tokens) for row in plain) > self.batch_tokens:
            if len(plain) < len(rows):
                yield from self._batches(plain)
                yield from self._batches([row for row in rows if not row.plain])
                return
            fill = False
        most_padding = self.most_padding if self.padded else 0
        queue = sorted(rows, key=lambda row: len(row.tokens))
        sizes = [len(row.tokens) for row in queue]
        batch: list[TreeAsRow] = []
        padding = 0
        while queue:
            longest = self._pad_length(batch or queue[-1:])
            if batch:
                tokens, gap = (len(batch) + 1) * longest, longest - sizes[-1]
                full = tokens > self.batch_tokens or tokens * longest > self.batch_pairs
                # Beside much longer ones, attention costs a short row more than a pass of its own.
                if full or (2 * gap > longest if fill else padding + gap > most_padding):
                    yield batch
                    batch, padding = [], 0
                    continue
            parts, gap = [queue.pop()], longest - sizes.pop()
            while fill and sizes and sizes[0] <= gap:
                place = bisect_right(sizes, gap) - 1
                parts.append(queue.pop(place))
                gap -= sizes.pop(place)
            padding += gap
            batch.append(join_rows(parts))
        if batch:
            yield batch

    @torch.inference_mode()
    def _test_sharing(self) -> None:
        """Find out whether rows have the states that they have alone, beside padding and in trees."""
        longest = min(14, self.model.spec.context)
        if longest < 2:
            return  # rows of one token need no padding, and have no common beginnings
        tokens = [(7 * place + 1) % self.model.spec.vocabulary for place in range(longest)]
        begin, end = tuple(tokens[: longest // 2]), tuple(tokens[longest // 2 :])
        rows = [(*begin, *end), begin[:1], (*begin, *end[2:])]
        row_states = [self._compute_states([make_row(PrefixNode(row))])[0] for row in rows]

        def matches(states_TD: torch.Tensor, row: int) -> bool:
            distance = (states_TD[: len(row_states[row])] - row_states[row]).abs().amax()
            return bool(distance <= TOLERANCE * row_states[row].abs().amax())

        self.padded = True
        long_TD, short_TD = self._compute_states([make_row(PrefixNode(row)) for row in rows[:2]])
        self.padded = matches(long_TD, 0) and matches(short_TD, 1)
        cache = DecodingCache()
        self.model(torch.tensor([begin], device=self.device), cache=cache)
        if cache.memory or not self.padded:
            return
        tree = make_row(PrefixNode(begin, children=[PrefixNode(end), PrefixNode(end[2:])]))
        tree_TD, short_TD = self._compute_states([tree, make_row(PrefixNode(rows[1]))])
        branch_TD = torch.cat([tree_TD[: len(begin)], tree_TD[longest:]])
        self.shared = matches(tree_TD, 0) and matches(branch_TD, 2) and matches(short_TD, 1)


def _is_likeliest(logits_SV: torch.Tensor, states_A: torch.Tensor, tokens_A: torch.Tensor) -> torch.Tensor:
    """Whether greedy decoding takes each token (A,) after its state: of equal logits, the first token's.

    On a CPU the largest logit takes a fourth of the time of its place, which is looked up where it is the token's.
    """
    if logits_SV.device.type != "cpu":
        return logits_SV.max(1).indices[states_A] == tokens_A
    right_A = logits_SV.amax(1)[states_A] == logits_SV[states_A, tokens_A]
    return right_A.masked_scatter(right_A, logits_SV[states_A[right_A]].max(1).indices == tokens_A[right_A])


@dataclass(slots=True)
class _Queries:
    """Hidden states with the tokens to be scored after them (`rows` are indices of states, `count` their number), and
    the scores so far, which stay on their device until all are computed."""

    states: list[torch.Tensor] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)
    tokens: list[np.ndarray] = field(default_factory=list)
    requests: list[np.ndarray] = field(default_factory=list)
    count: int = 0
    scores: list[torch.Tensor] = field(default_factory=list)
    right: list[torch.Tensor] = field(default_factory=list)
    answered: list[np.ndarray] = field(default_factory=list)

    def clear(self) -> None:
        """Forget the questions."""
        for values in (self.states, self.rows, self.tokens, self.requests):
            values.clear()
        self.count = 0

    def totals(self, requests: int) -> list[tuple[float, bool]]:
        """(log-probability, whether every token is the likeliest) by request."""
        if not self.answered:
            return [(0.0, True)] * requests
        requests_A = np.concatenate(self.answered)
        totals = np.bincount(requests_A, torch.cat(self.scores).double().cpu().numpy(), requests)
        wrong = np.bincount(requests_A, ~torch.cat(self.right).cpu().numpy(), requests)
        for request, total in enumerate(totals):
            if not math.isfinite(total):
                raise PlumblineError(
                    f"the model gives a log-probability of {total} to an answer of "
                    f"{int((requests_A == request).sum())} tokens, which is no number to compare answers by: look at "
                    "its weights and at the precision it was trained in, and train it again where they are at fault"
                )
        return [(float(total), not bool(mistakes)) for total, mistakes in zip(totals, wrong)]
