"""Finds relations among the numbers of a table that nobody stated, and checks every row against those that hold.

Differences, percentages, ratios, sums, means, against another column or against a baseline's row; perplexity against
loss; p against z or t; means that no whole numbers give; ranks; bold and underlined numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from plumbline.audit.paper import mark_checks, statistic_checks
from plumbline.audit.paper.audit_file import TablePart
from plumbline.audit.paper.doubts import Doubt, find_doubts
from plumbline.audit.paper.evidence import SAID_ALL, Agreement, chance_of_a_mean, meets, rate_agreement, rounds_to, tail
from plumbline.audit.paper.formulas import BASELINE, DIFFERENCES, FORMULAS, GROUP_FIRST, MEANS, SUMS, Formula
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.lines import SMALL, Ends, Line, Lines, columns_of, rows_of
from plumbline.audit.paper.names import is_added, is_spread, kind_of
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.published.expression import Given

#: Most numbers that the search in one table computes.
WORK = 1_500_000

#: How often each row is read to measure a candidate.
COST = 12

#: Share of the rows from which a relation that a name states is reported, though it is not checked.
SPOKEN = 1 / 3

#: Share of the larger operand below which the other one is as good as nothing: A = B passes for A = B - C.
NOTHING = 0.025

#: How many times larger than another a number may be that a mean is of.
SCALE = 50


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A relation that is tried: its target, its sentence, what it computes for each key, and the lines it is of.

    `spoken`: worth a word where three rows agree and it does not hold; `small`: in a small table where one does;
    `plain`: where it has one row or two, of which none need agree: it is what the target's name most plainly states.
    """

    target: Line
    sentence: str
    spoken: bool
    small: bool
    plain: bool
    parts: frozenset[int]
    computed: dict[str, Ends]
    formula: Callable[[str], Given]
    of: Formula
    operands: tuple[Line, ...] = ()

    def measure(self) -> Agreement:
        """How many rows agree."""
        keys = [key for key in self.computed if key in self.target.ends]
        printed, computed = [self.target.ends[key] for key in keys], [self.computed[key] for key in keys]
        agreement = rate_agreement(printed, computed)
        if self.of is MEANS and 2 * sum(map(rounds_to, printed, computed)) < agreement.agree:
            return replace(agreement, chance=1.0)  # near in most rows, and the rounded mean in few: a weighted one
        if self.of is MEANS and len(keys) >= 2 and MEANS.says(self.target):
            # A column that is called a mean has a narrow span; what another mean of its row could be is wider.
            values = [[line.ends[key][1] for line in self.operands] for key in keys]
            return replace(agreement, chance=min(agreement.chance, chance_of_a_mean(printed, computed, values)))
        return agreement

    def measure_against_shuffled(self) -> Agreement:
        """The same, where the chance is also that of rows whose operands are changed for those of others one by one:
        an operand that is nearly one number, or nothing, is not evidence."""
        agreement, keys = self.measure(), list(self.computed)
        printed = [self.target.ends[key] for key in keys]
        for moved in range(len(self.operands) if len(self.operands) == 2 else 0):
            hits = tries = 0
            for shift in range(1, min(len(keys), 12)):
                for n, key in enumerate(keys):
                    other = keys[(n + shift) % len(keys)]
                    ends = self.of.ends(
                        [line.ends[other if place == moved else key] for place, line in enumerate(self.operands)]
                    )
                    hits, tries = hits + (ends is not None and meets(printed[n], ends)), tries + 1
            agreement = replace(agreement, chance=max(agreement.chance, hits / tries))
        return agreement


class _Budget:
    """What the search in one table may still compute."""

    def __init__(self) -> None:
        self.left = WORK


