"""Cuts the words of texts that are too long for the training of a tokenizer, and counts them.

Each merge of byte-pair encoding moves what is behind it in the word, so that training takes time with the square of
the longest word: of 3 MB without a boundary (DNA, one key held down) it never ended. SentencePiece leaves out lines of
more than 4,192 bytes for the same reason; here a longer word is cut, since a corpus may hold nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tokenizers import pre_tokenizers

#: Characters of the longest word that is trained on whole.
LONGEST_WORD = 4096

#: A letter or number and then neither, or a letter and then a digit: a word ends between them. Where such places are
#: near one another no word is long.
_BOUNDARY = re.compile(r"[^\W_]\W|[A-Za-z]\d")


class WordCutter:
    """Cuts words that are longer than `LONGEST_WORD`; a word is one of GPT-2's pre-tokenisation.

    Attributes:
        words: how many words were cut so far.
    """

    def __init__(self) -> None:
        self.words = 0
        self._pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)

    def cut(self, texts: Iterable[str]) -> Iterator[str]:
        """Yield the texts, those with a long word in several parts, which end inside such words; joined they are the
        texts."""
        for text in texts:
            start = 0
            for begin, end in self._find_long_words(text):
                self.words += 1
                for place in range(begin + LONGEST_WORD, end, LONGEST_WORD):
                    yield text[start:place]
                    start = place
            yield text[start:]

    def _find_long_words(self, text: str) -> list[tuple[int, int]]:
        """Where long words begin and end. The library looks for words only where no boundary is at hand."""
        # A long word holds at least one whole stretch.
        stretch = LONGEST_WORD // 2
        stretches = range(0, len(text) - stretch + 1, stretch)
        if all(_BOUNDARY.search(text, place, place + stretch) for place in stretches):
            return []
        places = (place for _, place in self._pre_tokenizer.pre_tokenize_str(text))
        return [(begin, end) for begin, end in places if end - begin > LONGEST_WORD]
