"""Reads how far the audit reads a paper: its sentences with a number, each read by rows or left out with a reason.

`sentences.yaml` has a sentence's place and numbers, not its words; `numbered_sentences.RULE` says what counts as one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.specs.yaml_files import read_checked

#: Why no row reads a sentence with a number.
REASONS = {
    "citation": "years and names of cited works",
    "reference": "numbers of sections, tables, statements, equations or steps",
    "name": "numbers in names: sizes of models, suites, tokenizers, devices",
    "formula": "numbers inside a definition, a statement or a proof, from which no printed number follows",
    "setting": "a setting that is printed there and decides no other printed number",
    "other work": "a number of another work",
    "counted": "counts what the sentence itself or its neighbour names",
    "measured": "measured, printed once, and nothing is said to follow from it",
    "words": "a finding about words is about it",
}

#: Numbers that are kept as text; of more, their count and a short hash.
MOST = 10


@dataclass(frozen=True, slots=True)
class SentenceOfAudit:
    """An entry of `sentences.yaml`: place, numbers, and what reads the sentence or why nothing does.

    `read` names numbers of `prose.csv`, printed tables, or rows of the audit.
    """

    at: str
    numbers: str
    read: tuple[str, ...] = ()
    left_out: str = ""


def read_sentences(path: Path) -> list[SentenceOfAudit]:
    """Read the sentences with a number of a paper, in its order; empty where there is no file.

    Raises:
        PlumblineError: the file does not match its schema.
    """
    if not path.is_file():
        return []
    entries = read_checked(path, "sentences")["sentences"]
    return [
        SentenceOfAudit(entry["at"], entry["numbers"], tuple(entry.get("read", ())), entry.get("left_out", ""))
        for entry in entries
    ]


def kept(numbers: Sequence[str]) -> str:
    """The numbers of a sentence as `sentences.yaml` keeps them: as printed, or how many and a short hash."""
    text = " ".join(numbers)
    if len(numbers) <= MOST:
        return text
    return f"{len(numbers)} numbers, {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def count_sentences(sentences: Collection[SentenceOfAudit]) -> dict[str, int]:
    """How many sentences with a number there are, are read by rows, and are left out for each reason."""
    reasons = Counter(sentence.left_out for sentence in sentences)
    read = reasons.pop("", 0)
    left = len(sentences) - read
    return {"sentences": len(sentences), "read": read, "left out": left} | {
        reason: reasons[reason] for reason in REASONS
    }
