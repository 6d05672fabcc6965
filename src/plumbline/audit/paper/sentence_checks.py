"""Checks what a sentence of the paper says by itself: a change from one number to another, a test with its p.

A sentence is read by its words ("from 26.6 to 24.8, a 6.8 % reduction"; "t(28) = 2.20, p = .036"), never because a
number in it equals another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from plumbline.audit.paper.evaluate import load_function
from plumbline.audit.paper.evidence import meets
from plumbline.audit.paper.inside_cells import ends_of_formula
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.lines import Ends, ends_of
from plumbline.audit.paper.paper_source import Passage
from plumbline.audit.paper.printed_cell import apply_unit
from plumbline.published.expression import Expression, Given
from plumbline.published.printed_number import PrintedNumber, exact

#: Longest sentence that is read, and most of a paper.
LONGEST, SENTENCES = 1_500, 5_000

#: Share of a change within which another number is a slip; further off, the two numbers may be of something else.
NEAR = 0.5

#: Share of a p below which it is off by little.
SLIGHT = 0.05

_LOOKS = str.maketrans({"−": "-", "–": "-", "—": "-", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "→": ">"})
_DIGITS = r"(?>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_MULTIPLE = r"\s?(?P<{0}_unit>%|[KkMBT](?![a-zA-Z])|million|billion|trillion)?"
_FIRST, _SECOND = (rf"[$€£]?(?P<{name}>{_DIGITS}){_MULTIPLE.format(name)}" for name in ("first", "second"))
_OTHER_UNIT = r"(?:\s?(?!(?:and|or|to|in|on|at|for|while|but|with)\b)[A-Za-z][A-Za-z0-9]{0,11})?"
_PAIR = rf"from {_FIRST}{_OTHER_UNIT} to {_SECOND}{_OTHER_UNIT}"
_BY = (
    r"(?P<sign>[+-]?)(?P<change>(?>\d+(?:\.\d+)?))\s?"
    r"(?P<unit>%|x(?![a-z])|×|percent(?!age)|pp\b|(?:percentage |absolute )?points?)"
)
_NOUN = "(?:reduction|decrease|increase|improvement|gain|drop|speed-?up|saving|decline)"
_FILL = (
    r"(?:[\s,(:;=~≈-]|an?\b|or\b|i\.e\.|which is\b|that is\b|by\b|about\b|roughly\b|relative\b|absolute\b|"
    rf"{_NOUN} of\b)*"
)
#: Ways to write a change next to the two numbers that it is between.
_CHANGES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_PAIR}[\s,(]{_FILL}{_BY}(?!\w| (?:over|against|compared|than)\b)",
        rf"by (?:about |roughly )?{_BY}[\s,(]*{_PAIR}",
        rf"\ban? {_BY} (?:relative |absolute )?{_NOUN}(?: in(?: \w+){{1,4}})?[\s,(]*{_PAIR}",
        rf"\b{_BY} (?:faster|slower|smaller|larger|higher|lower|cheaper)[\s,(]*{_PAIR}",
        rf"(?<![\d.]){_FIRST} ?-?> ?{_SECOND} ?\({_BY}",
    )
)
#: What stands before a number that is no rounded one.
_HEDGE = re.compile(r"(?:up to|over|more than|at least|nearly|almost|less than|under|as much as|at most|[<>≤≥])\s*$")
_ABOUT = re.compile(r"about|roughly|[~≈]")

_POWER = r"(?:\s?[x×·]\s?10\^?\{?-?\d+\}?|e-?\d+)?"
_TEST = re.compile(
    r"(?<![A-Za-z\\_])(?P<kind>t|F|r|z|Z|χ\^?\{?2\}?|χ²)\s?(?:\(\s?(?P<df>[\d.]+)(?:\s?,\s?(?P<df2>(?:[nN]\s?=\s?)?[\d.]+))?\s?\))?"
    r"\s?=\s?(?P<value>-?\d*\.?\d+)\s?[,;]\s?p\s?(?P<sign>[=<>])\s?(?P<p>\d*\.?\d+" + _POWER + r")"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the paper, and where its paragraph stands."""

    text: str
    where: str


def split_sentences(passages: list[Passage]) -> list[Sentence]:
    """The sentences of a paper that have a digit, up to a limit."""
    sentences = []
    for passage in passages:
        for text in re.split(r"(?<=[a-z0-9%)][.!?])\s+(?=[A-Z(])", passage.text.translate(_LOOKS)):
            if any(map(str.isdigit, text)) and len(text) <= LONGEST:
                sentences.append(Sentence(text, passage.where))
    return sentences[:SENTENCES]


def check_sentences(sentences: list[Sentence], ledger: Ledger) -> int:
    """Check each sentence by itself; returns how many have something to check."""
    count = 0
    for sentence in sentences:
        rows = [*_list_changes(sentence), *_list_tests(sentence)]
        count += bool(rows)
        for description, row in rows:
            ledger.hold("text", row.key, description, [row], "hold")
    return count


def make_number(text: str, unit: str, sentence: Sentence) -> PrintedNumber:
    """A number of a sentence, multiplied by its unit where that multiplies."""
    plain = text.replace(",", "")
    letter = {"million": "M", "billion": "B", "trillion": "T"}.get(unit, unit)
    cell = ("text", sentence.where, plain)
    return PrintedNumber(text=apply_unit(plain, letter), where=sentence.where, cells=(cell,), shown=text + unit)


