"""Encodes texts by remembering the tokens of their words: encoding the same words again is most of the work.

Byte-level BPE never merges across its pre-tokens, and GPT-2's pre-tokenisation has a boundary wherever something that
is no whitespace is followed by whitespace, and looks neither behind nor beyond it. A text cut at such places has the
tokens of its pieces, which may hold several pre-tokens each. What whitespace is differs between versions of Unicode:
pieces are cut at ASCII's alone, and a text with any other is encoded whole.

New words are encoded together, joined into one text: one call that gives one row of ids costs half as much as one that
gives an object a word. Every token stands for so many bytes, which shows whose it is.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from itertools import chain, filterfalse, pairwise

import numpy as np
import tokenizers

#: Words that are remembered at most, and characters of one that is: some 300 MB together; then it begins anew. Longer
#: ones (texts without blanks) hardly come again.
MOST, LONGEST = 1_000_000, 64

#: New words that are encoded as one text. The library does several texts on several cores.
_TOGETHER = 4096

#: Whitespace of ASCII, and what follows it up to the next.
_SPACE = " \t\n\v\f\r"
_WORD = re.compile(r"[ \t-\r]*[^ \t-\r]+|[ \t-\r]+")
#: What any version of Unicode calls whitespace, or Python does, except for ASCII's.
_OTHER_ASCII = "\x1c\x1d\x1e\x1f"
_OTHER = re.compile("[^\\S \t-\r]|[\u180e\u200b\ufeff]")
_PRE_TOKENIZER = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}


def exact(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether this tokenizer's tokens of a text are exactly those of its words.

    That holds of byte-level BPE with GPT-2's pre-tokenisation and without normaliser, dropout, truncation or padding.
    """
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


class WordEncoder:
    """An encoder of texts to the bytes of their ids, which remembers the ids of words."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, dtype: np.dtype) -> None:
        self._tokenizer, self._dtype = tokenizer, dtype
        self._exact = exact(tokenizer)
        self._known: dict[str, bytes] = {}

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """Encode each text to its ids, as consecutive numbers of the encoder's type."""
        if not self._exact:
            return self._encode_whole(texts)
        pieces = [None if _has_other_whitespace(text) else _WORD.findall(text) for text in texts]
        looked_up = [words for words in pieces if words is not None]
        new = set(filterfalse(self._known.__contains__, chain.from_iterable(looked_up)))
        if len(self._known) + len(new) > MOST:
            self._known.clear()
            new = set(chain.from_iterable(looked_up))
        self._learn(new)
        look_up = self._known.__getitem__
        whole = iter(self._encode_whole([text for text, words in zip(texts, pieces) if words is None]))
        encoded = [next(whole) if words is None else b"".join(map(look_up, words)) for words in pieces]
        for word in new:
            if len(word) > LONGEST:
                del self._known[word]
        return encoded

    def _learn(self, new: set[str]) -> None:
        """Remember these words. One that begins with whitespace and ends with something else may stand between others
        like it: there is a boundary before it and one behind."""
        between = [word for word in new if word[0] in _SPACE and word[-1] not in _SPACE]
        ids = self._side_by_side(between) if between else []
        if ids is None:
            between, ids = [], []
        others = list(new.difference(between))
        self._known.update(zip(between, ids, strict=True))
        self._known.update(zip(others, self._encode_whole(others), strict=True))

    def _side_by_side(self, words: list[str]) -> list[bytes] | None:
        """The ids of each word, from all of them as texts; None if the tokens are not of the words' bytes, of a
        vocabulary that lacks some for instance."""
        texts = ["".join(words[start : start + _TOGETHER]) for start in range(0, len(words), _TOGETHER)]
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        ids_N = np.array(list(chain.from_iterable(encoding.ids for encoding in encodings)), dtype=np.int64)
        ends_N = np.cumsum(self._lengths[ids_N])
        ends_W = np.cumsum([len(word.encode()) for word in words], dtype=np.int64)
        counts_W = np.searchsorted(ends_N, ends_W) + 1
        if not np.isin(ends_W, ends_N).all() or ends_N[-1] != ends_W[-1]:
            return None
        return _split_bytes(ids_N.astype(self._dtype), counts_W)

    @functools.cached_property
    def _lengths(self) -> np.ndarray:
        """Bytes that each id stands for: byte-level BPE writes a byte as a character."""
        entries = self._tokenizer.get_vocab(with_added_tokens=True)
        lengths_V = np.zeros(max(entries.values(), default=-1) + 1, dtype=np.int64)
        lengths_V[list(entries.values())] = [len(entry) for entry in entries]
        return lengths_V

    def _encode_whole(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids_N = np.array([token for encoding in encodings for token in encoding.ids], dtype=self._dtype)
        return _split_bytes(ids_N, np.cumsum([len(encoding) for encoding in encodings]))


def _split_bytes(ids_N: np.ndarray, stops: np.ndarray) -> list[bytes]:
    """The bytes of consecutive ids up to each of `stops`, in turn."""
    content = ids_N.tobytes()
    places = [0, *(stops * ids_N.itemsize).tolist()]
    return [content[start:stop] for start, stop in pairwise(places)]


def _has_other_whitespace(text: str) -> bool:
    """Whether a text has whitespace that is not ASCII's."""
    if any(character in text for character in _OTHER_ASCII):
        return True
    return not text.isascii() and _OTHER.search(text) is not None
