"""Finds relations among the numbers of a table without being told, and checks every row against those that hold.

Differences, percentages, ratios, sums, means, against another column or against a baseline's row; perplexity against
loss; p against z or t; means that no whole numbers give; ranks; bold and underlined numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from plumbline.audit.paper import mark_checks, statistic_checks
from plumbline.audit.paper.audit_file import TablePart
from plumbline.audit.paper.doubts import Doubt, doubts_of
from plumbline.audit.paper.evidence import SAID_ALL, Agreement, agreement, chance_of_a_mean, meets, rounds_to, tail
from plumbline.audit.paper.formulas import BASELINE, DIFFERENCES, FORMULAS, GROUP_FIRST, MEANS, SUMS, Formula
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.lines import SMALL, Ends, Line, Lines, columns_of, rows_of
from plumbline.audit.paper.names import is_added, is_spread, kind_of
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.published.expression import Given

#: Most numbers that the search in one table computes.
WORK = 1_500_000

#: How often a row is looked at where a candidate is measured.
COST = 12

#: Share of the rows from which a relation that a name says is spoken of, though it is not checked.
SPOKEN = 1 / 3

#: Share of the larger operand below which the other one is as good as nothing: A = B passes for A = B - C.
NOTHING = 0.025

#: How many times larger than another a number may be that a mean is of.
SCALE = 50


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A relation that is tried: its target, its sentence, what it computes for each key, and the lines it is of.

    `spoken`: worth a word where three rows agree and it does not hold; `small`: in a small table where one does;
    `plain`: where it has one row or two, of which none need agree: it is what the target's name says first.
    """

    target: Line
    words: str
    spoken: bool
    small: bool
    plain: bool
    parts: frozenset[int]
    computed: dict[str, Ends]
    formula: Callable[[str], Given]
    of: Formula
    given: tuple[Line, ...] = ()

    def measured(self) -> Agreement:
        """How many rows agree."""
        keys = [key for key in self.computed if key in self.target.ends]
        printed, computed = [self.target.ends[key] for key in keys], [self.computed[key] for key in keys]
        found = agreement(printed, computed)
        if self.of is MEANS and 2 * sum(map(rounds_to, printed, computed)) < found.agree:
            return replace(found, chance=1.0)  # near in most rows, and the rounded mean in few: a weighted one
        if self.of is MEANS and len(keys) >= 2 and MEANS.says(self.target):
            # A column that is called a mean has a narrow span; what another mean of its row could be is wider.
            values = [[line.ends[key][1] for line in self.given] for key in keys]
            return replace(found, chance=min(found.chance, chance_of_a_mean(printed, computed, values)))
        return found

    def measured_apart(self) -> Agreement:
        """The same, where the chance is also that of rows whose operands are changed for those of others one by one:
        an operand that is nearly one number, or nothing, is no evidence."""
        found, keys = self.measured(), list(self.computed)
        printed = [self.target.ends[key] for key in keys]
        for moved in range(len(self.given) if len(self.given) == 2 else 0):
            hits = tries = 0
            for shift in range(1, min(len(keys), 12)):
                for n, key in enumerate(keys):
                    other = keys[(n + shift) % len(keys)]
                    ends = self.of.ends(
                        [line.ends[other if place == moved else key] for place, line in enumerate(self.given)]
                    )
                    hits, tries = hits + (ends is not None and meets(printed[n], ends)), tries + 1
            found = replace(found, chance=max(found.chance, hits / tries))
        return found


class _Budget:
    """What the search in one table may still compute."""

    def __init__(self) -> None:
        self.left = WORK


def look_at(table: PaperTable, part: TablePart, ledger: Ledger) -> None:
    """Look for relations along the columns and along the rows of a table, and check their rows."""
    seen: set[tuple[str, frozenset[int]]] = set()
    done: set[tuple[str, int]] = set()
    by_column, by_row = columns_of(table, part.skip), rows_of(table, part.skip)
    for lines in (by_column, by_row):
        budget = _Budget()
        # What a name says goes before what none does, so that a difference is told as one and not as a part of it.
        for said in (True, False):
            for target in lines.lines:
                aside = not said and lines is by_row and not by_column.is_small(target.name)
                if (lines.along, target.place) not in done and not aside:
                    _look_for(target, lines, part, ledger, seen, done, budget, said=said)
        if budget.left < 0:
            ledger.dropped.append(f"{table.name}: too large to look for every relation among its {lines.along}s")
    statistic_checks.look_at(by_column, part, ledger)
    explained = {
        along: {line.name for line in lines.lines if (along, line.place) in done}
        for along, lines in (("column", by_column), ("row", by_row))
    }
    mark_checks.look_at(by_column, by_row, part, ledger, explained)


