"""Weighs numbers that a relation does not give: what else may be meant by them, so that they accuse nobody of a fault.

A total may print a peak or a ratio in a column that does not add up, a mean be geometric or weighted, and a footnote
state where a number is from.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from plumbline.audit.paper.evidence import meets
from plumbline.audit.paper.formulas import CHANGES, MEANS, Formula
from plumbline.audit.paper.line_types import find_direction
from plumbline.audit.paper.lines import SMALL, Ends, Line, Lines
from plumbline.audit.paper.names import MEAN, OTHER_MEAN, WEIGHTED_MEAN, kind_of, says

#: Share of a sum from which a number is far from it, as one of a column that does not add up is.
FAR = 0.1

#: Units of the last digit within which several means on one side of the arithmetic ones may be of another kind.
NEAR = 3

#: Fewest numbers whose common steps are no chance.
STEPPED = 12

#: Powers of ten that the units of a ratio's two columns may differ by, "234 B / 257 M"; 2 is that of per cent.
_SCALES = (-9, -6, -3, 0, 2, 3, 6, 9)


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a number that a relation does not give may be right; `explains`: its reason gives the printed number."""

    reason: str
    explains: bool = False


def find_doubts(
    target: Line, formula: Formula, operands: Sequence[Line], computed: Mapping[str, Ends], lines: Lines
) -> dict[str, Doubt]:
    """Doubts by key, of those numbers of a line that a relation does not give and that something else may explain."""
    off_keys = [key for key in computed if key in target.ends and not meets(target.ends[key], computed[key])]
    doubts: dict[str, Doubt] = {}
    if formula is MEANS:
        doubts = _doubt_means(target, operands, {key: computed[key] for key in off_keys}, lines)
    elif formula.adds:
        totals = {key: _doubt_total(target, key, operands, computed[key], lines) for key in off_keys}
        doubts = {key: doubt for key, doubt in totals.items() if doubt is not None}
    elif formula in CHANGES:
        doubts = {
            **_doubt_operands(target, formula, operands, off_keys, lines),
            **_doubt_direction(target, off_keys, computed),
        }
    doubts = _doubt_groups(off_keys, computed, lines) | doubts
    doubts |= _doubt_units([target, *operands], off_keys, computed, lines)
    cut_doubts = (
        {}
        if doubts
        else _doubt_rounding(target, off_keys, computed) | _doubt_steps(target, formula, operands, off_keys)
    )
    mark_doubts = {key: Doubt("a footnote mark stands there") for key in off_keys if target.has_footnote(key)}
    marked_keys = {
        key for key in computed if any(line.cells[key].has_footnote for line in operands if key in line.cells)
    }
    if marked_keys <= set(off_keys):
        mark_doubts |= {
            key: Doubt("a footnote mark stands at what it is of") for key in marked_keys if key not in mark_doubts
        }
    return {
        **cut_doubts,
        **mark_doubts,
        **{key: doubt for key, doubt in doubts.items() if doubt.explains or key not in mark_doubts},
    }


def _doubt_direction(target: Line, off: Sequence[str], computed: Mapping[str, Ends]) -> dict[str, Doubt]:
    """Doubts of improvements that are printed as such: of a measure of which less is better, a reduction is one."""
    turned = {key: (-computed[key][2], -computed[key][1], -computed[key][0]) for key in off}
    keys = [key for key, ends in turned.items() if meets(target.ends[key], ends)]
    reason = "the other direction gives it, and no sign tells the two"
    if any(target.ends[key][1] < 0 for key in target.ends):
        lower = {key for key in computed if find_direction(key) < 0}
        keys = [key for key in keys if lower <= set(off) and key in lower]
        reason = "the other direction gives it, and less is better"
    return dict.fromkeys(keys, Doubt(reason, explains=len(keys) > 1))


def _doubt_groups(off_keys: Sequence[str], computed: Mapping[str, Ends], lines: Lines) -> dict[str, Doubt]:
    """Doubts of whole groups of rows that a relation does not give, while it gives rows of others: a group with a title
    or a line of words, in it or above it, may have a header of its own."""
    table = lines.table
    headed_groups = set(table.titles)
    for row, group in zip(table.rows, table.groups, strict=True):
        cells = [table.cells[row][column] for column in table.columns[1:]]
        if all(cell.number is None for cell in cells) and any(re.search("[A-Za-z]", cell.text) for cell in cells):
            headed_groups |= {group, group + 1}
    sizes = Counter(lines.groups[key] for key in computed)
    broken = Counter(lines.groups[key] for key in off_keys)
    reason = Doubt("none of its group of rows agrees, which may have a header of its own")
    broken_groups = {group for group in headed_groups if broken[group] == sizes[group] >= SMALL}
    return {key: reason for key in off_keys if lines.groups[key] in broken_groups}


