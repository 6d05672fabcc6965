"""Names the metrics that a run of the study is judged by, with the value of each run.

Source: ours. The paper judges by CLIMB-avg alone (section 3.3) and prints losses next to it (Table 7).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from plumbline.results.runs.finished_runs import RunFrames


@dataclass(frozen=True, kw_only=True, slots=True)
class SignalMetric:
    """What a run is judged by: `scored_as` of the scores, averaged over tasks, or `run_column`, a number of the run
    itself."""

    name: str
    label: str
    better: Literal["higher", "lower"]
    format: str
    scored_as: str = ""
    run_column: str = ""

    @property
    def heading(self) -> str:
        """Its label, with the direction in which it is better."""
        return f"{self.label} {'↑' if self.better == 'higher' else '↓'}"

    def read_values(self, frames: RunFrames, runs: pd.DataFrame) -> pd.Series:
        """Value of each run, on its key; NaN if it has none."""
        if not self.scored_as:
            return runs[self.run_column].astype(float)
        values = {key: frames.metric_scores(str(key), self.scored_as).astype(float) for key in runs.index}
        return pd.Series(
            {key: scores.mean() if len(scores) else math.nan for key, scores in values.items()}, dtype=float
        )


METRICS = [
    SignalMetric(name="climb_avg", label="CLIMB-avg", better="higher", format=".4f", run_column="average"),
    SignalMetric(name="answer_logprob", label="log p", better="higher", format=".3f", scored_as="logprob_gold"),
    SignalMetric(name="bits_per_byte", label="bits/byte", better="lower", format=".4f", scored_as="bits_per_byte"),
    SignalMetric(name="validation_loss", label="loss", better="lower", format=".4f", run_column="validation_loss"),
]