def _look_for(
    target: Line,
    lines: Lines,
    part: TablePart,
    ledger: Ledger,
    seen: set[tuple[str, frozenset[int]]],
    done: set[tuple[str, int]],
    budget: _Budget,
    *,
    said: bool,
) -> None:
    """Take the relation of a line to others that most rows agree with, if chance does not explain it.

    `said`: those that a name says; else the others.
    """
    tried: list[tuple[Candidate, Agreement]] = []
    for candidate in _candidates(target, lines, part, budget, said):
        if (lines.along, candidate.parts) not in seen:
            tried.append((candidate, candidate.measured()))
            budget.left -= COST * len(candidate.computed)
    tries = sum(found.rows >= 2 for _, found in tried)
    # A row that no name calls a difference is only looked at to know it for one: it is no competitor of the others.
    checked = said or lines.along == "column"
    holding = [(one, found) for one, found in tried if found.holds(tries, said=said or not checked)]
    if not said and checked:
        holding = [(one, found) for one, found in holding if one.measured_apart().holds(tries, said=False)]
    if holding:
        best, _ = max(holding, key=lambda pair: (pair[1].agree / pair[1].rows, pair[1].agree, len(pair[0].parts)))
        seen.add((lines.along, best.parts))
        done.add((lines.along, target.place))
        if checked:
            _check(best, lines, ledger, stated=said)
        return
    if said:
        _say(tried, tries, lines, ledger)


def _say(tried: Sequence[tuple[Candidate, Agreement]], tries: int, lines: Lines, ledger: Ledger) -> None:
    """Name the relation that a name says and that too few rows agree with, with what it gives where it does not."""
    spoken = [
        (one, found)
        for one, found in tried
        if (one.spoken and found.agree >= 3 and found.agree >= SPOKEN * found.rows)
        or (one.small and found.agree >= 1 and found.rows <= SMALL + 1)
        or (one.plain and 0 < found.rows < SMALL)
    ]
    if spoken:
        best, found = max(spoken, key=lambda pair: (pair[1].agree / pair[1].rows, pair[1].rows, pair[0].plain))
        doubted = _is_doubted(found, tries) and found.rows - found.agree > len(_doubts(best, lines))
        ledger.drop(lines.table.name, best.words, best.target, best.computed, doubted=doubted)


def _is_doubted(found: Agreement, tries: int) -> bool:
    """Whether so many rows agree with a relation that is not checked that the others may be wrong: all but one of four
    or more, or most of them and more than chance would have it."""
    if found.agree < 3 or found.agree == found.rows or found.chance >= 1:
        return False
    most = 2 * found.agree > found.rows and tail(found.agree, found.rows, found.chance) * max(1, tries) < SAID_ALL
    return most or found.agree == found.rows - 1


def _doubts(candidate: Candidate, lines: Lines) -> dict[str, Doubt]:
    return doubts_of(candidate.target, candidate.of, candidate.given, candidate.computed, lines)


def _check(candidate: Candidate, lines: Lines, ledger: Ledger, *, stated: bool) -> None:
    """Check each row of a relation; `stated`: a name says it."""
    table, target = lines.table.name, candidate.target
    doubts = _doubts(candidate, lines)
    for key, doubt in doubts.items():
        if doubt.explains:
            said = f"not {key} (printed {target.numbers[key]}): {doubt.reason}"
            ledger.dropped.append(f"{table}: {candidate.words}: {said}")
    explained = {key for key, doubt in doubts.items() if doubt.explains}
    keys = [key for key in candidate.computed if key in target.ends and key not in explained]
    named = {key: (key, target.name) if lines.along == "column" else (target.name, key) for key in keys}
    rows = [
        RelationRow(
            key,
            ", ".join((table, *named[key])),
            target.numbers[key],
            candidate.formula(key),
            stated,
            doubts[key].reason if key in doubts else "",
        )
        for key in keys
    ]
    ledger.hold(table, target.name, candidate.words, rows)


