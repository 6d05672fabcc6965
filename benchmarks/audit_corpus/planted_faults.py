"""Plants faults into the tables of a paper: one number, sign, row or bold at a time, where a name's relation breaks.

Each fault is planted alone, into a copy of one file, and kept only if `stated_relations` reads a relation there that
held before and does not after. Seeds are fixed by the paper's name.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.audit_corpus.stated_relations import Cell, Relation, Table, find_relations, reach, read_tables

#: Faults planted into a paper at most.
MOST = 10
KINDS = ("digit", "average", "swap", "bold", "difference", "sign", "percent", "share", "total")


@dataclass(frozen=True, slots=True)
class Fault:
    """A planted fault: its kind, the file, the line of the table, the line changed, and the file's text with it."""

    kind: str
    file: Path
    line: int
    was: str
    now: str
    text: str


def plant(main: Path, folder: Path, name: str) -> list[Fault]:
    """The faults of a paper: at most ten, the kinds in turn, no two of one kind for one relation."""
    draw = random.Random(f"{name}:49")
    sites = [
        (file, text, tables, relation)
        for file in reach(main, folder)
        for text in [file.read_text(encoding="utf-8", errors="surrogateescape")]
        for tables in [read_tables(text)]
        for relation in find_relations(tables)
    ]
    draw.shuffle(sites)
    waiting = {kind: list(sites) for kind in KINDS}
    faults: list[Fault] = []
    while len(faults) < MOST and any(waiting.values()):
        for kind in KINDS:
            while waiting[kind] and len(faults) < MOST:
                file, text, tables, relation = waiting[kind].pop()
                fault = _plant_one(kind, file, text, tables, relation, draw)
                if fault is not None and all((fault.file, fault.text) != (other.file, other.text) for other in faults):
                    faults.append(fault)
                    break
    return faults


def _plant_one(
    kind: str, file: Path, text: str, tables: list[Table], relation: Relation, draw: random.Random
) -> Fault | None:
    """A fault of the kind that breaks the relation; nothing if there is none or the judge does not confirm it."""
    numbers = tables[relation.table].numbers
    for cell, edits in _list_edits(kind, relation, numbers, text, draw):
        changed = text
        for start, end, new in sorted(edits, reverse=True):
            changed = changed[:start] + new + changed[end:]
        after = read_tables(changed)
        if len(after) == len(tables) and not relation.holds(after) and relation.holds(tables):
            start, end, now = edits[0]
            return Fault(kind, file, text.count("\n", 0, cell.start) + 1, text[start:end], now, changed)
    return None


def _list_edits(
    kind: str, relation: Relation, numbers: dict[tuple[int, int], Cell], text: str, draw: random.Random
) -> Iterator[tuple[Cell, list[tuple[int, int, str]]]]:
    """Changes of the text that are a fault of this kind at this relation: the cell, and (start, end, new) of each."""
    target = numbers[relation.target]
    marks = relation.kind in ("best", "least")
    if kind == "digit":
        operands = [numbers[place] for place in relation.operands if place != relation.target or marks]
        draw.shuffle(operands)
        for cell in operands[:6]:
            yield from ((cell, [(cell.start, cell.end, new)]) for new in _change_digits(cell.text, draw))
    elif kind == "bold" and marks:
        others = [numbers[place] for place in relation.operands if not numbers[place].bold]
        draw.shuffle(others)
        for other in others[:3]:
            yield target, [_move_markup(target, other, text), _move_markup(other, target, text)]
    elif kind == "sign" and relation.kind == "difference":
        plain = target.text.lstrip("+-")
        yield target, [(target.start, target.end, plain if target.text[0] == "-" else f"-{plain}")]
    elif kind == "swap" and not marks:
        row, column = relation.target
        others = [cell for (r, c), cell in numbers.items() if (c == column) != (r == row) and cell.text != target.text]
        draw.shuffle(others)
        for other in others[:3]:
            yield target, [(target.start, target.end, other.text), (other.start, other.end, target.text)]
    elif kind == relation.kind:
        yield from ((target, [(target.start, target.end, new)]) for new in _change_digits(target.text, draw))


def _change_digits(number: str, draw: random.Random) -> list[str]:
    """The number with one digit other than it is, in an order by chance; the first digit stays no zero."""
    places = [place for place, digit in enumerate(number) if digit.isdigit()]
    draw.shuffle(places)
    changed = []
    for place in places:
        first = place == 0 or number[place - 1] in "+-"
        digits = [digit for digit in "0123456789" if digit != number[place] and not (first and digit == "0")]
        changed.append(number[:place] + draw.choice(digits) + number[place + 1 :])
    return changed


def _move_markup(cell: Cell, markup_of: Cell, text: str) -> tuple[int, int, str]:
    """The cell with the markup of another one and its own number."""
    start, end = markup_of.raw
    markup = text[start : markup_of.start], text[markup_of.end : end]
    return (*cell.raw, f"{markup[0]}{cell.text}{markup[1]}")
