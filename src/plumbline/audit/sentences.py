"""Reads how far the audit reads a paper: its sentences with a number, each read by rows or left out with a reason.

`sentences.yaml` has a sentence's place and numbers, not its text; `RULE` defines what counts as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from plumbline.core.structs import Absent, ClosedStruct, Fault
from plumbline.specs.yaml_files import read_struct

Reason = Literal["citation", "reference", "name", "formula", "setting", "other work", "counted", "measured", "words"]

#: What counts as a sentence with a number; the test that holds the lists against papers applies it.
RULE = (
    "A sentence with a number is a sentence of the running text, a caption, a footnote or an item of a list with three "
    "words or more in Latin letters and with a digit or a number word (zero, two to twenty, tens, hundred, thousand, "
    "half, twice, double, -fold; not 'one', 'first'). A third of what stands between spaces must be words. Headings, "
    "rows of tables, formulas on lines of their own, the list of references, the names above the abstract and lines "
    "that repeat another in a second language are none. A sentence ends at . ! or ? before a capital, a digit, a "
    "bracket or a quote, not after an abbreviation; a formula inside it counts with its digits."
)

#: Why no row reads a sentence with a number.
REASONS: dict[Reason, str] = {
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


class SentenceOfAudit(ClosedStruct, frozen=True, kw_only=True):
    """An entry of `sentences.yaml`: place, numbers, and what reads the sentence or why nothing does.

    `read` names numbers of `prose.csv`, printed tables, or rows of the audit.
    """

    at: Annotated[
        str,
        Meta(
            pattern=r"^.+ p[1-9][0-9]* s[1-9][0-9]*\Z",
            description="is no place; write a section, a paragraph and a sentence, such as abstract p1 s2",
        ),
    ]
    numbers: Annotated[str, Meta(min_length=1, max_length=160)]
    read: Annotated[tuple[Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_.]*\Z")], ...], Meta(min_length=1)] = ()
    left_out: Absent[Reason] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.read) == bool(self.left_out):
            raise Fault("give either `read` or `left_out`, one of the two")


class SentencesFile(ClosedStruct, frozen=True):
    """studies/<study>/sentences.yaml, the sentences with a number of its paper, without their words."""

    sentences: Annotated[list[SentenceOfAudit], Meta(min_length=1)]


def read_sentences(path: Path) -> list[SentenceOfAudit]:
    """Read the sentences with a number of a paper, in its order; empty if there is no file.

    Raises:
        PlumblineError: something in the file cannot be meant.
    """
    return list(read_struct(path, SentencesFile).sentences) if path.is_file() else []


def count_sentences(sentences: Collection[SentenceOfAudit]) -> dict[str, int]:
    """How many sentences with a number there are, are read by rows, and are left out for each reason."""
    reasons = Counter(sentence.left_out for sentence in sentences if sentence.left_out)
    left_out = reasons.total()
    read = len(sentences) - left_out
    return {"sentences": len(sentences), "read": read, "left out": left_out} | {
        reason: reasons[reason] for reason in REASONS
    }
