"""Recognizes the column whose numbers are the steps of a run, where a row might be taken for a run of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from plumbline.verdict.sources.failure_columns import split_name
from plumbline.verdict.sources.row_files import FileRow

_STEPS = """
    step steps epoch epochs ep iter iters iteration iterations it itr update updates round rounds checkpoint ckpt
    token tokens sample samples example examples batches
"""
_COUNTED = """
    global train trainer training optimizer opt eval val validation test current cur total seen processed consumed
    count number num nr idx index n m k b
"""
#: Words of which a name of steps has one, and words that may stand with it: no `warmup_steps`, no `best_epoch`.
STEPS, BESIDE = frozenset(_STEPS.split()), frozenset(_COUNTED.split())
_NUMBERS = """
    id ids run seed rep repeat repetition replica replicate trial try attempt fold split index idx row rank number num
    nr no job task pid port host node gpu
"""
#: Words of names of what numbers runs, and not the steps of one.
NUMBERS = frozenset(_NUMBERS.split())
#: Runs that each end somewhere (a time budget) end within this factor of each other; the steps of one run do not.
SPAN = 1.5
#: Rows that have to rise: what rises by chance in fewer is no course of a run.
RISING = 3


def names_steps(column: str) -> bool:
    """Whether a name is that of steps, epochs, or what was read so far, in any case."""
    parts = {*split_name(column)}
    return not parts.isdisjoint(STEPS) and parts <= STEPS | BESIDE


def find_step_column(rows: Sequence[FileRow], method: str, names: Iterable[str]) -> str:
    """Find the column that goes through the steps of runs within the rows of a method ("" for none).

    By a name of steps, its numbers differ within a method, and are far apart, mostly the same in two methods, or rise
    in all: those at which runs ended are not. By any other name but one of runs, they are whole, mostly the same in
    two methods, rise in all, and do not merely count the rows.
    """
    for name in sorted(names, key=lambda each: not names_steps(each)):
        by_method: dict[str, list[float]] = {}
        try:
            for row in rows:
                if cell := row.cells[name]:
                    by_method.setdefault(row.cells[method], []).append(float(cell.replace(",", "")))
        except ValueError:
            continue
        if _are_steps(name, by_method):
            return name
    return ""


def _are_steps(name: str, by_method: Mapping[str, Sequence[float]]) -> bool:
    sides = [side for side in by_method.values() if len({*side}) > 1]
    methods_with = Counter(number for side in sides for number in {*side})
    recurring = sum(number > 1 for number in methods_with.values())
    recurs = recurring > 1 and 2 * recurring >= len(methods_with)
    gaps = [after - before for side in sides for before, after in pairwise(side)]
    rises = len(gaps) >= RISING and min(gaps) > 0
    if names_steps(name):
        return recurs or rises or any(max(side) >= SPAN * min(side) for side in sides)
    if not NUMBERS.isdisjoint(split_name(name)):
        return False
    return recurs and rises and {*gaps} != {1.0} and all(number.is_integer() for number in methods_with)
