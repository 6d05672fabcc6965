"""Which runs stand behind a method's value: all seeds of the reference at the base scale, else the first seed.

Source: transfer study, sections 3.3 and 5.1.
"""

from __future__ import annotations

import pandas as pd

from plumbline.results.runs import RunFrames
from plumbline.specs.sheet import Study

BASE, LARGE = "base", "large"


def headline_runs(runs: pd.DataFrame, method: str, reference: str) -> pd.DataFrame:
    """The runs behind a method's value at the base scale: all seeds of the reference, the first of any other."""
    mine = runs[runs["method"] == method].sort_values("seed")
    return mine if method == reference else mine.head(1)


def first_seed(runs: pd.DataFrame, method: str) -> pd.DataFrame:
    """The run behind a method's value at the large scale."""
    return runs[runs["method"] == method].sort_values("seed").head(1)


def base_values(frames: RunFrames, study: Study, reference: str) -> pd.Series:
    """Each method's average at the base scale, in the study's order; NaN where there is none."""
    runs = frames.select(BASE, study.methods)
    values = {method: headline_runs(runs, method, reference)["average"].mean() for method in study.methods}
    return pd.Series(values, dtype=float)


def best_first(values: pd.Series) -> list[str]:
    """Methods by value, those without one last; ties in the study's order."""
    return list(values.sort_values(ascending=False, kind="stable", na_position="last").index)
