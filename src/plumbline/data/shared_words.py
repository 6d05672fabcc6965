"""Counts evaluation items of which `GRAM` words in a row stand in a training text too.

That is the measure of GPT-3's appendix C (Brown et al. 2020, arXiv:2005.14165: 13-grams of words, without casing and
punctuation). A word is a run of letters and digits, in lower case. Each text of an item (its question, each of its
answers) is compared by itself; an item of which none has `GRAM` words cannot be compared, and is counted apart. That a
text is found says that the words were seen, not that the answer was.

Of the items a hash of each `GRAM` words is held; the training texts are streamed past. So memory depends on the items
alone. A gigabyte of text takes a processor two minutes: of a larger corpus the first `MOST_BYTES` are read, which are
a sample, since documents are shuffled.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

#: Words in a row that count as the same text, and bytes of training texts that are read, at most.
GRAM, MOST_BYTES = 13, 1 << 30
_WORD = re.compile(r"[^\W_]+")
#: What a word is that no item has, and what stands between texts.
_NONE = -1
#: An odd number, by which a row's hash is multiplied before each word's number is added, modulo 2 ** 64.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
#: So many first bits of a hash are looked up before the hash itself, which most hashes of a text do not get to.
_FIRST_BITS = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedWords:
    """How many items there are, how many of them have words enough to be compared, and how many share them.

    Attributes:
        percent_read: of the bytes of the training texts.
    """

    items: int
    compared: int
    shared: int
    percent_read: float
    words: int = GRAM

    def describe(self) -> str:
        """Describe it in a line."""
        line = f"{self.shared:,} of {self.compared:,} items have {self.words} words in a row with a training text"
        short, part = self.items - self.compared, self.percent_read
        line = f"{line}; {short:,} more are shorter" if short else line
        return line if part == 100 else f"{line}; {part:.2g} % of the training texts were read"

    def facts(self) -> dict[str, float]:
        """What a JSON file states of it."""
        return asdict(self)


def split_words(text: str) -> list[str]:
    """Split a text into the words that are compared."""
    return _WORD.findall(text.lower())


def count(items: Sequence[Any], documents: Path, most_bytes: int = MOST_BYTES) -> SharedWords:
    """Count the items that share words with a training text.

    Args:
        items: each as JSON has it, with texts at any depth.
        documents: the training texts, JSONL with a `text` in each line.
        most_bytes: of them that are read, at most, but for the end of a line.
    """
    index, shared, read = _ItemIndex(items), set[int](), 0
    with open(documents, "rb") as lines:
        for line in lines:
            shared.update(index.find_items(split_words(json.loads(line)["text"])))
            read += len(line)
            if read >= most_bytes:
                break
    percent = 100 * read / max(documents.stat().st_size, 1)
    return SharedWords(items=len(items), compared=index.compared, shared=len(shared), percent_read=percent)


class _ItemIndex:
    """Where rows of `GRAM` words are looked up: the hash of each row of an item, in order, and whose it is.

    Attributes:
        compared: how many items have so many words.
    """

    def __init__(self, items: Sequence[Any]) -> None:
        self._places: dict[str, int] = {}
        words, owners = array("q"), array("q")
        for number, item in enumerate(items):
            for text in _list_texts(item):
                words.extend([self._places.setdefault(word, len(self._places)) for word in split_words(text)])
                words.append(_NONE)
                owners.extend(repeat(number, len(words) - len(owners)))
        self._numbers = np.random.default_rng(0).integers(2**64, size=len(self._places) + 1, dtype=np.uint64)
        starts, hashes = self._hash_rows(np.array(words, np.int64))
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._owners = hashes[order], np.array(owners, np.int64)[starts[order]]
        self._first_bits = np.zeros(1 << _FIRST_BITS, bool)
        self._first_bits[hashes >> np.uint64(64 - _FIRST_BITS)] = True
        self.compared = len(np.unique(self._owners))

    def find_items(self, words: list[str]) -> list[int]:
        """List the items that share a row of words with a text."""
        _, hashes = self._hash_rows(np.fromiter(map(self._places.get, words, repeat(_NONE)), np.int64, len(words)))
        hashes = hashes[self._first_bits[hashes >> np.uint64(64 - _FIRST_BITS)]]
        begins, ends = (np.searchsorted(self._hashes, hashes, side) for side in ("left", "right"))
        places = [np.arange(begin, end) for begin, end in zip(begins, ends) if end > begin]
        return np.unique(self._owners[np.concatenate(places)]).tolist() if places else []

    def _hash_rows(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where rows begin that have no `_NONE` among their `GRAM` words, and their hashes."""
        count = len(words) - GRAM + 1
        if count <= 0:
            return np.zeros(0, np.int64), np.zeros(0, np.uint64)
        missing = np.concatenate([[0], np.cumsum(words == _NONE)])
        starts = np.flatnonzero(missing[GRAM:] == missing[:-GRAM])
        numbers, hashes = self._numbers[words], np.zeros(count, np.uint64)
        for place in range(GRAM):
            hashes *= _FACTOR
            hashes += numbers[place : place + count]
        return starts, hashes[starts]


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _list_texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _list_texts(each)
