"""Checks what is printed within one cell: a value with its change, a list of values, an interval, stars at a p.

A change in brackets may be a difference, a percentage or a ratio to any other row or column: most cells of the table
decide which, and pay for the choice. A list is held against the mean and spread that are printed beside it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from plumbline.audit.math_functions import mean
from plumbline.audit.paper.evaluate import load_function
from plumbline.audit.paper.evidence import Agreement, meets, rate_agreement
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.lines import Ends, Line, Lines, ends_of
from plumbline.audit.paper.names import MEAN, is_spread, says
from plumbline.audit.paper.paper_source import CORRECTED_HERE
from plumbline.audit.paper.paper_table import PaperTable
from plumbline.published.expression import Given
from plumbline.published.interval_arithmetic import high, low
from plumbline.published.printed_number import PrintedNumber, exact

#: Most cells with a change, and rows or columns that it may be a change from, that are tried in one table.
CELLS, BASES = 400, 40

#: The base of a change in tables where each block of rows begins with its own.
ABOVE = "the nearest row above without one"

#: Why a change may be right that is so the other way round.
_OTHER_WAY = "the other direction gives it, and nothing tells the two"

#: Fewest values of a list, or columns of seeds, that have a spread; most of which one is computed.
LEAST, MOST = 3, 12

_SEED = re.compile(r" (?:seed|run|trial|fold|split|rep)s? #?\d+ ")
_STARS = re.compile(r"(?<!\*)(\*{1,5})\s?:?\s?p\s?(?:-?\s?value)?\s?[<≤]\s?(0?\.\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Change:
    """A way to compute a change of a number from a base, of floats and of printed numbers: its text, units of the
    brackets, formula, and that of the improvement where less is better."""

    text: str
    units: frozenset[str]
    compute: Callable[..., Any]
    turned: Callable[..., Any]

    @property
    def turned_round(self) -> _Change:
        """The same, of a measure of which less is better."""
        return replace(self, compute=self.turned, turned=self.compute)


_POINTS, _PERCENT, _TIMES = frozenset(("", "%", "pp", "pt", "pts", "points")), frozenset(("%", "")), frozenset("x×")
_CHANGES = (
    _Change("the number less", _POINTS, lambda x, b: x - b, lambda x, b: b - x),
    _Change("in per cent of", _PERCENT, lambda x, b: 100 * (x / b - 1), lambda x, b: 100 * (1 - x / b)),
    _Change("the number over", _TIMES, lambda x, b: x / b, lambda x, b: b / x),
    _Change("by how many times it is below", _TIMES, lambda x, b: b / x, lambda x, b: x / b),
)


@dataclass(frozen=True, slots=True)
class _Bracket:
    """A cell with a change: its line and key, the printed change and its ends."""

    line: Line
    key: str
    printed: PrintedNumber
    ends: Ends


def check_cells(by_column: Lines, by_row: Lines, ledger: Ledger) -> None:
    """Check what the cells of a table print beside their numbers."""
    for unit in ("", "%", "x"):
        _check_changes(by_column, by_row, unit, ledger)
    _check_lists(by_column.table, ledger)
    for lines in (by_column, by_row):
        _check_seeds(lines, ledger)
    _check_stars(by_column, ledger)


def _list_brackets(lines: Lines, unit: str) -> list[_Bracket]:
    """The cells that print a change: a number in brackets with a sign, per cent or times."""
    brackets = []
    for line in lines.lines:
        for key in line.numbers:
            cell = line.cells[key]
            change = cell.bracket is not None and (cell.bracket_signed or cell.bracket_unit in ("%", "x", "×"))
            if change and cell.bracket_unit.replace("×", "x") == unit:
                printed = lines.table.number(*lines.name_place(line.name, key), "brackets").as_rounded()
                brackets.append(_Bracket(line, key, printed, ends_of(printed)))
    return brackets[:CELLS]


def _check_changes(by_column: Lines, by_row: Lines, unit: str, ledger: Ledger) -> None:
    """Check changes in brackets against the base that most cells have in common."""
    attempts: list[tuple[Lines, str, _Change, list[_Bracket]]] = []
    for lines in (by_column, by_row):
        brackets = _list_brackets(lines, unit)
        if len(brackets) < LEAST:
            continue
        for base in (*lines.keys[:BASES], *[ABOVE] * (lines is by_column)):
            for change in _CHANGES:
                if unit in change.units:
                    changed = [pair[0] for pair in _compute_changes(brackets, base, change, lines)]
                    if len(changed) >= LEAST and 2 * len(changed) >= len(brackets):
                        attempts.append((lines, base, change, changed))
    ratings: list[tuple[Agreement, int, int]] = []
    for place, (lines, base, change, brackets) in enumerate(attempts):
        ways, improved, _ = _turn_round(brackets, base, change, lines)
        computed = [ways[bracket.line.name in improved][n] for n, bracket in enumerate(brackets)]
        agreement = rate_agreement([bracket.ends for bracket in brackets], computed)
        if base == ABOVE:
            agreement = replace(agreement, chance=_rate_other_bases(brackets, change, lines))
        tries = len(attempts) * 2 ** len(improved)
        if agreement.holds(tries, stated=True):
            ratings.append((agreement, -place, tries))
    ledger.searches += bool(attempts)
    if not ratings:
        return
    agreement, place, tries = max(ratings, key=lambda entry: (entry[0].agree / entry[0].rows, entry[0].agree, entry[1]))
    _hold_changes(*attempts[-place], agreement.chance_of_itself(tries), ledger)


def _turn_round(
    brackets: Sequence[_Bracket], base: str, change: _Change, lines: Lines
) -> tuple[list[list[Ends]], list[str], Counter[str]]:
    """What gives changes, as they are and turned round; lines that are turned round whole, as improvements are where
    less is better; and in how many more places each line is so than not."""
    ways = [[pair[1] for pair in _compute_changes(brackets, base, way, lines)] for way in (change, change.turned_round)]
    lead = Counter[str]()
    for bracket, straight, turned in zip(brackets, *ways, strict=True):
        lead[bracket.line.name] += meets(bracket.ends, turned) - meets(bracket.ends, straight)
    # Where more is better, a loss that is printed as a gain stays one, however many there are.
    improved = [line.name for line in lines.lines if line.direction <= 0 and lead[line.name] > 1 + line.direction]
    return ways, improved, lead


def _hold_changes(
    lines: Lines, base: str, change: _Change, brackets: Sequence[_Bracket], chance: float, ledger: Ledger
) -> None:
    """Check changes from their base."""
    ways, improved, lead = _turn_round(brackets, base, change, lines)
    sentence = f"changes in brackets are {change.text} that of {base}"
    sentence += f", of {', '.join(improved)} the other way round" if improved else ""
    unsigned = not any(bracket.line.cells[bracket.key].bracket_signed for bracket in brackets)
    doubts: dict[int, str] = {}
    for n, bracket in enumerate(brackets):
        line, is_turned = bracket.line, bracket.line.name in improved
        if meets(bracket.ends, ways[is_turned][n]):
            continue
        unsure = unsigned or (not is_turned and lead[line.name] >= 1 + line.direction)
        if unsure and meets(bracket.ends, ways[not is_turned][n]):
            doubts[n] = _OTHER_WAY
        elif name := _find_other_base(bracket, change.turned_round if is_turned else change, lines, base):
            doubts[n] = f"against {name} it is right"
    kinds = Counter(doubt == _OTHER_WAY for doubt in doubts.values())
    rows = []
    for n, bracket in enumerate(brackets):
        line, key, doubt = bracket.line, bracket.key, doubts.get(n, "")
        place = ", ".join((lines.table.name, *lines.name_place(line.name, key)))
        several = kinds[doubt == _OTHER_WAY] > 1
        if doubt and several and (unsigned or doubt != _OTHER_WAY):  # on purpose; a sign is not turned on purpose
            ledger.dropped.append(f"{place}: {sentence}: not here: {doubt}")
            continue
        number, of = line.numbers[key], line.numbers[_find_base(bracket, base, lines)]
        formula = (change.turned if line.name in improved else change.compute)(number, of)
        label = f"{place}, the change in brackets"
        rows.append(
            RelationRow(f"{line.name}.{key}", label, bracket.printed, formula, doubt=doubt or _find_mark(bracket))
        )
    ledger.hold(lines.table.name, "brackets", sentence, rows, chance=chance)


def _rate_other_bases(brackets: Sequence[_Bracket], change: _Change, lines: Lines) -> float:
    """How often a change is right against another number of its column: changes may be alike, where numbers are not."""
    results = [
        ends is not None and meets(bracket.ends, ends)
        for bracket in brackets
        for key in lines.keys[:BASES]
        if key in bracket.line.ends and key not in (bracket.key, _find_base(bracket, ABOVE, lines))
        for ends in [_compute(bracket.line.ends[bracket.key], bracket.line.ends[key], change)]
    ]
    return max(0.05, sum(results) / max(1, len(results)))


def _find_mark(bracket: _Bracket) -> str:
    return "a footnote mark stands there" if bracket.line.has_footnote(bracket.key) else ""


def _find_base(bracket: _Bracket, base: str, lines: Lines) -> str:
    """The row or column that a base is for one cell; nothing where there is none."""
    if base != ABOVE:
        return base
    above = lines.keys[: lines.keys.index(bracket.key)]
    cells = bracket.line.cells
    return next((key for key in reversed(above) if key in bracket.line.ends and cells[key].bracket is None), "")


def _compute_changes(
    brackets: Sequence[_Bracket], base: str, change: _Change, lines: Lines
) -> Iterator[tuple[_Bracket, Ends]]:
    for bracket in brackets:
        key = _find_base(bracket, base, lines)
        has_base = bracket.key != key and key in bracket.line.ends
        if has_base and bracket.line.scale(bracket.key) == bracket.line.scale(key):
            ends = _compute(bracket.line.ends[bracket.key], bracket.line.ends[key], change)
            if ends is not None:
                yield bracket, ends


def _compute(number: Ends, base: Ends, change: _Change) -> Ends | None:
    if change.units is not _POINTS and (base[0] <= 0 <= base[2] or number[0] <= 0 <= number[2]):
        return None
    values = [change.compute(x, b) for x in (number[0], number[2]) for b in (base[0], base[2])]
    return min(values), change.compute(number[1], base[1]), max(values)


def _find_other_base(bracket: _Bracket, change: _Change, lines: Lines, base: str) -> str:
    """Another base that gives a change, or nothing."""
    for key in lines.keys[:BASES]:
        if key not in (base, bracket.key) and key in bracket.line.ends:
            ends = _compute(bracket.line.ends[bracket.key], bracket.line.ends[key], change)
            if ends is not None and meets(bracket.ends, ends):
                return key
    return ""


def _spreads(values: Sequence[PrintedNumber]) -> Iterator[tuple[str, Given]]:
    """The spreads that a list may be printed with."""
    n, sample_sd = len(values), load_function("sample_sd")(list(values))
    yield "the standard deviation", sample_sd
    yield "the standard deviation over n", sample_sd * (1 - 1 / n) ** 0.5
    yield "the standard error", sample_sd / n**0.5


def _hold_best(
    table: str, name: str, attempts: Sequence[tuple[str, list[tuple[str, str, PrintedNumber, Given]]]], ledger: Ledger
) -> None:
    """Check the relation that most rows agree with, of those that were tried, where it holds."""
    ratings = []
    for place, (_, rows) in enumerate(attempts):
        computed = [ends_of_formula(row[3]) for row in rows]
        agreement = rate_agreement([ends_of(row[2]) for row in rows], computed)
        if agreement.holds(len(attempts), stated=True):
            ratings.append((agreement.agree / agreement.rows, -place, agreement))
    ledger.searches += bool(attempts)
    if ratings:
        _, place, agreement = max(ratings, key=lambda entry: entry[:2])
        sentence, rows = attempts[-place]
        relation_rows = [RelationRow(*row) for row in rows]
        ledger.hold(table, name, sentence, relation_rows, chance=agreement.chance_of_itself(len(attempts)))


def ends_of_formula(formula: Given) -> Ends:
    """The ends of a formula's value over all that rounds to its inputs, and the value at the printed ones."""
    middle, ranges = formula.expression().one()  # type: ignore[union-attr]
    return low(ranges), (low(middle) + high(middle)) / 2, high(ranges)


