"""Compares control and intervention on the tasks of the suite, paired by seed.

Source: premature study, section 5.2 and Table 2.
"""

from __future__ import annotations

import math
from functools import cached_property

import pandas as pd
from scipy import stats

from plumbline.stats.paired_runs import PairedResult, compute_paired_difference

from .run_values import BASE, RunValues

#: Printed names of tasks that the suite calls otherwise.
NAMES = {"lambada": "lambada_openai"}


class PairedTaskScores:
    """Scores of all seeds' pairs at the base scale."""

    def __init__(self, run_values: RunValues) -> None:
        self.run_values = run_values
        self.pairs = {seed: (control, other) for seed, control, other in run_values.pairs(BASE)}

    def scores(self, side: int) -> pd.DataFrame:
        """Tasks by seed, the primary metric of one side, 0 for the control; NaN if there is no score."""
        return self._scores_by_side[side]

    @cached_property
    def _scores_by_side(self) -> list[pd.DataFrame]:
        return [
            pd.DataFrame(
                {seed: self._scores(pair[side]) for seed, pair in self.pairs.items()}, index=self.tasks, dtype=float
            )
            for side in (0, 1)
        ]

    def _scores(self, key: str | None) -> pd.Series:
        return pd.Series(dtype=float) if key is None else self.run_values.frames.task_scores(key).astype(float)

    @cached_property
    def tasks(self) -> list[str]:
        """The suite's tasks, in its order."""
        suite = self.run_values.study.suite
        return [] if suite is None else list(suite.task_names)

    def task(self, printed: str) -> str:
        """The suite's name of a printed task."""
        return NAMES.get(printed, printed)

    def means(self, side: int) -> pd.Series:
        """Seed -> mean over all tasks; NaN if one of them has no score."""
        return self.scores(side).mean(skipna=False)

    def values(self, printed: str, side: int) -> pd.Series:
        """Seed -> score of a task, or of their mean."""
        return self.means(side) if printed == "mean" else self.scores(side).loc[self.task(printed)]

    def difference(self, printed: str) -> PairedResult:
        """Intervention minus control over seeds, of a task or of their mean."""
        return compute_paired_difference(self.values(printed, 1), self.values(printed, 0))

    def compute_difference_over_all(self) -> PairedResult:
        """Intervention minus control over all pairs of a seed and a task."""
        sides = [pd.concat({seed: self.scores(side)[seed] for seed in self.pairs}) for side in (1, 0)]
        return compute_paired_difference(*sides)


def count_losses(contests: PairedResult) -> int:
    """Pairs that the intervention lost."""
    return contests.n - contests.wins - contests.ties


def sign_test(wins: int, lost: int) -> float:
    """Exact two-sided p of so many wins and losses if each were as likely; NaN if there are none."""
    return float(stats.binomtest(wins, wins + lost, 0.5).pvalue) if wins + lost else math.nan
