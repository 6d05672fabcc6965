"""Cuts held-out documents into sentences, and finds the spots at which a question can be asked."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json
from plumbline.data.verify_files import verify_documents

#: Characters: short enough for a demo model's context of 128 tokens to hold an item.
SENTENCE = (40, 160)
_CONTEXT = 240
_CANDIDATES = 60


@dataclass(frozen=True, slots=True)
class SentenceInContext:
    """A sentence of a document and the sentences before it that make its context."""

    document: int
    sentence: int
    context: str
    text: str


class ProxyMaterial:
    """Held-out documents cut into sentences, and the spots at which a question can be asked."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.sentences = [_sentences(text) for text in texts]
        self.spots = [spot for index in range(len(texts)) for spot in self._spots(index)]

    @classmethod
    def read(cls, path: Path) -> ProxyMaterial:
        """From a JSONL file of documents {"id", "source", "text"}.

        Raises:
            PlumblineError: the file is absent, or a line of it is not a document.
        """
        if not path.is_file():
            raise PlumblineError(f"--documents: there is no file {path}; proxy items are made from it")
        verify_documents(path)
        texts = []
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                texts.append(parse_json(line)["text"])
            except (json.JSONDecodeError, KeyError, TypeError) as error:
                raise PlumblineError(f"{path} line {number}: not a document with a 'text' ({error!r})") from error
        return cls(texts)

    def _spots(self, document: int) -> list[SentenceInContext]:
        found = []
        sentences = self.sentences[document]
        for index in range(1, len(sentences)):
            if not SENTENCE[0] <= len(sentences[index]) <= SENTENCE[1]:
                continue
            start, length = index, 0
            while start > 0 and length + len(sentences[start - 1]) <= _CONTEXT:
                start -= 1
                length += len(sentences[start]) + 1
            if start < index:
                found.append(SentenceInContext(document, index, " ".join(sentences[start:index]), sentences[index]))
        return found

    def others(self, spot: SentenceInContext, count: int, rng: random.Random, *, near: bool) -> list[str] | None:
        """`count` sentences that do not follow `spot`, of nearly its length: of the same document if `near`, else of
        other documents. None where there are too few."""
        pool = [
            other.text
            for other in rng.sample(self.spots, min(len(self.spots), 20 * _CANDIDATES if near else _CANDIDATES))
            if (other.document == spot.document) is near and abs(other.sentence - spot.sentence) > 1
        ]
        pool = sorted({text for text in pool if text != spot.text and text not in spot.context})
        pool.sort(key=lambda text: abs(len(text) - len(spot.text)))
        return pool[:count] if len(pool) >= count else None


def _sentences(text: str) -> list[str]:
    flat = re.sub(r"\s+", " ", text).strip()
    return [piece for piece in re.split(r"(?<=[.!?])[\"”']? (?=[A-Z\"“])", flat) if piece]
