"""Makes the table of alternatives, which all studies share: other meanings of what the paper leaves open, run.

Beside the loss stands the one number by which the paper compares: the loss against the baseline's, in percent.
"""

from __future__ import annotations

import math

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.alternatives import RunMetric, make_alternatives
from plumbline.results.tables.table import Table
from plumbline.specs.study_config import Study

from ..run_values import BASELINE, SCALE


def list_metrics(frames: RunFrames, study: Study) -> list[RunMetric]:
    """List the loss against that of the baseline of the same seed and order of data, in percent."""
    losses = frames.runs["validation_loss"]

    def read(key: str) -> float:
        baseline = frames.key(SCALE, BASELINE, study.every_run[key].spec.init_seed)
        return 100 * (float(losses[key]) / float(losses[baseline]) - 1) if baseline else math.nan

    return [RunMetric(name="loss_vs_baseline_pct", header="vs. baseline (%)", format="+.2f", read=read, compared=False)]


def alternatives(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each run that is made on request, below the run that it changes."""
    return make_alternatives(frames, study, list_metrics(frames, study))
