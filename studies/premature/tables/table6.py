"""Makes Table 6: an entropy floor for upper attention, next to slowing its queries and keys.

Source: premature study, appendix D and Table 6.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, make_table, setting_pair
from plumbline.results.tables.table import Cell, Table, list_published_cells
from plumbline.specs.study_config import Study

from .. import setting_rows
from ..run_values import BASE, CONTROL, INTERVENTION, RunValues

RUNS = {"control": CONTROL, "entropy_floor": "entropy_floor", "intervention": INTERVENTION}

#: Our quantities and the printed columns.
NAMES = {"upper_entropy_3pct": "entropy_3pct", "upper_logit_3pct": "logit_3pct"}
NAMES |= {"final_ppl": "final_ppl", "ppl_reduction": "ppl_reduction"}


def table6(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Control, entropy floor, intervention."""
    run_values, print6 = RunValues(frames, study), published.table("table6")
    rows = setting_rows.rows(run_values, published, "table6", RUNS, NAMES)
    for cells in rows:
        setting = str(cells["setting"].value)
        cells["entropy_floor"] = _floor(run_values, run_values.key(RUNS[setting]))
        cells |= list_published_cells(print6, setting, {"entropy_floor": "entropy_floor"})
    return make_table(
        "table6",
        f"An entropy floor as a control at {study.scale_label(BASE)}.",
        study,
        key="setting",
        columns=[
            *setting_rows.columns(NAMES, tuple(NAMES)),
            *setting_pair("entropy_floor", "entropy floor", ".2f"),
            *FACTS,
        ],
        rows=rows,
        notes=[
            "Runs of the first seed. The floor holds until the release; it asks for the mean over upper layers.",
            *_idle(rows),
        ],
        published=published.format_path("table6"),
    )


def _idle(rows: list[dict[str, Cell]]) -> list[str]:
    """A note where the floor never bound: the term is zero above it, and the run is then the control's, bit by bit."""
    losses = {str(cells["setting"].value): cells["final_ppl"].value for cells in rows}
    if losses["entropy_floor"] is None or losses["entropy_floor"] != losses["control"]:
        return []
    return ["Upper entropy stayed above the floor until the release: the term was zero, and the run is the control's."]


def _floor(run_values: RunValues, key: str | None) -> Cell:
    """The floor that a run's loss asks for, as its spec has it."""
    chosen = () if key is None else run_values.study.runs[key].spec.interventions
    return next(
        (Cell(float(entry["floor"]), (str(key),)) for entry in chosen if "floor" in entry), Cell(None, word="none")
    )
