"""Table 2: each method's distance from the baseline, in units of the baseline's noise floor.

Source: transfer study, sections 3.3 and 4.1, Table 2. Columns that the document lacks: Holm and Benjamini-Hochberg,
the distance read as a prediction of one new run (Student's t with n - 1 degrees of freedom) under each correction,
validation loss, outcome, number of seeds, run ids.
"""

from __future__ import annotations

import math
import warnings

import pandas as pd

from plumbline.results.formats import PROBABILITY
from plumbline.results.layout import ours
from plumbline.results.published import Published, printed
from plumbline.results.runs import COMPLETED, RunFrames
from plumbline.results.table import (
    CONTEXT,
    NO_FLOOR,
    REFERENCE,
    Cell,
    Column,
    Table,
    absent,
    context,
    from_print,
    joint_outcome,
    notes_of,
    number,
    printed_cells,
    published_column,
    reference_of,
    warnings_of,
)
from plumbline.specs.sheet import Study
from plumbline.stats import NoiseFloor, noise_floor, verdicts
from plumbline.studies.transfer.headline import BASE, base_values, best_first, headline_runs
from plumbline.studies.transfer.protocol import sentence

COLUMNS = [
    Column(name="method", header="Method", kind="label", readable=False),
    Column(name="label", header="Method", kind="label", narrow=True),
    ours("climb_avg", "CLIMB-avg", ".4f", narrow=True),
    published_column("climb_avg", "CLIMB-avg"),
    ours("delta", "Δ", "+.4f", narrow=True),
    published_column("delta", "Δ"),
    ours("z", "z", "+.2f", narrow=True),
    published_column("z", "z", narrow=True),
    ours("p", "p", PROBABILITY, readable=False),
    ours("p_bonferroni", "p Bonferroni", PROBABILITY, narrow=True),
    published_column("p_bonferroni", "p Bonferroni"),
    ours("p_holm", "p Holm", PROBABILITY),
    ours("p_bh", "p BH", PROBABILITY),
    ours("prediction_t", "t (prediction)", "+.2f", readable=False),
    ours("p_prediction", "p prediction", PROBABILITY),
    ours("p_prediction_bonferroni", "p prediction Bonferroni", PROBABILITY),
    ours("p_prediction_holm", "p prediction Holm", PROBABILITY, readable=False),
    ours("p_prediction_bh", "p prediction BH", PROBABILITY, readable=False),
    ours("validation_loss", "val. loss", ".4f"),
    published_column("validation_loss", "val. loss", readable=False),
    Column(name="outcome", header="outcome", kind="fact"),
    Column(name="n_seeds", header="seeds", kind="fact", format="d"),
    Column(name="value_of", header="value of", kind="fact", readable=False),
    ours("climb_avg_all_seeds", "mean of all seeds", ".4f", readable=False),
    ours("sigma_all_seeds", "σ of all seeds", ".5f", readable=False),
    Column(name="run_ids", header="runs", kind="fact", readable=False),
    Column(name="category", header="category", kind="fact", readable=False),
    *CONTEXT,
]


