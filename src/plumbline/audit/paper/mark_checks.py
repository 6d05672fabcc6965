"""Checks ranks, and the numbers that a table prints bold or underlined, against their values.

Bold is taken for "the best of its column" (or row, or group of rows) only where that is so in most of them, and more
often than where bold stands by chance: a direction that is fitted and a row that is left out are choices too.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from plumbline.audit.counting import rank
from plumbline.audit.paper.audit_file import TablePart
from plumbline.audit.paper.evidence import tail
from plumbline.audit.paper.ledger import Ledger, RelationRow
from plumbline.audit.paper.line_types import AVERAGE, LEVELS, RANK, SUM
from plumbline.audit.paper.lines import Line, Lines
from plumbline.audit.paper.names import says
from plumbline.published.expression import Given
from plumbline.published.printed_number import PrintedNumber, exact

#: Fewest lines whose mark is where it should be, and their share of all marked ones.
LEAST, SHARE = 3, 0.75

#: Chance from which bold can be the best of so many lines by itself; where the lines' names tell which end is better.
BY_CHANCE, BY_CHANCE_TOLD = 0.05, 0.1

#: The same where all lines but one, or all, keep to it: bold means the best in most tables.
BY_CHANCE_KEPT = 0.3

#: Share of bold numbers that stand in the wrong place: what one that does not keep to a rule counts against it.
MISTAKE = 0.01

#: How many times larger the numbers of a measure may be in one line than in another.
NEAR = 2

#: Ways that bold is read in: the largest, the smallest, or either, of a column, a row, or a block of rows.
READINGS = 9

#: Words of a line that is not compared with the others where it is never bold: what could be reached, or is by chance.
_BOUNDS = "random|chance|human|humans|oracle|upper bound|topline|skyline"

#: A caption that states which numbers alone bold compares.
_RESTRICTED = re.compile(r"\b(?:best|highest|lowest|top)\b[^.]*\b(?:among|within|excluding|except)\b[^.]*\bbold", re.I)

#: Types of lines in which one number is the best.
RANKED = LEVELS | {AVERAGE, SUM, RANK}


@dataclass(frozen=True, kw_only=True)
class _Marked:
    """Numbers that are compared: those of a line, or of one group in it, and which of them are marked.

    `stated`: the line's name has an arrow, or the audit file states which end is better; `near_zero`: the smallest
    magnitude is the best.
    """

    line: Line
    keys: tuple[str, ...]
    bold: tuple[str, ...]
    underlined: tuple[str, ...]
    direction: int
    stated: bool
    fitted: bool
    near_zero: bool = False

    @property
    def measure(self) -> str:
        """What its line measures: the last part of its name."""
        return self.line.name.rpartition(" / ")[2]

    def is_near(self, other: _Marked) -> bool:
        """Whether the numbers of two lines are of one size and unit, as those of one measure are."""
        size, other_size = (median(abs(mark.line.ends[key][1]) for key in mark.keys) for mark in (self, other))
        units = {mark.line.unit(mark.keys[0]) for mark in (self, other)}
        return len(units) == 1 and max(size, other_size) <= NEAR * min(size, other_size)

    def score(self, key: str) -> float:
        """A number of which more is better."""
        value = self.line.ends[key][1]
        return -abs(value) if self.near_zero else self.direction * value

    @property
    def with_other_end(self) -> _Marked:
        """The same, where the other end is better."""
        return replace(self, direction=-self.direction)

    @property
    def chance(self) -> float:
        """Chance that one of so many bold numbers is the best, at either end where the direction is fitted."""
        return min(1.0, (1 + self.fitted + self.near_zero) * len(self.bold) / len(self.keys))


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """A way to read the bold numbers of a table, and how many choices it takes.

    `free`: each line's bold tells which end is better.
    """

    lines: Lines
    marks: tuple[_Marked, ...]
    choices: int
    free: bool

    @property
    def right_count(self) -> int:
        """How many of its bold numbers are the best."""
        return sum(_is_right(mark, "bold") for mark in self.marks)

    @property
    def chance(self) -> float:
        """Chance that bold numbers are the best as often in one of so many ways."""
        of = len(self.marks)
        return self.choices * tail(self.right_count, of, sum(mark.chance for mark in self.marks) / of)

    @property
    def holds(self) -> bool:
        """Whether bold stands for the best."""
        if self.right_count < LEAST or self.right_count < SHARE * len(self.marks):
            return False
        are_stated = all(mark.stated for mark in self.marks)
        is_kept = self.right_count >= len(self.marks) - 1
        return self.chance < (BY_CHANCE_KEPT if is_kept else BY_CHANCE_TOLD if are_stated else BY_CHANCE)


def check_marks(
    by_column: Lines, by_row: Lines, part: TablePart, ledger: Ledger, explained: Mapping[str, Collection[str]]
) -> None:
    """Check ranks, and bold and underlined numbers, of a table.

    Args:
        explained: names of the columns, and of the rows, that a relation gives: no competitors of the others.
    """
    _check_ranks(by_column, ledger)
    if _RESTRICTED.search(by_column.table.title):
        ledger.dropped.append(f"{by_column.table.name}: the caption states which numbers alone are compared in bold")
        return
    always_bold = {lines.along: _list_always_bold(lines) for lines in (by_column, by_row)}
    rules = []
    for lines, across in ((by_column, by_row), (by_row, by_column)):
        keys = set(lines.level_keys) - set(explained[across.along])
        left_out = {name for name, type_ in across.types.items() if type_.type not in RANKED} | always_bold[lines.along]
        always = always_bold[across.along]
        # A row that is bold throughout can be one's own, or the best of all.
        for competitors in (keys - always, keys) if always else (keys,):
            for grouped in (False, True) if len(set(lines.groups.values())) > 1 else (False,):
                for way in (1, -1, 0):
                    rules.append(_find_rule(lines, part, competitors, left_out, way, grouped=grouped, always=always))
    fit = [rule for rule in rules if rule.holds]
    if fit:
        rule = min(fit, key=lambda rule: (rule.free, rule.chance / MISTAKE ** (len(rule.marks) - rule.right_count)))
        bold_throughout = always_bold[by_row.along if rule.lines is by_column else by_column.along]
        # A row that is bold throughout accuses nobody.
        marks = [mark for mark in rule.marks if _is_right(mark, "bold") or bold_throughout.isdisjoint(mark.bold)]
        _check("bold", marks, rule.lines, ledger, rule.chance)
        underlined_marks = [mark for mark in rule.marks if mark.underlined and len(mark.bold) == 1]
        right_count = sum(_is_right(mark, "underlined") for mark in underlined_marks)
        if right_count >= LEAST and right_count >= SHARE * len(underlined_marks):
            _check("underlined", underlined_marks, rule.lines, ledger, rule.chance)
    elif any(len(rule.marks) >= LEAST for rule in rules):
        text = "bold numbers are not the best of most columns, rows or groups, or as often by chance"
        ledger.dropped.append(f"{by_column.table.name}: {text}")


def _list_always_bold(lines: Lines) -> set[str]:
    """Names of the lines that are bold wherever their table is, as one's own rows are: no rank is meant."""
    having = {key for key in lines.keys if any(key in line.numbers and line.cells[key].bold for line in lines.lines)}
    names = set()
    for line in lines.lines:
        is_bold = [line.cells[key].bold for key in having if key in line.numbers]
        if len(is_bold) > 1 and all(is_bold):
            names.add(line.name)
    return names


