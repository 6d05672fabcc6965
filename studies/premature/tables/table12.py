"""Makes Table 12: how local upper queries and keys act on immature directions, at 3 % of training.

Source: premature study, appendix I and Table 12. The column that the paper lacks is what a random projector gives.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, make_table
from plumbline.results.tables.table import Table
from plumbline.specs.study_config import Study

from .. import setting_rows
from ..run_values import BASE, CONTROL, INTERVENTION, RunValues

RUNS = {"control": CONTROL, "intervention": INTERVENTION}

#: Our quantities and the printed columns.
NAMES = {
    "locality_query": "locality_query",
    "locality_query_chance": "",
    "locality_key": "locality_key",
    "locality_key_chance": "",
}
NAMES |= {
    "immature_energy_share": "immature_energy_share",
    "immature_energy_share_chance": "",
    "projector_rank": "",
}
NAMES |= {"locality_query_calibrated": "", "locality_key_calibrated": ""}


def table12(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Control and intervention."""
    run_values = RunValues(frames, study)
    return make_table(
        "table12",
        f"Locality of immature directions at {study.scale_label(BASE)}, 3 % of training.",
        study,
        key="setting",
        columns=[*setting_rows.columns(NAMES, tuple(NAMES)[:5]), *FACTS],
        rows=setting_rows.rows(run_values, published, "table12", RUNS, NAMES),
        notes=[
            "Runs of the first seed; means over upper layers and heads. λ cannot exceed ‖X‖/‖X_P‖ in any model: "
            "a ratio below one says something only beside that of a random projector of the same rank (null).",
            "P: the directions in which a layer's input still moves until the end, 90 % of that movement's energy. "
            "Calibrated: as many of them as hold 18 % of the input's energy, the printed share.",
        ],
        published=published.format_path("table12"),
    )