def check_relations(table: PaperTable, part: TablePart, ledger: Ledger) -> None:
    """Look for relations along the columns and along the rows of a table, and check their rows."""
    relation_parts: set[tuple[str, frozenset[int]]] = set()
    done: set[tuple[str, int]] = set()
    by_column, by_row = columns_of(table, part.skip), rows_of(table, part.skip)
    for lines in (by_column, by_row):
        budget = _Budget()
        # What a name states goes before what none does, so that a difference is found as one and not as a part of it.
        for stated in (True, False):
            for target in lines.lines:
                aside = not stated and lines is by_row and not by_column.is_small(target.name)
                if (lines.along, target.place) not in done and not aside:
                    _find_relation(target, lines, part, ledger, relation_parts, done, budget, stated=stated)
        if budget.left < 0:
            ledger.dropped.append(f"{table.name}: too large to look for every relation among its {lines.along}s")
    statistic_checks.check_statistics(by_column, part, ledger)
    explained = {
        along: {line.name for line in lines.lines if (along, line.place) in done}
        for along, lines in (("column", by_column), ("row", by_row))
    }
    mark_checks.check_marks(by_column, by_row, part, ledger, explained)


def _find_relation(
    target: Line,
    lines: Lines,
    part: TablePart,
    ledger: Ledger,
    relation_parts: set[tuple[str, frozenset[int]]],
    done: set[tuple[str, int]],
    budget: _Budget,
    *,
    stated: bool,
) -> None:
    """Take the relation of a line to others that most rows agree with, if chance does not explain it.

    `stated`: those that a name states; else the others.
    """
    tried: list[tuple[Candidate, Agreement]] = []
    for candidate in _list_candidates(target, lines, part, budget, stated):
        if (lines.along, candidate.parts) not in relation_parts:
            tried.append((candidate, candidate.measure()))
            budget.left -= COST * len(candidate.computed)
    tries = sum(agreement.rows >= 2 for _, agreement in tried)
    # A row that no name calls a difference is only found to recognise it as one: it does not compete with the others.
    checked = stated or lines.along == "column"
    holding = [pair for pair in tried if pair[1].holds(tries, stated=stated or not checked)]
    if not stated and checked:
        holding = [pair for pair in holding if pair[0].measure_against_shuffled().holds(tries, stated=False)]
    if holding:
        best, _ = max(holding, key=lambda pair: (pair[1].agree / pair[1].rows, pair[1].agree, len(pair[0].parts)))
        relation_parts.add((lines.along, best.parts))
        done.add((lines.along, target.place))
        if checked:
            _check(best, lines, ledger, stated=stated)
        return
    if stated:
        _drop_stated(tried, tries, lines, ledger)


def _drop_stated(tried: Sequence[tuple[Candidate, Agreement]], tries: int, lines: Lines, ledger: Ledger) -> None:
    """Report the relation that a name states and that too few rows agree with, with what it gives where it does not."""
    spoken = [
        (candidate, agreement)
        for candidate, agreement in tried
        if (candidate.spoken and agreement.agree >= 3 and agreement.agree >= SPOKEN * agreement.rows)
        or (candidate.small and agreement.agree >= 1 and agreement.rows <= SMALL + 1)
        or (candidate.plain and 0 < agreement.rows < SMALL)
    ]
    if spoken:
        best, agreement = max(spoken, key=lambda pair: (pair[1].agree / pair[1].rows, pair[1].rows, pair[0].plain))
        doubted = _is_doubted(agreement, tries) and agreement.rows - agreement.agree > len(_find_doubts(best, lines))
        ledger.drop(lines.table.name, best.sentence, best.target, best.computed, doubted=doubted)


def _is_doubted(agreement: Agreement, tries: int) -> bool:
    """Whether so many rows agree with a relation that is not checked that the others may be wrong: all but one of four
    or more, or most of them and more than chance would have it."""
    agree, rows, chance = agreement.agree, agreement.rows, agreement.chance
    if agree < 3 or agree == rows or chance >= 1:
        return False
    most = 2 * agree > rows and tail(agree, rows, chance) * max(1, tries) < SAID_ALL
    return most or agree == rows - 1


def _find_doubts(candidate: Candidate, lines: Lines) -> dict[str, Doubt]:
    return find_doubts(candidate.target, candidate.of, candidate.operands, candidate.computed, lines)