def _find_rule(
    lines: Lines,
    part: TablePart,
    competitors: Collection[str],
    left_out: Collection[str],
    way: int,
    *,
    grouped: bool,
    always: Collection[str],
) -> _Rule:
    """What is compared, without rows that are never bold and yet better than what is in most of their lines.

    `way`: the better end of lines whose name states none, 0 where each line's bold tells it. Arrows leave nothing to
    choose. Else "the largest of its column" is as likely as all other ways together; and each row that is left out, and
    each measure whose name is taken for the wrong end, is a choice.
    """
    marks = list(_collect_all_marks(lines, part, grouped, competitors, left_out, way))
    bold = {key for mark in marks for key in mark.bold}
    times, beats = Counter(key for mark in marks for key in mark.keys), Counter[str]()
    for mark in marks:
        best = max(map(mark.score, mark.bold))
        beats.update(key for key in mark.keys if key not in bold and mark.score(key) > best)
    outsiders = {key for key, count in beats.items() if count > 1 and 2 * count >= times[key]}
    competitors = {key for key in competitors if key in bold or not says(key, _BOUNDS)}
    marks, turned = _turn_measures(
        list(_collect_all_marks(lines, part, grouped, competitors - outsiders, left_out, way))
    )
    bold = {key for mark in marks for key in mark.bold}
    if len(bold) < 2 or bold <= set(always):
        marks = []  # bold in one row alone, or in rows bold throughout, can mean "ours"
    are_stated, plain = all(mark.stated for mark in marks), lines.along == "column" and way == 1
    choices = 1 if are_stated else 2 + 2 * grouped if plain else READINGS
    choices *= math.comb(len(lines.keys), len(outsiders)) * 2**turned
    return _Rule(lines=lines, marks=tuple(marks), choices=choices, free=way == 0)


