"""Table 7: final validation loss beside CLIMB-avg for six methods.

Source: transfer study, appendix E.1 and Table 7.
"""

from __future__ import annotations

from plumbline.results.published import Published, printed
from plumbline.results.runs import RunFrames
from plumbline.results.table import CONTEXT, Cell, Column, Table, fixed, notes_of
from plumbline.specs.sheet import Study
from plumbline.studies.transfer.tables.table2 import SCALE, table2

COLUMNS = [
    Column(name="method", header="Method", kind="label", readable=False),
    Column(name="label", header="Method", kind="label"),
    Column(name="validation_loss", header="val. loss", kind="reproduced", show=fixed(4)),
    Column(name="validation_loss_published", header="val. loss", kind="published"),
    Column(name="loss_gap", header="gap (nats)", kind="reproduced", show=fixed(4, sign=True)),
    Column(name="loss_gap_pct", header="gap (%)", kind="reproduced", show=fixed(2, sign=True)),
    Column(name="climb_avg", header="CLIMB-avg", kind="reproduced", show=fixed(4)),
    Column(name="climb_avg_published", header="CLIMB-avg", kind="published"),
    Column(name="z", header="z", kind="reproduced", show=fixed(2, sign=True)),
    Column(name="z_published", header="z", kind="published"),
    Column(name="outcome", header="outcome", kind="fact"),
    Column(name="n_seeds", header="seeds", kind="fact"),
    *CONTEXT,
]


def table7(frames: RunFrames, study: Study, published: Published) -> Table:
    """The printed six methods in the printed order; the gap is from the baseline's mean loss."""
    reference = study.sheet["noise_floor"]["reference"]
    whole, print7 = table2(frames, study, published), published.table("table7")
    base = whole.cell(reference, "validation_loss")
    rows = []
    for method in print7.index:
        row = {name: whole.cell(method, name) for name in _SHARED}
        loss = row["validation_loss"]
        runs = tuple(dict.fromkeys((*loss.runs, *base.runs)))
        if isinstance(loss.value, float) and isinstance(base.value, float):
            gap = loss.value - base.value
            row |= {"loss_gap": Cell(gap, runs), "loss_gap_pct": Cell(100 * gap / base.value, runs)}
        else:
            word = base.value if isinstance(loss.value, float) else loss.value
            row |= {"loss_gap": Cell(word, runs), "loss_gap_pct": Cell(word, runs)}
        row |= {
            f"{name}_published": Cell(printed(print7, method, source))
            for name, source in (("validation_loss", "val_loss"), ("climb_avg", "climb_avg"), ("z", "z"))
        }
        rows.append(row)
    return Table(
        name="table7",
        title=f"Final validation loss, CLIMB-avg and z at {study.scale_label(SCALE)}.",
        study=study.name,
        preset=study.preset,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "The baseline's row is the mean of its seeds, its loss too; gaps are from that loss.",
            *notes_of(study, frames, scores=True),
        ],
        published=published.shown("table7"),
    )


_SHARED = ("method", "label", "validation_loss", "climb_avg", "z", "outcome", "n_seeds")
_SHARED += ("preset", "scale", "task_source")
