"""Reads rows as runs: of a table of methods (a metric by seed, at one step or several), or of a search's log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count
from plumbline.verdict.evidence import CRASH, FINISHED, KEEP, RUNNING, Evidence, RunEvidence, SearchLogEntry
from plumbline.verdict.formatting import name_some, quote
from plumbline.verdict.outcome import CannotBeJudgedError
from plumbline.verdict.seed_values import describe_seed, name_by_rank, normalize_seed
from plumbline.verdict.sources.column_names import names_steps
from plumbline.verdict.sources.evaluation_columns import list_other_evaluations
from plumbline.verdict.sources.measure_columns import (
    choose_columns,
    find_start_column,
    list_times_without_unit,
    read_measures,
    read_start,
)
from plumbline.verdict.sources.metric_rows import (
    METRIC,
    choose_metric,
    list_non_finite_losses,
    read_runs_without,
)
from plumbline.verdict.sources.printed_spreads import PrintedSpread, drop_units, list_unread_columns, read_summaries
from plumbline.verdict.sources.row_files import ColumnNames, FileRow, FileRows, name_lines, parse_float
from plumbline.verdict.sources.run_statuses import RunStatuses, write_mapping_flag
from plumbline.verdict.sources.step_columns import check_no_steps

#: Which of several steps of a run has its value, besides a step's number.
LAST, BEST = "last", "best"


def read_table(
    rows: FileRows,
    columns: ColumnNames,
    *,
    higher: bool = True,
    at_step: str = "",
    spread_options: PrintedSpread | None = None,
) -> Evidence:
    """Read a table's values by method and seed.

    `at_step`: the step whose value counts where runs have several: a number, `LAST` (also where runs end at different
    steps), or `BEST` of each run; by default the last one, which must be the same of all.
    `spread_options`: what was said of printed means and their spreads.

    Raises:
        CannotBeJudgedError: runs end at different steps, and none was requested.
        PlumblineError: a missing column, a cell without a number, two metrics, a run twice, a run without a value or
            without the step that was requested; means with spreads among values of runs, or of unknown numbers of runs.
    """
    rows.require((columns.method,), ("--method-column",))
    columns = rows.match_case(columns)
    metric, column, chosen_rows = choose_metric(rows, columns)
    rows.require((column,), ("--metric",))
    rows, chosen_rows, unit_note = drop_units(rows, column, chosen_rows)
    unit_notes = [unit_note] if unit_note else []
    summary = read_summaries(
        rows, columns, metric, column, chosen_rows, spread_options or PrintedSpread(), unit=bool(unit_note)
    )
    named_columns = {columns.method, columns.seed, columns.step, column, METRIC}
    if summary is not None:
        counted_rows = {(row.cells[columns.method], ""): row for row in chosen_rows}
        notes = [*summary.notes, *unit_notes, *_note_left_out(metric, summary.without)]
        return replace(
            summary,
            notes=tuple(notes),
            told=tuple(list_other_evaluations(counted_rows, {*rows.columns} - named_columns)),
        )
    statuses = RunStatuses(rows, columns)
    step_notes = check_no_steps(rows, columns, chosen_rows, without={*named_columns, *statuses.columns})
    runs, notes = _group_by_run(rows, columns, statuses, column, chosen_rows)
    runs |= {key: [run] for key, run in read_runs_without(rows, columns, statuses, chosen_rows, metric).items()}
    notes += [*unit_notes, *list_unread_columns(rows, columns, column)]
    row_of: dict[int | None, FileRow] = {row.line: row for row in rows.rows}
    chosen_runs = _choose_steps(rows, columns, runs, higher=higher, at_step=at_step, notes=notes)
    counted_rows = {key: row_of[run.line] for key, run in chosen_runs.items() if run.value is not None}
    excluded_columns = frozenset((column, columns.step))
    dropped_columns, disagreements = choose_columns(
        [(method, row.cells) for (method, _), row in counted_rows.items()], without=excluded_columns
    )
    excluded_columns |= dropped_columns
    start, *start_problem = find_start_column([row.cells for row in counted_rows.values()], without=excluded_columns)
    by_method: dict[str, dict[str, RunEvidence]] = {}
    for (method, seed), run in chosen_runs.items():
        cells = row_of[run.line].cells
        measures: dict[str, Any] = {
            **read_measures(cells, without=excluded_columns),
            **read_start({start: cells.get(start)}),
        }
        own_step = {} if run.step is None else {"step": run.step}
        by_method.setdefault(method, {})[seed] = replace(run, **measures | own_step)
    every_run = [(run, row_of[run.line].cells) for of_method in by_method.values() for run in of_method.values()]
    notes += [*_note_times(every_run, excluded_columns), *_note_starts(by_method, start, *start_problem)]
    empty_methods: dict[str, tuple[int, ...]] = {}
    lines, unevaluated_runs = {row.line for row in chosen_rows}, list[str]()
    for method, of_method in by_method.items():
        empty_runs = {seed: run for seed, run in of_method.items() if _is_empty(run)}
        if len(empty_runs) == len(of_method):
            empty_methods[method] = tuple(row_of[run.line].line for run in empty_runs.values())
            continue
        for seed, run in empty_runs.items():
            if run.line in lines:
                problem = "is empty, and other runs of {!r} have a value; write nan if the run diverged, or its value"
                rows.fail(run, column, problem.format(method))
            unevaluated_runs.append(_describe_run(method, seed))
            del of_method[seed]
    return Evidence(
        metric=metric,
        runs={method: of_method for method, of_method in by_method.items() if method not in empty_methods},
        files=(rows.path,),
        without=empty_methods,
        statuses=statuses.columns,
        notes=(*notes, *_note_left_out(metric, empty_methods)),
        told=(
            *step_notes,
            *[f"No row of {quote(metric)}, and left out: {name_some(unevaluated_runs)}."] * bool(unevaluated_runs),
            *statuses.list_unread(),
            *disagreements,
            *list_non_finite_losses(rows, columns, metric, column, counted_rows),
            *list_other_evaluations(counted_rows, {*rows.columns} - {*named_columns, *statuses.columns}),
        ),
    )


def _note_times(runs: Sequence[tuple[RunEvidence, Mapping[str, str]]], without: frozenset[str]) -> list[str]:
    """State which columns may say how long runs took, each given with its cells, where none does in a known unit."""
    if any(run.seconds is not None for run, _ in runs):
        return []
    names = [name for _, cells in runs for name in list_times_without_unit(cells, without=without)]
    return [
        f"How long runs took is not known, because column {quote(name)} has no unit: name it "
        f"{quote(f'{name}_s')} if it is in seconds."
        for name in dict.fromkeys(names)
    ]


def _note_starts(
    by_method: Mapping[str, Mapping[str, RunEvidence]], start: str, candidate: str, lack: str
) -> list[str]:
    """State which column may say when runs were made, where it does not tell their order."""
    for of_method in by_method.values() if start else ():
        times = [run.started for run in of_method.values() if run.value is not None]
        if len({*times}) < len(times):
            candidate, lack = start, "has one time of several runs"
    return [f"When runs were made is not known, because column {quote(candidate)} {lack}."] * bool(candidate)


def _note_left_out(metric: str, empty: Iterable[str]) -> list[str]:
    names = ", ".join(map(quote, sorted(empty)))
    return [f"Without a value of {quote(metric)}, and left out: {names}."] if names else []


def _group_by_run(
    rows: FileRows, columns: ColumnNames, statuses: RunStatuses, column: str, chosen_rows: tuple[FileRow, ...]
) -> tuple[dict[tuple[str, str], list[RunEvidence]], list[str]]:
    """The rows of each run, by method and seed."""
    notes = statuses.list_read()
    has_seeds, has_steps = columns.seed in rows.columns, rows.has_steps(columns)
    by_method: dict[str, dict[str, list[RunEvidence]]] = {}
    for row in chosen_rows:
        seed = normalize_seed(rows.read_text(row, columns.seed)) if has_seeds else ""
        step = rows.read_number(row, columns.step) if has_steps else None
        if step is not None and not math.isfinite(step):
            rows.fail(row, columns.step, "a step is a finite number")
        of_method = by_method.setdefault(rows.read_text(row, columns.method), {})
        of_method.setdefault(seed, []).append(_read_run(rows, statuses, column, row, step))
    if not has_seeds:
        notes.append(
            f"There is no column {quote(columns.seed)}: each row of a method is one of its runs, and none is paired."
        )
        for method, of_method in by_method.items():
            # By value, so that another order of the rows is the same table.
            ranked_runs = sorted(
                of_method[""],
                key=lambda run: (run.word if run.status == CRASH else "", run.value is None, run.value or 0),
            )
            by_method[method] = {name_by_rank(method, rank): [run] for rank, run in enumerate(ranked_runs, start=1)}
    runs = {(method, seed): of_run for method, of_method in by_method.items() for seed, of_run in of_method.items()}
    resumed_runs = []
    for (method, seed), of_run in runs.items():
        if len({run.step for run in of_run}) == len(of_run):
            continue
        if (counted_rows := _drop_repeated_steps(of_run)) is None:
            _refuse_repeat(rows, columns, method, seed, of_run)
        runs[method, seed] = counted_rows
        resumed_runs.append(_describe_run(method, seed))
    if resumed_runs:
        more = f" and {len(resumed_runs) - 8} more" if len(resumed_runs) > 8 else ""
        notes.append(
            f"Went on from an earlier step ({'; '.join(resumed_runs[:8])}{more}): from there on the later rows count."
        )
    return runs, notes


def _drop_repeated_steps(of_run: list[RunEvidence]) -> list[RunEvidence] | None:
    """What counts of a run that was resumed from an earlier step: of what was done twice, the later rows.

    A run that was lost before it was resumed stays lost. None if the rows are no such run's: they do not begin at
    the first step, or that one is there again, as where two runs have one seed.
    """
    first = _step_order(of_run[0])
    counted_rows: list[RunEvidence] = []
    for reading in of_run:
        if counted_rows and _step_order(reading) <= first:
            return None
        while counted_rows and _step_order(counted_rows[-1]) >= _step_order(reading):
            if counted_rows[-1].status == CRASH:
                break
            counted_rows.pop()
        counted_rows.append(reading)
    return counted_rows


def _refuse_repeat(rows: FileRows, columns: ColumnNames, method: str, seed: str, of_run: list[RunEvidence]) -> NoReturn:
    """Refuse a run that is there twice, with the first row that shows it."""
    lines: dict[float, int | None] = {}
    repeat = next(each for each in of_run if lines.setdefault(_step_order(each), each.line) != each.line)
    place, remedy = "", ""
    if repeat.step is not None:
        place = f" at step {repeat.step:g}"
        remedy = "; of a run that was begun again, delete the rows before that"
    elif step := next(filter(names_steps, rows.columns), ""):
        remedy = f"; if its rows are steps of one run, say so: --step-column {step}"
    rows.fail(
        repeat,
        columns.seed,
        f"{method!r} has seed {seed!r}{place} already in line {lines[_step_order(repeat)]}; a run counts once: give a "
        f"repeat another seed{remedy}",
    )


def _read_run(rows: FileRows, statuses: RunStatuses, column: str, row: FileRow, step: float | None) -> RunEvidence:
    status, word = statuses.read_status(row)
    value = rows.read_number(row, column) if row.cells[column] and status not in (CRASH, RUNNING) else None
    if value is not None and not math.isfinite(value):
        status, word, value = CRASH, "diverged", None
    return RunEvidence(value=value, file=rows.path, line=row.line, status=status, word=word, step=step)


def _describe_run(method: str, seed: str) -> str:
    return f"{quote(method)}, {describe_seed(seed)}"


def _step_order(run: RunEvidence) -> float:
    """A run's step, in order; all are at 0 where there are no steps."""
    return run.step or 0.0


