"""Measures each method's distance from the reference on each task.

Source: transfer study, appendix E.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from .headline_runs import BASE, headline_runs


def list_tasks(frames: RunFrames, study: Study, published: PrintedNumbers) -> list[str]:
    """The suite's tasks in the paper's order, then any other that was scored."""
    in_paper = list_printed_tasks(study, published)
    return in_paper + [task for task in frames.task_sources if task not in in_paper]


def list_printed_tasks(study: Study, published: PrintedNumbers) -> list[str]:
    """The paper's tasks in its order: of a study with a suite of its own those that are in that one too."""
    suite = () if study.suite is None else study.suite.task_names
    return [task for task in published.table("table5", key="task").index if task in suite]


def deltas(frames: RunFrames, study: Study, tasks: list[str], reference: str) -> pd.DataFrame:
    """Methods x tasks: the method's first seed less the mean of the reference's seeds; NaN if there is none."""
    runs = frames.select(BASE, study.methods)
    values = {}
    for method in study.methods:
        keys = headline_runs(runs, method, reference).index
        scores = [frames.task_scores(str(key)) for key in keys]
        scored = [series.astype(float).reindex(tasks) for series in scores if len(series)]
        values[method] = pd.concat(scored, axis=1).mean(axis=1) if scored else pd.Series(math.nan, index=tasks)
    frame = pd.DataFrame(values).T
    return frame - frame.loc[reference]
