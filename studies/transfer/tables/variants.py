"""Makes the table of variants: other meanings of what the paper leaves open, and methods as their authors have them, by
method.

Source: interpretations of studies/transfer/study.yaml. Not a table of the paper; printed numbers (Tables 2, 4 and 7)
stand next to the default variant, and the printed share of parameters next to every one, which it may decide between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from plumbline.core.run_files import COMPLETED, MISSING
from plumbline.model.decoder import on_meta
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.interpretations import describe_variant
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import (
    OUTCOME,
    RUN_IDS,
    SEEDS,
    column_pair,
    label_columns,
    make_table,
    number_column,
)
from plumbline.results.tables.table import (
    CONTEXT,
    NO_FLOOR,
    REFERENCE,
    Cell,
    Column,
    Table,
    context_cells,
    missing_word,
    number_cell,
    published_cells,
    published_column,
    require_reference,
    summarize_outcomes,
)
from plumbline.specs import corpus
from plumbline.specs.corpus import Corpus
from plumbline.specs.study_config import Study, make_spec
from plumbline.stats.noise_floor import NoiseFloor, noise_floor, two_sided_t

from ..headline_runs import BASE, headline_runs

#: The word of a default variant where others have their distance from it.
DEFAULT = "default"

#: The size at which the paper prints shares of parameters.
SIZE = "paper"

COLUMNS = [
    *label_columns("variant", "Variant"),
    Column(name="interpretations", header="interpretations", kind="label"),
    number_column("parameters", "parameters", ",d"),
    number_column("delta_params_pct", "ΔP (%)", "+.2f"),
    number_column("delta_params_pct_paper_size", "ΔP at paper size (%)", "+.2f"),
    published_column("delta_params_pct_paper_size", "ΔP (%)"),
    *column_pair("validation_loss", "val. loss", ".4f"),
    number_column("loss_minus_default", "loss − default's", "+.4f", narrow=True),
    *column_pair("climb_avg", "CLIMB-avg", ".4f"),
    *column_pair("climb_avg_delta", "Δ", "+.4f"),
    number_column("z", "z", "+.2f", narrow=True),
    published_column("z", "z"),
    number_column("p_run_vs_seeds", "p, one run vs. seeds", PROBABILITY),
    number_column("climb_avg_minus_default", "Δ − default's", "+.4f", narrow=True),
    OUTCOME,
    SEEDS,
    Column(name="description", header="what it changes", kind="fact"),
    RUN_IDS,
    *CONTEXT,
]


@dataclass(frozen=True, slots=True)
class _World:
    """What every row is measured against."""

    base: pd.DataFrame
    study: Study
    reference: str
    floor: NoiseFloor
    floor_runs: pd.DataFrame
    corpus: Corpus
    exact: dict[str, int]
    behind: dict[str, pd.DataFrame]

    def runs(self, name: str) -> pd.DataFrame:
        """The runs behind a row's values."""
        if name not in self.behind:
            self.behind[name] = headline_runs(self.base, name, self.reference)
        return self.behind[name]

    def at_paper_size(self, name: str) -> int:
        """Parameters of a method or variant at the paper's own size."""
        if name not in self.exact:
            path = f"studies/{self.study.name}/study.yaml"
            model = make_spec(self.study.definition, self.corpus, SIZE, BASE, name, 0, path).model
            self.exact[name] = sum(value.numel() for value in on_meta(model).parameters())
        return self.exact[name]


