"""The transfer study's tables: finished runs in, a table out. Table 4 alone needs torch, and loads it when made."""

from __future__ import annotations

from plumbline.results.published import Published
from plumbline.results.runs import RunFrames
from plumbline.results.table import Table
from plumbline.specs.sheet import Study
from plumbline.studies.transfer.tables.noise_floor import noise_floor
from plumbline.studies.transfer.tables.table1 import table1
from plumbline.studies.transfer.tables.table2 import table2
from plumbline.studies.transfer.tables.table3 import rank_transfer, table3
from plumbline.studies.transfer.tables.table5 import table5
from plumbline.studies.transfer.tables.table6 import table6
from plumbline.studies.transfer.tables.table7 import table7
from plumbline.studies.transfer.tables.task_deltas import task_deltas


def table4(frames: RunFrames, study: Study, published: Published) -> Table:
    """See `plumbline.studies.transfer.tables.table4`."""
    from plumbline.studies.transfer.tables.table4 import table4 as make

    return make(frames, study, published)


TABLES = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "table5": table5,
    "table6": table6,
    "table7": table7,
    "noise_floor": noise_floor,
    "rank_transfer": rank_transfer,
    "task_deltas": task_deltas,
}
