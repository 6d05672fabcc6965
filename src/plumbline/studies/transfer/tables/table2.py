"""Table 2: each method's distance from the baseline, in units of the baseline's noise floor.

Source: transfer study, sections 3.3 and 4.1, Table 2. Columns that the document lacks: Holm and Benjamini-Hochberg,
the distance read as a prediction of one new run (Student's t with n - 1 degrees of freedom), validation loss, outcome,
number of seeds, run ids.
"""

from __future__ import annotations

import math
import warnings

import pandas as pd

from plumbline.results.published import NOT_PRINTED, Published, printed
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
    fixed,
    joint_outcome,
    notes_of,
    number,
    probability,
)
from plumbline.specs.sheet import Study
from plumbline.stats import NoiseFloor, noise_floor, verdicts

SCALE = "base"

COLUMNS = [
    Column(name="method", header="Method", kind="label", readable=False),
    Column(name="label", header="Method", kind="label"),
    Column(name="climb_avg", header="CLIMB-avg", kind="reproduced", show=fixed(4)),
    Column(name="climb_avg_published", header="CLIMB-avg", kind="published"),
    Column(name="delta", header="Δ", kind="reproduced", show=fixed(4, sign=True)),
    Column(name="delta_published", header="Δ", kind="published"),
    Column(name="z", header="z", kind="reproduced", show=fixed(2, sign=True)),
    Column(name="z_published", header="z", kind="published"),
    Column(name="p", header="p", kind="reproduced", show=probability, readable=False),
    Column(name="p_bonferroni", header="p Bonferroni", kind="reproduced", show=probability),
    Column(name="p_bonferroni_published", header="p Bonferroni", kind="published"),
    Column(name="p_holm", header="p Holm", kind="reproduced", show=probability),
    Column(name="p_bh", header="p BH", kind="reproduced", show=probability),
    Column(name="prediction_t", header="t (prediction)", kind="reproduced", show=fixed(2, sign=True), readable=False),
    Column(name="p_prediction", header="p prediction", kind="reproduced", show=probability),
    Column(name="validation_loss", header="val. loss", kind="reproduced", show=fixed(4)),
    Column(name="validation_loss_published", header="val. loss", kind="published", readable=False),
    Column(name="outcome", header="outcome", kind="fact"),
    Column(name="n_seeds", header="seeds", kind="fact"),
    Column(name="value_of", header="value of", kind="fact", readable=False),
    Column(name="climb_avg_all_seeds", header="mean of all seeds", kind="reproduced", show=fixed(4), readable=False),
    Column(name="sigma_all_seeds", header="σ of all seeds", kind="reproduced", show=fixed(5), readable=False),
    Column(name="run_ids", header="runs", kind="fact", readable=False),
    Column(name="category", header="category", kind="fact", readable=False),
    *CONTEXT,
]


def headline_runs(runs: pd.DataFrame, method: str, reference: str) -> pd.DataFrame:
    """The runs behind a method's value: all seeds of the reference, the first seed of any other method."""
    mine = runs[runs["method"] == method].sort_values("seed")
    return mine if method == reference else mine.head(1)