def _candidates(target: Line, lines: Lines, part: TablePart, budget: _Budget, said: bool) -> Iterator[Candidate]:
    others = [line for line in lines.lines if line is not target]
    for formula in FORMULAS:
        if formula.says(target) != said or not (said or formula.unsaid) or (formula.unsigned and target.signed):
            continue
        for one in others if formula.pairs and budget.left >= 0 else ():
            for two in others:
                near = abs(one.place - target.place) <= 3 and abs(two.place - target.place) <= 3
                if one is not two and (said or near) and (formula.ordered or one.place < two.place):
                    yield from _of_lines(target, formula, (one, two), lines, budget)
    for formula in (MEANS, SUMS):
        if said and formula.says(target):
            for window in _windows(target, others):
                yield from _of_lines(target, formula, window, lines, budget)
    before = [line for line in others if line.place < target.place]
    if not said and not MEANS.says(target) and len(before) >= 3:
        yield from _of_lines(target, MEANS, before, lines, budget)
    if lines.along == "column":
        yield from _to_baseline(target, others, lines, part, budget, said)


def _before(target: Line, lines: Lines) -> list[int]:
    """Places of the lines before a line; of those after it where there is none."""
    before = [line.place for line in lines.lines if line.place < target.place]
    return before or [line.place for line in lines.lines if line.place > target.place]


def _alike(given: Sequence[Line], keys: Sequence[str]) -> bool:
    """Whether lines can be of one kind, so that a mean of them can be meant: no spreads, and values of one size."""
    values = [abs(line.ends[key][1]) for line in given for key in keys]
    return all(is_spread(line.name) is False for line in given) and max(values) <= 10 * min(values)


