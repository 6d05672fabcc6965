"""Lists the relations that a line of a table may have to others: formulas, the lines they are of, what they compute."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from plumbline.audit.paper.audit_file import TablePart
from plumbline.audit.paper.evidence import Agreement, chance_of_a_mean, meets, rate_agreement, rounds_to
from plumbline.audit.paper.formulas import BASELINE, DIFFERENCES, FORMULAS, GROUP_FIRST, MEANS, SUMS, Formula
from plumbline.audit.paper.line_types import BASELINE_WORDS
from plumbline.audit.paper.lines import Ends, Line, Lines
from plumbline.audit.paper.names import is_added, is_spread, says
from plumbline.published.expression import Given
from plumbline.published.printed_number import PrintedNumber

#: Most numbers that the search in one table computes.
WORK = 1_500_000

#: Share of the larger operand below which the other one is as good as nothing: A = B passes for A = B - C.
NOTHING = 0.025

#: Fewest numbers of a total that stands alone, and share of it by which one may be off that is to be looked at.
FEWEST, CLOSE = 3, 0.05

#: Words of a name whose number is a part of the one above it, and no part of a total beside it.
PART_OF = "subset|of which|thereof|including"

#: Rows that are read first, of which two must agree.
SAMPLE = 6

#: How many times larger than another a number may be that a mean is of.
SCALE = 50


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A relation that is tried: its target, what it computes for each key, and the lines it is of.

    `baseline`: what its first operand is, if no line.
    `spoken`: worth a word where three rows agree and it does not hold; `small`: in a small table where one does;
    `plain`: where it has one row or two, of which none need agree: it is what the target's name most plainly states;
    `whole`: a sum of all lines before the target; `complete`: a mean or sum of all other lines, or of all on one side.
    """

    target: Line
    lines: Lines
    spoken: bool
    small: bool
    plain: bool
    parts: frozenset[int]
    computed: dict[str, Ends]
    formula: Callable[[str], Given]
    of: Formula
    operands: tuple[Line, ...] = ()
    baseline: str = ""
    covers_all: bool = False
    complete: bool = False

    @property
    def sentence(self) -> str:
        """What it says, with names."""
        names = [self.baseline] * bool(self.baseline) + [line.name for line in self.operands]
        return self.of.sentence(self.target.name, names, self.lines.along)

    def measure(self) -> Agreement:
        """How many rows agree."""
        keys = list(self.computed)
        printed, computed = [self.target.ends[key] for key in keys], [self.computed[key] for key in keys]
        agreement = rate_agreement(printed, computed)
        if agreement.agree < 2:
            return agreement
        if self.of is MEANS and 2 * sum(map(rounds_to, printed, computed)) < agreement.agree:
            return replace(agreement, chance=1.0)  # near in most rows, and the rounded mean in few: a weighted one
        if self.of is MEANS and len(keys) >= 2 and MEANS.says(self.target):
            # A column that is called a mean has a narrow span; what another mean of its row could be is wider.
            values = [[line.ends[key][1] for line in self.operands] for key in keys]
            return replace(agreement, chance=min(agreement.chance, chance_of_a_mean(printed, computed, values)))
        if self.complete and self.of is SUMS and all(number.text.isdigit() for number in self.numbers):
            pairs = {pair for pair in zip(printed, computed, strict=True) if meets(*pair)}
            if len(pairs) > 1 and all(rounds_to(*pair) for pair in pairs):
                # Whole numbers that give their total to the last one: by chance it is one of as many as it counts.
                least = max(0.01, 1 / min(abs(ends[1]) or 1 for _, ends in pairs))
                return replace(agreement, chance=min(agreement.chance, least))
        return agreement

    @property
    def numbers(self) -> list[PrintedNumber]:
        """Its printed numbers."""
        return [line.numbers[key] for line in (self.target, *self.operands) for key in self.computed]

    @property
    def plain_total(self) -> bool:
        """Whether it is the total of one line, or of two of which one agrees, of many numbers that nearly give it."""
        has_few = len(self.computed) == 1 or (len(self.computed) == 2 and self.count_agreeing() == 1)
        if self.of is not SUMS or not has_few or len(self.operands) < FEWEST:
            return False
        printed = self.target.ends
        return self.covers_all and all(
            abs(ends[1] - printed[key][1]) <= CLOSE * abs(ends[1]) for key, ends in self.computed.items()
        )

    def count_agreeing(self) -> int:
        """How many rows agree."""
        return sum(meets(self.target.ends[key], ends) for key, ends in self.computed.items())

    def count_shuffled(self, draw: random.Random) -> int:
        """How many rows agree with shuffled cells: of each operand of a mean or sum, else of the target."""
        printed, computed = [self.target.ends[key] for key in self.computed], list(self.computed.values())
        if self.of in (MEANS, SUMS):
            columns = [draw.sample([line.ends[key] for key in self.computed], len(printed)) for line in self.operands]
            computed = [ends for row in zip(*columns, strict=True) if (ends := self.of.ends(row)) is not None]
        else:
            draw.shuffle(printed)
        return sum(map(meets, printed, computed))

    def measure_against_shuffled(self) -> Agreement:
        """The same, where the chance is also that of rows whose operands are changed for those of others one by one:
        an operand that is nearly one number, or nothing, is not evidence."""
        agreement, keys = self.measure(), list(self.computed)
        printed = [self.target.ends[key] for key in keys]
        for moved in range(len(self.operands) if len(self.operands) == 2 else 0):
            hits = tries = 0
            for shift in range(1, min(len(keys), 12)):
                for n, key in enumerate(keys):
                    other_key = keys[(n + shift) % len(keys)]
                    ends = self.of.ends(
                        [line.ends[other_key if place == moved else key] for place, line in enumerate(self.operands)]
                    )
                    hits, tries = hits + (ends is not None and meets(printed[n], ends)), tries + 1
            agreement = replace(agreement, chance=max(agreement.chance, hits / tries))
        return agreement