def _is_empty(run: RunEvidence) -> bool:
    """Whether a run has no value, and nothing states why."""
    return run.value is None and run.status not in (CRASH, RUNNING)


def _choose_steps(
    rows: FileRows,
    columns: ColumnNames,
    runs: dict[tuple[str, str], list[RunEvidence]],
    *,
    higher: bool,
    at_step: str,
    notes: list[str],
) -> dict[tuple[str, str], RunEvidence]:
    """One reading of each run, by the rule that was requested."""
    if not rows.has_steps(columns):
        if at_step:
            raise PlumblineError(f"--at-step {at_step}: {rows.path} has no column {columns.step!r}; see --step-column")
        return {key: readings[0] for key, readings in runs.items()}
    chosen_runs: dict[tuple[str, str], RunEvidence] = {}
    for key, readings in runs.items():
        ordered_runs = sorted(readings, key=_step_order)
        lost_runs = [
            run for run in ordered_runs if run.status == CRASH
        ]  # at any step: a run that diverged has no value at others
        valued_runs = [run for run in ordered_runs if run.value is not None]
        if lost_runs:
            chosen_runs[key] = lost_runs[-1]
        elif ordered_runs[-1].status == RUNNING or not valued_runs:
            chosen_runs[key] = ordered_runs[-1]
        elif at_step in ("", LAST):
            chosen_runs[key] = valued_runs[-1]
        elif at_step == BEST:
            chosen_runs[key] = (max if higher else min)(valued_runs, key=lambda run: run.value or 0.0)
        else:
            step_runs = [run for run in valued_runs if run.step == _parse_step(at_step)]
            if not step_runs:
                rows.fail(readings[-1], columns.step, f"{key[0]!r}, seed {key[1]!r} has no value at step {at_step}")
            chosen_runs[key] = step_runs[0]
    runs_at: dict[float, list[str]] = {}
    for (method, seed), each in chosen_runs.items():
        if each.value is not None:
            runs_at.setdefault(_step_order(each), []).append(_describe_run(method, seed))
    ends = sorted(runs_at)
    if at_step == "" and len(ends) > 1:
        common_end = max(ends, key=lambda end: len(runs_at[end]))
        other_runs = [f"{run} at {end:g}" for end in ends if end != common_end for run in runs_at[end]]
        raise CannotBeJudgedError(
            f"{rows.path}: runs end at different steps, from {ends[0]:g} to {ends[-1]:g} ({name_some(other_runs)}; the "
            f"others at {common_end:g}); say which value counts with --at-step {ends[0]:g}, or --at-step last if each "
            "run ended where it was meant to"
        )
    count = max(len(readings) for readings in runs.values())
    if count > 1 or at_step:
        descriptions = {"": f"the last step, {ends[-1]:g}" if ends else "the last step", LAST: "each run's last step"}
        descriptions[BEST] = (
            "the best of each run's steps, as asked: chosen after the runs, and better than what any step shows"
        )
        counting_step = descriptions.get(at_step, f"step {at_step}, as asked")
        notes.append(f"Runs have up to {format_count(count, 'step')}; the value of a run is that of {counting_step}.")
    return chosen_runs