def _list_changes(sentence: Sentence) -> Iterator[tuple[str, RelationRow]]:
    """The changes that a sentence states with the two numbers that they are between."""
    if "respectively" in sentence.text:
        return
    matches = [match for pattern in _CHANGES for match in pattern.finditer(sentence.text)]
    for match in matches:
        a, a_unit, b, b_unit = (match[name] or "" for name in ("first", "first_unit", "second", "second_unit"))
        if _HEDGE.search(sentence.text[: match.start()]) or (a_unit and b_unit and (a_unit == "%") != (b_unit == "%")):
            continue
        first, second = make_number(a, a_unit or b_unit, sentence), make_number(b, b_unit, sentence)
        printed = make_number(match["change"], "", sentence)
        if first.value == 0 or second.value == 0:
            continue
        chosen, nearest = _choose(list(_list_ways(first, second, match["unit"], match["sign"])), ends_of(printed))
        about = "it is said to be about so much" if _ABOUT.search(match.group()) else ""
        far = abs(nearest - printed.value) > NEAR * printed.value
        doubt = about or ("the two numbers may be of something else" if far else "")
        quote = match.group().strip(" ,(")
        label = f"text, {sentence.where}: {quote!r}"
        yield f"{quote!r}", RelationRow(sentence.where, label, printed, chosen, doubt=doubt)


def _list_ways(first: PrintedNumber, second: PrintedNumber, unit: str, sign: str) -> Iterator[Given]:
    """What a change between two numbers may be, the plainest first."""

    def turn(change: Expression) -> Expression:
        return change if sign == "+" else -change if sign == "-" else abs(change)

    if unit in ("%", "percent"):
        yield turn(100 * (second / first - 1))
        yield turn(second - first)
        yield turn(100 * (first / second - 1))
        yield turn(100 * (second - first))
    elif unit in ("x", "×"):
        yield (second / first) if second.value > first.value else (first / second)
        yield abs(second / first - 1)
    else:
        yield turn(second - first)
        yield turn(100 * (second - first))


def _choose(ways: Sequence[Given], printed: Ends) -> tuple[Given, float]:
    """The first way that gives the printed number, else the first; and the value of that which comes nearest."""
    computed = [ends_of_formula(way) for way in ways]
    for way, ends in zip(ways, computed, strict=True):
        if meets(printed, ends):
            return way, ends[1]
    nearest = min(computed, key=lambda ends: abs(ends[1] - printed[1]))
    return ways[computed.index(nearest)], nearest[1]


def _list_tests(sentence: Sentence) -> Iterator[tuple[str, RelationRow]]:
    """The tests that a sentence reports with statistic, degrees of freedom and p."""
    for match in _TEST.finditer(sentence.text):
        value = make_number(match["value"], "", sentence)
        ways = list(_list_p(match, value))
        if not ways:
            continue
        text = re.sub(r"\s?[x×·]\s?10\^?\{?(-?\d+)\}?", r"e\1", match["p"])
        printed, sign = make_number(text, "", sentence), match["sign"]
        label = f"text, {sentence.where}: {match.group()!r}"
        if sign == "=":
            chosen, nearest = _choose(ways, ends_of(printed))
            off = abs(nearest - printed.value) < SLIGHT * printed.value
            doubt = "it is off by little, as where more was rounded" if off else ""
            row = RelationRow(sentence.where, label, printed, chosen, doubt=doubt)
        else:
            bound = printed.exactly()
            holds = [way < bound if sign == "<" else way > bound for way in ways]  # type: ignore[operator]
            chosen, _ = _choose(holds, (1.0, 1.0, 1.0))
            row = RelationRow(
                sentence.where, f"{label}: 1 where it holds", replace(exact(1), where=sentence.where), chosen
            )
        yield f"{match.group()!r}", row


def _read_df(text: str) -> PrintedNumber:
    """Degrees of freedom: a count, or, with decimals, a rounded number."""
    return PrintedNumber(text=text, exact="." not in text)


def _list_p(match: re.Match[str], value: PrintedNumber) -> Iterator[Given]:
    """The p of a reported test: two-sided first, and one-sided, where it may be either."""
    kind, df = match["kind"], _read_df(match["df"]) if match["df"] else None
    size = abs(value)
    if kind in "zZ" and df is None:
        yield load_function("two_sided_p")(value)
        yield load_function("one_sided_p")(size)
    elif df is None or df.value < 1:
        return
    elif kind == "t" and not match["df2"]:
        yield load_function("t_two_sided_p")(value, df)
        yield load_function("t_one_sided_p")(size, df)
    elif kind == "r" and not match["df2"] and abs(value.value) < 1:
        t = size * load_function("sqrt")(df / (1 - value**2))
        yield load_function("t_two_sided_p")(t, df)
        yield load_function("t_one_sided_p")(t, df)
    elif kind == "F" and match["df2"] and value.value >= 0 and re.fullmatch(r"[\d.]+", match["df2"]):
        yield load_function("f_p")(value, df, _read_df(match["df2"]))
    elif kind.startswith("χ") and value.value >= 0:
        yield load_function("chi_squared_p")(value, df)
