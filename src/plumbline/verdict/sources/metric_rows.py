"""Reads tables whose rows each name their metric: which rows are of the one that decides, and what the others say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from plumbline.core.errors import PlumblineError, nearest
from plumbline.verdict.evidence import CRASH, FINISHED, RUNNING, RunEvidence
from plumbline.verdict.formatting import quote
from plumbline.verdict.seed_values import normalize_seed
from plumbline.verdict.sources.column_names import LOSS_METRICS, has_word
from plumbline.verdict.sources.row_files import QUOTES, ColumnNames, FileRow, FileRows, is_non_finite, name_lines
from plumbline.verdict.sources.run_statuses import RunStatuses

#: The column of the metrics' names.
METRIC = "metric"


def choose_metric(rows: FileRows, columns: ColumnNames) -> tuple[str, str, tuple[FileRow, ...]]:
    """Return the metric's name, its column, and the rows that are of it.

    Raises:
        PlumblineError: rows are of several metrics, and none or an unknown one was named.
    """
    metric = columns.metric
    if columns.value not in rows.columns or METRIC not in rows.columns:
        return metric, metric, rows.rows
    metrics = sorted({rows.read_text(row, METRIC) for row in rows.rows})
    if metric == METRIC and len(metrics) > 1:
        raise PlumblineError(f"{rows.path} mixes the metrics {metrics}; choose one with --metric")
    metric = metrics[0] if metric == METRIC else metric
    if metric not in metrics:
        raise PlumblineError(f"{rows.path}: --metric {metric!r} is none of {metrics}{nearest(metric, metrics)}")
    return metric, columns.value, tuple(row for row in rows.rows if row.cells[METRIC] == metric)


def read_runs_without(
    rows: FileRows, columns: ColumnNames, statuses: RunStatuses, chosen_rows: Sequence[FileRow], metric: str
) -> dict[tuple[str, str], RunEvidence]:
    """Read the runs of which rows of other metrics alone tell how they ended, by method and seed.

    A run that crashed before its evaluation has no row of it, and one that crashed later may have. What still runs is
    unfinished by its last row, or by any where there are no steps.

    Raises:
        PlumblineError: rows of another metric are of lost runs, and no seeds tell of which.
    """
    lines = {row.line for row in chosen_rows}
    other_rows = [row for row in rows.rows if row.line not in lines and row.cells[columns.method]]
    if columns.seed not in rows.columns:
        _require_lost_rows(rows, columns, statuses, other_rows, metric)
        return {}
    has_steps = rows.has_steps(columns)
    last_lines = {_name_run(row, columns): row.line for row in rows.rows}
    chosen_keys = {_name_run(row, columns) for row in chosen_rows}
    runs: dict[tuple[str, str], RunEvidence] = {}
    for row in other_rows:
        if not row.cells[columns.seed]:
            continue
        key, (status, word) = _name_run(row, columns), statuses.read_status(row)
        is_of_end = status == CRASH or (status == RUNNING and (not has_steps or last_lines[key] == row.line))
        if key in chosen_keys and not is_of_end:
            continue
        if status not in (CRASH, RUNNING):
            is_lost = is_non_finite(row.cells[columns.value].strip(QUOTES))
            status, word = (CRASH, "diverged") if is_lost else (FINISHED, "")
        if key not in runs or runs[key].status == FINISHED:
            runs[key] = RunEvidence(value=None, file=rows.path, line=row.line, status=status, word=word)
    return runs


def _require_lost_rows(
    rows: FileRows, columns: ColumnNames, statuses: RunStatuses, other_rows: Sequence[FileRow], metric: str
) -> None:
    """Require that a method has as many rows of lost runs in the metric as in others, where no seed tells its runs."""
    lost_lines = {row.line for row in rows.rows if statuses.read_status(row).meaning in (CRASH, RUNNING)}
    other_lines = {row.line for row in other_rows}
    expected_counts = Counter(row.cells[columns.method] for row in rows.rows if row.line in lost_lines - other_lines)
    counts = Counter[tuple[str, str]]()
    for row in other_rows:
        method = row.cells[columns.method]
        counts[method, row.cells[METRIC]] += row.line in lost_lines
        if counts[method, row.cells[METRIC]] > expected_counts[method]:
            rows.fail(
                row,
                METRIC,
                f"a run of {method!r} that was lost, or has not ended, has no row of {metric!r}, and without a column "
                f"{columns.seed!r} nothing tells which; name that one with --seed-column",
            )


def list_non_finite_losses(
    rows: FileRows, columns: ColumnNames, metric: str, column: str, counted_rows: Mapping[tuple[str, str], FileRow]
) -> list[str]:
    """State which other losses and norms of runs that count are no numbers, although those of other runs are.

    `counted_rows`: the row of each run that counts, by method and seed; `column`: that of the metric.
    """
    cells: dict[str, dict[object, tuple[int, str]]] = {}
    if column == metric:
        for name in rows.columns:
            if has_word(name, LOSS_METRICS) and name not in (column, columns.seed, columns.method):
                cells[name] = {row.line: (row.line, row.cells[name]) for row in counted_rows.values()}
    else:
        for row in rows.rows:
            key = _name_run(row, columns) if columns.seed in rows.columns else row.line
            name = row.cells[METRIC]
            if name != metric and has_word(name, LOSS_METRICS) and (key in counted_rows or key == row.line):
                cells.setdefault(name, {})[key] = row.line, row.cells[column]  # the last, of several steps
    sentences = []
    for name, of_runs in cells.items():
        lines = [line for line, cell in of_runs.values() if is_non_finite(cell.strip(QUOTES))]
        if lines and len(lines) < sum(bool(cell) for _, cell in of_runs.values()):
            sentences.append(f"{quote(name)} is no finite number in {name_lines(lines)}, of runs that count.")
    return sentences


def _name_run(row: FileRow, columns: ColumnNames) -> tuple[str, str]:
    return row.cells[columns.method], normalize_seed(row.cells[columns.seed])