def _check_lists(table: PaperTable, ledger: Ledger) -> None:
    """Check lists of values in cells against the mean and the spread that are printed beside them."""
    columns = [column for column in table.columns[1:] if any(len(line[column].values) >= LEAST
                                                             for line in table.cells.values())]  # fmt: skip
    for column in columns:
        rows = [row for row in table.rows if LEAST <= len(table.cells[row][column].values) <= MOST]
        lists = {row: [PrintedNumber(text=text, where=table.place(row, column))
                       for text in table.cells[row][column].values] for row in rows}  # fmt: skip
        for target in table.columns[1:]:
            printed_rows = [row for row in rows if target != column and table.prints(row, target)]
            label = {row: f"{table.name}, {row}, {target}" for row in printed_rows}
            numbers = {row: table.number(row, target).as_rounded() for row in printed_rows}
            if printed_rows and is_spread(target):
                _hold_best(
                    table.name, target, _list_spreads(target, f"of the list {column}", label, numbers, lists), ledger
                )
            elif printed_rows and (says(target, MEAN) or any(table.prints(row, target, "sd") for row in printed_rows)):
                means: list[tuple[str, str, PrintedNumber, Given]] = [
                    (row, label[row], numbers[row], mean(lists[row])) for row in printed_rows
                ]
                _hold_best(table.name, target, [(f"{target} is the mean of the list {column}", means)], ledger)
                sds = {
                    row: table.number(row, target, "sd").as_rounded()
                    for row in printed_rows
                    if table.prints(row, target, "sd")
                }
                spreads = _list_spreads(f"± of {target}", f"of the list {column}", label, sds, lists) if sds else []
                _hold_best(table.name, f"{target}.sd", spreads, ledger)


