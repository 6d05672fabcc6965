"""Makes Table 2: seven tasks, control against intervention over three seeds, paired.

Source: premature study, section 5.2 and Table 2. Columns that the paper lacks: wins, losses and ties with the exact
sign test (it prints 14 wins of 21 and no test), and where each task's items are from.
"""

from __future__ import annotations

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import NOT_PRINTED, PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import FACTS, column_pair, label_columns, make_table, number_column
from plumbline.results.tables.table import (
    Cell,
    Column,
    Table,
    list_published_cells,
    make_printed_cell,
    make_published_column,
)
from plumbline.specs.study_config import Study
from plumbline.stats.sample_spread import sample_deviation

from ..downstream_tasks import PairedTaskScores, count_losses, sign_test
from ..row_cells import RowCells
from ..run_values import BASE, RunValues

#: Our columns and the printed ones.
PRINTED = {
    "control_accuracy": "control_mean",
    "control_accuracy_sd": "control_std",
    "intervention_accuracy": "intervention_mean",
    "intervention_accuracy_sd": "intervention_std",
    "accuracy_gain_pp": "delta_pp_mean",
    "accuracy_gain_pp_sd": "delta_pp_std",
}

COLUMNS = [
    *label_columns("task", "Task"),
    *column_pair("control_accuracy", "control", ".4f", narrow=True, noise="control_accuracy_sd"),
    *column_pair("control_accuracy_sd", "± control", ".4f", readable=False),
    *column_pair("intervention_accuracy", "intervention", ".4f", noise="intervention_accuracy_sd"),
    *column_pair("intervention_accuracy_sd", "± intervention", ".4f", readable=False),
    *column_pair("accuracy_gain_pp", "Δ (points)", "+.3f", narrow=True, noise="accuracy_gain_pp_sd"),
    *column_pair("accuracy_gain_pp_sd", "± Δ", ".3f"),
    number_column("pairs_won", "wins", "d", narrow=True),
    make_published_column("pairs_won", "wins"),
    number_column("pairs_lost", "losses", "d"),
    number_column("pairs_tied", "ties", "d"),
    number_column("p_sign_test", "p sign test", PROBABILITY, narrow=True),
    Column(name="task_source", header="task source", kind="fact"),
    *FACTS,
]


def table2(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each task, and their mean; wins in the mean's row are over all pairs of a seed and a task."""
    run_values, print2 = RunValues(frames, study), published.table("table2")
    printed_wins = published.claim("downstream_wins")
    comparison = PairedTaskScores(run_values)
    sources = frames.task_sources
    keys = tuple(key for pair in comparison.pairs.values() for key in pair) or (None,)
    row = RowCells(run_values, keys, BASE)
    rows = []
    for task, label in print2["task_name"].items():
        mean = task == "mean"
        sides = [comparison.values(str(task), side) for side in (0, 1)]
        delta = comparison.difference(str(task))
        contests = comparison.compute_difference_over_all() if mean else delta
        lost, few = count_losses(contests), "one seed" if delta.n == 1 else "no score"
        cells = {
            "task": Cell(task),
            "label": Cell(label),
            "accuracy_gain_pp": row.cell(100 * delta.mean, "no score"),
            "accuracy_gain_pp_sd": row.cell(100 * delta.sigma, few),
            "pairs_won": row.cell(contests.wins if contests.n else None, "no score"),
            "pairs_won_published": make_printed_cell(str(printed_wins["wins"]) if mean else NOT_PRINTED),
            "pairs_lost": row.cell(lost if contests.n else None, "no score"),
            "pairs_tied": row.cell(contests.ties if contests.n else None, "no score"),
            "p_sign_test": row.cell(sign_test(contests.wins, lost), "all tied" if contests.n else "no score"),
            "task_source": Cell("all seven" if mean else sources.get(comparison.task(str(task)), MISSING)),
        }
        for name, values in zip(("control_accuracy", "intervention_accuracy"), sides, strict=True):
            there = values.dropna()
            cells[name] = row.cell(float(there.mean()), "no score")
            cells[f"{name}_sd"] = row.cell(sample_deviation(there), "one seed" if len(there) == 1 else "no score")
        rows.append(cells | list_published_cells(print2, task, PRINTED) | row.facts(delta.n))
    wins, of = int(printed_wins["wins"]), int(printed_wins["out_of"])
    return make_table(
        "table2",
        f"Seven tasks at {study.scale_label(BASE)}: the intervention against the control.",
        study,
        key="task",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "Mean and sample standard deviation over seeds; Δ is paired by seed, in percentage points; the mean's is "
            "over seed averages. p: exact two-sided sign test over seeds, in the mean's row over all seeds and tasks.",
            f"The same test gives the printed {wins} wins of {of} a p of {sign_test(wins, of - wins):.2f}.",
        ],
        published=published.format_path("table2"),
        scores=frames,
    )
