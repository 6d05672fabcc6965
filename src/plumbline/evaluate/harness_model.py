"""Shows one of our models to the harness: log-likelihoods of continuations, in float32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from tokenizers import Tokenizer

from plumbline.core.errors import PlumblineError
from plumbline.evaluate.prefix_tree_reader import PrefixTreeReader
from plumbline.evaluate.prefix_trees import TokenSegment
from plumbline.evaluate.text_encoder import TextEncoder
from plumbline.model.decoder import Decoder

#: Names under which tokenizers keep the token that separates documents.
END_OF_TEXT = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>")


def end_of_text(tokenizer: Tokenizer) -> int:
    """Return the id of the token that separates documents.

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
        tokenizer: its tokenizer; as `TextEncoder`, what other models of it have met is not encoded again.
        context: the most tokens the model reads at once. Longer requests lose their left end, as in the harness's
            own models. A continuation longer than that is scored in the harness's rolling windows.
        batch_tokens: the most tokens, padding included, in one forward pass; default by device.
        document_end: id of the token that separates documents, where it has none of the names in `END_OF_TEXT`.

    Attributes:
        truncated: number of requests so far that lost part of their context.
        reader: what scores tokens; `reader.shared` says whether common beginnings are read once.

    Raises:
        PlumblineError: the tokenizer has no token that ends a text.
    """

    def __init__(
        self,
        model: Decoder,
        tokenizer: Tokenizer | TextEncoder,
        *,
        context: int,
        device: str | torch.device = "cpu",
        batch_tokens: int | None = None,
        document_end: int | None = None,
    ) -> None:
        super().__init__()
        self.texts = tokenizer if isinstance(tokenizer, TextEncoder) else TextEncoder(tokenizer)
        self.encoder = self.texts.tokenizer
        self.context = context
        self.truncated = 0
        self._eot = end_of_text(self.encoder) if document_end is None else document_end
        self.reader = PrefixTreeReader(model.to(device).eval(), batch_tokens=batch_tokens, padding=self._eot)
        self._encoded: dict[str, list[int]] = {}

    @property
    def eot_token_id(self) -> int:
        """The token that separates documents; it stands before a continuation that has no context."""
        return self._eot

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: object) -> list[int]:
        """Token ids of a text, never with special tokens added."""
        if (encoded := self._encoded.get(string)) is not None:
            return encoded
        return self.texts.encode([string])[0]

    def loglikelihood(self, requests: Sequence, disable_tqdm: bool = True) -> list[tuple[float, bool]]:
        """(log-probability in nats, whether greedy decoding gives it) of each (context, continuation)."""
        # The texts that the harness is about to encode one by one: each context, and each with its continuation.
        pairs = [request.args for request in requests]
        texts = list({text for context, answer in pairs for text in (context.rstrip(), context + answer)})
        self._encoded = dict(zip(texts, self.texts.encode(texts), strict=True))
        try:
            return super().loglikelihood(requests, disable_tqdm=disable_tqdm)
        finally:
            self._encoded = {}

    def loglikelihood_rolling(self, requests: Sequence, disable_tqdm: bool = False) -> list[float]:
        """Log-probability (nats) of each whole text after the end-of-text token."""
        segments: list[TokenSegment] = []
        for index, request in enumerate(requests):
            tokens = self.tok_encode(request.args[0])
            segments += self._windows(index, self.eot_token_id, tokens)
        return [score for score, _ in self.reader.scores(segments, len(requests))]

    def generate_until(self, requests: Sequence, disable_tqdm: bool = False) -> list[str]:
        """Refuse to generate text: no suite here has a task that does."""
        raise PlumblineError("tasks that generate text are not supported; every suite here scores given answers")

    def _loglikelihood_tokens(self, requests: Sequence, **kwargs: object) -> list[tuple[float, bool]]:
        """(log-probability in nats, whether greedy decoding gives it) of each (key, context, continuation).

        Raises:
            PlumblineError: a continuation of no tokens, or a log-probability that is no number.
        """
        segments: list[TokenSegment] = []
        for index, (key, context, continuation) in enumerate(requests):
            if not continuation:
                raise PlumblineError(
                    f"an answer has no token of its own: of {key[0]!r} and {key[1]!r} together the tokenizer makes no "
                    "more tokens than of the first alone; take the item out, or change where the one ends and the "
                    "other begins"
                )
            context = context or [self.eot_token_id]  # blanks alone, which the harness gives to the continuation
            if len(continuation) > self.context:
                self.truncated += 1
                segments += self._windows(index, context[-1], continuation)
                continue
            tokens = context + continuation
            self.truncated += len(tokens) > self.context + 1
            segments.append(TokenSegment(index, tokens[-(self.context + 1) :], len(continuation)))
        results = self.reader.scores(segments, len(requests))
        for (key, _, _), result in zip(requests, results):
            self.cache_hook.add_partial("loglikelihood", key, result)
        return results

    def _windows(self, request: int, prefix: int, tokens: list[int]) -> Iterator[TokenSegment]:
        windows = get_rolling_token_windows(tokens, prefix, self.context, 1)
        for context, predicted in map(make_disjoint_window, windows):
            yield TokenSegment(request, context + predicted, len(predicted))