def _list_spreads(
    target: str,
    source: str,
    label: dict[str, str],
    numbers: dict[str, PrintedNumber],
    lists: dict[str, list[PrintedNumber]],
) -> list[tuple[str, list[tuple[str, str, PrintedNumber, Given]]]]:
    kinds: dict[str, list[tuple[str, str, PrintedNumber, Given]]] = {}
    for row, number in numbers.items():
        for kind, formula in _spreads(lists[row]):
            kinds.setdefault(kind, []).append((row, label[row], number, formula))
    return [(f"{target} is {kind} {source}", rows) for kind, rows in kinds.items()]


def _check_seeds(lines: Lines, ledger: Ledger) -> None:
    """Check a spread that is printed beside one row or column for each seed."""
    seeds = [line for line in lines.lines if _SEED.search(line.words)]
    if not LEAST <= len(seeds) <= MOST:
        return
    for target in lines.lines:
        if target in seeds:
            continue
        keys = [key for key in lines.keys if key in target.numbers and all(key in seed.numbers for seed in seeds)]
        lists = {key: [seed.numbers[key] for seed in seeds] for key in keys}
        places = {key: lines.name_place(target.name, key) for key in keys}
        label = {key: ", ".join((lines.table.name, *places[key])) for key in keys}
        of = f"of the {lines.along}s {seeds[0].name} to {seeds[-1].name}"
        if keys and is_spread(target.name):
            numbers = {key: target.numbers[key] for key in keys}
            _hold_best(lines.table.name, target.name, _list_spreads(target.name, of, label, numbers, lists), ledger)
        sds = {key: lines.table.number(*places[key], "sd").as_rounded() for key in keys if target.cells[key].sd}
        if sds:
            spreads = _list_spreads(f"± of {target.name}", of, label, sds, lists)
            _hold_best(lines.table.name, f"{target.name}.sd", spreads, ledger)


