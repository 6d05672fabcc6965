"""Reads a table of methods: a metric by seed, one row a run or several steps of it; and the runs that were lost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from plumbline.core.errors import PlumblineError, nearest
from plumbline.verdict.formatting import counted, name
from plumbline.verdict.numbers.readers.printed_spreads import PrintedSpread, read_summaries, unread, without_units
from plumbline.verdict.numbers.readers.row_files import ColumnNames, FileRow, FileRows, at
from plumbline.verdict.numbers.readers.run_statuses import CRASH, RUNNING, RunStatuses
from plumbline.verdict.seed_values import Summaries, rank_name, seed_name, seed_words

#: Which of several steps of a run has its value, besides a step's number.
LAST, BEST = "last", "best"


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricBySeed:
    """The values of one metric: method -> seed -> value; or what is printed of them.

    Attributes:
        summaries: mean and standard deviation of each method; there are no single values then, and none was lost.
        lost: method -> the seeds that diverged or crashed -> the word for it.
        unfinished: method -> the seeds that still run or wait -> the word for it, and its line.
        notes: sentences about how the file was read.
        order: the methods, as the file has them.
        without: method without any value -> the lines of its rows; it is none of `order`.
    """

    metric: str
    values: dict[str, dict[str, float]]
    lost: Mapping[str, dict[str, str]]
    notes: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    without: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    unfinished: Mapping[str, dict[str, str]] = field(default_factory=dict)
    summaries: Summaries = field(default_factory=dict)

    def missing(self) -> str:
        """Say, at the end of a message that lacks a method, which ones have rows and no value; empty for none."""
        rows = ", ".join(f"{method!r} ({at(lines)})" for method, lines in self.without.items())
        return f". Without a value of {self.metric!r}: {rows}; write it, or nan where a run diverged" if rows else ""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A row of a run: its value, or the word for why there is none (yet); neither where the cell is empty."""

    row: FileRow
    step: float
    value: float | None
    lost: str = ""
    unfinished: str = ""


def read_table(
    rows: FileRows,
    columns: ColumnNames,
    *,
    higher: bool = True,
    at_step: str = "",
    told: PrintedSpread | None = None,
) -> MetricBySeed:
    """Read a table's values by method and seed.

    `at_step`: the step whose value counts where runs have several: a number, `LAST` (also where runs end at different
    steps), or `BEST` of each run; by default the last one, which must be the same of all.
    `told`: what was said of printed means and their spreads.

    Raises:
        PlumblineError: a missing column, a cell that is no number, two metrics, a run twice, a run without a value or
            without the step that was asked for; means with spreads among values of runs, or of unknown numbers of runs.
    """
    rows.require((columns.method,), ("--method-column",))
    metric, column, chosen = _metric(rows, columns)
    rows.require((column,), ("--metric",))
    rows, chosen, unit = without_units(rows, column, chosen)
    said = [unit] if unit else []
    printed = read_summaries(rows, columns, column, chosen, told or PrintedSpread(), unit=bool(unit))
    if printed is not None:
        return MetricBySeed(
            metric=metric,
            values={},
            lost={},
            notes=(*printed.notes, *said, *_left_out(metric, printed.empty)),
            order=tuple(printed.by_method),
            without=printed.empty,
            summaries=printed.by_method,
        )
    runs, notes = _runs(rows, columns, column, chosen)
    notes += [*said, *unread(rows, columns, column)]
    picked = _at_steps(rows, columns, runs, higher=higher, at_step=at_step, notes=notes)
    values: dict[str, dict[str, float]] = {}
    lost: dict[str, dict[str, str]] = {}
    unfinished: dict[str, dict[str, str]] = {}
    empty: dict[str, list[_Reading]] = {}
    for (method, seed), reading in picked.items():
        if reading.unfinished:
            unfinished.setdefault(method, {})[seed] = f"{reading.unfinished!r} in line {reading.row.line}"
        elif reading.lost:
            lost.setdefault(method, {})[seed] = reading.lost
        elif reading.value is None:
            empty.setdefault(method, []).append(reading)
        else:
            values.setdefault(method, {})[seed] = reading.value
    for method, readings in empty.items():
        if method in values or method in lost or method in unfinished:
            rows.fail(
                readings[0].row,
                column,
                f"is empty, and other runs of {method!r} have a value; write nan if the run diverged, or its value",
            )
    notes += _left_out(metric, empty)
    order = tuple(dict.fromkeys(method for method, _ in picked if method not in empty))
    without = {method: tuple(reading.row.line for reading in readings) for method, readings in empty.items()}
    return MetricBySeed(
        metric=metric,
        values=values,
        lost=lost,
        notes=tuple(notes),
        order=order,
        without=without,
        unfinished=unfinished,
    )