def _check(candidate: Candidate, lines: Lines, ledger: Ledger, *, stated: bool) -> None:
    """Check each row of a relation; `stated`: a name states it."""
    table, target = lines.table.name, candidate.target
    doubts = _find_doubts(candidate, lines)
    for key, doubt in doubts.items():
        if doubt.explains:
            text = f"not {key} (printed {target.numbers[key]}): {doubt.reason}"
            ledger.dropped.append(f"{table}: {candidate.sentence}: {text}")
    explained = {key for key, doubt in doubts.items() if doubt.explains}
    keys = [key for key in candidate.computed if key in target.ends and key not in explained]
    names = {key: (key, target.name) if lines.along == "column" else (target.name, key) for key in keys}
    rows = [
        RelationRow(
            key,
            ", ".join((table, *names[key])),
            target.numbers[key],
            candidate.formula(key),
            stated,
            doubts[key].reason if key in doubts else "",
        )
        for key in keys
    ]
    ledger.hold(table, target.name, candidate.sentence, rows)


def _list_candidates(target: Line, lines: Lines, part: TablePart, budget: _Budget, stated: bool) -> Iterator[Candidate]:
    others = [line for line in lines.lines if line is not target]
    for formula in FORMULAS:
        if formula.says(target) != stated or not (stated or formula.unsaid) or (formula.unsigned and target.signed):
            continue
        for first in others if formula.pairs and budget.left >= 0 else ():
            for second in others:
                near = abs(first.place - target.place) <= 3 and abs(second.place - target.place) <= 3
                if first is not second and (stated or near) and (formula.ordered or first.place < second.place):
                    yield from _relate_lines(target, formula, (first, second), lines, budget)
    for formula in (MEANS, SUMS):
        if stated and formula.says(target):
            for window in _list_windows(target, others):
                yield from _relate_lines(target, formula, window, lines, budget)
    before = [line for line in others if line.place < target.place]
    if not stated and not MEANS.says(target) and len(before) >= 3:
        yield from _relate_lines(target, MEANS, before, lines, budget)
    if lines.along == "column":
        yield from _relate_to_baseline(target, others, lines, part, budget, stated)


def _list_before(target: Line, lines: Lines) -> list[int]:
    """Places of the lines before a line; of those after it where there is none."""
    before = [line.place for line in lines.lines if line.place < target.place]
    return before or [line.place for line in lines.lines if line.place > target.place]


def _are_alike(lines: Sequence[Line], keys: Sequence[str]) -> bool:
    """Whether lines can be of one kind, so that a mean of them can be meant: no spreads, and values of one size."""
    values = [abs(line.ends[key][1]) for line in lines for key in keys]
    return all(is_spread(line.name) is False for line in lines) and max(values) <= 10 * min(values)


def _list_windows(target: Line, others: Sequence[Line]) -> Iterator[Sequence[Line]]:
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


def _relate_lines(
    target: Line, formula: Formula, operands: Sequence[Line], lines: Lines, budget: _Budget
) -> Iterator[Candidate]:
    budget.left -= len(lines.linear) // 4 + 6 * len(operands)
    if budget.left < 0:
        return
    keys = [key for key in lines.linear if key in target.ends and all(key in line.ends for line in operands)]
    if formula.linear:
        keys = _keep_one_kind(target, formula, operands, keys)
    if not keys:
        return
    sample = keys[:6]
    first = {key: formula.ends([line.ends[key] for line in operands]) for key in sample}
    if len(keys) >= 6 and sum(first[key] is not None and meets(target.ends[key], first[key]) for key in sample) < 2:  # type: ignore[arg-type]
        return
    if formula.linear and formula in FORMULAS:
        keys = [key for key in keys if not _is_nothing(operands[0].ends[key], operands[1].ends[key])]
        if not keys:
            return
    computed = {key: ends for key in keys if (ends := formula.ends([line.ends[key] for line in operands])) is not None}
    places = [line.place for line in operands]
    yield Candidate(
        target=target,
        sentence=formula.sentence(target.name, [line.name for line in operands], lines.along),
        spoken=formula in (FORMULAS[0], MEANS, SUMS),
        small=formula is MEANS,
        plain=formula is MEANS and places == _list_before(target, lines) and _are_alike(operands, keys),
        parts=frozenset((target.place, *places)),
        computed=computed,
        formula=lambda key: formula.expression([line.numbers[key] for line in operands]),
        of=formula,
        operands=tuple(operands),
    )


