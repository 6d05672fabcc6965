"""Makes a table of Lemma 1: how far one step moves a logit, against the size of the weights; and what the bound leaves.

Source: quack study, Mechanism 1 (Lemma 1). Not a table of the summary. It needs no run.
"""

from __future__ import annotations

from itertools import groupby

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import label_columns, make_table, number_column, text_column
from plumbline.results.tables.table import PRESET, Cell, Column, Table
from plumbline.specs.study_config import Study

from .. import lemma1_numbers
from ..logit_change import LemmaRow

#: Where the numbers are from.
SOURCE = "plumbline.studies.quack.logit_change, at the sizes of the paper preset"

WEIGHTS = {"drawn": "drawn", "rank one": "rank one"}
UPDATES = {"muon": "Muon's", "worst": "worst"}
RATES = {"quack": "QuacK", "fixed": "fixed"}

COLUMNS = [
    *label_columns("setting", "Weights"),
    Column(name="update_direction", header="update", kind="label", narrow=True),
    Column(name="weight_matrix_norm", header="norm", kind="label", narrow=True),
    Column(name="lr_rule", header="LR rule", kind="label", narrow=True),
    *(
        number_column(f"first_order_change_weights_x{scale:g}", f"x{scale:g}", ".3g", narrow=True)
        for scale in lemma1_numbers.SHOWN
    ),
    number_column("lemma_bound", "bound", ".3g", narrow=True),
    number_column("bound_over_largest_change", "bound / change", ".3g", narrow=True),
    text_column("within_bound", "within the bound"),
    *(number_column(f"exact_change_weights_x{scale:g}", f"exact, x{scale:g}", ".3g") for scale in lemma1_numbers.SHOWN),
    number_column("largest_higher_order_change", "largest change beyond first order", ".3g"),
    PRESET,
]


def lemma1(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each kind of weights, updates, norm and rates; at rank one both norms are the same."""
    lemma_rows = [
        row for row in lemma1_numbers.compute_rows(study.code) if row.rates in RATES and row.directions in UPDATES
    ]
    lemma_rows = sorted((row for row in lemma_rows if (row.weights, row.kind) != SAME), key=_key)
    groups = groupby(lemma_rows, key=_key)
    rows = [_row(study, list(group)) for _, group in groups]
    these = lemma1_numbers.sizes(study.code)
    return make_table(
        "lemma1",
        f"Change of logits in one step at a base rate of {these.rate:g}, against the size of the weights.",
        study,
        key="setting",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "The largest first-order |Δ logit| over pairs of tokens, when weights are so many times as large as at the "
            f"start (x1): a head {these.head_width} wide on a normalised stream {these.width} wide, tau = "
            f"{these.tau:g}. The bound is the lemma's: it knows the start alone. Bound / change: the bound over the "
            "largest of these changes; below 1 it is broken. Worst: inputs and updates are those that move a logit "
            "furthest.",
            "What first order leaves out goes the other way under QuacK: it grows as weights shrink, which is what the "
            "lemma's assumption on norms and the limit on ratios are for.",
        ],
        exact=True,
    )


#: Rows that say nothing more than those of the other norm.
SAME = ("rank one", "spectral")

ORDER = {name: number for number, name in enumerate([*WEIGHTS, *UPDATES, "frobenius", "spectral", *RATES])}


def _key(row: LemmaRow) -> tuple[int, ...]:
    return tuple(ORDER[name] for name in (row.weights, row.directions, row.kind, row.rates))


def _row(study: Study, group: list[LemmaRow]) -> dict[str, Cell]:
    first, by_scale = group[0], {row.scale: row for row in group}
    cells = {
        "setting": Cell("/".join((first.weights, first.directions, first.kind, first.rates)).replace(" ", "_")),
        "label": Cell(WEIGHTS[first.weights]),
        "update_direction": Cell(UPDATES[first.directions]),
        "weight_matrix_norm": Cell(first.kind),
        "lr_rule": Cell(RATES[first.rates]),
        "lemma_bound": Cell(first.bound, source=SOURCE),
        "bound_over_largest_change": Cell(min(row.slack for row in group), source=SOURCE),
        "within_bound": Cell("yes" if all(row.within for row in group) else "no", source=SOURCE),
        "largest_higher_order_change": Cell(max(row.second_order for row in group), source=SOURCE),
        "preset": Cell(study.preset),
    }
    for scale in lemma1_numbers.SHOWN:
        cells[f"first_order_change_weights_x{scale:g}"] = Cell(by_scale[scale].first_order, source=SOURCE)
        cells[f"exact_change_weights_x{scale:g}"] = Cell(by_scale[scale].exact, source=SOURCE)
    return cells
