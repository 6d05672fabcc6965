"""Reads what a run took, and when, from columns of a table, or keys of an object, whose names leave no doubt.

A name counts whatever its case, and as the last part of a dotted one (`summary._runtime`); not below `eval` or the
like, where it is of an evaluation. Of several for one measure the first in `MEASURE_COLUMNS` counts; of one name with
two numbers (`train.tokens`, `data.tokens`) neither does. In a table of methods that counts in which they differ most.
`Runtime` is in seconds in a table that Weights & Biases exported, which has its columns `Name` and `State` too;
elsewhere its unit is not known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from plumbline.verdict.evidence import MEASURES
from plumbline.verdict.formatting import quote
from plumbline.verdict.sources.column_names import (
    DURATIONS,
    MEASURE_COLUMNS,
    MEASURE_NAMES,
    MOMENTS,
    UNITS,
    quote_columns,
)
from plumbline.verdict.sources.row_files import parse_float

#: A day and a time of that day; seconds since the epoch, from 2001 to 2096, or thousandths of them.
_DAY_AND_TIME = re.compile(r"\d{4}-\d\d-\d\d[T_ ]\d\d[:-]\d\d.*")
_EPOCH = (1e9, 4e9)
#: The zone behind a time of day.
_ZONE = re.compile(r"(?:Z| UTC|[-+]\d\d:?\d\d)$")
#: Columns of every table that Weights & Biases exported.
_EXPORTED = {"Name", "State", "Runtime"}
#: Hours, minutes and seconds, behind days, as SLURM and pandas write them; and numbers with their units.
_CLOCK = re.compile(r"(?:(\d+)(?:-| days? ))?(\d+):([0-5]\d):([0-5]\d(?:\.\d+)?)")
_WITH_UNITS = re.compile(r"(?:\d+(?:\.\d+)? ?[a-z]+,? ?)+")
#: A part of a dotted name below which stands what is of an evaluation.
_EVALUATION = re.compile(
    r"(?<![a-z])(?:val(?:id(?:ation)?)?|eval(?:uation)?|test|dev|held_?out)(?![a-z])[^.]*\.", re.IGNORECASE
)


def read_measures(cells: Mapping[str, Any], *, without: frozenset[str] = frozenset()) -> dict[str, float]:
    """Read the measures of a run: field of `RunEvidence` -> amount, of those with a number above 0.

    `without`: columns that are something else here, such as the metric.
    """
    amounts = {
        name: next(iter(of_columns.values()))
        for name, of_columns in _read_amounts(cells, without).items()
        if len({*of_columns.values()}) == 1
    }
    if cells.keys() - without >= _EXPORTED and (seconds := _read_amount(cells["Runtime"])) is not None:
        amounts.setdefault("_runtime", seconds)
    measures = {}
    for measure, units in MEASURE_COLUMNS.items():
        if (first := next((name for name in units if name in amounts), None)) is not None:
            measures[measure] = amounts[first] * units[first]
    times = [amount for name, amount in amounts.items() if name not in MEASURE_NAMES]
    return {"seconds": times[0], **measures} if times else measures


def list_contradictions(cells: Mapping[str, Any], *, without: frozenset[str] = frozenset()) -> list[tuple[str, ...]]:
    """List the columns that give a run several numbers under one name, of which none is read."""
    columns = _read_amounts(cells, without).values()
    return [tuple(of_name) for of_name in columns if len({*of_name.values()}) > 1]


def choose_columns(
    runs: Sequence[tuple[str, Mapping[str, Any]]], *, without: frozenset[str] = frozenset()
) -> tuple[frozenset[str], list[str]]:
    """Choose what counts where several columns state one measure of every run: that in which methods differ most.

    So methods are equal in a measure only where they are in every column of it. Of times and memory only those of the
    first name count, since names say what is in them.

    `runs`: method and cells of each. Returns the columns that do not count, and sentences about those that disagree.
    """
    amounts: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for method, cells in runs:
        for name, of_columns in _read_amounts(cells, without).items():
            for column, amount in of_columns.items():
                amounts.setdefault(name, {}).setdefault(column, []).append((method, amount))
    dropped_columns, sentences = set[str](), list[str]()
    for measure, units in MEASURE_COLUMNS.items():
        names = [*units, *(name for name in amounts if measure == "seconds" and name not in MEASURE_NAMES)]
        names = [name for name in names if name in amounts][: 1 if measure in ("seconds", "memory_bytes") else None]
        columns = {column: of_runs for name in names for column, of_runs in amounts[name].items()}
        factors = {each: _compare_methods(of_runs) for each, of_runs in columns.items() if len(of_runs) == len(runs)}
        if len(factors) < 2:
            continue
        chosen_column = max(factors, key=lambda each: factors[each])
        dropped_columns |= {*columns} - {chosen_column}
        of_one_name = [[*map(amounts[name].get, factors)] for name in names]
        has_disagreement = any(len({tuple(each) for each in of_name if each}) > 1 for of_name in of_one_name)
        if has_disagreement or not all(math.isclose(factor, factors[chosen_column]) for factor in factors.values()):
            sentences.append(
                f"{quote_columns(factors)} disagree: {quote(chosen_column)} counts as {MEASURES[measure]}; in none the "
                "methods differ more."
            )
    without |= dropped_columns
    contradictions = dict.fromkeys(each for _, cells in runs for each in list_contradictions(cells, without=without))
    sentences += [f"Not read, since they differ: {quote_columns(each)}." for each in contradictions]
    return frozenset(dropped_columns), sentences


def _compare_methods(of_runs: Sequence[tuple[str, float]]) -> float:
    """The largest median of a method over the smallest."""
    by_method: dict[str, list[float]] = {}
    for method, amount in of_runs:
        by_method.setdefault(method, []).append(amount)
    medians = [*map(median, by_method.values())]
    return max(medians) / min(medians)


def _read_amounts(cells: Mapping[str, Any], without: frozenset[str]) -> dict[str, dict[str, float]]:
    """Name of a measure, or of a time with its unit -> each column that has it -> its amount, a time's in seconds."""
    amounts: dict[str, dict[str, float]] = {}
    for column, cell in cells.items():
        if column in without or _EVALUATION.search(column):
            continue
        name = column.rpartition(".")[2].lower()
        amount = _read_amount(cell) if name in MEASURE_NAMES else _read_time(name := _normalize(column), cell)
        if amount is not None:
            amounts.setdefault(name, {})[column] = amount
    return amounts


