"""Makes tables of methods over their seeds: spread, distance from the reference, and tests against it. Some are made on
request, with more seeds than the paper has, by which its own limitations would have judged.

Source: transfer study, section 3.3, appendix E.4, and Limitations ("Single-seed coverage at the borderline", "3B noise
floor is single-seed").
"""

from __future__ import annotations

import math
import warnings

import pandas as pd

from plumbline.published.printed_numbers import NOT_PRINTED
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import (
    OUTCOME,
    column_pair,
    label_columns,
    make_table,
    number_column,
    text_column,
)
from plumbline.results.tables.table import (
    CONTEXT,
    NO_FLOOR,
    REFERENCE,
    Cell,
    Column,
    Table,
    context_cells,
    list_published_cells,
    missing_word,
    number_cell,
    require_reference,
    summarize_outcomes,
)
from plumbline.specs.study_config import Study
from plumbline.stats.bootstrap import bootstrap_interval, probability_not_above
from plumbline.stats.noise_floor import NoiseFloor, noise_floor
from plumbline.stats.welch_and_stouffer import stouffer, task_correlation, welch, welch_per_task

#: Columns of a method's seeds.
SEED_COLUMNS = [
    *label_columns("method", "Method"),
    Column(name="n_seeds", header="seeds", kind="fact", format="d", narrow=True),
    OUTCOME,
    number_column("climb_avg_mean", "mean", ".4f", narrow=True, noise="sigma"),
    number_column("sigma", "σ", ".5f", narrow=True),
    number_column("climb_avg_mean_bootstrap_ci95_low", "bootstrap 95 % low", ".4f"),
    number_column("climb_avg_mean_bootstrap_ci95_high", "bootstrap 95 % high", ".4f"),
    number_column("climb_avg_mean_bca_ci95_low", "BCa low", ".4f", readable=False),
    number_column("climb_avg_mean_bca_ci95_high", "BCa high", ".4f", readable=False),
    number_column("prob_not_above_baseline", "Pr(method ≤ base)", ".4f"),
    number_column("welch_t", "Welch t", ".2f"),
    number_column("welch_df", "Welch df", ".2f", readable=False),
    number_column("welch_p", "Welch p", PROBABILITY, narrow=True),
    number_column("stouffer_z", "Stouffer Z", ".2f"),
    number_column("stouffer_p_one_sided", "Stouffer p one-sided", PROBABILITY),
    number_column("stouffer_p_two_sided", "Stouffer p two-sided", PROBABILITY, readable=False),
    number_column("stouffer_z_correlated_tasks", "Stouffer Z, correlated tasks", ".2f"),
    number_column("stouffer_p_one_sided_correlated_tasks", "one-sided p, correlated tasks", PROBABILITY),
    number_column("tasks_above_baseline", "tasks above", "d"),
    number_column("tasks_compared", "tasks", "d"),
    text_column("tasks_not_above_baseline", "tasks not above", readable=False),
    *CONTEXT,
]
#: The same with distances behind the spread.
_BEFORE = [column.name for column in SEED_COLUMNS].index("sigma") + 1
_COLUMNS: list[Column] = [
    *SEED_COLUMNS[:_BEFORE],
    *column_pair("climb_avg_delta", "Δ", "+.4f", narrow=True),
    *column_pair("z", "z", "+.2f"),
    *SEED_COLUMNS[_BEFORE:],
]

#: The word of a spread that one seed does not have.
ONE_SEED = "one seed"

#: Columns of numbers that compare a reference with the first.
TESTS = ("prob_not_above_baseline", "welch_t", "welch_df", "welch_p", "stouffer_z", "stouffer_p_one_sided")
TESTS += (
    "stouffer_p_two_sided",
    "stouffer_z_correlated_tasks",
    "stouffer_p_one_sided_correlated_tasks",
    "tasks_above_baseline",
    "tasks_compared",
)