def _check_stars(lines: Lines, ledger: Ledger) -> None:
    """Check stars at p-values against the levels that the caption states."""
    caption = lines.table.title
    levels = {len(stars): exact(level) for stars, level in _STARS.findall(caption)}
    if not levels:
        return
    for line in lines.lines:
        if not re.fullmatch(r" p (?:values? )?", line.words) or not any(cell.stars for cell in line.cells.values()):
            continue
        stars = {key: sum(count <= line.cells[key].stars for count in levels) for key in line.numbers}
        formulas = {
            key: load_function("count")([number < level for level in levels.values()])
            for key, number in line.numbers.items()
        }
        computed = {key: ends_of_formula(formula) for key, formula in formulas.items()}
        off_keys = [key for key in stars if not computed[key][0] <= stars[key] <= computed[key][2]]
        sentence = f"stars of {line.name} are those of the caption"
        fewer = all(stars[key] < computed[key][0] for key in off_keys)
        few = 3 * len(off_keys) > len(stars)
        text = f"{len(stars) - len(off_keys)} of {len(stars)} agree, too few to tell"
        if few and (fewer or 2 * len(off_keys) > len(stars)):
            ledger.dropped.append(f"{lines.table.name}: {sentence}: {text}")
            continue
        doubt = ""
        if CORRECTED_HERE.search(caption):
            doubt = "the caption says that p are corrected, and does not say which are printed"
        elif few:
            doubt = text
        elif len(off_keys) > 1 and fewer:
            doubt = "all have fewer stars, as corrected p have"
        rows = []
        for key, number in line.numbers.items():
            label = f"{lines.table.name}, {key}, {line.name}: its stars"
            printed = replace(exact(stars[key], "stars"), where=number.where)
            rows.append(RelationRow(key, label, printed, formulas[key], doubt=doubt if key in off_keys else ""))
        ledger.hold(lines.table.name, f"{line.name}.stars", sentence, rows)
