"""Log-probabilities of the answers in trees of tokens: each node is read once, many nodes at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from plumbline.allocator import keep_memory
from plumbline.cli import PlumblineError
from plumbline.evaluate.prefixes import Node, Row
from plumbline.model.cache import Cache
from plumbline.model.context import ForwardContext
from plumbline.model.decoder import Decoder
from plumbline.model.visibility import Visibility

#: Tokens in one forward pass: as many as keep the device busy, and make passes of rows of nearly one length.
BATCH_TOKENS = {"cpu": 8192, "cuda": 65536}
#: Logits that exist at once: few on a CPU, where what fits its caches is fastest.
LOGITS = {"cpu": 2**20, "cuda": 2**28}
#: What a pass more costs, and so how much padding may be in one: so many tokens (weights are read again), and so many
#: multiplications, each token having one for each parameter (calls of torch).
PASS_TOKENS = 100
PASS = {"cpu": 6e8, "cuda": 3e11}
#: Keys and values that are copied for the rows of one pass, for each of its tokens.
KEYS_PER_TOKEN = 16
#: States agree within this share of the largest: float32, in another order of sums.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class _Row:
    """A node, and which row of the pass before it goes on from."""

    above: int
    node: Node


class Reader:
    """A decoder that reads trees of tokens.

    `in_parts`: whether what follows a common beginning may be read after it, and beside padding. It is tried out, once:
    where a component's result depends on how long the call is (n = "sequence"), rows are read whole, each in a pass
    with others of its length.
    """

    def __init__(self, model: Decoder, *, batch_tokens: int | None, padding: int) -> None:
        """`padding`: a token to fill rows up with."""
        self.model = model
        self.device = model.embedding.device
        self.batch_tokens = batch_tokens or BATCH_TOKENS.get(self.device.type, BATCH_TOKENS["cuda"])
        self.padding = padding
        parameters = sum(value.numel() for value in model.parameters())
        self.most_padding = PASS_TOKENS + PASS.get(self.device.type, PASS["cuda"]) / parameters
        if self.device.type == "cpu":
            keep_memory()
        self.most_states = max(1, LOGITS.get(self.device.type, LOGITS["cuda"]) // model.spec.vocabulary)
        self.in_parts = self._try()

    @torch.inference_mode()
    def scores(self, roots: Sequence[Node], requests: int) -> list[tuple[float, bool]]:
        """(log-probability in nats, whether every token is the likeliest) of each request.

        Raises:
            PlumblineError: a log-probability is no number.
        """
        asked = _Asked()
        self._read([_Row(0, node) for node in roots], None, asked)
        self._answer(asked)
        return asked.totals(requests)

    def _read(self, rows: list[_Row], before: Cache | None, asked: _Asked) -> None:
        """Read nodes that go on from `before`, and all below them."""
        for batch in self._batches(rows, before):
            nodes = [row.node for row in batch]
            below = [_Row(index, child) for index, node in enumerate(nodes) for child in node.children]
            cache = Cache() if below else None
            if before is not None:
                above_B = torch.tensor([row.above for row in batch], device=self.device)
                cache = before.branch(above_B, last=not below)
            hidden_BTD = self._hidden([node.tokens for node in nodes], cache)
            self._ask(nodes, hidden_BTD, asked)
            if below:
                self._read(below, cache, asked)

    def _hidden(self, rows: Sequence[Row], cache: Cache | None) -> torch.Tensor:
        """Last hidden states (B, T, D) of rows of tokens, the longest first, padded on the right."""
        lengths_B1 = np.array([len(row) for row in rows])[:, None]
        places_T = np.arange(len(rows[0]))
        filled_BT = places_T < lengths_B1
        tokens_BT = np.full(filled_BT.shape, self.padding)
        tokens_BT[filled_BT] = [token for row in rows for token in row]
        # What comes later changes nothing before it: padding on the right must only be told from tokens where
        # something goes on from them, or where it would have positions beyond the context.
        told = cache is not None and not filled_BT.all()
        padding_BT = torch.from_numpy(~filled_BT).to(self.device) if told else None
        given_BT = torch.from_numpy(tokens_BT).to(self.device)
        visibility = Visibility.of(given_BT, padding_BT, cache.visibility if cache is not None else None)
        if cache is not None:
            cache.visibility = visibility
        return self.model.hidden(given_BT, ForwardContext(visibility=visibility, cache=cache))

    def _ask(self, nodes: Sequence[Node], hidden_BTD: torch.Tensor, asked: _Asked) -> None:
        """Keep what something is asked of, each state once; the head is for many passes together."""
        length = hidden_BTD.shape[1]
        questions = [(row * length + ask.place, ask) for row, node in enumerate(nodes) for ask in node.asked]
        if not questions:
            return
        counts = [len(ask.tokens) for _, ask in questions]
        firsts_A = np.repeat([first for first, _ in questions] - np.cumsum(counts) + counts, counts)
        places_S, states_A = np.unique(firsts_A + np.arange(len(firsts_A)), return_inverse=True)
        asked.states.append(hidden_BTD.flatten(0, 1)[torch.from_numpy(places_S).to(self.device)])
        asked.rows.append(states_A + asked.held)
        asked.tokens.append(np.array([token for _, ask in questions for token in ask.tokens]))
        asked.requests.append(np.repeat([ask.request for _, ask in questions], counts))
        asked.held += len(places_S)
        if asked.held >= self.most_states:
            self._answer(asked)

    def _answer(self, asked: _Asked) -> None:
        """The head is the widest product of a small model: only what is asked goes through it, some at a time."""
        if not asked.held:
            return
        states_SD, rows_A = torch.cat(asked.states), np.concatenate(asked.rows)
        order_A = np.argsort(rows_A, kind="stable")
        rows_A, tokens_A = rows_A[order_A], np.concatenate(asked.tokens)[order_A]
        asked.answered.append(np.concatenate(asked.requests)[order_A])
        given = torch.from_numpy(np.stack([rows_A, tokens_A])).to(self.device)
        for start in range(0, asked.held, self.most_states):
            first, stop = np.searchsorted(rows_A, [start, start + self.most_states])
            part_A, targets_A = given[0, first:stop] - start, given[1, first:stop]
            logits_SV = self.model.logits(states_SD[start : start + self.most_states])
            asked.right.append(logits_SV.argmax(1)[part_A] == targets_A)
            asked.scores.append(logits_SV.log_softmax(1)[part_A, targets_A])
        asked.clear()

    def _batches(self, rows: list[_Row], before: Cache | None) -> Iterator[list[_Row]]:
        """Longest first, so that a batch's rows are of nearly one length and memory peaks at the start."""
        keys = before.visibility.length if before is not None and before.visibility is not None else 0
        most_rows = KEYS_PER_TOKEN * self.batch_tokens // max(keys, 1)
        batch: list[_Row] = []
        padding = 0
        for row in sorted(rows, key=lambda row: len(row.node.tokens), reverse=True):
            if batch:
                longest = len(batch[0].node.tokens)
                padding += longest - len(row.node.tokens)
                full = (len(batch) + 1) * longest > self.batch_tokens or len(batch) >= most_rows
                if full or padding > (self.most_padding if self.in_parts else 0):
                    yield batch
                    batch, padding = [], 0
            batch.append(row)
        if batch:
            yield batch

    @torch.inference_mode()
    def _try(self) -> bool:
        """Whether rows read in parts, beside padding, have the states that they have read whole and alone."""
        spec = self.model.spec
        longest = min(14, spec.context)
        tokens = [(7 * place + 1) % spec.vocabulary for place in range(longest)]
        rows = [tuple(tokens), tuple(tokens[: longest // 2]), tuple(tokens[2 : longest // 2])]
        cuts = [longest // 2 - 2, longest // 2 - 2, 1]
        whole = [self._hidden([row], None)[0] for row in rows]
        cache = Cache()
        self._hidden([row[:cut] for row, cut in zip(rows, cuts)], cache)
        found_BTD = self._hidden(
            [row[cut:] for row, cut in zip(rows, cuts)], cache.branch(torch.arange(len(rows), device=self.device))
        )
        for states_TD, part_TD, cut in zip(whole, found_BTD, cuts):
            apart = (part_TD[: len(states_TD) - cut] - states_TD[cut:]).abs().amax()
            if not bool(apart <= TOLERANCE * states_TD.abs().amax()):
                return False
        return True


@dataclass(slots=True)
class _Asked:
    """States of which tokens are asked (`rows` are numbers of states, `held` how many there are), and what was
    answered, which stays on its device until all is."""

    states: list[torch.Tensor] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)
    tokens: list[np.ndarray] = field(default_factory=list)
    requests: list[np.ndarray] = field(default_factory=list)
    held: int = 0
    scores: list[torch.Tensor] = field(default_factory=list)
    right: list[torch.Tensor] = field(default_factory=list)
    answered: list[np.ndarray] = field(default_factory=list)

    def clear(self) -> None:
        """Forget the questions."""
        for kept in (self.states, self.rows, self.tokens, self.requests):
            kept.clear()
        self.held = 0

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
        return [(float(total), not bool(some)) for total, some in zip(totals, wrong)]
