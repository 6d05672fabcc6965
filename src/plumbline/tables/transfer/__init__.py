"""The transfer study's tables: finished runs in, a table out. Table 4 alone needs torch, and loads it when made."""

from __future__ import annotations

from plumbline.studies.sheet import Study
from plumbline.tables.published import Published
from plumbline.tables.runs import RunFrames
from plumbline.tables.table import Table
from plumbline.tables.transfer.noise_floor import noise_floor
from plumbline.tables.transfer.table1 import table1
from plumbline.tables.transfer.table2 import table2
from plumbline.tables.transfer.table3 import rank_transfer, table3
from plumbline.tables.transfer.table5 import table5
from plumbline.tables.transfer.table6 import table6
from plumbline.tables.transfer.table7 import table7
from plumbline.tables.transfer.task_deltas import task_deltas


def table4(frames: RunFrames, study: Study, published: Published) -> Table:
    """See `plumbline.tables.transfer.table4`."""
    from plumbline.tables.transfer.table4 import table4 as make

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
