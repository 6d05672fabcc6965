"""Makes the table of the noise floor: spread over seeds of the three references, and whether two of them differ from
the first.

Source: transfer study, section 3.3 and appendix E.4.
"""

from __future__ import annotations

import math
import warnings

import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import OUTCOME, label_columns, make_table, number_column, text_column
from plumbline.results.tables.table import (
    CONTEXT,
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
from plumbline.specs.study_config import Study
from plumbline.stats.bootstrap import bootstrap_interval, probability_not_above
from plumbline.stats.noise_floor import noise_floor as floor_of
from plumbline.stats.welch_and_stouffer import stouffer, task_correlation, welch, welch_per_task

from ..headline_runs import BASE

COLUMNS = [
    *label_columns("method", "Method"),
    Column(name="n_seeds", header="seeds", kind="fact", format="d", narrow=True),
    OUTCOME,
    number_column("climb_avg_mean", "mean", ".4f", narrow=True, noise="sigma"),
    published_column("climb_avg_mean", "mean"),
    number_column("sigma", "σ", ".5f", narrow=True),
    published_column("sigma", "σ", narrow=True),
    number_column("climb_avg_mean_bootstrap_ci95_low", "bootstrap 95 % low", ".4f"),
    number_column("climb_avg_mean_bootstrap_ci95_high", "bootstrap 95 % high", ".4f"),
    number_column("climb_avg_mean_bca_ci95_low", "BCa low", ".4f", readable=False),
    number_column("climb_avg_mean_bca_ci95_high", "BCa high", ".4f", readable=False),
    number_column("prob_not_above_baseline", "Pr(method ≤ base)", ".4f"),
    number_column("welch_t", "Welch t", ".2f"),
    published_column("welch_t", "Welch t"),
    number_column("welch_df", "Welch df", ".2f", readable=False),
    number_column("welch_p", "Welch p", PROBABILITY, narrow=True),
    published_column("welch_p", "Welch p"),
    number_column("stouffer_z", "Stouffer Z", ".2f"),
    published_column("stouffer_z", "Stouffer Z"),
    number_column("stouffer_p_one_sided", "Stouffer p one-sided", PROBABILITY),
    published_column("stouffer_p_one_sided", "Stouffer p one-sided"),
    number_column("stouffer_p_two_sided", "Stouffer p two-sided", PROBABILITY, readable=False),
    published_column("stouffer_p_two_sided", "Stouffer p two-sided", readable=False),
    number_column("stouffer_z_correlated_tasks", "Stouffer Z, correlated tasks", ".2f"),
    number_column("stouffer_p_one_sided_correlated_tasks", "one-sided p, correlated tasks", PROBABILITY),
    number_column("tasks_above_baseline", "tasks above", "d"),
    published_column("tasks_above_baseline", "tasks above"),
    number_column("tasks_compared", "tasks", "d"),
    text_column("tasks_not_above_baseline", "tasks not above", readable=False),
    *CONTEXT,
]


#: Our columns, and the printed table's names of them.
PRINTED = {"climb_avg_mean": "climb_avg_mean", "sigma": "climb_avg_std", "tasks_above_baseline": "tasks_above_baseline"}
PRINTED |= {name: name for name in ("welch_t", "welch_p", "stouffer_z", "stouffer_p_one_sided")}
PRINTED |= {"stouffer_p_two_sided": "stouffer_p_two_sided"}

#: Columns of numbers that compare a reference with the first.
TESTS = ("prob_not_above_baseline", "welch_t", "welch_df", "welch_p", "stouffer_z", "stouffer_p_one_sided")
TESTS += (
    "stouffer_p_two_sided",
    "stouffer_z_correlated_tasks",
    "stouffer_p_one_sided_correlated_tasks",
    "tasks_above_baseline",
    "tasks_compared",
)


def seeds_by_task(frames: RunFrames, method: str) -> pd.DataFrame:
    """Seeds x tasks of a reference at the base scale; only seeds with scores."""
    runs = frames.select(BASE, [method]).sort_values("seed")
    rows = {seed: frames.task_scores(str(key)) for key, seed in runs["seed"].items()}
    return pd.DataFrame({seed: row for seed, row in rows.items() if len(row)}).T.astype(float)


def noise_floor(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each reference; tests are against the first."""
    reference = require_reference(study, "noise_floor")
    references = [reference, *study.definition["noise_floor"]["others"]]
    base_runs = frames.select(BASE, [reference])
    base_tasks = seeds_by_task(frames, reference)
    tasks = {method: seeds_by_task(frames, method) for method in references}
    correlation = _correlation(tasks)
    printed_floor = published.table("noise_floor")
    rows, counts = [], []
    for method in references:
        runs = frames.select(BASE, [method]).sort_values("seed")
        own, word = tuple(runs.index), missing_word(runs["outcome"])
        floor = floor_of(runs["average"]) if len(runs) else floor_of([math.nan])
        counts.append(floor.n)
        row = {
            "method": Cell(method),
            "label": Cell(study.label(method)),
            "n_seeds": Cell(floor.n, own),
            "outcome": Cell(summarize_outcomes(runs["outcome"]), own),
            "climb_avg_mean": number_cell(floor.mean, word, own),
            "sigma": number_cell(floor.sigma, word, own),
        }
        row |= _intervals(runs["average"], word, own)
        if method == reference:
            row |= _no_tests(REFERENCE)
        else:
            row |= _tests(runs, base_runs, tasks[method], base_tasks, correlation, word)
        rows.append(row | published_cells(printed_floor, method, PRINTED) | context_cells(study, BASE, frames))
    return make_table(
        "noise_floor",
        f"The noise floor at {study.scale_label(BASE)}: three references over their seeds.",
        study,
        key="method",
        columns=COLUMNS,
        rows=rows,
        notes=[
            f"σ is unbiased. Bootstrap: 10,000 resamples, random state 0; {_resamples(counts)}, so "
            "the intervals cover less than 95 %. Welch: two-sided. Stouffer combines the tasks' one-sided Welch tests; "
            "the correlated variant divides by the tasks' correlation, pooled within the references and of low rank."
        ],
        published=published.format_path("noise_floor"),
        scores=frames,
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
