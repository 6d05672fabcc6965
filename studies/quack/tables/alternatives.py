"""Makes the table of alternatives, which all studies share: other meanings of what the summary leaves open, run.

Beside the loss stand what the method bounds, one step's change of logits, and what it is to prevent.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.alternatives import RunMetric, make_alternatives
from plumbline.results.tables.table import Table
from plumbline.specs.study_config import Study

from ..run_grid import RunGrid


def list_metrics(frames: RunFrames, study: Study) -> list[RunMetric]:
    """List the largest mean change of logits in a step, the largest logit, and the largest rise of the loss."""
    grid = RunGrid(frames, study)
    return [
        RunMetric(
            name="largest_mean_logit_change",
            header="max mean |Δ logit|",
            format=".3g",
            read=lambda key: float(grid.curve(key, "logit_change").max()),
        ),
        RunMetric(
            name="largest_logit",
            header="max logit",
            format=".3g",
            read=lambda key: float(grid.largest_logit(key).max()),
        ),
        RunMetric(name="largest_loss_rise", header="max loss rise", format=".3f", read=grid.rise),
    ]


def alternatives(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each run that is made on request, below the run that it changes."""
    return make_alternatives(frames, study, list_metrics(frames, study))
