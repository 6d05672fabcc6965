"""Reads rows as runs: of a table of methods (a metric by seed, at one step or several), or of a search's log."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.formats import format_count
from plumbline.verdict.evidence import CRASH, FINISHED, KEEP, RUNNING, Evidence, RunEvidence, SearchLogEntry
from plumbline.verdict.formatting import name
from plumbline.verdict.seed_values import rank_name, seed_name, seed_words
from plumbline.verdict.sources.printed_spreads import PrintedSpread, read_summaries, unread, without_units
from plumbline.verdict.sources.row_files import ColumnNames, FileRow, FileRows, at
from plumbline.verdict.sources.run_statuses import RunStatuses, mapping

#: Which of several steps of a run has its value, besides a step's number.
LAST, BEST = "last", "best"


def read_table(
    rows: FileRows,
    columns: ColumnNames,
    *,
    higher: bool = True,
    at_step: str = "",
    told: PrintedSpread | None = None,
) -> Evidence:
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
    printed = read_summaries(rows, columns, metric, column, chosen, told or PrintedSpread(), unit=bool(unit))
    if printed is not None:
        return replace(printed, notes=(*printed.notes, *said, *_left_out(metric, printed.without)))
    statuses = RunStatuses(rows, columns)
    runs, notes = _runs(rows, columns, statuses, column, chosen)
    notes += [*said, *unread(rows, columns, column)]
    by_method: dict[str, dict[str, RunEvidence]] = {}
    for (method, seed), run in _at_steps(rows, columns, runs, higher=higher, at_step=at_step, notes=notes).items():
        by_method.setdefault(method, {})[seed] = run
    empty: dict[str, tuple[int, ...]] = {}
    for method, of_method in by_method.items():
        without = [run for run in of_method.values() if _is_empty(run)]
        if without and len(without) < len(of_method):
            rows.fail(
                without[0],
                column,
                f"is empty, and other runs of {method!r} have a value; write nan if the run diverged, or its value",
            )
        if without:
            empty[method] = tuple(run.line for run in without if run.line is not None)
    return Evidence(
        metric=metric,
        runs={method: of_method for method, of_method in by_method.items() if method not in empty},
        files=(rows.path,),
        without=empty,
        statuses=statuses.columns,
        notes=(*notes, *_left_out(metric, empty)),
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
    rows: FileRows, columns: ColumnNames, statuses: RunStatuses, column: str, chosen: tuple[FileRow, ...]
) -> tuple[dict[tuple[str, str], list[RunEvidence]], list[str]]:
    """The rows of each run, by method and seed."""
    notes = statuses.note()
    seeded, stepped = columns.seed in rows.columns, columns.step in rows.columns
    readings: dict[str, list[tuple[str, RunEvidence]]] = {}
    for row in chosen:
        seed = seed_name(rows.text(row, columns.seed)) if seeded else ""
        step = rows.number(row, columns.step) if stepped else 0.0
        if not math.isfinite(step):
            rows.fail(row, columns.step, "a step is a finite number")
        readings.setdefault(rows.text(row, columns.method), []).append(
            (seed, _run(rows, statuses, column, row, step if stepped else None))
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
            ranked = sorted(
                (each for _, each in of), key=lambda each: (_lost(each), each.value is None, each.value or 0)
            )
            readings[method] = [(rank_name(method, rank), each) for rank, each in enumerate(ranked, start=1)]
    runs: dict[tuple[str, str], list[RunEvidence]] = {}
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


def _resumed(of_run: list[RunEvidence]) -> list[RunEvidence] | None:
    """What counts of a run that was resumed from an earlier step: of what was done twice, the later rows.

    A run that was lost before it was resumed stays lost. None where the rows are no such run's: they do not begin at
    the first step, or that one is there again, as where two runs have one seed.
    """
    first = _place(of_run[0])
    left: list[RunEvidence] = []
    for reading in of_run:
        if left and _place(reading) <= first:
            return None
        while left and _place(left[-1]) >= _place(reading) and not _lost(left[-1]):
            left.pop()
        left.append(reading)
    return left


def _refuse_repeat(
    rows: FileRows, columns: ColumnNames, method: str, seed: str, of_run: list[RunEvidence], *, stepped: bool
) -> NoReturn:
    """Refuse a run that is there twice, with the first row that shows it."""
    lines: dict[float, int | None] = {}
    again = next(each for each in of_run if lines.setdefault(_place(each), each.line) != each.line)
    at = f" at step {_place(again):g}" if stepped else ""
    whole = "; of a run that was begun again, delete the rows before that" if stepped else ""
    rows.fail(
        again,
        columns.seed,
        f"{method!r} has seed {seed!r}{at} already in line {lines[_place(again)]}; a run counts once: give a repeat "
        f"another seed{whole}",
    )


def _run(rows: FileRows, statuses: RunStatuses, column: str, row: FileRow, step: float | None) -> RunEvidence:
    status, word = statuses.of(row)
    value = rows.number(row, column) if row.cells[column] and status not in (CRASH, RUNNING) else None
    if value is not None and not math.isfinite(value):
        status, word, value = CRASH, "diverged", None
    return RunEvidence(value=value, file=rows.path, line=row.line, status=status, word=word, step=step)


def _lost(run: RunEvidence) -> str:
    """The word for why a run was lost; empty where it was not."""
    return run.word if run.status == CRASH else ""


def _place(run: RunEvidence) -> float:
    """A run's step, in order; all are at 0 where there are no steps."""
    return run.step or 0.0


