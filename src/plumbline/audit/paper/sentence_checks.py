"""Checks what a sentence of the paper says by itself: a change from one number to another, a test with its p.

A sentence is read by its words ("from 26.6 to 24.8, a 6.8 % reduction"; "t(28) = 2.20, p = .036"), never because a
number in it equals another one. A number that only another reading of its words gives accuses nobody.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from plumbline.audit.paper.change_words import ChangeWords, read_words
from plumbline.audit.paper.evaluate import load_function
from plumbline.audit.paper.evidence import meets
from plumbline.audit.paper.inside_cells import ends_of_formula
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.lines import Ends, ends_of
from plumbline.audit.paper.paper_source import CORRECTED, CORRECTED_HERE, ONE_SIDED, Passage
from plumbline.audit.paper.printed_cell import apply_unit
from plumbline.published.expression import Expression, Given
from plumbline.published.printed_number import PrintedNumber, exact

#: Longest sentence that is read, and most of a paper.
LONGEST, SENTENCES = 1_500, 5_000

#: Share of a change within which another number is a slip; further off, the two numbers may be of something else.
NEAR = 0.5

#: Share of a p below which it is off by little.
SLIGHT = 0.05

#: How many times as large several p are that may be corrected for so many tests though nothing says so; ten is as often
#: a slip of the point.
TIMES = range(2, 10)

#: What a number may be: its formula; and, of all but what its words say, why it may.
Reading = tuple[Given, str]

_LOOKS = str.maketrans({"−": "-", "–": "-", "—": "-", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "→": ">"})
_DIGITS = r"(?>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_MULTIPLE = r"\s?(?P<{0}_unit>%|[KkMBT](?![a-zA-Z])|million|billion|trillion)?"
_FIRST, _SECOND = (rf"[$€£]?(?P<{name}>{_DIGITS}){_MULTIPLE.format(name)}" for name in ("first", "second"))
_WORD = r"(?:\s?(?P<{0}_word>(?!(?:and|or|to|in|on|at|for|while|but|with)\b)[A-Za-zµμ][A-Za-z0-9]{{0,11}}))?"
_PAIR = rf"from {_FIRST}{_WORD.format('first')} to {_SECOND}{_WORD.format('second')}"
_BY = (
    r"(?P<sign>[+-]?)(?P<change>(?>\d+(?:\.\d+)?))\s?"
    r"(?P<unit>%(?>(?:[ -]?(?:points?|pts?))?)|x(?![a-z])|×|percent(?!age)|pp\b|(?:percentage |absolute )?points?)"
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
_YEAR = re.compile(r"(?:19|20)\d\d")

#: Reasons for which a number accuses nobody.
_OTHER_WAY, _MAY_BE_CORRECTED = "the other direction gives it", "it may be corrected for several tests"

_POWER = r"(?:\s?[x×·]\s?10\^?\{?-?\d+\}?|e-?\d+)?"
_TEST = re.compile(
    r"(?<![A-Za-z\\_])(?P<kind>t|F|r|z|Z|χ\^?\{?2\}?|χ²)\s?(?:\(\s?(?P<df>[\d.]+)(?:\s?,\s?(?P<df2>(?:[nN]\s?=\s?)?[\d.]+))?\s?\))?"
    r"\s?=\s?(?P<value>-?\d*\.?\d+)\s?[,;]\s?p\s?(?P<sign>[=<>])\s?(?P<p>\d*\.?\d+" + _POWER + r")"
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the paper, where its paragraph stands, and what the paper says of the p-values in it."""

    text: str
    where: str
    one_sided: bool = False
    corrected: bool = False


def split_sentences(passages: list[Passage]) -> list[Sentence]:
    """The sentences of a paper that have a digit, up to a limit."""
    sentences = []
    one_sided, corrected = (any(pattern.search(each.text) for each in passages) for pattern in (ONE_SIDED, CORRECTED))
    for passage in passages:
        adjusted = corrected or CORRECTED_HERE.search(passage.text) is not None
        for text in re.split(r"(?<=[a-z0-9%)][.!?])\s+(?=[A-Z(])", passage.text.translate(_LOOKS)):
            if any(map(str.isdigit, text)) and len(text) <= LONGEST:
                sentences.append(Sentence(text, passage.where, one_sided, adjusted))
    return sentences[:SENTENCES]