def _doubt_units(
    lines_of_it: Sequence[Line], off: Sequence[str], computed: Mapping[str, Ends], lines: Lines
) -> dict[str, Doubt]:
    """Doubts of numbers of another unit: of 850 ms beside 1.7 s. Along a column the rows that agree show what is usual;
    along a row each column may have a unit of its own."""
    units = {key: tuple(line.scale(key) for line in lines_of_it) for key in computed}
    usual = {units[key] for key in computed if key not in off}
    doubts = {}
    for key in off:
        several = len({*units[key][1:], units[key][0] or units[key][1]}) > 1
        if units[key] not in usual and (several if lines.along == "row" else any(units[key])):
            doubts[key] = Doubt(f"its units are others ({', '.join(filter(None, units[key]))})", explains=True)
    return doubts


def _doubt_operands(
    target: Line, formula: Formula, operands: Sequence[Line], off_keys: Sequence[str], lines: Lines
) -> dict[str, Doubt]:
    """Doubts of changes against another number than that of most rows: each may be against the best of the others.

    None where the caption says what they are: "Gain = Start - Loss".
    """
    if target.name and re.search(rf"(?<!\w){re.escape(target.name)}\s*=", lines.table.title, re.IGNORECASE):
        return {}
    doubts: dict[str, str] = {}
    for key in off_keys:
        if len(operands) == 1:
            pairs = {other_key: [operands[0].ends[other_key], operands[0].ends[key]] for other_key in operands[0].ends}
        else:
            first, second = operands
            other_lines = [line for line in lines.lines if line not in (target, *operands) and key in line.ends]
            pairs = {line.name: [line.ends[key], second.ends[key]] for line in other_lines}
            pairs |= {
                f"{line.name} in place of {second.name}": [first.ends[key], line.ends[key]] for line in other_lines
            }
        for name, pair in pairs.items():
            ends = formula.ends(pair) if name != key else None
            if ends is not None and meets(target.ends[key], ends):
                doubts.setdefault(key, name)
    several = len(doubts) > 1
    return {key: Doubt(f"against {name} it is right", explains=several) for key, name in doubts.items()}


def _doubt_rounding(target: Line, off_keys: Sequence[str], computed: Mapping[str, Ends]) -> dict[str, Doubt]:
    """Doubts of numbers whose last digits are cut off: where no other row shows that this table rounds."""
    for key, (low, middle, high) in computed.items():
        printed, sign = target.ends[key][1], -1 if middle < 0 else 1
        width = target.ends[key][2] - target.ends[key][0]
        nearest, furthest = sorted((sign * (low - printed), sign * (high - printed)))
        if furthest < 0 or nearest > 0.999 * width:
            return {}  # no number that its digits are cut off of gives it
    return {key: Doubt("its last digit may be cut off, not rounded") for key in off_keys}


def _doubt_steps(target: Line, formula: Formula, operands: Sequence[Line], off_keys: Sequence[str]) -> dict[str, Doubt]:
    """Doubts where every number is a multiple of two, five or ten of its last digit, as twenty times a mean of scores
    from one to five is: each is rounded to those steps."""
    numbers = [number.text for line in (target, *operands) for number in line.numbers.values()]
    places = {int(Decimal(text).as_tuple().exponent) for text in numbers}
    if len(operands) < 2 or len(places) > 1 or len(numbers) < STEPPED:
        return {}
    exponent = places.pop()
    step = math.gcd(*(int(Decimal(text).scaleb(-exponent)) for text in numbers), 10)
    half = step * 10.0**exponent / 2
    doubts = {}
    for key in off_keys if step > 1 else ():
        printed, *parts = [
            (line.ends[key][1] - half, line.ends[key][1], line.ends[key][1] + half) for line in (target, *operands)
        ]
        ends = formula.ends(parts)
        if ends is not None and meets(printed, ends):
            doubts[key] = Doubt(
                f"every number is a multiple of {step * 10.0**exponent:g}, and rounded to that it is right"
            )
    return doubts


def _doubt_total(target: Line, key: str, operands: Sequence[Line], computed: Ends, lines: Lines) -> Doubt | None:
    printed, parts = target.ends[key], [line.ends[key] for line in operands]
    for name, ends in (
        ("the largest of them", max(parts, key=lambda part: part[1])),
        ("the smallest of them", min(parts, key=lambda part: part[1])),
        ("their mean", MEANS.ends(parts)),
    ):
        if ends is not None and meets(printed, ends):
            return Doubt(f"it is {name}", explains=True)
    other_keys = [other_key for other_key in lines.keys if other_key != key and other_key in target.ends]
    for above in other_keys:
        for below in other_keys:
            if above != below and _is_ratio([target, *operands], key, above, below):
                return Doubt(f"it is {above} over {below}", explains=True)
    if kind_of(key) != "count" and abs(printed[1] - computed[1]) > FAR * abs(computed[1]):
        return Doubt("it is so far off that no sum may be meant there")
    return None