def make_seed_table(
    name: str,
    title: str,
    frames: RunFrames,
    study: Study,
    scale: str,
    methods: list[str],
    printed: tuple[str, pd.DataFrame, dict[str, str]],
) -> Table:
    """Make the table of the reference, the other references and `methods` at a scale.

    Args:
        printed: the file of printed numbers, its table on the method, and our columns -> its own.
    """
    reference = require_reference(study, name)
    references = [reference, *study.definition["noise_floor"]["others"]]
    runs = frames.select(scale)
    expected = set(runs["method"])
    chosen = [method for method in dict.fromkeys([*references, *methods]) if method in expected]
    floor = noise_floor(runs.loc[runs["method"] == reference, "average"]) if reference in expected else None
    file, table, columns = printed
    rows = [
        row
        | _distances(row, reference, floor)
        | {f"{column}_published": Cell(None, word=NOT_PRINTED) for column in ("climb_avg_delta", "z")}
        | list_published_cells(table, str(row["method"].value), columns)
        for row in make_rows(frames, study, scale, chosen)
    ]
    return make_table(
        name,
        f"{title} at {study.scale_label(scale)}.",
        study,
        key="method",
        columns=_COLUMNS,
        rows=rows,
        notes=[
            f"Δ and z are from the mean and σ of {study.label(reference)}'s seeds here; the printed ones are of one "
            "seed each. Tests are against the same seeds and corrected for nothing.",
            describe_tests(rows),
        ],
        published=file,
        scores=frames,
    )


def seeds_by_task(frames: RunFrames, scale: str, method: str) -> pd.DataFrame:
    """Seeds x tasks of a method at a scale; only seeds with scores."""
    runs = frames.select(scale, [method]).sort_values("seed")
    rows = {seed: frames.task_scores(str(key)) for key, seed in runs["seed"].items()}
    return pd.DataFrame({seed: row for seed, row in rows.items() if len(row)}).T.astype(float)


def make_rows(frames: RunFrames, study: Study, scale: str, methods: list[str]) -> list[dict[str, Cell]]:
    """Make a row of each method's seeds at a scale; tests are against the first method."""
    reference = methods[0]
    reference_runs = frames.select(scale, [reference])
    tasks = {method: seeds_by_task(frames, scale, method) for method in methods}
    correlation = _correlation(tasks)
    rows = []
    for method in methods:
        runs = frames.select(scale, [method]).sort_values("seed")
        own, word = tuple(runs.index), missing_word(runs["outcome"])
        floor = noise_floor(runs["average"]) if len(runs) else noise_floor([math.nan])
        no_spread = ONE_SEED if floor.n == 1 else word
        row = {
            "method": Cell(method),
            "label": Cell(study.label(method)),
            "n_seeds": Cell(floor.n, own),
            "outcome": Cell(summarize_outcomes(runs["outcome"]), own),
            "climb_avg_mean": number_cell(floor.mean, word, own),
            "sigma": number_cell(floor.sigma, no_spread, own),
        }
        row |= _intervals(runs["average"], no_spread, own)
        if method == reference:
            row |= _no_tests(REFERENCE)
        else:
            row |= _tests(runs, reference_runs, tasks[method], tasks[reference], correlation, word)
        rows.append(row | context_cells(study, scale, frames))
    return rows


def describe_tests(rows: list[dict[str, Cell]]) -> str:
    """Describe what the columns of spread and of tests are, for the seeds that there are."""
    counts = [row["n_seeds"].value for row in rows]
    return (
        f"σ is unbiased. Bootstrap: 10,000 resamples, random state 0; {_resamples(counts)}, so "
        "the intervals cover less than 95 %. Welch: two-sided. Stouffer combines the tasks' one-sided Welch tests; "
        "the correlated variant divides by the tasks' correlation, pooled within the references and of low rank."
    )


def _resamples(counts: list[int]) -> str:
    """How few samples there are to draw: n of n with replacement, in any order."""
    return (
        " and ".join(
            f"{n} seeds have {math.comb(2 * n - 1, n)} distinct resamples" for n in sorted({n for n in counts if n > 1})
        )
        or "there are too few seeds to resample"
    )


