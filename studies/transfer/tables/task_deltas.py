"""Makes a table of each method's distance from the baseline on each task: the numbers behind Figure 3.

Source: transfer study, appendix E, Figure 3 (which prints no numbers).
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import make_table, number_column
from plumbline.results.tables.table import (
    CONTEXT,
    Cell,
    Column,
    Table,
    context_cells,
    missing_word,
    number_cell,
    require_reference,
)
from plumbline.specs.study_config import Study

from ..headline_runs import BASE, base_values, best_first, headline_runs
from ..task_differences import deltas, list_tasks


def task_deltas(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each method, one column for each task."""
    reference = require_reference(study, "task_deltas")
    tasks, runs = list_tasks(frames, study, published), frames.select(BASE, study.methods)
    values = deltas(frames, study, tasks, reference)
    floor = tuple(headline_runs(runs, reference, reference).index)
    rows = []
    for method in best_first(base_values(frames, study, reference)):
        behind = headline_runs(runs, method, reference)
        used = tuple(dict.fromkeys((*behind.index, *floor)))
        word = missing_word(behind["outcome"])
        row = {"method": Cell(method), "label": Cell(study.label(method))}
        row |= {f"{task}_score_delta": number_cell(float(values.loc[method, task]), word, used) for task in tasks}
        rows.append(row | context_cells(study, BASE, frames))
    columns = [
        Column(name="method", header="Method", kind="label", readable=False),
        Column(name="label", header="Method", kind="label"),
        *(number_column(f"{task}_score_delta", task, "+.3f") for task in tasks),
        *CONTEXT,
    ]
    return make_table(
        "task_deltas",
        f"Distance from the baseline's mean on each task at {study.scale_label(BASE)}.",
        study,
        key="method",
        columns=columns,
        rows=rows,
        notes=["Methods by CLIMB-avg, best first; one seed each. The paper prints these only as a picture."],
        scores=frames,
    )