def _parse_step(text: str) -> float:
    if (step := parse_float(text)) is None:
        raise PlumblineError(f"--at-step {text!r} is a step's number, or {LAST}, or {BEST}")
    return step


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
    steps, waiting_lines = list[SearchLogEntry](), list[int]()
    for row in rows.rows:
        status, word = statuses.read_status(row)
        column = next((each for each in statuses.columns if row.cells[each]), statuses.columns[0])
        rows.read_text(row, column)
        if status == RUNNING:
            waiting_lines.append(row.line)
            continue
        if status == FINISHED:
            rows.fail(
                row,
                column,
                f"{word!r} does not say whether the search kept the change; write keep, discard or crash, or say it "
                f"with {write_mapping_flag(word, 'discard')}",
            )
        value = None if status == CRASH else rows.read_number(row, columns.metric)
        if value is not None and not math.isfinite(value):
            if status == KEEP:
                rows.fail(row, columns.metric, "a run that was kept has no finite number; correct its status or value")
            value, status = None, CRASH
        steps.append(
            SearchLogEntry(
                line=row.line,
                commit=rows.read_text(row, columns.commit),
                value=value,
                status=status,
                description=row.cells.get("description", ""),
                word=word,
            )
        )
    notes = list[str]()
    if waiting_lines:
        notes.append(f"Left out, since it has not ended: {name_lines(waiting_lines)}.")
    if any(rows.read_number(row, SEEDS) > 1 for row in rows.rows if row.cells.get(SEEDS)):
        last_steps = {step.configuration: step for step in steps}
        notes.append(
            f"By column {quote(SEEDS)} a row is a mean of several runs, which is judged as one run: that errs "
            "towards not decided. Of a configuration its last row counts, and none is a repeat: sigma of one run is "
            "of elsewhere (--sigma). What was decided with the runs themselves: plumbline log."
        )
        steps = [step for step in steps if last_steps[step.configuration] is step]
    cells, runs = {row.line: row.cells for row in rows.rows}, dict[str, dict[str, RunEvidence]]()
    for step in steps:
        measures: dict[str, Any] = {**read_measures(cells[step.line], without=frozenset((columns.metric,)))}
        status = CRASH if step.value is None else FINISHED
        run = RunEvidence(value=step.value, file=rows.path, line=step.line, status=status, word=step.word, **measures)
        runs.setdefault(step.label, {})[f"line {step.line}"] = run
    return Evidence(
        metric=columns.metric,
        runs=runs,
        log=steps,
        files=(rows.path,),
        statuses=statuses.columns,
        notes=tuple(notes),
        told=tuple(statuses.list_unread()),
    )
