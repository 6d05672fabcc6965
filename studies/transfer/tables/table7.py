"""Makes Table 7: final validation loss next to CLIMB-avg for six methods.

Source: transfer study, appendix E.1 and Table 7.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import OUTCOME, SEEDS, label_columns, make_table, number_column
from plumbline.results.tables.table import (
    CONTEXT,
    Cell,
    Table,
    list_published_cells,
    make_published_column,
    require_reference,
)
from plumbline.specs.study_config import Study

from ..base_scale_method_rows import base_scale_method_rows
from ..headline_runs import BASE

COLUMNS = [
    *label_columns("method", "Method"),
    number_column("validation_loss", "val. loss", ".4f", narrow=True),
    make_published_column("validation_loss", "val. loss", narrow=True),
    number_column("loss_minus_baseline", "gap (nats)", "+.4f"),
    number_column("loss_minus_baseline_pct", "gap (%)", "+.2f", narrow=True),
    number_column("climb_avg", "CLIMB-avg", ".4f", narrow=True),
    make_published_column("climb_avg", "CLIMB-avg"),
    number_column("z", "z", "+.2f", narrow=True),
    make_published_column("z", "z"),
    OUTCOME,
    SEEDS,
    *CONTEXT,
]

#: Columns that a method's row at the base scale has, and the printed table's names of ours.
SHARED = ("method", "label", "validation_loss", "climb_avg", "z", "outcome", "n_seeds")
SHARED += ("preset", "scale", "task_source")
PRINTED = {"validation_loss": "val_loss", "climb_avg": "climb_avg", "z": "z"}


def table7(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """The printed methods that the study has, in the printed order; the gap is from the baseline's mean loss."""
    reference = require_reference(study, "table7")
    whole, print7 = base_scale_method_rows(frames, study, reference).cells, published.table("table7")
    base = whole[reference]["validation_loss"]
    left_out = [method for method in print7.index if method not in study.methods]
    rows = []
    for method in [method for method in print7.index if method in study.methods]:
        row = {name: whole[method][name] for name in SHARED}
        loss = row["validation_loss"]
        runs = tuple(dict.fromkeys((*loss.runs, *base.runs)))
        if isinstance(loss.value, float) and isinstance(base.value, float):
            gap = loss.value - base.value
            row |= {
                "loss_minus_baseline": Cell(gap, runs),
                "loss_minus_baseline_pct": Cell(100 * gap / base.value, runs),
            }
        else:
            word = loss.word or base.word
            row |= {
                "loss_minus_baseline": Cell(None, runs, word=word),
                "loss_minus_baseline_pct": Cell(None, runs, word=word),
            }
        rows.append(row | list_published_cells(print7, method, PRINTED))
    return make_table(
        "table7",
        f"Final validation loss, CLIMB-avg and z at {study.scale_label(BASE)}.",
        study,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "The baseline's row is the mean of its seeds, its loss too; gaps are from that loss.",
            *([f"Printed, and no method of this study: {', '.join(left_out)}."] if left_out else []),
        ],
        published=published.format_path("table7"),
        scores=frames,
    )
