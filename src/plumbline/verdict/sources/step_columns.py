"""Recognizes the column whose numbers are the steps of a run, where a row might be taken for a run of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NoReturn

from plumbline.core.errors import PlumblineError
from plumbline.verdict.sources.column_names import RUN_NUMBERS, has_word, names_steps, quote_columns
from plumbline.verdict.sources.row_files import ColumnNames, FileRow, FileRows

#: A step as loggers write it: `3`, `3/8`, `ckpt-3000`, `out/step_3000.pt`, `10k`, `1,000`; the end of a cell is read.
_STEP = re.compile(
    r"(?:.*/)??(?:\D*[^\d.,])??(\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?) ?([kmb]?)(?: ?(?:/|of) ?\d[\d,]*)?(?:/|\.[a-z]+)?",
    re.IGNORECASE,
)
_LONGEST = 200
_THOUSANDS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}
#: Rows of a course, at least: fewer rise by chance, or since somebody sorted them.
COURSE = 4
#: Runs that each end somewhere (a time budget) end within this factor of each other; the steps of one run do not.
SPAN = 1.5
#: How far the gaps of a course are from each other, and two that begin alike: times are not exact.
_EVEN, _ALIKE = 1.25, 1.1


def check_no_steps(
    rows: FileRows, columns: ColumnNames, chosen: Sequence[FileRow], *, without: Collection[str]
) -> list[str]:
    """Check that the rows of a table without seeds are runs; returns what may speak against it, as sentences.

    A course, by a name of steps or of a time: the rows of each method, in the order of the file, go up through steps
    as one run does, or several one after the other. Runs that end at different steps are none. `without`: columns that
    are something else. Where the column of steps was named as none, nothing is checked.

    Raises:
        PlumblineError: a column is such a course, or the column of steps has several.
    """
    if columns.seed in rows.columns or not columns.step:
        return []
    if columns.step in rows.columns and len({row.cells[columns.step] for row in chosen}) > 1:
        by_method = _read_steps(chosen, columns, columns.step)
        if any(len({*numbers}) > 1 for numbers in by_method.values()):
            _refuse(rows, columns, columns.step)
    names = []
    for name in (each for each in rows.columns if each not in without):
        by_method = _read_steps(chosen, columns, name)
        segments = [segment for numbers in by_method.values() for segment in _split_at_starts(numbers)]
        is_course = bool(segments) and min(map(len, segments)) >= COURSE
        if names_steps(name, or_time=True):
            if is_course and _are_courses(segments):
                _refuse(rows, columns, name)
            is_candidate = names_steps(name) and (is_course or _recur(by_method) or _spread(by_method))
        else:
            is_candidate = is_course and _are_steps_of_another_name(name, segments)
        if is_candidate:
            names.append(name)
    if not names:
        return []
    return [
        f"{quote_columns(names)} may be steps of runs, and each row was read as a run of its own: if several are of "
        "one run, name the column that says which (--seed-column)."
    ]


def _refuse(rows: FileRows, columns: ColumnNames, name: str) -> NoReturn:
    flag = f" (and --step-column {name})" if names_steps(name) else ""
    raise PlumblineError(
        f"{rows.path} has steps ({name!r}) but no column {columns.seed!r} that says which run a step is of; name that "
        f"one with --seed-column{flag}, or keep one row a run. If each row is a run of its own: --step-column '', or "
        "--seed-column with the column that numbers them"
    )


def _read_steps(chosen: Sequence[FileRow], columns: ColumnNames, name: str) -> dict[str, list[float]]:
    """The numbers of a column by method, in the order of the rows; none where a cell is no step."""
    by_method: dict[str, list[float]] = {}
    for row in chosen:
        if cell := row.cells[name]:
            if (step := _STEP.fullmatch(cell[-_LONGEST:])) is None:
                return {}
            by_method.setdefault(row.cells[columns.method], []).append(
                float(step[1].replace(",", "")) * _THOUSANDS[step[2].lower()]
            )
    return by_method


def _split_at_starts(numbers: Sequence[float]) -> list[list[float]]:
    """Divide what stands in a method's rows into what rises; of each step's rows of several runs, the first counts."""
    count = next((n for n, number in enumerate(numbers) if number != numbers[0]), 1)
    if all(numbers[n] == numbers[n - n % count] for n in range(len(numbers))):
        numbers = numbers[::count]
    segments = [[numbers[0]]]
    for before, after in pairwise(numbers):
        if after > before:
            segments[-1].append(after)
        else:
            segments.append([after])
    return segments


def _are_courses(segments: Sequence[Sequence[float]]) -> bool:
    """Whether all go through the same steps, or evenly and far, or begin alike with a step that is their first gap."""
    gaps = [[after - before for before, after in pairwise(each)] for each in segments]
    are_even = all(max(each) <= _EVEN * min(each) for each in gaps)
    are_far = all(each[-1] >= SPAN * each[0] for each in segments)
    starts = [each[0] for each in segments]
    are_alike = max(starts) <= _ALIKE * min(starts)
    from_start = all(start <= _ALIKE * each[0] for start, each in zip(starts, gaps, strict=True))
    return _are_same(segments) or (are_even and are_far) or (are_alike and from_start)


def _are_same(segments: Sequence[Sequence[float]]) -> bool:
    longest = max(segments, key=len)
    return len(segments) > 1 and all(each == longest[: len(each)] for each in segments)


def _are_steps_of_another_name(name: str, segments: Sequence[Sequence[float]]) -> bool:
    """Whether whole numbers, the same of all, could be steps, by a name that is none of runs: they count no rows."""
    numbers = [number for each in segments for number in each]
    counts_rows = all(after - before == 1 for each in segments for before, after in pairwise(each))
    is_whole = all(map(float.is_integer, numbers))
    return not has_word(name, RUN_NUMBERS) and is_whole and not counts_rows and _are_same(segments)


def _recur(by_method: Mapping[str, Sequence[float]]) -> bool:
    """Whether the numbers differ within methods, and are mostly the same in two."""
    methods_with = Counter(number for numbers in by_method.values() if len({*numbers}) > 1 for number in {*numbers})
    recurring = sum(number > 1 for number in methods_with.values())
    return recurring > 1 and 2 * recurring >= len(methods_with)


def _spread(by_method: Mapping[str, Sequence[float]]) -> bool:
    """Whether the numbers of some method are far apart."""
    return any(len({*numbers}) > 1 and max(numbers) >= SPAN * min(numbers) for numbers in by_method.values())
