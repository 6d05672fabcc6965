"""Makes the table of variants, which studies share: those that are run with the rest, each below what it varies."""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.alternatives import make_variants
from plumbline.results.tables.table import Table
from plumbline.specs.study_config import Study

from .alternatives import list_metrics


def variants(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each variant and arm, below the run that it varies."""
    return make_variants(frames, study, list_metrics(frames, study, "variants"))
