"""Each method's distance from the baseline on each task: the numbers behind Figure 3.

Source: transfer study, appendix E, Figure 3 (which prints no numbers).
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.results.published import Published
from plumbline.results.runs import AGGREGATE, RunFrames
from plumbline.results.table import CONTEXT, Cell, Column, Table, absent, context, fixed, notes_of, number
from plumbline.specs.sheet import Study
from plumbline.studies.transfer.tables.table2 import SCALE, headline_runs


def tasks_of(frames: RunFrames, published: Published) -> list[str]:
    """The suite's tasks in the document's order, then any other that was scored."""
    print5 = published.table("table5", key="task")
    known = [task for task in print5.index if task != AGGREGATE]
    return known + [task for task in frames.task_sources if task not in known]


def deltas(frames: RunFrames, study: Study, tasks: list[str]) -> pd.DataFrame:
    """Methods x tasks: the method's first seed less the mean of the reference's seeds; NaN where there is none."""
    reference = study.sheet["noise_floor"]["reference"]
    runs = frames.select(SCALE, study.methods)
    values = {}
    for method in study.methods:
        keys = headline_runs(runs, method, reference).index
        scores = [frames.task_scores(str(key)) for key in keys]
        scored = [one.astype(float).reindex(tasks) for one in scores if len(one)]
        values[method] = pd.concat(scored, axis=1).mean(axis=1) if scored else pd.Series(math.nan, index=tasks)
    frame = pd.DataFrame(values).T
    return frame - frame.loc[reference]


def sorted_methods(frames: RunFrames, study: Study) -> list[str]:
    """Methods by CLIMB-avg, best first, those without a value last (as Table 2)."""
    reference = study.sheet["noise_floor"]["reference"]
    runs = frames.select(SCALE, study.methods)
    values = pd.Series({m: headline_runs(runs, m, reference)["climb_avg"].mean() for m in study.methods}, dtype=float)
    return list(values.sort_values(ascending=False, kind="stable", na_position="last").index)


def task_deltas(frames: RunFrames, study: Study, published: Published) -> Table:
    """One row for each method, one column for each task."""
    reference = study.sheet["noise_floor"]["reference"]
    tasks, runs = tasks_of(frames, published), frames.select(SCALE, study.methods)
    values = deltas(frames, study, tasks)
    floor = tuple(headline_runs(runs, reference, reference).index)
    rows = []
    for method in sorted_methods(frames, study):
        behind = headline_runs(runs, method, reference)
        used = tuple(dict.fromkeys((*behind.index, *floor)))
        word = absent(behind["outcome"])
        row = {"method": Cell(method), "label": Cell(study.label(method))}
        row |= {task: number(float(values.loc[method, task]), word, used) for task in tasks}
        rows.append(row | context(study, SCALE, frames))
    columns = [
        Column(name="method", header="Method", kind="label", readable=False),
        Column(name="label", header="Method", kind="label"),
        *(Column(name=task, header=task, kind="reproduced", show=fixed(3, sign=True)) for task in tasks),
        *CONTEXT,
    ]
    return Table(
        name="task_deltas",
        title=f"Distance from the baseline's mean on each task at {study.scale_label(SCALE)}.",
        study=study.name,
        preset=study.preset,
        key="method",
        columns=columns,
        rows=rows,
        notes=[
            "Methods by CLIMB-avg, best first; one seed each. The document prints these only as a picture.",
            *notes_of(study, frames, scores=True),
        ],
    )
