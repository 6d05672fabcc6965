"""Counts evaluation items of which `GRAM` words in a row stand in a training text too.

That is the measure of GPT-3's appendix C (Brown et al. 2020, arXiv:2005.14165: 13-grams of words, without casing and
punctuation). A word is a run of letters and digits, in lower case. Each text of an item (its question, each of its
answers) is compared by itself; an item of which none has `GRAM` words cannot be compared, and is counted apart. That a
text is found says that the words were seen, not that the answer was.

Of the items a hash of each `GRAM` words is held, and of each the two neighbouring words that are rarest among the
items; the training texts are streamed past. So memory depends on the items alone, some 3 MB a thousand of them. A
gigabyte of text takes some two minutes of a processor: of a larger corpus the first `MOST_BYTES` are read, which are a
sample, since documents are shuffled.
"""

from __future__ import annotations

import json
import re
import sys
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

#: Words in a row that count as the same text, and bytes of training texts that are read, at most.
GRAM, MOST_BYTES = 13, 1 << 30
_WORD = re.compile(r"[^\W_]+")


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
    """Where words of items are looked up: hashes of `GRAM` words in order, the item of each, and the anchors.

    Attributes:
        anchors: two neighbouring words -> the places that they have in such a row of words.
        compared: how many items have so many words.
    """

    def __init__(self, items: Sequence[Any]) -> None:
        texts = [(number, _share(split_words(text))) for number, item in enumerate(items) for text in _list_texts(item)]
        frequency = Counter(hash(pair) for _, words in texts for pair in pairwise(words))
        hashes, owners = array("q"), array("q")
        self.anchors: dict[tuple[str, str], set[int]] = {}
        for number, words in texts:
            rareness = [frequency[hash(pair)] for pair in pairwise(words)]
            for start in range(len(words) - GRAM + 1):
                row, of_row = words[start : start + GRAM], rareness[start : start + GRAM - 1]
                place = of_row.index(min(of_row))
                self.anchors.setdefault((row[place], row[place + 1]), set()).add(place)
                hashes.append(hash(tuple(row)))
                owners.append(number)
        order = np.argsort(np.frombuffer(hashes, dtype=np.int64), kind="stable") if hashes else np.zeros(0, np.int64)
        self._hashes, self._owners = np.array(hashes, np.int64)[order], np.array(owners, np.int64)[order]
        self.compared = len(np.unique(self._owners))

    def find_items(self, words: list[str]) -> list[int]:
        """List the items that share a row of words with a text."""
        anchors, last, rows = self.anchors, len(words) - GRAM, array("q")
        for position, pair in enumerate(pairwise(words)):
            if pair in anchors:
                for place in anchors[pair]:
                    if 0 <= (start := position - place) <= last:
                        rows.append(hash(tuple(words[start : start + GRAM])))
        if not rows:
            return []
        begins, ends = (np.searchsorted(self._hashes, np.array(rows, np.int64), side) for side in ("left", "right"))
        places = [np.arange(begin, end) for begin, end in zip(begins, ends) if end > begin]
        return np.unique(self._owners[np.concatenate(places)]).tolist() if places else []


def _share(words: list[str]) -> list[str]:
    return [sys.intern(word) for word in words]


def _list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _list_texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _list_texts(each)