def _left_out(metric: str, empty: Iterable[str]) -> list[str]:
    named = ", ".join(map(name, sorted(empty)))
    return [f"Without a value of {name(metric)}, and left out: {named}."] if named else []


def _metric(rows: FileRows, columns: ColumnNames) -> tuple[str, str, tuple[FileRow, ...]]:
    """The metric's name, its column, and the rows that are of it."""
    names, metric = "metric", columns.metric
    if columns.value not in rows.columns or names not in rows.columns:
        return metric, metric, rows.rows
    there = sorted({rows.text(row, names) for row in rows.rows})
    if metric == names and len(there) > 1:
        raise PlumblineError(f"{rows.path} mixes the metrics {there}; choose one with --metric")
    metric = there[0] if metric == names else metric
    if metric not in there:
        raise PlumblineError(f"{rows.path}: --metric {metric!r} is none of {there}{nearest(metric, there)}")
    return metric, columns.value, tuple(row for row in rows.rows if row.cells[names] == metric)


def _runs(
    rows: FileRows, columns: ColumnNames, column: str, chosen: tuple[FileRow, ...]
) -> tuple[dict[tuple[str, str], list[_Reading]], list[str]]:
    """The rows of each run, by method and seed."""
    statuses = RunStatuses(rows, columns)
    notes = statuses.note()
    seeded, stepped = columns.seed in rows.columns, columns.step in rows.columns
    readings: dict[str, list[tuple[str, _Reading]]] = {}
    for row in chosen:
        seed = seed_name(rows.text(row, columns.seed)) if seeded else ""
        step = rows.number(row, columns.step) if stepped else 0.0
        if not math.isfinite(step):
            rows.fail(row, columns.step, "a step is a finite number")
        readings.setdefault(rows.text(row, columns.method), []).append(
            (seed, _reading(rows, statuses, column, row, step))
        )
    if not seeded:
        if stepped and any(len({each.step for _, each in of}) > 1 for of in readings.values()):
            raise PlumblineError(
                f"{rows.path} has steps ({columns.step!r}) but no column {columns.seed!r} that says which run a step "
                "is of; name that one with --seed-column, or keep one row a run"
            )
        notes.append(
            f"There is no column {name(columns.seed)}: each row of a method is one of its runs, and none is paired."
        )
        for method, of in readings.items():
            # By value, so that another order of the rows is the same table.
            ranked = sorted((each for _, each in of), key=lambda each: (each.lost, each.value is None, each.value or 0))
            readings[method] = [(rank_name(method, rank), each) for rank, each in enumerate(ranked, start=1)]
    runs: dict[tuple[str, str], list[_Reading]] = {}
    for method, of in readings.items():
        for seed, each in of:
            runs.setdefault((method, seed), []).append(each)
    resumed = []
    for (method, seed), of_run in runs.items():
        if len(of_run) == 1 or (stepped and len({each.step for each in of_run}) == len(of_run)):
            continue
        if not stepped or (left := _resumed(of_run)) is None:
            _refuse_repeat(rows, columns, method, seed, of_run, stepped=stepped)
        runs[method, seed] = left
        resumed.append(f"{name(method)}, {seed_words(seed)}")
    if resumed:
        more = f" and {len(resumed) - 8} more" if len(resumed) > 8 else ""
        notes.append(
            f"Went on from an earlier step ({'; '.join(resumed[:8])}{more}): from there on the later rows count."
        )
    return runs, notes