def check_sentences(sentences: list[Sentence], ledger: Ledger) -> int:
    """Check each sentence by itself; returns how many have something to check."""
    count = 0
    times = _find_times(sentences)
    for sentence in sentences:
        rows = [*_list_changes(sentence), *_list_tests(sentence, times)]
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
        if _YEAR.fullmatch(a) and _YEAR.fullmatch(b) and not match.groupdict().get("second_word"):
            continue
        first, second = make_number(a, a_unit or b_unit, sentence), make_number(b, b_unit, sentence)
        printed = make_number(match["change"], "", sentence)
        if first.value == 0 or second.value == 0:
            continue
        words = read_words(match, sentence.text)
        readings = [
            reading
            for factor in words.factors or (1.0,)
            for reading in _list_readings(first, second if factor == 1 else factor * second, match, words)
        ]
        formula, doubt, nearest = _choose(readings, ends_of(printed))
        if not meets(ends_of(printed), ends_of_formula(formula)):
            about = "it is said to be about so much" if _ABOUT.search(match.group()) else ""
            far = abs(nearest - printed.value) > NEAR * printed.value
            doubt = doubt or about or words.doubt or ("the two numbers may be of something else" if far else "")
        quote = match.group().strip(" ,(")
        label = f"text, {sentence.where}: {quote!r}"
        yield f"{quote!r}", RelationRow(sentence.where, label, printed, formula, doubt=doubt)


def _list_readings(first: PrintedNumber, second: Given, match: re.Match[str], words: ChangeWords) -> Iterator[Reading]:
    """What a change between two numbers may be, the plainest first."""
    way = {"+": 1, "-": -1}.get(match["sign"], words.direction)
    rise, fall, difference = second / first, first / second, second - first
    unit, ratio = match["unit"], ends_of_formula(rise)[1]

    def turn(change: Expression, way: int = way) -> Expression:
        return change if way > 0 else -change if way < 0 else abs(change)

    if unit in ("x", "×"):
        if float(match["change"]) < 1:
            yield (rise if ratio < 1 else fall), ""
            yield abs(rise - 1), ""
        else:
            yield (rise if way > 0 or (not way and ratio > 1) else fall), ""
        yield abs(rise - 1), "it is by how many times more than once"
        yield (rise if ratio > 1 else fall), _OTHER_WAY
        return
    points = [turn(difference), *([turn(100 * difference)] if max(first.value, ratio * first.value) <= 1 else [])]
    if unit not in ("%", "percent") or words.absolute:
        yield from ((change, "") for change in points)
        yield turn(difference, -way), _OTHER_WAY
        return
    yield turn(100 * (rise - 1)), ""
    if words.inverse:
        yield abs(100 * (fall - 1)), ""
    if not words.relative:
        yield from ((change, "" if words.shares else "it is the difference of the two") for change in points)
    yield turn(100 * (rise - 1), -way), _OTHER_WAY
    yield abs(100 * (fall - 1)), "it is in per cent of the second number"


def _choose(readings: Sequence[Reading], printed: Ends) -> tuple[Given, str, float]:
    """The first plain reading that gives the printed number, or else that comes nearest; why another that gives it may
    be meant instead; and the value of that which comes nearest of all."""
    plain_pairs = [(formula, ends_of_formula(formula)) for formula, reason in readings if not reason]
    other_pairs = [(reason, ends_of_formula(formula)) for formula, reason in readings if reason]
    best = next((pair for pair in plain_pairs if meets(printed, pair[1])), None)
    if best:
        return best[0], "", best[1][1]
    reason = next((reason for reason, ends in other_pairs if meets(printed, ends)), "")

    def distance(value: float) -> float:
        return abs(value - printed[1])

    nearest = min((ends[1] for _, ends in (*plain_pairs, *other_pairs)), key=distance)
    return (plain_pairs[0] if reason else min(plain_pairs, key=lambda pair: distance(pair[1][1])))[0], reason, nearest