def _keep_one_kind(target: Line, formula: Formula, operands: Sequence[Line], keys: Sequence[str]) -> list[str]:
    """The keys whose numbers can be added or subtracted: of one kind and unit, no shares in a total, no counts among
    what a mean is of."""
    kinds = {line.kind for line in (*operands, target)}
    if "date" in kinds or not _can_give(target.kind, {line.kind for line in operands} - {""}):
        return []
    alike = list(keys)
    if any(line.units for line in operands):
        units = {key: {line.unit(key) for line in operands} for key in keys}
        alike = [key for key in keys if len(units[key]) == 1 and _can_give(target.unit(key), units[key] - {""})]
    if formula.adds:
        return [key for key in alike if is_added(key)]
    if formula is not MEANS:
        return alike
    counts = [key for key in alike if kind_of(key) == "count"]
    return [key for key in alike if (key not in counts or len(counts) == len(alike)) and _are_one_size(operands, key)]


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
    target: Line, others: Sequence[Line], lines: Lines, part: TablePart, budget: _Budget, stated: bool
) -> Iterator[Candidate]:
    for line in others:
        for name in _list_baselines(target, line, lines, part):
            for formula in FORMULAS:
                if not formula.baseline or budget.left < 0 or formula.says(target) != stated:
                    continue
                if formula.unsigned and target.signed:
                    continue
                if not stated and not formula.unsaid:
                    continue
                if not stated and not part.baseline and abs(line.place - target.place) > 3:
                    continue
                base = {key: name or _find_group_first(key, line, lines) for key in lines.keys}
                keys = [
                    key
                    for key in lines.keys
                    if key in target.ends and key in line.ends and base[key] in line.ends and base[key] != key
                ]
                budget.left -= 2 * len(keys)
                if formula.linear:
                    keys = [
                        key
                        for key in _keep_one_kind(target, formula, (line,), keys)
                        if not _is_nothing(line.ends[base[key]], line.ends[key])
                    ]
                if not keys:
                    continue
                computed = {key: ends for key in keys if (ends := formula.ends([line.ends[base[key]], line.ends[key]]))}
                yield Candidate(
                    target=target,
                    sentence=formula.sentence(
                        target.name, [BASELINE.format(name) if name else GROUP_FIRST, line.name], lines.along
                    ),
                    spoken=formula in DIFFERENCES,
                    small=formula in DIFFERENCES and bool(name) and line.name not in lines.table.counts,
                    plain=formula is FORMULAS[0] and bool(name) and [line.place] == _list_before(target, lines)[-1:],
                    parts=frozenset((target.place, line.place)),
                    computed=computed,
                    formula=lambda key, line=line, base=base, formula=formula: formula.expression(  # type: ignore[misc]
                        [line.numbers[base[key]], line.numbers[key]]
                    ),
                    of=formula,
                )


def _list_baselines(target: Line, other: Line, lines: Lines, part: TablePart) -> Iterator[str]:
    """Names of rows that may be the baseline; an empty one for the first row of each group."""
    if part.baseline:
        yield part.baseline
        return
    zero = {
        key for key in other.ends if (key in target.ends and target.ends[key][1] in (0, 1)) or target.cells[key].empty
    }
    by_name = {
        key
        for key in other.ends
        if any(word in f" {key.lower()} " for word in ("baseline", "control", "reference", "vanilla"))
    }
    yield from sorted(zero | by_name, key=lines.keys.index)[:4]
    if len(set(lines.groups.values())) > 1:
        yield ""


def _find_group_first(key: str, line: Line, lines: Lines) -> str:
    return next(other for other in lines.keys if lines.groups[other] == lines.groups[key] and other in line.cells)