def table2(frames: RunFrames, study: Study, published: Published) -> Table:
    """All methods of the study, best CLIMB-avg first, the rows without a value last."""
    reference = study.sheet["noise_floor"]["reference"]
    runs = frames.select(SCALE, study.methods)
    floor_runs = headline_runs(runs, reference, reference)
    floor = noise_floor(floor_runs["climb_avg"]) if len(floor_runs) else noise_floor([math.nan])
    values = pd.Series(
        {method: headline_runs(runs, method, reference)["climb_avg"].mean() for method in study.methods}, dtype=float
    )
    with warnings.catch_warnings():
        # A missing floor is a word in every cell that needs it.
        warnings.filterwarnings("ignore", message="no noise floor")
        judged = verdicts(values, floor, baseline=reference)
    print2, print7 = published.table("table2"), published.table("table7")
    everything = tuple(runs.index)
    rows = []
    for method in values.sort_values(ascending=False, kind="stable", na_position="last").index:
        mine, behind = runs[runs["method"] == method], headline_runs(runs, method, reference)
        own = tuple(behind.index)
        word = absent(behind["outcome"])
        compared = tuple(dict.fromkeys((*own, *floor_runs.index)))
        no_z = word if math.isnan(values[method]) else NO_FLOOR
        no_p = REFERENCE if method == reference else no_z
        loss = behind["validation_loss"].mean()
        verdict = judged.loc[method]
        bound = printed(print2, method, "p_bonf_bound")
        rows.append(
            {
                "method": Cell(method),
                "label": Cell(study.label(method)),
                "climb_avg": number(float(values[method]), word, own),
                "climb_avg_published": Cell(printed(print2, method, "climb_avg")),
                "delta": number(float(verdict["delta"]), no_z, compared),
                "delta_published": Cell(printed(print2, method, "delta")),
                "z": number(float(verdict["z"]), no_z, compared),
                "z_published": Cell(printed(print2, method, "z")),
                "p": number(float(verdict["p"]), no_p, compared),
                "p_bonferroni": number(float(verdict["p_bonferroni"]), no_p, compared),
                "p_bonferroni_published": Cell(
                    printed(print2, method, "p_bonf") if bound == NOT_PRINTED else f"<{bound}"
                ),
                "p_holm": number(float(verdict["p_holm"]), no_p, everything),
                "p_bh": number(float(verdict["p_bh"]), no_p, everything),
                "prediction_t": number(float(verdict["prediction_t"]), no_z, compared),
                "p_prediction": number(float(verdict["p_prediction"]), no_p, compared),
                "validation_loss": number(float(loss), word, own),
                "validation_loss_published": Cell(printed(print7, method, "val_loss")),
                "outcome": Cell(joint_outcome(mine["outcome"]), tuple(mine.index)),
                "n_seeds": Cell(int((mine["outcome"] == COMPLETED).sum()), tuple(mine.index)),
                "value_of": Cell(_value_of(behind)),
                "climb_avg_all_seeds": number(float(mine["climb_avg"].mean()), word, mine.index),
                "sigma_all_seeds": number(
                    float(mine["climb_avg"].std()), absent(mine["outcome"]) if len(mine) > 1 else "one seed", mine.index
                ),
                "run_ids": Cell(" ".join(mine["run_id"]), tuple(mine.index)),
                "category": Cell(study.methods[method]["category"]),
            }
            | context(study, SCALE, frames)
        )
    return Table(
        name="table2",
        title=f"Main results at {study.scale_label(SCALE)}, sorted by CLIMB-avg.",
        study=study.name,
        preset=study.preset,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[*_notes(study, floor, floor_runs, len(values) - 1), *notes_of(study, frames, scores=True)],
        published=published.shown("table2"),
    )


def _value_of(behind: pd.DataFrame) -> str:
    there = behind[behind["climb_avg"].notna()]
    seeds = ", ".join(str(seed) for seed in there["seed"])
    if there.empty:
        return "no run"
    return f"mean of seeds {seeds}" if len(behind) > 1 else f"seed {seeds}"


def _notes(study: Study, floor: NoiseFloor, floor_runs: pd.DataFrame, m: int) -> list[str]:
    label = study.label(study.sheet["noise_floor"]["reference"])
    if floor.usable:
        floor_note = f"{label}: mean {floor.mean:.4f}, unbiased σ {floor.sigma:.5f} over {floor.n} seeds."
    else:
        floor_note = f"{label}: {floor.n} seeds with a value give no noise floor."
    if floor.missing:
        floor_note += f" {floor.missing} of its {len(floor_runs)} seeds have no value and do not enter."
    freedom = f" with {floor.n - 1} degrees of freedom" if floor.usable else ""
    return [
        floor_note + " Its row is the mean of its seeds; every other row is its first seed, as in the document.",
        f"Δ = x − mean, z = Δ/σ, p two-sided normal, corrected for m = {m} methods; p prediction reads the same Δ as "
        f"the prediction of one new run, Δ/(σ√(1 + 1/n)), Student's t{freedom}.",
    ]