def _read_tests(sentence: Sentence) -> Iterator[tuple[re.Match[str], PrintedNumber, list[Reading]]]:
    """The tests that a sentence reports with statistic, degrees of freedom and p: its p, and what it may be."""
    for match in _TEST.finditer(sentence.text):
        value = make_number(match["value"], "", sentence)
        readings = list(_list_p(match, value, "" if sentence.one_sided else "a one-sided test gives it"))
        if readings:
            text = re.sub(r"\s?[x×·]\s?10\^?\{?(-?\d+)\}?", r"e\1", match["p"])
            yield match, make_number(text, "", sentence), readings


def _find_times(sentences: list[Sentence]) -> frozenset[int]:
    """How many times as large as its test gives it each p is that is larger; none where only one is."""
    times = []
    for sentence in sentences:
        for match, printed, readings in _read_tests(sentence):
            low, middle, high = ends_of_formula(_choose(readings, ends_of(printed))[0])
            if match["sign"] == "=" and ends_of(printed)[0] > high:
                # Of a wide p some multiple is any number.
                fits = (many for many in TIMES if many * (high - low) < middle / 2)
                times.append(
                    {many for many in fits if meets(ends_of(printed), (many * low, many * middle, many * high))}
                )
    return frozenset(set.intersection(*times) if len(times) > 1 else ())


def _list_tests(sentence: Sentence, times: Collection[int]) -> Iterator[tuple[str, RelationRow]]:
    """Check each test that a sentence reports; `times`: for how many tests the paper's p may be corrected."""
    for match, printed, readings in _read_tests(sentence):
        sign = match["sign"]
        label = f"text, {sentence.where}: {match.group()!r}"
        if sign == "=":
            formula, doubt, nearest = _choose(readings, ends_of(printed))
            doubt = doubt or _doubt_p(printed, ends_of_formula(formula), sentence, times)
            if not doubt and abs(nearest - printed.value) < SLIGHT * printed.value:
                doubt = "it is off by little, as where more was rounded"
            row = RelationRow(sentence.where, label, printed, formula, doubt=doubt)
        else:
            bound = printed.exactly()
            comparisons = [(way < bound if sign == "<" else way > bound, reason) for way, reason in readings]  # type: ignore[operator]
            formula, doubt, _ = _choose(comparisons, (1.0, 1.0, 1.0))
            doubt = doubt or (_MAY_BE_CORRECTED if sign == ">" and sentence.corrected else "")
            truth = replace(exact(1), where=sentence.where)
            row = RelationRow(sentence.where, f"{label}: 1 where it holds", truth, formula, doubt=doubt)
        yield f"{match.group()!r}", row


def _read_df(text: str) -> PrintedNumber:
    """Degrees of freedom: a count, or, with decimals, a rounded number."""
    return PrintedNumber(text=text, exact="." not in text)


def _doubt_p(printed: PrintedNumber, ends: Ends, sentence: Sentence, times: Collection[int]) -> str:
    """Why a p may be larger than its test gives: corrected for several, it is so many times as large, or one."""
    if ends_of(printed)[0] <= ends[2]:
        return ""
    return _MAY_BE_CORRECTED if sentence.corrected or printed.value >= 1 or times else ""


def _list_p(match: re.Match[str], value: PrintedNumber, one_sided: str) -> Iterator[Reading]:
    """The p of a reported test: two-sided first, and one-sided, where it may be either, with the reason for that."""
    kind, df = match["kind"], _read_df(match["df"]) if match["df"] else None
    size = abs(value)
    if kind in "zZ" and df is None:
        yield load_function("two_sided_p")(value), ""
        yield load_function("one_sided_p")(size), one_sided
    elif df is None or df.value < 1:
        return
    elif kind == "t" and not match["df2"]:
        yield load_function("t_two_sided_p")(value, df), ""
        yield load_function("t_one_sided_p")(size, df), one_sided
    elif kind == "r" and not match["df2"] and abs(value.value) < 1:
        t = size * load_function("sqrt")(df / (1 - value**2))
        yield load_function("t_two_sided_p")(t, df), ""
        yield load_function("t_one_sided_p")(t, df), one_sided
    elif kind == "F" and match["df2"] and value.value >= 0 and re.fullmatch(r"[\d.]+", match["df2"]):
        yield load_function("f_p")(value, df, _read_df(match["df2"])), ""
    elif kind.startswith("χ") and value.value >= 0:
        yield load_function("chi_squared_p")(value, df), ""