def _turn_measures(marks: Sequence[_Marked]) -> tuple[list[_Marked], int]:
    """The marks, those of a measure the other way round where most of its bold numbers are best only so; and how many
    measures that are."""
    turned = set()
    for measure, group in _group_by_measure(marks).items():
        right_count, turned_count = (
            sum(_is_right(mark, "bold") for mark in way) for way in (group, [mark.with_other_end for mark in group])
        )
        if turned_count > max(right_count, len(group) / 2, 1) and not any(mark.stated for mark in group):
            turned.add(measure)
    return [mark.with_other_end if mark.measure in turned else mark for mark in marks], len(turned)


def _group_by_measure(marks: Sequence[_Marked]) -> dict[str, list[_Marked]]:
    measures: dict[str, list[_Marked]] = {}
    for mark in marks:
        measures.setdefault(mark.measure, []).append(mark)
    return measures


def _collect_all_marks(
    lines: Lines, part: TablePart, grouped: bool, competitors: Collection[str], left_out: Collection[str], way: int
) -> Iterator[_Marked]:
    for line in lines.lines:
        if line.name in left_out:
            continue
        groups = dict.fromkeys(lines.groups[key] for key in line.ends) if grouped else {-1: None}
        for group in groups:
            keys = [key for key in line.ends if (not grouped or lines.groups[key] == group) and key in competitors]
            units = Counter(line.unit(key) for key in keys)
            keys = [key for key in keys if line.unit(key) == units.most_common(1)[0][0]]
            bold = [key for key in keys if line.cells[key].bold]
            if len(keys) < 3 or not 0 < len(bold) < len(keys) / 2:
                continue
            stated = _find_direction(line, lines, part)
            underlined_keys = [key for key in keys if line.cells[key].underlined]
            mark = _Marked(
                line=line,
                keys=tuple(keys),
                bold=tuple(bold),
                underlined=tuple(underlined_keys),
                direction=stated or way or _fit_direction(line, keys, bold),
                stated=line.name in part.better or (lines.along == "column" and any(a in line.name for a in "↑↓")),
                fitted=not (stated or way),
            )
            # Of a bias, with numbers of both signs, the one nearest to zero can be the best.
            signs = {line.ends[key][1] > 0 for key in keys}
            can_be_near_zero = len(signs) == 2 and stated <= 0 and not _is_right(mark, "bold")
            nearest = replace(mark, near_zero=True)
            yield nearest if can_be_near_zero and _is_right(nearest, "bold") else mark


def _find_direction(line: Line, lines: Lines, part: TablePart) -> int:
    """1 where higher is better, -1 where lower is, 0 if not stated; a row's columns do not state it."""
    better = part.better.get(line.name)
    if better:
        return 1 if better == "higher" else -1
    return 0 if lines.along == "row" else line.direction


def _fit_direction(line: Line, keys: Sequence[str], bold: Sequence[str]) -> int:
    """The direction in which a bold number is nearer to the end."""
    values = [line.ends[key][1] for key in keys]
    above = sum(value > max(line.ends[key][1] for key in bold) for value in values)
    below = sum(value < min(line.ends[key][1] for key in bold) for value in values)
    return 1 if above <= below else -1


def _is_right(item: _Marked, mark: str) -> bool:
    """Whether one of the bold numbers is the best, or the underlined one is second."""
    value = {key: item.score(key) for key in item.keys}
    if mark == "bold":
        return max(value[key] for key in item.bold) == max(value.values())
    return any(sum(other > value[key] for other in set(value.values())) == 1 for key in item.underlined)