class Budget:
    """What the search in one table may still compute."""

    def __init__(self) -> None:
        self.left = WORK


def list_candidates(target: Line, lines: Lines, part: TablePart, budget: Budget, stated: bool) -> Iterator[Candidate]:
    """The relations that a line may have to others: those that its name states, or the rest."""
    other_lines = [line for line in lines.lines if line is not target]
    for formula in FORMULAS:
        if formula.says(target) != stated or not (stated or formula.unsaid) or (formula.unsigned and target.signed):
            continue
        for first in other_lines if formula.pairs and budget.left >= 0 else ():
            for second in other_lines if budget.left >= 0 else ():
                is_near = abs(first.place - target.place) <= 3 and abs(second.place - target.place) <= 3
                if first is not second and (stated or is_near) and (formula.ordered or first.place < second.place):
                    yield from _relate_lines(target, formula, (first, second), lines, budget)
    for formula in (MEANS, SUMS):
        if stated and formula.says(target):
            parts = [line for line in other_lines if formula is MEANS or not says(line.name, PART_OF)]
            for window in _list_windows(target, parts):
                yield from _relate_lines(target, formula, window, lines, budget)
    lines_before = [line for line in other_lines if line.place < target.place]
    if not stated and not MEANS.says(target) and len(lines_before) >= 3:
        yield from _relate_lines(target, MEANS, lines_before, lines, budget)
    if lines.along == "column":
        yield from _relate_to_baseline(target, other_lines, lines, part, budget, stated)


def _list_before(target: Line, lines: Lines) -> list[int]:
    """Places of the lines before a line; of those after it where there is none."""
    places_before = [line.place for line in lines.lines if line.place < target.place]
    return places_before or [line.place for line in lines.lines if line.place > target.place]


def _are_alike(lines: Sequence[Line], keys: Sequence[str]) -> bool:
    """Whether lines can be of one kind, so that a mean of them can be meant: no spreads, and values of one size."""
    values = [abs(line.ends[key][1]) for line in lines for key in keys]
    return all(is_spread(line.name) is False for line in lines) and max(values) <= 10 * min(values)


