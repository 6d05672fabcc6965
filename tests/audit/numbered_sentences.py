"""Finds the sentences with a number in the text of a paper, by a written rule.

The rule (`plumbline.audit.sentences.RULE`) is applied to a text conversion of the paper that is not distributed; what
is kept of a sentence is its place and its numbers (`sentences.yaml`), never its words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: Numbers that are kept as text; of more, their count and a short hash.
MOST = 10

#: Number words that count as numbers.
WORDS = (
    "zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|half|twice|double|"
    "doubled|halved|twofold|threefold|fourfold"
)

_NUMBER = re.compile(
    rf"\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?(?:e-?\d+)?|(?<![-\w])(?:{WORDS})\b", re.IGNORECASE | re.ASCII
)
_NAMED = "Abstract|References|Limitations|Reproducibility"
_HEADING = re.compile(
    rf"^(?:#+ .*|Appendix [A-Z] .{{3,80}}[^.:;]|(?:\d+|[A-Z])(?:\.\d+)* [A-Z].{{0,88}}[^.:;]|"
    rf"\d+\.\d+ \d\w* .{{0,80}}[^.:;]|{_NAMED})$"
)
_ALONE = re.compile(rf"^(?:#+ .*|{_NAMED})$")
_NUMBERED = re.compile(r"^(?:Appendix )?((?:\d+|[A-Z])(?:\.\d+)*) ")
_ABBREVIATION = re.compile(
    r"(?:\b(?:al|e\.g|i\.e|vs|cf|Eq|Eqs|Fig|Sec|resp|approx|Resp|St|No|w\.r\.t|i\.i\.d)|(?<!Appendix )\b[A-Z])\.$"
)
_END = re.compile(r"(?<=[.!?])[\"”’)*¹²³]*\s+(?=[A-Z0-9(\[\"“*§$¹])")
_WORD = re.compile(r"^[\"“‘(*]*[A-Za-z][A-Za-z’'-]+[,.:;)\"”*]*$")
_FRONT, _SECOND_LANGUAGE = re.compile(r"\A---\n.*?\n---\n", re.DOTALL), re.compile("[\u4e00-\u9fff]")
_TWICE = re.compile(r"(\d+\.\d+)\1")
_CAPTIONED = re.compile(r"^Table \d+:")
_REFERENCES, _ITEM = re.compile(r"^(?:#+ )?References$"), re.compile(r"^\s*(?:[-•]|\d+\.)\s")


@dataclass(frozen=True, slots=True)
class NumberedSentence:
    """A sentence with a number: its section, the paragraph in it, its place in the paragraph, and its numbers."""

    section: str
    paragraph: int
    place: int
    numbers: tuple[str, ...]

    @property
    def at(self) -> str:
        """The place as `sentences.yaml` writes it."""
        return f"{self.section} p{self.paragraph} s{self.place}"


def numbered_sentences(text: str) -> list[NumberedSentence]:
    """Every sentence with a number of a paper's text, in its order, by `RULE`."""
    sentences = []
    for section, paragraph, body in _paragraphs(text):
        for place, sentence in enumerate(_sentences(body), start=1):
            numbers = tuple(_NUMBER.findall(sentence))
            if numbers and _latin(sentence):
                sentences.append(NumberedSentence(section, paragraph, place, numbers))
    return sentences


def _paragraphs(text: str) -> Iterator[tuple[str, int, str]]:
    """Section, number and text of each paragraph that can hold sentences."""
    # A conversion that writes a formula twice writes 0.25 as "0.250.25".
    text = _TWICE.sub(r"\1", _FRONT.sub("", text))
    section, number, left_out = "lead", 0, "\nAbstract\n" in text
    for block in _blocks(text):
        lines = [line.strip() for line in block]
        if len(lines) == 1 and _HEADING.match(lines[0]):
            if lines[0].startswith("#") and _SECOND_LANGUAGE.search(lines[0]):
                continue  # a heading in a second language
            numbered = _NUMBERED.match(lines[0])
            section = numbered[1] if numbered else lines[0].lstrip("# ").strip("*").lower()
            left_out, number = bool(_REFERENCES.match(lines[0])), 0
            continue
        if left_out:
            continue
        caption = next((place for place, line in enumerate(lines) if _CAPTIONED.match(line)), len(lines))
        lines = lines[: caption + 1]  # the rows of a table follow its caption
        for body in _join_lines(line for line in lines if "\t" not in line and not _is_translation(line)):
            number += 1
            yield section, number, body


def _latin(text: str) -> bool:
    pieces = text.split()
    latin = sum(bool(_WORD.match(piece)) for piece in pieces)
    return latin >= 3 and 3 * latin >= len(pieces)


def _is_translation(line: str) -> bool:
    """Whether a line repeats another in a second language."""
    return bool(_SECOND_LANGUAGE.search(line)) and not _latin(line)


def _blocks(text: str) -> Iterator[list[str]]:
    """Runs of lines without an empty one; a run that goes on after a page's end is one with what went before."""
    runs: list[list[str]] = []
    for run in re.split(r"\n\s*\n", text):
        *apart, lines = _apart([line for line in run.split("\n") if line.strip()])
        runs += [part for part in apart if part]
        if not lines:
            continue
        before = runs[-1][-1].rstrip() if runs else "."
        if lines[0][:1].islower() and before[-1:] not in ".!?:;" and "\t" not in before and len(before) > 60:
            runs[-1][-1] = before[:-1] + lines[0] if before.endswith("-") else f"{before} {lines[0]}"
            runs[-1] += lines[1:]
        else:
            runs.append(lines)
    yield from runs


def _apart(lines: list[str]) -> list[list[str]]:
    """A run of lines, cut before and after each heading that stands in it without an empty line; the last may be
    empty."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if _ALONE.match(line.strip()):
            parts += [[line], []]
        else:
            parts[-1].append(line)
    return parts


def _join_lines(lines: Iterator[str]) -> Iterator[str]:
    """The lines of a paragraph as one, but items of a list apart."""
    text = ""
    for line in lines:
        if _ITEM.match(line) and text:
            yield text
            text = ""
        text = f"{text} {line}".strip()
    if text:
        yield text


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(text):
        if not _ABBREVIATION.search(text[start : end.start()].rstrip('"”’)*')):
            yield text[start : end.start()].strip()
            start = end.end()
    yield text[start:].strip()


def shorten(numbers: Sequence[str]) -> str:
    """The numbers of a sentence as `sentences.yaml` keeps them: as printed, or how many and a short hash."""
    text = " ".join(numbers)
    if len(numbers) <= MOST:
        return text
    return f"{len(numbers)} numbers, {hashlib.sha256(text.encode()).hexdigest()[:8]}"