def _is_ratio(lines: Sequence[Line], key: str, above: str, below: str) -> bool:
    """Whether the numbers of a key are ratios of two others' in the first line and in most lines."""
    full_lines = [line for line in lines if all(name in line.ends for name in (key, above, below))]
    full_lines = [line for line in full_lines if line.ends[below][0] > 0 and line.ends[above][0] > 0]
    if len(full_lines) < 3 or full_lines[0] is not lines[0]:
        return False
    for scale in _SCALES:
        agree = 0
        for line in full_lines:
            a, b = line.ends[above], line.ends[below]
            ratio = 10.0**scale * a[0] / b[2], 10.0**scale * a[1] / b[1], 10.0**scale * a[2] / b[0]
            agree += meets(line.ends[key], ratio)
            if not agree:
                break  # the first of them must
        if agree and 3 * agree >= 2 * len(full_lines):
            return True
    return False


def _doubt_means(
    target: Line, operands: Sequence[Line], off_ends: Mapping[str, Ends], lines: Lines
) -> dict[str, Doubt]:
    """Doubts of means: another kind of mean gives the number, or is named, or the numbers look like those of one."""
    mean_word, weighted = _find_other_mean(target.name, lines.table.title)
    doubts = {}
    for key in off_ends:
        parts = [line.ends[key] for line in operands]
        possible = {name for name, ends in _list_other_means(parts, operands, lines) if meets(target.ends[key], ends)}
        if weighted and min(part[0] for part in parts) <= target.ends[key][1] <= max(part[2] for part in parts):
            doubts[key] = Doubt(f"a mean with other weights can give it ({mean_word!r})", explains=len(off_ends) > 1)
        elif possible:
            name = min(possible, key=lambda name: (not _is_named(name, mean_word), name))
            doubts[key] = Doubt(f"the {name} mean gives it", explains=_is_named(name, mean_word))
        elif mean_word:
            doubts[key] = Doubt(f"the name or the caption says {mean_word!r}")
    open_keys = [key for key in off_ends if key not in doubts]
    if len(open_keys) > 1:
        for place in range(len(operands) if len(operands) > 2 else 0):
            other_operands = [line for n, line in enumerate(operands) if n != place]
            ends = {key: MEANS.ends([line.ends[key] for line in other_operands]) for key in open_keys}
            if all(mean_ends is not None and meets(target.ends[key], mean_ends) for key, mean_ends in ends.items()):
                return {
                    **doubts,
                    **{key: Doubt(f"the mean without {operands[place].name} gives it") for key in open_keys},
                }
        steps = [
            (target.ends[key][1] - off_ends[key][1]) / (target.ends[key][2] - target.ends[key][0]) for key in open_keys
        ]
        if max(map(abs, steps)) <= NEAR and (min(steps) > 0 or max(steps) < 0):
            doubts.update((key, Doubt("all are a little off on one side, as another mean is")) for key in open_keys)
    return doubts


def _find_other_mean(name: str, title: str) -> tuple[str, bool]:
    """The word for another mean than the arithmetic one in a name or else the caption, and whether its weights are not
    known: then it may be anything between its parts."""
    for text in (name, title):
        # "micro" and "weighted" are of other things too in a caption (micro-F1, weighted sampling).
        is_of_a_mean = text is name or says(text, f"(?:{WEIGHTED_MEAN}) (?:{MEAN})") or _is_weighted(text, name)
        pattern = OTHER_MEAN if is_of_a_mean else OTHER_MEAN.removesuffix(f"|{WEIGHTED_MEAN}")
        word = next((word for word in pattern.split("|") if says(text, word)), "")
        if word:
            return word, says(text, WEIGHTED_MEAN)
    return "", False


def _is_named(kind: str, word: str) -> bool:
    """Whether a kind of mean is meant by a word: "geometric" by "geo"."""
    return bool(word) and (kind[:3] == word[:3] or f"{kind[0]}mean" == word or kind.endswith(word))


def _is_weighted(title: str, name: str) -> bool:
    """Whether a caption states that a column is weighted: "Avg. is weighted by the number of questions"."""
    return (
        bool(name)
        and re.search(rf"\b{re.escape(name.lower().rstrip('.'))}\.? (?:is|are) weighted", title.lower()) is not None
    )


def _list_other_means(parts: Sequence[Ends], operands: Sequence[Line], lines: Lines) -> Iterator[tuple[str, Ends]]:
    """Other means of the same parts: their names and ends."""
    if all(part[0] > 0 for part in parts):
        yield "geometric", _compute_ends(parts, lambda values: math.exp(sum(map(math.log, values)) / len(values)))
        yield "harmonic", _compute_ends(parts, lambda values: len(values) / sum(1 / value for value in values))
    if len(parts) > 2:
        yield "median", _compute_ends(parts, median)
    for key in lines.keys:
        weights = [line.ends[key][1] for line in operands if key in line.ends]
        if kind_of(key) == "count" and len(weights) == len(operands) and min(weights) > 0:
            yield (
                f"{key}-weighted",
                _compute_ends(
                    parts,
                    lambda values, weights=weights: (
                        math.fsum(w * v for w, v in zip(weights, values, strict=True))  # type: ignore[misc]
                        / sum(weights)
                    ),
                ),
            )


def _compute_ends(parts: Sequence[Ends], compute: Callable[[list[float]], float]) -> Ends:
    lowest, middle, highest = (compute([part[n] for part in parts]) for n in (0, 1, 2))
    return lowest, middle, highest
