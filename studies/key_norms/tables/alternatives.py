"""Makes the table of alternatives, which all studies share: other meanings of what the paper leaves open, run.

Beside the loss stand the final key norms, which the paper reads and weight decay on gains moves.
"""

from __future__ import annotations

from functools import partial

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.alternatives import RunMetric, make_alternatives
from plumbline.results.tables.table import Table
from plumbline.specs.study_config import Study

from ..norm_curves import count_layers, groups, read_final_norm


def list_metrics(frames: RunFrames, study: Study) -> list[RunMetric]:
    """List the final key norm of each group of layers that the paper names."""
    printed_groups = [group for group in groups(count_layers(study)) if group.printed]
    return [
        RunMetric(
            name=f"{group.name}_key_norm",
            header=f"key norm, {group.title.lower()}",
            format=".2f",
            read=partial(read_final_norm, frames, group),
        )
        for group in printed_groups
    ]


def alternatives(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each run that is made on request, below the run that it changes."""
    return make_alternatives(frames, study, list_metrics(frames, study))
