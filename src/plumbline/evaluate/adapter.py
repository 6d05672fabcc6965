"""The harness's view of one of our models: log-likelihoods of continuations, in float32, batched by length."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from tokenizers import Tokenizer

from plumbline.cli import PlumblineError
from plumbline.model.context import ForwardContext
from plumbline.model.decoder import Decoder
from plumbline.model.visibility import Visibility

#: Names under which tokenizers keep the token that separates documents.
END_OF_TEXT = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>")

#: Small on a CPU, where what fits its caches is fastest; as many as keep it busy on an accelerator.
BATCH_TOKENS = {"cpu": 2048, "cuda": 65536}


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens that go through the model at once, and how many at their end are scored.

    `request` is the index of the request that the score is added to. `tokens` holds one more than the model reads:
    the last is only predicted.
    """

    request: int
    tokens: list[int]
    scored: int


def end_of_text(tokenizer: Tokenizer) -> int:
    """The token that separates documents.

    Raises:
        PlumblineError: the tokenizer has none.
    """
    for name in END_OF_TEXT:
        if (token := tokenizer.token_to_id(name)) is not None:
            return token
    raise PlumblineError(f"the tokenizer has none of {list(END_OF_TEXT)} to begin a text with")


class CheckpointLM(TemplateLM):
    """A decoder and its tokenizer as a harness model.

    Args:
        model: the decoder. It is put into evaluation mode.
        context: the most tokens the model reads at once. Longer requests lose their left end, as in the harness's
            own models. A continuation longer than that is scored in the harness's rolling windows.
        batch_tokens: the most tokens, padding included, in one forward pass; default by device (`BATCH_TOKENS`).
        document_end: id of the token that separates documents, where it has none of the names in `END_OF_TEXT`.

    Attributes:
        truncated: number of requests so far that lost part of their context.

    Raises:
        PlumblineError: the tokenizer has no token that ends a text.
    """

    def __init__(
        self,
        model: Decoder,
        tokenizer: Tokenizer,
        *,
        context: int,
        device: str | torch.device = "cpu",
        batch_tokens: int | None = None,
        document_end: int | None = None,
    ) -> None:
        super().__init__()
        self.model = model.to(device).eval()
        self.encoder = tokenizer
        self.context = context
        self._device = torch.device(device)
        self.batch_tokens = batch_tokens or BATCH_TOKENS.get(self._device.type, BATCH_TOKENS["cuda"])
        self.truncated = 0
        self._eot = end_of_text(tokenizer) if document_end is None else document_end

    @property
    def eot_token_id(self) -> int:
        """The token that separates documents; it stands before a continuation that has no context."""
        return self._eot

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: object) -> list[int]:
        """Token ids of a text, never with special tokens added."""
        return self.encoder.encode(string, add_special_tokens=False).ids

    def loglikelihood(self, requests: Sequence, disable_tqdm: bool = True) -> list[tuple[float, bool]]:
        """(log-probability in nats, whether greedy decoding gives it) of each (context, continuation)."""
        return super().loglikelihood(requests, disable_tqdm=disable_tqdm)

    def loglikelihood_rolling(self, requests: Sequence, disable_tqdm: bool = False) -> list[float]:
        """Log-probability (nats) of each whole text after the end-of-text token."""
        segments: list[Segment] = []
        for index, request in enumerate(requests):
            tokens = self.tok_encode(request.args[0])
            segments += self._windows(index, self.eot_token_id, tokens)
        return [score for score, _ in self._score(segments, len(requests))]

    def generate_until(self, requests: Sequence, disable_tqdm: bool = False) -> list[str]:
        """Refused: no suite of ours has a task that generates."""
        raise PlumblineError("tasks that generate text are not supported; every suite here scores given answers")

    def _loglikelihood_tokens(self, requests: Sequence, **kwargs: object) -> list[tuple[float, bool]]:
        """(log-probability in nats, whether greedy decoding gives it) of each (key, context, continuation)."""
        segments: list[Segment] = []
        for index, (_, context, continuation) in enumerate(requests):
            if len(continuation) > self.context:
                self.truncated += 1
                segments += self._windows(index, context[-1], continuation)
                continue
            tokens = context + continuation
            self.truncated += len(tokens) > self.context + 1
            segments.append(Segment(index, tokens[-(self.context + 1) :], len(continuation)))
        results = self._score(segments, len(requests))
        for (key, _, _), result in zip(requests, results):
            self.cache_hook.add_partial("loglikelihood", key, result)
        return results

    def _windows(self, request: int, prefix: int, tokens: list[int]) -> Iterator[Segment]:
        windows = get_rolling_token_windows(tokens, prefix, self.context, 1)
        for context, predicted in map(make_disjoint_window, windows):
            yield Segment(request, context + predicted, len(predicted))

    @torch.inference_mode()
    def _score(self, segments: list[Segment], requests: int) -> list[tuple[float, bool]]:
        totals, greedy = [0.0] * requests, [True] * requests
        for batch in self._batches(segments):
            hidden_BTD = self._hidden([same[0].tokens[:-1] for same in batch])
            for row, same in enumerate(batch):
                for segment in same:
                    stop = len(segment.tokens) - 1
                    # The head is the widest product of a small model: only scored positions go through it.
                    logits_SV = self.model.logits(hidden_BTD[row, stop - segment.scored : stop])
                    targets_S = torch.tensor(segment.tokens[-segment.scored :], device=self._device)
                    chosen_S = logits_SV.gather(1, targets_S[:, None])[:, 0]
                    score = float((chosen_S - logits_SV.logsumexp(1)).sum())
                    if not math.isfinite(score):
                        raise PlumblineError(
                            f"the model gives a log-probability of {score} to an answer of {segment.scored} tokens, "
                            "which is no number to compare answers by: look at its weights and at the precision it "
                            "was trained in, and train it again where they are at fault"
                        )
                    totals[segment.request] += score
                    greedy[segment.request] &= bool((logits_SV.argmax(1) == targets_S).all())
        return list(zip(totals, greedy))

    def _hidden(self, rows: list[list[int]]) -> torch.Tensor:
        """Last hidden states (B, T, D) of rows of tokens, the longest first, padded on the right."""
        tokens_BT = torch.full((len(rows), len(rows[0])), self.eot_token_id)
        padding_BT = torch.ones_like(tokens_BT, dtype=torch.bool)
        for index, row in enumerate(rows):
            tokens_BT[index, : len(row)] = torch.tensor(row)
            padding_BT[index, : len(row)] = False
        tokens_BT, padding_BT = tokens_BT.to(self._device), padding_BT.to(self._device)
        visibility = Visibility.of(tokens_BT, padding_BT if len(rows[-1]) < len(rows[0]) else None, None)
        return self.model.hidden(tokens_BT, ForwardContext(visibility=visibility, cache=None))

    def _batches(self, segments: list[Segment]) -> Iterator[list[list[Segment]]]:
        """Rows of segments that the model reads the same tokens of (answers of one token share their context).

        Longest first, so that a batch's rows are of nearly one length and memory peaks at the start.
        """
        rows: dict[tuple[int, ...], list[Segment]] = defaultdict(list)
        for segment in segments:
            rows[tuple(segment.tokens[:-1])].append(segment)
        batch: list[list[Segment]] = []
        for tokens in sorted(rows, key=len, reverse=True):
            if batch and (len(batch) + 1) * (len(batch[0][0].tokens) - 1) > self.batch_tokens:
                yield batch
                batch = []
            batch.append(rows[tokens])
        if batch:
            yield batch