def _resumed(of_run: list[_Reading]) -> list[_Reading] | None:
    """What counts of a run that was resumed from an earlier step: of what was done twice, the later rows.

    A run that was lost before it was resumed stays lost. None where the rows are no such run's: they do not begin at
    the first step, or that one is there again, as where two runs have one seed.
    """
    first = of_run[0].step
    left: list[_Reading] = []
    for reading in of_run:
        if left and reading.step <= first:
            return None
        while left and left[-1].step >= reading.step and not left[-1].lost:
            left.pop()
        left.append(reading)
    return left


def _refuse_repeat(
    rows: FileRows, columns: ColumnNames, method: str, seed: str, of_run: list[_Reading], *, stepped: bool
) -> NoReturn:
    """Refuse a run that is there twice, with the first row that shows it."""
    lines: dict[float, int] = {}
    again = next(each for each in of_run if lines.setdefault(each.step, each.row.line) != each.row.line)
    at = f" at step {again.step:g}" if stepped else ""
    whole = "; of a run that was begun again, delete the rows before that" if stepped else ""
    rows.fail(
        again.row,
        columns.seed,
        f"{method!r} has seed {seed!r}{at} already in line {lines[again.step]}; a run counts once: give a repeat "
        f"another seed{whole}",
    )


def _reading(rows: FileRows, statuses: RunStatuses, column: str, row: FileRow, step: float) -> _Reading:
    status = statuses.of(row)
    if status.meaning == CRASH:
        return _Reading(row, step, None, lost=status.word)
    if status.meaning == RUNNING:
        return _Reading(row, step, None, unfinished=status.word)
    if not row.cells[column]:
        return _Reading(row, step, None)
    value = rows.number(row, column)
    return _Reading(row, step, value) if math.isfinite(value) else _Reading(row, step, None, lost="diverged")


def _at_steps(
    rows: FileRows,
    columns: ColumnNames,
    runs: dict[tuple[str, str], list[_Reading]],
    *,
    higher: bool,
    at_step: str,
    notes: list[str],
) -> dict[tuple[str, str], _Reading]:
    """One reading of each run, by the rule that was asked for."""
    if columns.step not in rows.columns:
        if at_step:
            raise PlumblineError(f"--at-step {at_step}: {rows.path} has no column {columns.step!r}; see --step-column")
        return {key: of[0] for key, of in runs.items()}
    picked: dict[tuple[str, str], _Reading] = {}
    for key, of in runs.items():
        filled = sorted((each for each in of if each.lost or each.value is not None), key=lambda each: each.step)
        lost = [each for each in filled if each.lost]  # at any step: a run that diverged has no value at others
        end = max(of, key=lambda each: each.step)
        picked[key] = lost[-1] if lost else end if end.unfinished or not filled else filled[-1]
        if not filled or lost or end.unfinished or at_step in ("", LAST):
            continue
        there = [each for each in filled if each.value is not None]
        if at_step == BEST:
            picked[key] = (max if higher else min)(there, key=lambda each: each.value or 0.0)
            continue
        wanted = [each for each in there if each.step == _step(at_step)]
        if not wanted:
            rows.fail(of[-1].row, columns.step, f"{key[0]!r}, seed {key[1]!r} has no value at step {at_step}")
        picked[key] = wanted[0]
    ends = sorted({each.step for each in picked.values() if each.value is not None})
    if at_step == "" and len(ends) > 1:
        raise PlumblineError(
            f"{rows.path}: runs end at different steps, from {ends[0]:g} to {ends[-1]:g}; say which value counts with "
            f"--at-step {ends[0]:g}, or --at-step last if each run ended where it was meant to"
        )
    several = max(len(of) for of in runs.values())
    if several > 1 or at_step:
        said = {"": f"the last step, {ends[-1]:g}" if ends else "the last step", LAST: "each run's last step"}
        said[BEST] = (
            "the best of each run's steps, as asked: chosen after the runs, and better than what any step shows"
        )
        counts = said.get(at_step, f"step {at_step}, as asked")
        notes.append(f"Runs have up to {counted(several, 'step')}; the value of a run is that of {counts}.")
    return picked


def _step(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PlumblineError(f"--at-step {text!r} is a step's number, or {LAST}, or {BEST}") from None
