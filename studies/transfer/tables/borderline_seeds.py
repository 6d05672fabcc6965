"""Makes the table of the four single-seed improvers over three seeds, made on request.

Source: transfer study, Limitations: "A 3-seed Welch's t on each would be a stricter test"; eight more runs.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import Table
from plumbline.specs.study_config import Study

from ..headline_runs import BASE
from ..seed_tables import make_seed_table

#: The nominal improvers above |z| > 2 that the paper has one seed of.
METHODS = ["hybrid_norm", "sandwich_norm", "relu_squared", "selective_attn"]


def borderline_seeds(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each reference of the noise floor, then one for each of the four."""
    printed = (
        published.format_path("table2"),
        published.table("table2"),
        {"climb_avg_delta": "delta", "z": "z"},
    )
    return make_seed_table(
        "borderline_seeds", "The improvers with one seed, over three", frames, study, BASE, METHODS, printed
    )
