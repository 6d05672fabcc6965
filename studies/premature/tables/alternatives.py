"""Makes the table of alternatives, which all studies share: other meanings of what the paper leaves open, run.

Beside the loss stands what the paper explains it by: entropy and logits of upper attention early in training (Table 3).
"""

from __future__ import annotations

from functools import partial

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.alternatives import RunMetric, make_alternatives
from plumbline.results.tables.table import Table
from plumbline.specs.study_config import Study

from ..run_values import EARLY, RunValues


def list_metrics(frames: RunFrames, study: Study) -> list[RunMetric]:
    """List entropy and logits of upper attention at 3% of training."""
    values = RunValues(frames, study)
    return [
        RunMetric(name=name, header=header, format=".4f", read=partial(values.value, probe=probe, fraction=EARLY))
        for name, header, probe in (
            ("upper_entropy_3pct", "entropy @3%", "entropy"),
            ("upper_logit_3pct", "logit @3%", "logit_mean_abs"),
        )
    ]


def alternatives(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each run that is made on request, below the run that it changes."""
    return make_alternatives(frames, study, list_metrics(frames, study))
