"""Makes the table of the noise floor: spread over seeds of the three references, and whether two of them differ from
the first.

Source: transfer study, section 3.3 and appendix E.4.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import make_table
from plumbline.results.tables.table import Column, Table, list_published_cells, make_published_column, require_reference
from plumbline.specs.study_config import Study

from ..headline_runs import BASE
from ..seed_tables import SEED_COLUMNS, describe_tests, make_rows

#: Our columns, and the printed table's names of them.
PRINTED = {"climb_avg_mean": "climb_avg_mean", "sigma": "climb_avg_std", "tasks_above_baseline": "tasks_above_baseline"}
PRINTED |= {name: name for name in ("welch_t", "welch_p", "stouffer_z", "stouffer_p_one_sided")}
PRINTED |= {"stouffer_p_two_sided": "stouffer_p_two_sided"}

COLUMNS: list[Column] = []
for _own in SEED_COLUMNS:
    COLUMNS.append(_own)
    if _own.name in PRINTED:
        _narrow = _own.name == "sigma"
        COLUMNS.append(make_published_column(_own.name, _own.header, readable=_own.readable, narrow=_narrow))


def noise_floor(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each reference; tests are against the first."""
    reference = require_reference(study, "noise_floor")
    printed_floor = published.table("noise_floor")
    rows = [
        row | list_published_cells(printed_floor, str(row["method"].value), PRINTED)
        for row in make_rows(frames, study, BASE, [reference, *study.definition["noise_floor"]["others"]])
    ]
    return make_table(
        "noise_floor",
        f"The noise floor at {study.scale_label(BASE)}: three references over their seeds.",
        study,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[describe_tests(rows)],
        published=published.format_path("noise_floor"),
        scores=frames,
    )
