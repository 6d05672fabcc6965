"""Makes the table of a noise floor at the large scale, made on request.

Source: transfer study, Limitations: "A multi-seed 3B calibration would refine these claims and is left to future work".
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import Table
from plumbline.specs.study_config import Study

from ..headline_runs import LARGE
from ..seed_tables import make_seed_table


def large_seeds(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each reference of the noise floor, then one for each other method that is run at the large scale."""
    printed = (published.format_path("table3"), published.table("table3"), {"climb_avg_delta": "delta_3b"})
    return make_seed_table("large_seeds", "A noise floor", frames, study, LARGE, list(study.methods), printed)