def list_times_without_unit(cells: Mapping[str, Any], *, without: frozenset[str] = frozenset()) -> list[str]:
    """List the columns that say how long a run took in a number without a unit, so that it is not read."""
    return [
        name
        for name, cell in cells.items()
        if name not in without and _normalize(name) in DURATIONS and _read_amount(cell) is not None
    ]


def _read_time(name: str, cell: Any) -> float | None:
    """How long a run took, where the column's name has a unit, or its cell."""
    base, _, unit = name.rpartition("_")
    amount = _read_amount(cell)
    if base in DURATIONS and unit in UNITS and amount is not None:
        return amount * UNITS[unit]
    return _read_duration(name, cell) if name in DURATIONS and isinstance(cell, str) else None


def _read_duration(name: str, cell: str) -> float | None:
    """Seconds of a cell such as `1-02:03:04`, `61.5 s` or `1h 5m`; None without a unit."""
    text = cell.strip().lower()
    if name != "time" and (clock := _CLOCK.fullmatch(text)):  # which may be one of the day
        days, hours, minutes, seconds = (float(part or 0) for part in clock.groups())
        return 86400 * days + 3600 * hours + 60 * minutes + seconds or None
    if not _WITH_UNITS.fullmatch(text):
        return None
    units = {**UNITS, "m": 60.0}
    parts = re.findall(r"(\d+(?:\.\d+)?) ?([a-z]+)", text)
    if any(unit not in units for _, unit in parts):
        return None
    return math.fsum(float(number) * units[unit] for number, unit in parts) or None


def _normalize(name: str) -> str:
    """The last part of a dotted name in lower case, with `_` between its words."""
    return re.sub(r"[^a-z0-9]+", "_", name.rpartition(".")[2].lower()).strip("_")


def read_start(cells: Mapping[str, Any]) -> dict[str, str]:
    """Read when a run was made, as the field `started` of `RunEvidence` (ISO 8601, UTC); empty where it is not known.

    A day without a time is no moment: several runs share it.
    """
    by_name = {_normalize(name): value for name, value in cells.items()}
    for name in MOMENTS:
        if (moment := _read_moment(by_name.get(name))) is not None:
            return {"started": moment.astimezone(UTC).isoformat()}
    return {}


def find_start_column(
    rows: Sequence[Mapping[str, Any]], *, without: frozenset[str] = frozenset()
) -> tuple[str, str, str]:
    """Find the column that says when each run was made ("" for none), or one that seems to, and what it lacks.

    One column says it of all: moments of two (when a run was submitted, and when it began) are in no order.
    """
    columns = {_normalize(name): name for row in rows for name in row if name not in without}
    candidate, lack = "", ""
    for name in (columns[each] for each in MOMENTS if each in columns):
        cells = [row.get(name) for row in rows]
        if not (filled_cells := [cell for cell in cells if cell not in (None, "")]):
            continue
        if not (problem := _describe_lack(filled_cells, len(cells))):
            return name, "", ""
        candidate, lack = (candidate, lack) if candidate else (name, problem)
    return "", candidate, lack


def _describe_lack(filled_cells: Sequence[Any], count: int) -> str:
    for cell in filled_cells:
        if _read_moment(cell) is None:
            return f"has {str(cell)[:40]!r}, which is no day with a time as in 2026-10-01T10:00:00, nor a Unix time"
    if len(filled_cells) < count:
        return "is empty of some runs"
    has_zone = {bool(_ZONE.search(cell.strip())) for cell in filled_cells if _read_amount(cell) is None}
    return "has a time zone in some rows alone" if len(has_zone) > 1 else ""


def _read_moment(cell: Any) -> datetime | None:
    if (number := _read_amount(cell)) is not None:
        seconds = number / 1000 if number >= 1000 * _EPOCH[0] else number
        return datetime.fromtimestamp(seconds, UTC) if _EPOCH[0] <= seconds < _EPOCH[1] else None
    if not isinstance(cell, str) or not _DAY_AND_TIME.fullmatch(text := cell.strip()):
        return None
    day, time = text[:10], text[11:] if ":" in text[11:] else text[11:].replace("-", ":")
    try:
        moment = datetime.fromisoformat(f"{day}T{time.replace(' UTC', 'Z')}")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _read_amount(cell: Any) -> float | None:
    amount = parse_float(cell.replace(",", "") if isinstance(cell, str) else cell)
    return amount if amount is not None and 0 < amount < math.inf else None