def _is_empty(run: RunEvidence) -> bool:
    """Whether a run has no value, and nothing says why."""
    return run.value is None and run.status not in (CRASH, RUNNING)


def _at_steps(
    rows: FileRows,
    columns: ColumnNames,
    runs: dict[tuple[str, str], list[RunEvidence]],
    *,
    higher: bool,
    at_step: str,
    notes: list[str],
) -> dict[tuple[str, str], RunEvidence]:
    """One reading of each run, by the rule that was asked for."""
    if columns.step not in rows.columns:
        if at_step:
            raise PlumblineError(f"--at-step {at_step}: {rows.path} has no column {columns.step!r}; see --step-column")
        return {key: of[0] for key, of in runs.items()}
    picked: dict[tuple[str, str], RunEvidence] = {}
    for key, of in runs.items():
        filled = sorted((each for each in of if _lost(each) or each.value is not None), key=_place)
        lost = [each for each in filled if _lost(each)]  # at any step: a run that diverged has no value at others
        end = max(of, key=_place)
        picked[key] = lost[-1] if lost else end if end.status == RUNNING or not filled else filled[-1]
        if not filled or lost or end.status == RUNNING or at_step in ("", LAST):
            continue
        there = [each for each in filled if each.value is not None]
        if at_step == BEST:
            picked[key] = (max if higher else min)(there, key=lambda each: each.value or 0.0)
            continue
        wanted = [each for each in there if each.step == _step(at_step)]
        if not wanted:
            rows.fail(of[-1], columns.step, f"{key[0]!r}, seed {key[1]!r} has no value at step {at_step}")
        picked[key] = wanted[0]
    ends = sorted({_place(each) for each in picked.values() if each.value is not None})
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
        notes.append(f"Runs have up to {format_count(several, 'step')}; the value of a run is that of {counts}.")
    return picked


def _step(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PlumblineError(f"--at-step {text!r} is a step's number, or {LAST}, or {BEST}") from None


#: The column that says of how many runs a row is the mean.
SEEDS = "seeds"


def read_search(rows: FileRows, columns: ColumnNames) -> Evidence:
    """Read the runs of a search's log, in its order; what has not ended is left out, with a note.

    Rows that are means of several runs, as `plumbline try` writes them into results.tsv, hold those of the same
    configuration before them: of each configuration its last row counts.

    Raises:
        PlumblineError: a missing column, a status that is none, a kept run without a finite number.
    """
    rows.require((columns.commit, columns.metric), ("--commit-column", "--metric"))
    statuses = RunStatuses(rows, columns)
    if not statuses.columns:
        rows.require((columns.status,), ("--status-column",))
    steps, waiting = list[SearchLogEntry](), list[int]()
    for row in rows.rows:
        status, word = statuses.of(row)
        column = next((each for each in statuses.columns if row.cells[each]), statuses.columns[0])
        rows.text(row, column)
        if status == RUNNING:
            waiting.append(row.line)
            continue
        if status == FINISHED:
            rows.fail(
                row,
                column,
                f"{word!r} does not say whether the search kept the change; write keep, discard or crash, or say it "
                f"with {mapping(word, 'discard')}",
            )
        value = None if status == CRASH else rows.number(row, columns.metric)
        if value is not None and not math.isfinite(value):
            if status == KEEP:
                rows.fail(row, columns.metric, "a run that was kept has no finite number; correct its status or value")
            value, status = None, CRASH
        steps.append(
            SearchLogEntry(
                line=row.line,
                commit=rows.text(row, columns.commit),
                value=value,
                status=status,
                description=row.cells.get("description", ""),
                word=word,
            )
        )
    notes = []
    if waiting:
        notes.append(f"Left out, since it has not ended: {at(waiting)}.")
    if any(rows.number(row, SEEDS) > 1 for row in rows.rows if row.cells.get(SEEDS)):
        last = {step.configuration: step for step in steps}
        notes.append(
            f"By column {name(SEEDS)} a row is a mean of several runs, which is judged as one run: that errs towards "
            "not decided. Of a configuration its last row counts, and none is a repeat: sigma of one run is of "
            "elsewhere (--sigma). What was decided with the runs themselves: plumbline log."
        )
        steps = [step for step in steps if last[step.configuration] is step]
    return Evidence(
        metric=columns.metric,
        log=steps,
        files=(rows.path,),
        unread={at([line]): "has not ended" for line in waiting},
        statuses=statuses.columns,
        notes=tuple(notes),
    )