def _list_windows(target: Line, other_lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Neighbouring lines that a mean may be of: all others, and those next to the target on one side."""
    lines_before = [line for line in other_lines if line.place < target.place]
    lines_after = [line for line in other_lines if line.place > target.place]
    if len(other_lines) >= 2:
        yield other_lines
    for start in range(len(lines_before) - 1):
        if start or lines_after:
            yield lines_before[start:]
    for end in range(2, len(lines_after) + 1):
        if end < len(lines_after) or lines_before:
            yield lines_after[:end]
    # Without the first one or two after it, or the last before it, which may be of another kind.
    for start in (1, 2):
        if len(lines_after) - start >= 2:
            yield lines_after[start:]
    for end in (len(lines_before) - 1, len(lines_before) - 2):
        for start in range(max(0, end - 1)):
            yield lines_before[start:end]


def _relate_lines(
    target: Line, formula: Formula, operands: Sequence[Line], lines: Lines, budget: Budget
) -> Iterator[Candidate]:
    budget.left -= len(lines.linear) // 4 + SAMPLE * len(operands)
    if budget.left < 0:
        return
    keys: Sequence[str] = lines.list_shared((target, *operands))
    misses = 0
    if formula.linear:
        keys = _keep_one_kind(target, formula, operands, keys, lines)
    remaining_keys = (key for key in keys if formula is not MEANS or _are_one_size(operands, key))
    sample = list(islice(remaining_keys, SAMPLE))
    printed, parts = target.ends, [line.ends for line in operands]
    first: dict[str, Ends | None] = {}
    for key in sample if len(sample) == SAMPLE else ():
        first[key] = ends = formula.ends([each[key] for each in parts])
        misses += ends is None or not meets(printed[key], ends)
        if misses > SAMPLE - 2:
            return
    budget.left -= len(keys) * len(operands)
    keys = [*sample, *remaining_keys]
    if not keys:
        return
    if formula.linear and formula not in (MEANS, SUMS):
        keys = [key for key in keys if not _is_nothing(parts[0][key], parts[1][key])]
        if not keys:
            return
    values = {key: first[key] if key in first else formula.ends([ends[key] for ends in parts]) for key in keys}
    computed = {key: ends for key, ends in values.items() if ends is not None}
    places = [line.place for line in operands]
    several = formula in (MEANS, SUMS)
    places_before = _list_before(target, lines) if several else []
    yield Candidate(
        target=target,
        lines=lines,
        spoken=formula in (FORMULAS[0], MEANS, SUMS),
        small=formula is MEANS,
        plain=formula is MEANS and places == places_before and _are_alike(operands, keys),
        parts=frozenset((target.place, *places)),
        computed=computed,
        formula=lambda key: formula.expression([line.numbers[key] for line in operands]),
        of=formula,
        operands=tuple(operands),
        covers_all=formula is SUMS and places == places_before,
        complete=several and _is_complete(target, places, lines),
    )


def _is_complete(target: Line, places: Sequence[int], lines: Lines) -> bool:
    """Whether lines at these places are all others than the target, or all on one side of it."""
    other_places = [line.place for line in lines.lines if line is not target and line.place not in places]
    if places[0] > target.place:
        return all(place < target.place for place in other_places)
    return not other_places or min(other_places) > target.place


def _keep_one_kind(
    target: Line, formula: Formula, operands: Sequence[Line], keys: Sequence[str], lines: Lines
) -> list[str]:
    """The keys whose numbers can be added or subtracted: of one kind and unit, no shares in a total, no counts among
    what a mean is of."""
    kinds = {line.kind for line in (*operands, target)}
    units = {line.name_unit for line in (*operands, target)} - {"", "%", "pp"}
    if len(units) > 1 or "date" in kinds or not _can_give(target.kind, {line.kind for line in operands} - {""}):
        return []
    fitting_keys = list(keys)
    if any(line.units for line in operands):
        units_by_key = {key: {line.unit(key) for line in operands} for key in keys}
        fitting_keys = [
            key for key in keys if len(units_by_key[key]) == 1 and _can_give(target.unit(key), units_by_key[key] - {""})
        ]
    if formula.adds:
        return [key for key in fitting_keys if is_added(key)]
    if formula is not MEANS:
        return fitting_keys
    levels = [key for key in fitting_keys if key not in lines.counts]
    return levels or fitting_keys


def _are_one_size(operands: Sequence[Line], key: str) -> bool:
    """Whether numbers can be on one scale: 0.5 next to 50 is a share next to a percentage."""
    sizes = [abs(line.ends[key][1]) for line in operands if line.ends[key][1]]
    return not sizes or max(sizes) <= SCALE * min(sizes)


def _can_give(target: str, operands: set[str]) -> bool:
    """Whether a result of a kind or unit can come from operands of these; percent can be points of bare numbers."""
    return len(operands) <= 1 and (not operands or target in ("", *operands))


def _is_nothing(a: Ends, b: Ends) -> bool:
    """Whether one of two operands is negligible against the other: A = B would pass for A = B - C."""
    first, second = abs(a[1]), abs(b[1])
    return first < NOTHING * second or second < NOTHING * first


def _relate_to_baseline(
    target: Line, other_lines: Sequence[Line], lines: Lines, part: TablePart, budget: Budget, stated: bool
) -> Iterator[Candidate]:
    formulas = [
        formula
        for formula in FORMULAS
        if formula.baseline
        and formula.says(target) == stated
        and not (formula.unsigned and target.signed)
        and (stated or formula.unsaid)
    ]
    for line in other_lines if formulas else ():
        if not stated and not part.baseline and abs(line.place - target.place) > 3:
            continue
        for name in _list_baselines(target, line, lines, part):
            first = {} if name else _find_group_firsts(line, lines)
            base = {key: name or first[key] for key in lines.keys}
            shared_keys = [
                key
                for key in lines.keys
                if key in target.ends and key in line.ends and base[key] in line.ends and base[key] != key
            ]
            for formula in formulas:
                if budget.left < 0:
                    continue
                keys: Sequence[str] = shared_keys
                budget.left -= 2 * len(keys)
                if formula.linear:
                    keys = [
                        key
                        for key in _keep_one_kind(target, formula, (line,), keys, lines)
                        if not _is_nothing(line.ends[base[key]], line.ends[key])
                    ]
                if not keys:
                    continue
                computed = {key: ends for key in keys if (ends := formula.ends([line.ends[base[key]], line.ends[key]]))}
                yield Candidate(
                    target=target,
                    lines=lines,
                    baseline=BASELINE.format(name) if name else GROUP_FIRST,
                    spoken=formula in DIFFERENCES,
                    small=formula in DIFFERENCES and bool(name) and line.name not in lines.table.counts,
                    plain=formula is FORMULAS[0] and bool(name) and [line.place] == _list_before(target, lines)[-1:],
                    parts=frozenset((target.place, line.place)),
                    computed=computed,
                    formula=lambda key, line=line, base=base, formula=formula: formula.expression(  # type: ignore[misc]
                        [line.numbers[base[key]], line.numbers[key]]
                    ),
                    of=formula,
                    operands=(line,),
                )


def _list_baselines(target: Line, line: Line, lines: Lines, part: TablePart) -> Iterator[str]:
    """Names of rows that may be the baseline; an empty one for the first row of each group."""
    if part.baseline:
        yield part.baseline
        return
    zero_keys = {
        key for key in line.ends if (key in target.ends and target.ends[key][1] in (0, 1)) or target.cells[key].empty
    }
    named_keys = {key for key in line.ends if says(key, BASELINE_WORDS)}
    yield from sorted(zero_keys | named_keys, key=lines.keys.index)[:4]
    if len(set(lines.groups.values())) > 1:
        yield ""


def _find_group_firsts(line: Line, lines: Lines) -> dict[str, str]:
    """For each key the first one of its group that the line has."""
    firsts: dict[int, str] = {}
    for key in lines.keys:
        if key in line.cells:
            firsts.setdefault(lines.groups[key], key)
    return {key: firsts[lines.groups[key]] for key in lines.keys}