def _check(mark: str, items: Sequence[_Marked], lines: Lines, ledger: Ledger, chance: float) -> None:
    """Check each line's mark: the better one of the marked numbers has rank 1, or 2."""
    table, place, rank_name = lines.table.name, 1 if mark == "bold" else 2, "best" if mark == "bold" else "second"
    rows = []
    measures = _group_by_measure(items)
    ever_marked = {key for line in lines.lines for key, cell in line.cells.items() if cell.bold or cell.underlined}
    better = Counter(key for item in items for key in _list_better(item, mark) if key not in ever_marked)
    for count, item in enumerate(items):
        measure_items = [other for other in measures[item.measure] if other is not item]
        near_items = [other for other in items if other is not item and other.is_near(item)]
        is_told = item.stated or any(
            len(group) >= least and all(_is_right(other, mark) for other in group)
            for group, least in ((measure_items, 2), (near_items, LEAST))
        )
        if not is_told and _is_right(item.with_other_end, mark):
            continue  # of a measure of which the other end is better, as this line alone shows
        values = {key: item.score(key) for key in (item.bold if mark == "bold" else item.underlined)}
        best_key = max(values, key=values.__getitem__)
        number = item.line.numbers[best_key]
        label = f"{table}, {best_key}, {item.line.name}: its rank, printed {mark} ({rank_name})"
        printed = replace(exact(place, f"rank of {mark}"), where=number.where)
        rivals = [item.line.numbers[key] for key in item.keys if key != best_key]
        if item.near_zero:
            number, rivals = number.without_sign(), [rival.without_sign() for rival in rivals]
        if mark == "underlined":  # several that are best alike count once
            rivals = list({rival.value: rival for rival in rivals}.values())
        formula = _rank(number, rivals, -1 if item.near_zero else item.direction)
        marked_item = replace(item, keys=tuple(key for key in item.keys if key in ever_marked))
        reachable = _is_right(marked_item, mark) and not _is_right(item, mark)
        has_outsider = any(
            better[key] > 1 or says(key, f"{_BOUNDS}|full") for key in _list_better(item, mark) if better[key]
        )
        doubt = "what is better stands where nothing is ever marked" if reachable and has_outsider else ""
        rows.append(
            RelationRow(f"{item.line.name}.{count}", label, printed, formula, item.stated, doubt, number.cells[0])
        )
    along = f"{lines.along} or group" if len({item.line.name for item in items}) < len(items) else lines.along
    ledger.hold(table, mark, f"{mark} numbers are the {rank_name} of their {along}", rows, "are", chance)


def _list_better(item: _Marked, mark: str) -> list[str]:
    """What is better than all that is marked so."""
    best = max(map(item.score, item.bold if mark == "bold" else item.underlined))
    return [key for key in item.keys if item.score(key) > best]


def _rank(number: PrintedNumber, rivals: Sequence[PrintedNumber], direction: int) -> Given:
    """The rank of a number: 1 for the largest, or, downwards, for the smallest."""
    return rank(number, rivals) if direction > 0 else rank(-number, [-rival for rival in rivals])


def _check_ranks(lines: Lines, ledger: Ledger) -> None:
    """Check columns of ranks against the column that they rank."""
    for target in [line for line in lines.lines if line.says("rank|ranking|place|position|#")]:
        if not all(number.text.isdigit() for number in target.numbers.values()):
            continue
        best: tuple[int, Line, int, list[str]] | None = None
        refuted: list[list[str]] = []  # by each column that gives as many ranks as the best one
        for line in lines.lines:
            keys = [key for key in target.numbers if key in line.ends]
            if line is target or len(keys) < 5 or len(keys) < len(line.ends):
                continue
            for direction in (1, -1):
                values = {key: direction * line.ends[key][1] for key in keys}
                off_keys = [
                    key
                    for key in keys
                    if 1 + sum(value > values[key] for value in values.values()) != int(target.numbers[key].text)
                ]
                agree = len(keys) - len(off_keys)
                if best is None or agree > best[0]:
                    best, refuted = (agree, line, direction, keys), []
                if agree == best[0]:
                    refuted.append(off_keys)
        if best is None or best[0] < 0.7 * len(best[3]):
            continue
        agree, line, direction, keys = best
        ranks = {key: int(target.numbers[key].text) for key in keys}
        values = {key: direction * line.ends[key][1] for key in keys}
        table = lines.table.name
        # The name may say whose rank it is, "Human rank"; and where columns that give it as well refute other ranks, it
        # is of none of them.
        stated = all(off_keys == refuted[0] for off_keys in refuted) and set(target.words.split()) <= {
            "rank",
            "ranking",
            "by",
            "of",
            *line.words.split(),
        }
        stated = stated and target.says("rank|ranking")
        rows = []
        for key in keys:
            rivals = [line.numbers[other_key] for other_key in keys if other_key != key]
            formula = _rank(line.numbers[key], rivals, direction)
            label = f"{table}, {key}, {target.name}"
            opposed = any((ranks[key] - ranks[other_key]) * (values[key] - values[other_key]) > 0 for other_key in keys)
            doubt = (
                "" if opposed else "the order is that of the numbers: rows may be left out, or ties counted otherwise"
            )
            rows.append(RelationRow(key, label, target.numbers[key].exactly(), formula, stated, doubt))
        ledger.hold(table, target.name, f"{target.name} is the rank of {line.name}", rows)
