"""Reads how far the audit reads a paper: its sentences with a number, each read by rows or left out with a reason.

`sentences.yaml` has a sentence's place and numbers, not its text; `RULE` defines what counts as one. A sentence is read
where a number that stands in it enters a row: named, with the same digits, and with the sentence's section among the
places where it is printed. An equal number elsewhere reads nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from plumbline.core.structs import Absent, ClosedStruct, Fault
from plumbline.published.interval_arithmetic import Cell
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.specs.yaml_files import read_struct

Reason = Literal[
    "citation",
    "reference",
    "name",
    "formula",
    "setting",
    "other work",
    "counted",
    "measured",
    "described",
    "words",
]

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
    "described": "a row rests on what the sentence describes, and none of its numbers enters one",
    "words": "a finding about words is about it",
}

#: Number words and the digits that they stand for.
_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
_DIGITS = {word: str(value) for value, word in enumerate(_WORDS.split())} | {
    **{"half": "0.5", "twice": "2", "double": "2", "doubled": "2"},
    **{"twofold": "2", "threefold": "3", "fourfold": "4"},
}

#: Columns of a list of numbers that state where each is printed.
_PLACES = ("source", "where")


@dataclass(frozen=True, kw_only=True, slots=True)
class TextNumber:
    """A number of the running text that enters a row: what is printed, and where; no place: anywhere in the text."""

    text: str
    source: str = ""

    def stands_in(self, section: str) -> bool:
        """Whether the section is one of the places: `sec 4.1, Limitations` are two, `App E fig 2 caption` is in E."""
        places = [place.strip().casefold() for place in self.source.split(",")]
        places = [place.removeprefix("sec ").removeprefix("app ") for place in places]
        return not self.source or any(f"{place} ".startswith(f"{section.casefold()} ") for place in places)


class SentenceOfAudit(ClosedStruct, frozen=True, kw_only=True):
    """An entry of `sentences.yaml`: place, numbers, and what reads the sentence or why nothing does.

    `read` names numbers of the text that stand in the sentence and enter a row (`list_text_numbers`).
    """

    at: Annotated[
        str,
        Meta(
            pattern=r"^.+ p[1-9][0-9]* s[1-9][0-9]*\Z",
            description="is no place; write a section, a paragraph and a sentence, such as abstract p1 s2",
        ),
    ]
    numbers: Annotated[str, Meta(min_length=1, max_length=160)]
    read: Annotated[tuple[Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_.#]*\Z")], ...], Meta(min_length=1)] = ()
    left_out: Absent[Reason] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.read) == bool(self.left_out):
            raise Fault("give either `read` or `left_out`, one of the two")

    @property
    def section(self) -> str:
        """The section of its place."""
        return self.at.rsplit(" p", 1)[0]

    def prints(self, text: str) -> bool:
        """Whether the sentence prints the number, digit by digit; where only a count of its numbers is kept, any."""
        if " numbers, " in self.numbers:
            return True
        tokens = [_write_plainly(token) for token in self.numbers.split()]
        mantissa, power, exponent = text.lower().lstrip("+-").partition("e")
        parts = [*[mantissa] * (mantissa != "1"), "10", exponent.lstrip("+-")]
        runs = [tokens[start : start + len(parts)] for start in range(len(tokens))]
        return _write_plainly(text) in tokens or (bool(power) and parts in runs)


class SentencesFile(ClosedStruct, frozen=True):
    """studies/<study>/sentences.yaml, the sentences with a number of its paper, without their words."""

    sentences: Annotated[list[SentenceOfAudit], Meta(min_length=1)]


def read_sentences(path: Path) -> list[SentenceOfAudit]:
    """Read the sentences with a number of a paper, in its order; empty if there is no file.

    Raises:
        PlumblineError: something in the file cannot be meant.
    """
    return list(read_struct(path, SentencesFile).sentences) if path.is_file() else []


def list_text_numbers(published: PrintedNumbers, read_cells: Collection[Cell]) -> dict[str, TextNumber]:
    """The numbers of a paper's text that enter a row, by name: an id of `prose.csv`, or `list.row.column`.

    Lists are the files of the text's numbers; a printed table (`table1.csv`, ...) is none, and a number of one that the
    text repeats is another number.
    """
    prose = published.prose() if published.path("prose").is_file() else {}
    numbers = {
        name: TextNumber(text=number.text, source=number.source)
        for name, number in prose.items()
        if ("prose", name, "printed") in read_cells
    }
    for name in published.tables():
        cells = {} if name.startswith("table") else published.cells(name)
        for row, texts in cells.items():
            place = next((texts[column] for column in _PLACES if column in texts), "")
            for column, text in texts.items():
                if (name, row, column) in read_cells:
                    numbers[f"{name}.{row}.{column}"] = TextNumber(text=text, source=place)
    return numbers


def count_sentences(sentences: Collection[SentenceOfAudit]) -> dict[str, int]:
    """How many sentences with a number there are, are read by rows, and are left out for each reason."""
    reasons = Counter(sentence.left_out for sentence in sentences if sentence.left_out)
    left_out = reasons.total()
    read_count = len(sentences) - left_out
    return {"sentences": len(sentences), "read": read_count, "left out": left_out} | {
        reason: reasons[reason] for reason in REASONS
    }


def _write_plainly(text: str) -> str:
    """A number without sign, separators and powers of ten, with the digits that it was printed with."""
    digits = _DIGITS.get(text.lower(), text.replace(",", "").lstrip("+-"))
    try:
        return format(Decimal(digits), "f")
    except InvalidOperation:
        return digits
