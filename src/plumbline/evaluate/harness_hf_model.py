"""Lets the harness's `hf` model score answers that are longer than the model's context, as `CheckpointLM` does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from lm_eval.models.huggingface import HFLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window


class HuggingFaceLM(HFLM):
    """A model in Hugging Face form. The harness's own ends with a bare assertion where an answer alone is longer than
    the context; here it is scored in the harness's rolling windows, as `CheckpointLM` does."""

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool | None = None) -> list[tuple[float, bool]]:
        """Score as the harness does, with progress bars only on a terminal."""
        quiet = not sys.stderr.isatty() if disable_tqdm is None else disable_tqdm
        return super().loglikelihood(requests, disable_tqdm=quiet)

    def _loglikelihood_tokens(
        self, requests: Sequence[tuple[Any, list[int], list[int]]], *arguments: Any, **keywords: Any
    ) -> list[tuple[float, bool]]:
        """(log-probability in nats, whether greedy decoding gives it) of each (key, context, continuation)."""
        fits = [len(continuation) <= self.max_length for _, _, continuation in requests]
        short_requests = [request for request, fit in zip(requests, fits) if fit]
        scores = iter(super()._loglikelihood_tokens(short_requests, *arguments, **keywords) if short_requests else [])
        return [next(scores) if fit else self._score_in_windows(*request[1:]) for request, fit in zip(requests, fits)]

    def _score_in_windows(self, context: list[int], continuation: list[int]) -> tuple[float, bool]:
        """Of one answer at a time: the harness takes two windows of the same tokens for one, whatever each predicts."""
        windows = map(make_disjoint_window, get_rolling_token_windows(continuation, context[-1], self.max_length, 1))
        parts = super()._loglikelihood_tokens([(None, *window) for window in windows], disable_tqdm=True)
        return sum(score for score, _ in parts), all(greedy for _, greedy in parts)