def variants(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """The reference and every method with a variant, each followed by its variants, in the order of the YAML."""
    reference = require_reference(study, "variants")
    base = frames.select(BASE)
    floor_runs = headline_runs(base, reference, reference)
    world = _World(
        base=base,
        study=study,
        reference=reference,
        floor=noise_floor(floor_runs["average"]) if len(floor_runs) else noise_floor([math.nan]),
        floor_runs=floor_runs,
        corpus=corpus.load(study.corpus, SIZE),
        exact={},
        behind={},
    )
    there = [name for name in study.variants if len(world.runs(name))]
    prints = {name: published.table(name) for name in ("table2", "table4", "table7")}
    files = {name: published.format_path(name) for name in prints}
    rows = []
    for method in study.methods:
        own = [name for name in there if name.rpartition(".")[0] == method]
        if own or method == reference:
            rows += [
                _row(world, name, method)
                | _cells_in_print(prints, files, name, method)
                | context_cells(study, BASE, frames)
                for name in (method, *own)
            ]
    return make_table(
        "variants",
        f"Other variants at {study.scale_label(BASE)}, each below its method's default one.",
        study,
        key="variant",
        columns=COLUMNS,
        rows=rows,
        notes=[
            f"One seed a variant, as for every method but {study.label(reference)}: a difference from the default "
            "(its run of the same seed) may be the seed's. No variant is tuned, and none was chosen by these numbers.",
            "Δ and z are Table 2's, from the mean and σ of the reference's seeds; p, one run vs. seeds, reads Δ as "
            "that of one new run (Student's t). They are corrected for nothing: variants are not among the "
            f"{study.m} comparisons.",
            "`official` and `original` are methods as their authors have them. Interpretations: those of which a "
            "variant is an alternative; under a default, those of its variants.",
            "ΔP at paper size is exact, by the modules on the meta device; the printed ΔP is the method's, whichever "
            "interpretation it was.",
        ],
        published=published.format_path("table2"),
        scores=frames,
    )


def _row(world: _World, name: str, default: str) -> dict[str, Cell]:
    study, behind = world.study, world.runs(name)
    own, word = tuple(behind.index), missing_word(behind["outcome"])
    compared = tuple(dict.fromkeys((*own, *world.floor_runs.index)))
    average = float(behind["average"].mean())
    no_z = word if math.isnan(average) else NO_FLOOR
    no_p = REFERENCE if name == world.reference else no_z
    return {
        "variant": Cell(name),
        "label": Cell(study.label(name)),
        "interpretations": Cell(", ".join(_interpretations(study, name)) or "none"),
        "validation_loss": number_cell(float(behind["validation_loss"].mean()), word, own),
        "loss_minus_default": _less(world, name, default, "validation_loss"),
        "climb_avg": number_cell(average, word, own),
        "climb_avg_delta": number_cell(float(world.floor.delta(average)), no_z, compared),
        "z": number_cell(float(world.floor.z(average)), no_z, compared),
        "p_run_vs_seeds": number_cell(None if name == world.reference else _p(world.floor, average), no_p, compared),
        "climb_avg_minus_default": _less(world, name, default, "average"),
        "outcome": Cell(summarize_outcomes(behind["outcome"]), own),
        "n_seeds": Cell(int((behind["outcome"] == COMPLETED).sum()), own),
        "description": Cell("the default variant" if name == default else describe_variant(study, name)),
        "run_ids": Cell(" ".join(behind["run_id"]), own),
    } | _parameters(world, name)


def _cells_in_print(prints: dict[str, pd.DataFrame], files: dict[str, str], name: str, default: str) -> dict[str, Cell]:
    """What is printed of a default variant; of others the method's share of parameters alone."""
    cells = published_cells(prints["table2"], name, {"climb_avg": "climb_avg", "climb_avg_delta": "delta", "z": "z"})
    cells |= published_cells(prints["table7"], name, {"validation_loss": "val_loss"}, source=files["table7"])
    share = {"delta_params_pct_paper_size": "delta_params_pct"}
    return cells | published_cells(prints["table4"], default, share, source=files["table4"])


def _p(floor: NoiseFloor, average: float) -> float:
    """Two-sided p of a prediction of one new run; NaN without a floor."""
    return float(two_sided_t(floor.prediction(average), floor.n - 1)) if floor.usable else math.nan


def _less(world: _World, name: str, default: str, column: str) -> Cell:
    """By how much a run's value is above that of its default variant's run with the same seed."""
    if name == default:
        return Cell(None, word=DEFAULT)
    mine, runs = world.runs(name), world.base[world.base["method"] == default]
    same = runs[runs["seed"].isin(mine["seed"])]
    both = (*mine.index, *same.index)
    if same.empty:
        return Cell(None, both, word=MISSING)
    difference = float(mine[column].mean() - same[column].mean())
    return number_cell(difference, missing_word([*mine["outcome"], *same["outcome"]]), both)


def _interpretations(study: Study, name: str) -> list[str]:
    """The interpretations that name a variant as an alternative; of a default those that name one of its variants."""
    names = {name, *(other for other in study.variants if other.partition(".")[0] == name)}
    return [
        interpretation["id"]
        for interpretation in study.definition["interpretations"]
        if names & set(interpretation["alternatives"])
    ]


def _parameters(world: _World, name: str) -> dict[str, Cell]:
    """Parameters of the runs, and their share over the reference's, here and at the paper's own size."""
    word = missing_word(world.runs(name)["outcome"])
    counts = [world.runs(each)["parameters"].dropna() for each in (name, world.reference)]
    keys = tuple(dict.fromkeys(key for count in counts for key in count.index))
    here = [None if count.empty else int(count.iloc[0]) for count in counts]
    share = None if None in here else 100 * (here[0] / here[1] - 1)
    exact = [world.at_paper_size(each) for each in (name, world.reference)]
    source = f"{exact[0]:,} and {exact[1]:,} parameters, modules on the meta device at paper size"
    return {
        "parameters": number_cell(here[0], word, counts[0].index),
        "delta_params_pct": number_cell(share, word if here[0] is None else MISSING, keys),
        "delta_params_pct_paper_size": Cell(100 * (exact[0] / exact[1] - 1), source=source),
    }
