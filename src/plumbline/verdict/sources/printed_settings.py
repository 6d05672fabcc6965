"""Reads what a log prints as ``name:value``, ``name = value`` or ``--name value``, and how much its evaluations cover.

A setting is a pair that stands before a run's first evaluation. The size of an evaluation (tokens, items, batches) is
one wherever it stands, if its name, or what stands before it on its line, says that it is of an evaluation.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from plumbline.verdict.sources.bounded_reading import parse_number

#: Values of one name: more of them are the course of a run, and no setting.
VALUES = 8
#: Names, and lines that are searched for them, of one run; a value of more words is a sentence.
NAMES, LINES, WORDS = 3_000, 10_000, 3
#: Pairs of a line, characters before one, and pairs of a run that are examined.
PAIRS, BEFORE, ALL_PAIRS = 100, 200, 20_000

_VALUE = (
    r"""("[^"\n]{0,200}"|'[^'\n]{0,200}'|\([^()\n]{0,200}\)|\[[^\[\]\n]{0,200}\]|"""
    r"""\d{1,3}(?:,\d{3})+(?![\w.])|(?!//)[^\s,;"'(){}\[\]]{1,200})"""
)
#: A name that a sign of its own follows is not a value of what stands before it: ``settings: stride = 64``.
_NO_NAME = r"(?!(?<=[ \t])[A-Za-z_][\w.-]{0,60}[ \t]{0,8}[=:](?!//))"
_PAIR = re.compile(
    rf"""(?<![\w./:=-])(?:["']?(?:--)?([A-Za-z_][\w.-]{{0,60}})["']?[ \t]{{0,8}}[=:][ \t]{{0,8}}+{_NO_NAME}|"""
    rf"""--([A-Za-z][\w.-]{{0,60}})[ \t]{{1,3}}(?!-)){_VALUE}"""
)
#: The whole line is one setting, whose value may have blanks.
_LINE = re.compile(rf"\s{{0,8}}(?:Using )?([A-Za-z_][\w.-]{{0,60}})\s{{0,8}}[=:]\s{{0,8}}+{_NO_NAME}(\S.{{0,200}})")
#: Words that say what is set only with the word before them: ``learning rate: 0.1``.
_WITH_THE_WORD_BEFORE = frozenset(("rate", "size", "len", "length", "scale", "steps", "tokens"))
#: Words before a name that make it one of what is measured: ``Serialized model: 15893221 bytes``.
_MEASURED_BEFORE = re.compile(
    r"\b(serialized|compressed|dead|clipped|mean|entropy|sparsity)[ \t]{1,2}(?:\w{1,20}[ \t]{1,2}){0,2}$", re.IGNORECASE
)
#: A unit behind a blank is part of a measured value: ``kernel warmup: 12 s``.
_UNIT_BEHIND = re.compile(r"[ \t](?:ns|us|ms|s|sec|secs|seconds|min|minutes|h|[KMGT]i?B|%|W|C)(?![\w/.])")
#: A line of the course of a run.
_COURSE = re.compile(
    r"(?<!\w)(?:step|iter|iteration|it|epoch|update)[ :=]{1,3}\d|\bstep[ :=]{1,3}\d+/\d", re.IGNORECASE
)
_EVALUATION = r"(?:val(?:id(?:ation|ating)?)?|eval(?:uat(?:e|ed|ion|ing))?|test|dev|held[ _-]?out)"
_ABOUT = re.compile(rf"(?<![a-z])(?:(train(?:ing)?)|{_EVALUATION})(?![a-z])", re.IGNORECASE)
_UNITS = "tokens?|items|batches|docs|documents|examples|samples|sequences|seqs|questions|bytes|iters|shards"
_UNIT = re.compile(rf"(?:{_UNITS})")
_COVERS = re.compile(
    rf"(?<![a-z]){_EVALUATION}(?![a-z])[^\d\n]{{0,40}}\b(?:on|over|with|using|of)[ \t]{{1,2}}"
    rf"(\d[\d,_]{{0,20}}(?:\.\d{{1,4}})?[kKMBG]?)[ \t]{{1,2}}(?:[a-z]{{1,20}}[ \t]{{1,2}}){{0,2}}?({_UNITS})(?![\w/])",
    re.IGNORECASE,
)
#: What is not a size, although it names a unit: how often, how fast, or how much at once.
_NO_SIZE = {"every", "interval", "freq", "per", "batch", "time", "loss", "train", "sec", "second", "ms", "warmup"}
_SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}


@dataclass(kw_only=True)
class PrintedSettings:
    """What is printed of one run: name -> its values, in order and each once.

    Attributes:
        settings: pairs before its first evaluation.
        sizes: how much its evaluations cover, by the name that it is printed with.
        left: how many more pairs are examined.
    """

    settings: dict[str, list[str]] = field(default_factory=dict)
    sizes: dict[str, list[str]] = field(default_factory=dict)
    left: int = ALL_PAIRS

    def read(self, line: str, *, evaluated: bool) -> None:
        """Read a line; `evaluated`: the run's first evaluation stands above it, or on it."""
        if evaluated and all(topic[1] for topic in _ABOUT.finditer(line)):
            return
        for name, value, prefix in find_pairs(line):
            self.left -= 1
            if self.left < 0:
                return
            if find_size_unit(name, prefix) and parse_amount(value) is not None:
                has_topic = _ABOUT.search(name.replace("_", " ")) is not None
                _add_value(self.sizes, name if has_topic else f"{_find_topic(prefix)} {name}", value)
            elif not evaluated and _COURSE.search(line) is None:
                _add_value(self.settings, name, value)
        for name, value in _find_covered_sizes(line):
            _add_value(self.sizes, name, value)