def _windows(target: Line, others: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Neighbouring lines that a mean may be of: all others, and those next to the target on one side."""
    before = [line for line in others if line.place < target.place]
    after = [line for line in others if line.place > target.place]
    if len(others) >= 2:
        yield others
    for start in range(len(before) - 1):
        if start or after:
            yield before[start:]
    for end in range(2, len(after) + 1):
        if end < len(after) or before:
            yield after[:end]
    # Without the last one or two before it, which may be of another kind.
    for end in (len(before) - 1, len(before) - 2):
        for start in range(max(0, end - 1)):
            yield before[start:end]


def _of_lines(
    target: Line, formula: Formula, given: Sequence[Line], lines: Lines, budget: _Budget
) -> Iterator[Candidate]:
    budget.left -= len(lines.linear) // 4 + 6 * len(given)
    if budget.left < 0:
        return
    keys = [key for key in lines.linear if key in target.ends and all(key in line.ends for line in given)]
    if formula.linear:
        keys = _of_one_kind(target, formula, given, keys)
    if not keys:
        return
    sample = keys[:6]
    first = {key: formula.ends([line.ends[key] for line in given]) for key in sample}
    if len(keys) >= 6 and sum(first[key] is not None and meets(target.ends[key], first[key]) for key in sample) < 2:  # type: ignore[arg-type]
        return
    if formula.linear and formula in FORMULAS:
        keys = [key for key in keys if not _is_nothing(given[0].ends[key], given[1].ends[key])]
        if not keys:
            return
    computed = {key: ends for key in keys if (ends := formula.ends([line.ends[key] for line in given])) is not None}
    yield Candidate(
        target=target,
        words=formula.sentence(target.name, [line.name for line in given], lines.along),
        spoken=formula in (FORMULAS[0], MEANS, SUMS),
        small=formula is MEANS,
        plain=formula is MEANS and [line.place for line in given] == _before(target, lines) and _alike(given, keys),
        parts=frozenset((target.place, *(line.place for line in given))),
        computed=computed,
        formula=lambda key: formula.expression([line.numbers[key] for line in given]),
        of=formula,
        given=tuple(given),
    )


def _of_one_kind(target: Line, formula: Formula, given: Sequence[Line], keys: Sequence[str]) -> list[str]:
    """The keys whose numbers can be added or subtracted: of one kind and unit, no shares in a total, no counts among
    what a mean is of."""
    kinds = {line.kind for line in (*given, target)}
    if "date" in kinds or not _fit(target.kind, {line.kind for line in given} - {""}):
        return []
    found = list(keys)
    if any(line.units for line in given):
        units = {key: {line.unit(key) for line in given} for key in keys}
        found = [key for key in keys if len(units[key]) == 1 and _fit(target.unit(key), units[key] - {""})]
    if formula.adds:
        return [key for key in found if is_added(key)]
    if formula is not MEANS:
        return found
    counts = [key for key in found if kind_of(key) == "count"]
    return [key for key in found if (key not in counts or len(counts) == len(found)) and _of_one_size(given, key)]


def _of_one_size(given: Sequence[Line], key: str) -> bool:
    """Whether numbers can be on one scale: 0.5 beside 50 is a share beside a percentage."""
    sizes = [abs(line.ends[key][1]) for line in given if line.ends[key][1]]
    return not sizes or max(sizes) <= SCALE * min(sizes)


def _fit(target: str, given: set[str]) -> bool:
    """Whether a result of a kind or unit can come from operands of these; percent can be points of bare numbers."""
    return len(given) <= 1 and (not given or target in ("", *given))


def _is_nothing(one: Ends, two: Ends) -> bool:
    """Whether one of two operands is as good as nothing beside the other: A = B would pass for A = B - C."""
    first, second = abs(one[1]), abs(two[1])
    return first < NOTHING * second or second < NOTHING * first


def _to_baseline(
    target: Line, others: Sequence[Line], lines: Lines, part: TablePart, budget: _Budget, said: bool
) -> Iterator[Candidate]:
    for one in others:
        for name in _baselines(target, one, lines, part):
            for formula in FORMULAS:
                if not formula.baseline or budget.left < 0 or formula.says(target) != said:
                    continue
                if formula.unsigned and target.signed:
                    continue
                if not said and not formula.unsaid:
                    continue
                if not said and not part.baseline and abs(one.place - target.place) > 3:
                    continue
                base = {key: name or _first_of_group(key, one, lines) for key in lines.keys}
                keys = [
                    key
                    for key in lines.keys
                    if key in target.ends and key in one.ends and base[key] in one.ends and base[key] != key
                ]
                budget.left -= 2 * len(keys)
                if formula.linear:
                    keys = [
                        key
                        for key in _of_one_kind(target, formula, (one,), keys)
                        if not _is_nothing(one.ends[base[key]], one.ends[key])
                    ]
                if not keys:
                    continue
                computed = {key: ends for key in keys if (ends := formula.ends([one.ends[base[key]], one.ends[key]]))}
                yield Candidate(
                    target=target,
                    words=formula.sentence(
                        target.name, [BASELINE.format(name) if name else GROUP_FIRST, one.name], lines.along
                    ),
                    spoken=formula in DIFFERENCES,
                    small=formula in DIFFERENCES and bool(name) and one.name not in lines.table.counts,
                    plain=formula is FORMULAS[0] and bool(name) and [one.place] == _before(target, lines)[-1:],
                    parts=frozenset((target.place, one.place)),
                    computed=computed,
                    formula=lambda key, one=one, base=base, formula=formula: formula.expression(  # type: ignore[misc]
                        [one.numbers[base[key]], one.numbers[key]]
                    ),
                    of=formula,
                )


def _baselines(target: Line, one: Line, lines: Lines, part: TablePart) -> Iterator[str]:
    """Names of rows that may be the baseline; an empty one for the first row of each group."""
    if part.baseline:
        yield part.baseline
        return
    zero = {
        key for key in one.ends if (key in target.ends and target.ends[key][1] in (0, 1)) or target.cells[key].empty
    }
    named = {
        key
        for key in one.ends
        if any(word in f" {key.lower()} " for word in ("baseline", "control", "reference", "vanilla"))
    }
    yield from sorted(zero | named, key=lines.keys.index)[:4]
    if len(set(lines.groups.values())) > 1:
        yield ""


def _first_of_group(key: str, one: Line, lines: Lines) -> str:
    return next(other for other in lines.keys if lines.groups[other] == lines.groups[key] and other in one.cells)