def _intervals(values: pd.Series, word: str, own: tuple[str, ...]) -> dict[str, Cell]:
    names = {
        "percentile": ("climb_avg_mean_bootstrap_ci95_low", "climb_avg_mean_bootstrap_ci95_high"),
        "BCa": ("climb_avg_mean_bca_ci95_low", "climb_avg_mean_bca_ci95_high"),
    }
    if values.notna().sum() < 2:
        return {name: Cell(None, own, word=word) for pair in names.values() for name in pair}
    cells = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="bootstrap of n")  # the table's note says it
        for method, (low, high) in names.items():
            bounds = bootstrap_interval(values, method=method)
            cells |= {low: number_cell(bounds.low, "undefined", own), high: number_cell(bounds.high, "undefined", own)}
    return cells


def _no_tests(word: str, used: tuple[str, ...] = ()) -> dict[str, Cell]:
    return {name: Cell(None, used, word=word) for name in TESTS} | {"tasks_not_above_baseline": Cell(word, used)}


def _tests(
    runs: pd.DataFrame,
    base_runs: pd.DataFrame,
    tasks: pd.DataFrame,
    base_tasks: pd.DataFrame,
    correlation: pd.DataFrame | None,
    word: str,
) -> dict[str, Cell]:
    used = (*runs.index, *base_runs.index)
    sides = (runs["average"], base_runs["average"])
    if min(side.notna().sum() for side in sides) < 2 or min(len(tasks), len(base_tasks)) < 2:
        missing = "too few seeds" if word == "missing" and min(side.notna().sum() for side in sides) else word
        return _no_tests(missing, used)
    whole, each = welch(*sides), welch_per_task(tasks, base_tasks)
    plain = stouffer(each["p_greater"])
    cells = {
        "prob_not_above_baseline": Cell(probability_not_above(*sides), used),
        "welch_t": number_cell(whole.t, "undefined", used),
        "welch_df": number_cell(whole.df, "undefined", used),
        "welch_p": number_cell(whole.p, "undefined", used),
        "stouffer_z": number_cell(plain.z, "undefined", used),
        "stouffer_p_one_sided": number_cell(plain.p_one_sided, "undefined", used),
        "stouffer_p_two_sided": number_cell(plain.p_two_sided, "undefined", used),
        "tasks_above_baseline": Cell(int((each["difference"] > 0).sum()), used),
        "tasks_compared": Cell(len(each), used),
        "tasks_not_above_baseline": Cell(" ".join(each.index[~(each["difference"] > 0)]) or "none", used),
    }
    aware = None
    if correlation is not None:
        matrix = correlation.loc[each.index, each.index].to_numpy()
        there = each["p_greater"].notna().to_numpy()
        # A pooled estimate of low rank may give the sum no variance at all: then it says nothing.
        aware = stouffer(each["p_greater"], matrix) if matrix[there][:, there].sum() > 1e-9 else None
    cells["stouffer_z_correlated_tasks"] = number_cell(aware.z if aware else None, "undefined", used)
    cells["stouffer_p_one_sided_correlated_tasks"] = number_cell(
        aware.p_one_sided if aware else None, "undefined", used
    )
    return cells


def _correlation(tasks: dict[str, pd.DataFrame]) -> pd.DataFrame | None:
    groups = [frame for frame in tasks.values() if len(frame) >= 2]
    if not groups:
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="correlation of")  # the table's note says it
        return task_correlation(groups)


def _distances(row: dict[str, Cell], reference: str, floor: NoiseFloor | None) -> dict[str, Cell]:
    """Distance of a row's mean from that of the reference, and the same in its σ."""
    mean, runs = row["climb_avg_mean"], row["n_seeds"].runs
    if row["method"].value == reference:
        return {name: Cell(None, runs, word=REFERENCE) for name in ("climb_avg_delta", "z")}
    value = mean.value if isinstance(mean.value, float) else math.nan
    delta, z = (math.nan, math.nan) if floor is None else (float(floor.delta(value)), float(floor.z(value)))
    return {
        "climb_avg_delta": number_cell(delta, mean.word or NO_FLOOR, runs),
        "z": number_cell(z, mean.word or NO_FLOOR, runs),
    }