def table2(frames: RunFrames, study: Study, published: Published) -> Table:
    """All methods of the study, best CLIMB-avg first, the rows without a value last."""
    reference = reference_of(study, "table2")
    runs = frames.select(BASE, study.methods)
    floor_runs = headline_runs(runs, reference, reference)
    floor = noise_floor(floor_runs["average"]) if len(floor_runs) else noise_floor([math.nan])
    values = base_values(frames, study, reference)
    with warnings.catch_warnings():
        # A missing floor is a word in every cell that needs it.
        warnings.filterwarnings("ignore", message="no noise floor")
        judged = verdicts(values, floor, m=study.m, baseline=reference)
    print2, print7 = published.table("table2"), published.table("table7")
    everything = tuple(runs.index)
    rows = []
    for method in best_first(values):
        mine, behind = runs[runs["method"] == method], headline_runs(runs, method, reference)
        own = tuple(behind.index)
        word = absent(behind["outcome"])
        compared = tuple(dict.fromkeys((*own, *floor_runs.index)))
        no_z = word if math.isnan(values[method]) else NO_FLOOR
        no_p = REFERENCE if method == reference else no_z
        loss = behind["validation_loss"].mean()
        verdict = judged.loc[method]
        rows.append(
            {
                "method": Cell(method),
                "label": Cell(study.label(method)),
                "climb_avg": number(float(values[method]), word, own),
                "delta": number(float(verdict["delta"]), no_z, compared),
                "z": number(float(verdict["z"]), no_z, compared),
                "p": number(float(verdict["p"]), no_p, compared),
                "p_bonferroni": number(float(verdict["p_bonferroni"]), no_p, compared),
                "p_bonferroni_published": from_print(
                    printed(print2, method, "p_bonf"), bound=printed(print2, method, "p_bonf_bound")
                ),
                "p_holm": number(float(verdict["p_holm"]), no_p, everything),
                "p_bh": number(float(verdict["p_bh"]), no_p, everything),
                "prediction_t": number(float(verdict["prediction_t"]), no_z, compared),
                "p_prediction": number(float(verdict["p_prediction"]), no_p, compared),
                "p_prediction_bonferroni": number(float(verdict["p_prediction_bonferroni"]), no_p, compared),
                "p_prediction_holm": number(float(verdict["p_prediction_holm"]), no_p, everything),
                "p_prediction_bh": number(float(verdict["p_prediction_bh"]), no_p, everything),
                "validation_loss": number(float(loss), word, own),
                "outcome": Cell(joint_outcome(mine["outcome"]), tuple(mine.index)),
                "n_seeds": Cell(int((mine["outcome"] == COMPLETED).sum()), tuple(mine.index)),
                "value_of": Cell(_value_of(behind)),
                "climb_avg_all_seeds": number(float(mine["average"].mean()), word, mine.index),
                "sigma_all_seeds": number(
                    float(mine["average"].std()), absent(mine["outcome"]) if len(mine) > 1 else "one seed", mine.index
                ),
                "run_ids": Cell(" ".join(mine["run_id"]), tuple(mine.index)),
                "category": Cell(study.methods[method].get("category", "none")),
            }
            | printed_cells(print2, method, {"climb_avg": "climb_avg", "delta": "delta", "z": "z"})
            | printed_cells(print7, method, {"validation_loss": "val_loss"})
            | context(study, BASE, frames)
        )
    return Table(
        name="table2",
        title=f"Main results at {study.scale_label(BASE)}, sorted by CLIMB-avg.",
        study=study.name,
        preset=study.preset,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[*_notes(study, floor, floor_runs, study.label(reference)), *notes_of(study)],
        warnings=warnings_of(study, frames),
        published=published.shown("table2"),
    )


def _value_of(behind: pd.DataFrame) -> str:
    there = behind[behind["average"].notna()]
    seeds = ", ".join(str(seed) for seed in there["seed"])
    if there.empty:
        return "no run"
    return f"mean of seeds {seeds}" if len(behind) > 1 else f"seed {seeds}"


def _notes(study: Study, floor: NoiseFloor, floor_runs: pd.DataFrame, label: str) -> list[str]:
    if floor.usable:
        floor_note = f"{label}: mean {floor.mean:.4f}, unbiased σ {floor.sigma:.5f} over {floor.n} seeds."
    else:
        floor_note = f"{label}: {floor.n} seeds with a value give no noise floor."
    if floor.missing:
        floor_note += f" {floor.missing} of its {len(floor_runs)} seeds have no value and do not enter."
    freedom = f" with {floor.n - 1} degrees of freedom" if floor.usable else ""
    return [
        floor_note + " Its row is the mean of its seeds; every other row is its first seed, as in the document.",
        f"Δ = x − mean, z = Δ/σ, p two-sided normal, corrected for m = {study.m} methods; p prediction reads the same "
        f"Δ as the prediction of one new run, Δ/(σ√(1 + 1/n)), Student's t{freedom}.",
        *([sentence(study.m, floor.n)] if floor.usable else []),
    ]