def read_settings(lines: Sequence[str], evaluations: Sequence[Sequence[int]]) -> list[PrintedSettings]:
    """Read what is printed of each run of a log; what a later run does not print again is that of the run before.

    Args:
        lines: of the log.
        evaluations: of each run the places of its evaluations' lines, in order.
    """
    runs: list[PrintedSettings] = []
    begin = 0
    for index, places in enumerate(evaluations):
        run, of_evaluations = PrintedSettings(), set(places)
        end = evaluations[index + 1][0] if index + 1 < len(evaluations) else len(lines)
        for place in range(begin, min(places[0], begin + LINES)):
            run.read(lines[place], evaluated=False)
        # Behind its last evaluation, another run's settings begin.
        last = places[-1] + 1 if index + 1 < len(evaluations) else end
        for place in range(places[0], min(last, places[0] + LINES)):
            if place not in of_evaluations:
                run.read(lines[place], evaluated=True)
        for name, values in _read_evaluation_sizes([lines[place] for place in places[:LINES]]).items():
            run.sizes.setdefault(name, values)
        if runs:
            run.settings, run.sizes = runs[-1].settings | run.settings, runs[-1].sizes | run.sizes
        runs.append(run)
        begin = last
    return runs


def find_pairs(line: str) -> Iterator[tuple[str, str, str]]:
    """The pairs of a line: name, value, and what stands before them; the hyphens of a flag's name are underscores."""
    matches = list(islice(_PAIR.finditer(line), PAIRS))
    if len(matches) < 2 and (line_match := _LINE.fullmatch(line)) and len(line_match[2].split()) <= WORDS:
        yield line_match[1], line_match[2].strip(), ""
        return
    for match in matches:
        name, prefix = match[1] or match[2].replace("-", "_"), line[max(0, match.start() - BEFORE) : match.start()]
        if measured_match := _MEASURED_BEFORE.search(prefix):
            name = f"{measured_match[1]}_{name}"
        elif name.lower() in _WITH_THE_WORD_BEFORE and (word := re.search(r"([A-Za-z]{1,40})[ \t]{1,2}$", prefix)):
            name = f"{word[1]}_{name}"
        value = match[3].strip("\"'")
        if parse_amount(value) is not None and (unit := _UNIT_BEHIND.match(line, match.end())):
            value += unit[0]
        yield name, value, prefix


def find_size_unit(name: str, prefix: str) -> str:
    """What a size of an evaluation is counted in, by its name and what stands before it; empty of any other name."""
    parts = split_name(name)
    unit = next((part for part in reversed(parts) if _UNIT.fullmatch(part)), "")
    if not unit or not _NO_SIZE.isdisjoint(parts):
        return ""
    topics = [*_ABOUT.finditer(f"{prefix} {name}".replace("_", " "))]
    return unit if topics and not topics[-1][1] else ""


def split_name(name: str) -> list[str]:
    """The words of a name, in lower case: ``valTokens2`` and ``val_tokens-2`` are both val, tokens, 2."""
    return [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def parse_amount(value: str) -> float | None:
    """The number that a value is, with separators of thousands or ``k``, ``M``, ``B`` at its end; None of another."""
    text = value.replace(",", "").replace("_", "").rstrip(".")
    factor = _SUFFIXES.get(text[-1:].lower(), 1.0)
    number = parse_number(text[:-1] if factor > 1 else text)
    return None if number is None or not math.isfinite(number) else factor * number


def _read_evaluation_sizes(lines: Sequence[str]) -> dict[str, list[str]]:
    """The sizes on lines of evaluations: each that states it itself, else what is the same on all of several lines.

    What grows from line to line is how far the training came.
    """
    values_by_name: dict[str, list[str]] = {}
    for line in dict.fromkeys(lines):
        for name, value, _ in find_pairs(line):
            parts = split_name(name)
            if parse_amount(value) is not None and any(map(_UNIT.fullmatch, parts)) and _NO_SIZE.isdisjoint(parts):
                values_by_name.setdefault(name, []).append(value)
    sizes: dict[str, list[str]] = {}
    for name, value in (each for line in lines for each in _find_covered_sizes(line)):
        _add_value(sizes, name, value)
    for name, values in values_by_name.items():
        if _ABOUT.search(name.replace("_", " ")) is not None:
            sizes[name] = [*dict.fromkeys(values)][: VALUES + 1]
        elif len(values) > 1 and len(set(values)) == 1:
            sizes[f"evaluation {name}"] = values[:1]
    return sizes


def _find_covered_sizes(line: str) -> Iterator[tuple[str, str]]:
    """What a sentence says of an evaluation's size: ``Evaluating on 1,000 batches``."""
    for match in _COVERS.finditer(line):
        yield f"evaluation {match[2].lower()}", match[1]


def _find_topic(prefix: str) -> str:
    """The first word of a line that is about an evaluation, before a size whose own name does not say so."""
    return next((word for word in re.findall(r"[\w-]{1,40}", prefix) if _ABOUT.search(word.replace("_", " "))), "")


def _add_value(values_by_name: dict[str, list[str]], name: str, value: str) -> None:
    values = values_by_name.setdefault(name, []) if len(values_by_name) < NAMES or name in values_by_name else []
    if value not in values and len(values) <= VALUES:
        values.append(value)
