"""Tokens of texts by a memory of their words: text repeats itself, and encoding a word again is most of the work.

Byte-level BPE never merges across its pre-tokens, and GPT-2's pre-tokenisation has a boundary wherever something that
is no whitespace is followed by whitespace, and looks neither behind nor beyond it. A text cut at such places has the
tokens of its pieces, which may hold several pre-tokens each. What whitespace is differs between versions of Unicode:
pieces are cut at ASCII's alone, and a text with any other is encoded whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np
import tokenizers

#: Words that are remembered at most, and characters of one that is: some 300 MB together; then it begins anew. Longer
#: ones (texts without blanks) hardly come again.
MOST, LONGEST = 1_000_000, 64

#: Whitespace of ASCII, and what follows it up to the next.
_WORD = re.compile(r"[ \t-\r]*[^ \t-\r]+|[ \t-\r]+")
#: What any version of Unicode calls whitespace, or Python does, but for ASCII's.
_OTHER_ASCII = "\x1c\x1d\x1e\x1f"
_OTHER = re.compile("[^\\S \t-\r]|[\u180e\u200b\ufeff]")
_PRE_TOKENIZER = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}


def exact(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether the tokens of a text are those of its words: byte-level BPE with GPT-2's pre-tokenisation, nothing
    before, after or beside it."""
    parts = json.loads(tokenizer.to_str())
    pre_tokenizer = parts["pre_tokenizer"] or {}
    return (
        parts["model"]["type"] == "BPE"
        and not parts["model"].get("dropout")
        and {key: pre_tokenizer.get(key) for key in _PRE_TOKENIZER} == _PRE_TOKENIZER
        and parts["normalizer"] is None
        and parts["truncation"] is None
        and parts["padding"] is None
        # Special ones are text like any other where `encode_special_tokens` is set.
        and tokenizer.encode_special_tokens
        and all(token["special"] for token in parts["added_tokens"])
    )


class Words:
    """Encodes texts to the bytes of their ids."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, dtype: np.dtype) -> None:
        self._tokenizer, self._dtype = tokenizer, dtype
        self._exact = exact(tokenizer)
        self._known: dict[str, bytes] = {}

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """The ids of each text as `dtype`, side by side."""
        if not self._exact:
            return self._whole(texts)
        pieces = [None if _unusual(text) else _WORD.findall(text) for text in texts]
        every = set[str]().union(*(words for words in pieces if words is not None))
        new = list(every - self._known.keys())
        if len(self._known) + len(new) > MOST:
            self._known.clear()
            new = list(every)
        self._known.update(zip(new, self._whole(new), strict=True))
        known = self._known.__getitem__
        whole = iter(self._whole([text for text, words in zip(texts, pieces) if words is None]))
        found = [next(whole) if words is None else b"".join(map(known, words)) for words in pieces]
        for word in new:
            if len(word) > LONGEST:
                del self._known[word]
        return found

    def _whole(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        counts = [len(encoding) for encoding in found]
        ids = np.array([token for encoding in found for token in encoding.ids], dtype=self._dtype).tobytes()
        size = self._dtype.itemsize
        stops = np.cumsum(counts) * size
        return [ids[stop - count * size : stop] for count, stop in zip(counts, stops.tolist(), strict=True)]


def _unusual(text: str) -> bool:
    """Whether a text has whitespace that is not ASCII's."""
    if any(character in text for character in _OTHER_ASCII):
        return True
    return not text.isascii() and _OTHER.search(text) is not None
