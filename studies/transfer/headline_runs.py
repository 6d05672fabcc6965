"""Chooses the runs that stand behind a method's value: all seeds of the reference at the base scale, else the first
seed; and what is said of all values before any is shown.

Source: transfer study, sections 3.3 and 5.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import Cell
from plumbline.specs.study_config import Study
from plumbline.stats.significance import BETTER, WORSE

BASE, LARGE = "base", "large"


def headline_runs(runs: pd.DataFrame, method: str, reference: str) -> pd.DataFrame:
    """The runs behind a method's value at the base scale: all seeds of the reference, the first of any other."""
    mine = runs[runs["method"] == method]
    mine = mine.sort_values("seed") if len(mine) > 1 else mine
    return mine if method == reference else mine.head(1)


def first_seed(runs: pd.DataFrame, method: str) -> pd.DataFrame:
    """The run behind a method's value at the large scale."""
    return runs[runs["method"] == method].sort_values("seed").head(1)


def base_values(frames: RunFrames, study: Study, reference: str) -> pd.Series:
    """Each method's average at the base scale, in the study's order; NaN if there is none."""
    runs = frames.select(BASE, study.methods)
    values = {method: headline_runs(runs, method, reference)["average"].mean() for method in study.methods}
    return pd.Series(values, dtype=float)


def best_first(values: pd.Series) -> list[str]:
    """Methods by value, those without one last; ties in the study's order."""
    return list(values.sort_values(ascending=False, kind="stable", na_position="last").index)


def lead(
    study: Study, rows: Iterable[dict[str, Cell]], chance: Mapping[str, str], resolves: float, alpha: float = 0.05
) -> list[str]:
    """How many methods survive what, in one sentence; what difference could be seen; and which tasks are not above
    chance.

    Args:
        rows: cells of the columns significance, label and the corrected p-values of Table 2.
        chance: task -> "at", "below" or "above" it.
        resolves: the difference of averages that these seeds and items tell from nothing; NaN if it is not known.
    """
    listed = list(rows)
    of_reference = study.label(str(study.reference))
    by_word = [
        (word, [row["label"].value for row in listed if row["significance"].value == word]) for word in (BETTER, WORSE)
    ]
    text = "; ".join(f"{word}: {', '.join(map(str, names))}" for word, names in by_word if names)

    def survivors(name: str) -> str:
        values = [value for row in listed if isinstance(value := row[name].value, float)]
        return str(sum(value <= alpha for value in values) or "none") if values else "untested"

    others = [row for row in listed if row["method"].value != study.reference]
    if all(row["climb_avg_delta"].value is None for row in others):
        return [
            f"Nothing could be tested: {of_reference} or every other method has no finished run that is scored at this "
            f"size. Of {study.m} methods nothing is known."
        ]
    count = sum(len(names) for _, names in by_word)
    sentences = [
        f"Significant (Bonferroni): {count or 'none'} of {study.m} methods differ from {of_reference} on other "
        f"seeds and other items{f' ({text})' if text else ''}; {survivors('p_items_bonferroni')} on other items "
        f"alone, {survivors('p_run_vs_seeds_bonferroni')} on other seeds alone (prediction t), "
        f"{survivors('p_bonferroni')} by the paper's z."
    ]
    if math.isfinite(resolves):
        sentences[0] += f" With these seeds and items a difference of averages is seen from {resolves:.3f} on."
    tasks = len(study.suite.tasks) if study.suite else 0
    names = {word: [task for task, where in chance.items() if where == word] for word in ("at", "below")}
    if names["at"]:
        sentences.append(
            f"At chance: {len(names['at'])} of {tasks} tasks, on which {of_reference} is within two standard errors of "
            f"guessing ({', '.join(names['at'])})."
        )
    if names["below"]:
        sentences.append(f"Below chance by more than two standard errors: {', '.join(names['below'])}.")
    return sentences
