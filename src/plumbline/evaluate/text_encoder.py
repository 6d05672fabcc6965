"""Tokenises prompts, many of which share words: an item's context stands before each of its answers."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from plumbline.data.word_encoder import WordEncoder, exact

_DTYPE = np.dtype("<u4")


class TextEncoder:
    """Encodes texts as `tokenizer` does, without adding special tokens; words that were met before are looked up."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        # A memory of words takes special tokens for text: what holds one goes to the tokenizer itself.
        plain = Tokenizer.from_str(tokenizer.to_str())
        plain.encode_special_tokens = True
        self._words = WordEncoder(plain, _DTYPE) if exact(plain) else None
        self._special = [token["content"] for token in json.loads(tokenizer.to_str())["added_tokens"]]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text."""
        if self._words is None:
            return self._encode_whole(texts)
        special = [any(content in text for content in self._special) for text in texts]
        from_words = iter(self._words.encode([text for text, is_special in zip(texts, special) if not is_special]))
        from_tokenizer = iter(self._encode_whole([text for text, is_special in zip(texts, special) if is_special]))
        return [
            next(from_tokenizer) if is_special else np.frombuffer(next(from_words), _DTYPE).tolist()
            for is_special in special
        ]

    def _encode_whole(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]
