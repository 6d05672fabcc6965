"""Makes section B of Table 6, which the paper does not have: what a probe says of the attention of the runs that it
lists.

In addition the large runs that it does not list, and at the base scale the methods of which appendix E.3 says that they
keep or reduce attention to a single key, and the one whose cap appendix B.13 calls almost never active.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import make_table, number_column
from plumbline.results.tables.table import (
    CONTEXT_ALONE,
    NO_FLOOR,
    REFERENCE,
    Cell,
    Column,
    Table,
    context_cells,
    number_cell,
    require_reference,
)
from plumbline.specs.study_config import Study
from plumbline.stats.noise_floor import noise_floor

from ..attention_concentration import ConcentrationPoint, latest_before, points
from ..headline_runs import BASE, LARGE
from .table6 import ARM, PROVOKED, RUN, list_runs, name_of

#: The group of runs at the base scale that it shows.
GROUP = "concentration"
#: Words where there is no number.
NO_WEIGHTS, NO_NUMBER, NOT_READ = "no weights of keys", "no number", "baseline not read"

COLUMNS = [
    *RUN,
    Column(name="cited_in", header="cited in", kind="label"),
    Column(name="outcome", header="outcome", kind="fact", narrow=True),
    number_column("step", "read at step", "d"),
    number_column("training_fraction", "share of training", ".3f", narrow=True),
    number_column("concentration", "concentration", ".4f", narrow=True),
    number_column("uniform_concentration", "concentration of uniform attention", ".4f"),
    number_column("baseline_concentration", "baseline's concentration", ".4f"),
    number_column("baseline_training_fraction", "baseline read at share of training", ".3f", readable=False),
    number_column("difference_from_baseline", "difference", "+.4f", narrow=True),
    number_column("difference_in_sigma", "difference in σ", "+.2f"),
    number_column("largest_attention_weight", "largest attention weight", ".4f"),
    number_column("attention_weight_sum", "sum of attention weights", ".4f"),
    number_column("abs_logits_above_50_pct", "% of |logits| > 50", ".4g", narrow=True),
    *CONTEXT_ALONE,
]
NUMBERS = [column.name for column in COLUMNS if column.kind == "reproduced"]

NOTES = [
    "Concentration: the largest absolute weight's share of the sum of absolute weights of a query's visible keys, mean "
    "over queries that see more than one key, heads, layers and 8 held-out sequences; 1 is attention to one key. The "
    "largest weight and the sum stand beside it as they are: where rows keep little of their weight (Softpick, "
    "Sigmoid) a high share concentrates little.",
    "Read at the end of training, of a run that diverged at its last finite weights; beside the baseline's latest "
    "point at or before the same share of training (base scale: mean of its seeds). Sigmas are of these seeds.",
    "Logits: scores as they enter the softmax or sigmoid, before any cap; of Softmax-Cap what its cap clips.",
]


def attention_concentration(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each run: the baseline first, Table 6's, other large ones, then the base scale."""
    reference = require_reference(study, "attention_concentration")
    print6 = published.table("table6", key=["method_id", "seed"])
    chosen = _choose_runs(frames, print6, reference)
    read = {str(key): points(frames, str(key)) for key in chosen.index}
    rows = []
    for key, run in chosen.iterrows():
        row = {
            "run": Cell(name_of(run), (str(key),)),
            "label": Cell(study.label(run["method"])),
            "seed": Cell(int(run["seed"])),
            "cited_in": Cell(run["cited_in"]),
            "outcome": Cell(run["outcome"], (str(key),)),
        }
        rows.append(row | _numbers(chosen, read, str(key), reference) | context_cells(study, run["scale"]))
    return make_table(
        "attention_concentration",
        "What a probe says of attention where runs ended (section B of Table 6; not in the paper).",
        study,
        key="run",
        columns=COLUMNS,
        rows=rows,
        notes=[*NOTES, *([f"{ARM}: {PROVOKED}"] if ARM in study.definition.get("arms", {}) else [])],
    )


def _choose_runs(frames: RunFrames, print6: pd.DataFrame, reference: str) -> pd.DataFrame:
    """The runs with their section: what Table 6 lists, then the rest of the large scale and the base scale."""
    six = list_runs(frames, print6)
    rest = frames.runs.drop(index=six.index)
    baseline = rest[(rest["method"] == reference) & (rest["scale"] == LARGE)]
    large = rest[rest["scale"] == LARGE].drop(index=baseline.index)
    base = rest[(rest["scale"] == BASE) & rest["groups"].map(lambda groups: GROUP in groups)]
    first = base["method"] == reference
    parts = {
        "Table 6": pd.concat([baseline, six]),
        "large scale": large,
        "E.3, B.13": pd.concat([base[first], base[~first]]),
    }
    return pd.concat([part.assign(cited_in=section) for section, part in parts.items()])


def _numbers(
    chosen: pd.DataFrame, read: dict[str, list[ConcentrationPoint]], key: str, reference: str
) -> dict[str, Cell]:
    """A run's numbers, or the word for why it has none."""
    run, own = chosen.loc[key], (key,)
    if not read[key]:
        word = MISSING if run["outcome"] == MISSING else NO_WEIGHTS
        return {name: Cell(None, own, word=word) for name in NUMBERS}
    end = read[key][-1]
    cells = {
        "step": Cell(end.step, own),
        "training_fraction": Cell(end.fraction, own),
        "concentration": number_cell(end.concentration, NO_NUMBER, own),
        "uniform_concentration": number_cell(end.null, NO_NUMBER, own),
        "largest_attention_weight": number_cell(end.largest_weight, NO_NUMBER, own),
        "attention_weight_sum": number_cell(end.weight_sum, NO_NUMBER, own),
        "abs_logits_above_50_pct": number_cell(100 * end.logits_beyond, NO_NUMBER, own),
    }
    there = (chosen["method"] == reference) & (chosen["scale"] == run["scale"])
    seeds = {
        str(name): point for name in chosen.index[there] if (point := latest_before(read[str(name)], end.fraction))
    }
    if run["method"] == reference:
        names = (
            "baseline_concentration",
            "baseline_training_fraction",
            "difference_from_baseline",
            "difference_in_sigma",
        )
        return cells | {name: Cell(None, own, word=REFERENCE) for name in names}
    both = (*own, *seeds)
    mean = sum(point.concentration for point in seeds.values()) / len(seeds) if seeds else math.nan
    at = min(point.fraction for point in seeds.values()) if seeds else math.nan
    cells["baseline_concentration"] = number_cell(mean, NOT_READ, both)
    cells["baseline_training_fraction"] = number_cell(at, NOT_READ, both)
    cells["difference_from_baseline"] = number_cell(end.concentration - mean, NO_NUMBER if seeds else NOT_READ, both)
    cells["difference_in_sigma"] = _sigmas(run, end, [point.concentration for point in seeds.values()], both)
    return cells


def _sigmas(run: pd.Series, end: ConcentrationPoint, seeds: list[float], both: tuple[str, ...]) -> Cell:
    """The distance from the baseline in the spread of its seeds, of which the large scale has one."""
    if run["outcome"] == DIVERGED:
        return Cell(None, both, word=DIVERGED)
    if len(seeds) < 2 or not (floor := noise_floor(seeds)).usable:
        return Cell(None, both, word=NO_FLOOR)
    return number_cell(float(floor.z(end.concentration)), NO_NUMBER, both)
