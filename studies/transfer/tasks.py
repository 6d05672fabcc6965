"""Each method's distance from the reference on each task.

Source: transfer study, appendix E.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.audit.published import Published
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from .headline import BASE, headline_runs


def tasks_of(frames: RunFrames, published: Published) -> list[str]:
    """The suite's tasks in the document's order, then any other that was scored."""
    print5 = published.table("table5", key="task")
    known = [task for task in print5.index if task != frames.average]
    return known + [task for task in frames.task_sources if task not in known]


def deltas(frames: RunFrames, study: Study, tasks: list[str], reference: str) -> pd.DataFrame:
    """Methods x tasks: the method's first seed less the mean of the reference's seeds; NaN where there is none."""
    runs = frames.select(BASE, study.methods)
    values = {}
    for method in study.methods:
        keys = headline_runs(runs, method, reference).index
        scores = [frames.task_scores(str(key)) for key in keys]
        scored = [one.astype(float).reindex(tasks) for one in scores if len(one)]
        values[method] = pd.concat(scored, axis=1).mean(axis=1) if scored else pd.Series(math.nan, index=tasks)
    frame = pd.DataFrame(values).T
    return frame - frame.loc[reference]
