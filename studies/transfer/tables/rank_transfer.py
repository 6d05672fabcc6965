"""Makes a table of section 5.2's numbers: what of the order at the base scale is left at the large one.

Source: transfer study, section 5.2.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.published.printed_numbers import NOT_PRINTED, PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import make_table, number_column
from plumbline.results.tables.table import (
    CONTEXT,
    Cell,
    Column,
    Table,
    context_cells,
    make_printed_cell,
    make_published_column,
    number_cell,
    require_reference,
)
from plumbline.specs.study_config import Study
from plumbline.stats.rank_correlation import signs_preserved

from ..headline_runs import BASE, LARGE
from ..two_scales import failures, improvers, rank_correlation, two_scales

COLUMNS = [
    Column(name="statistic", header="Statistic", kind="label", narrow=True),
    number_column("value", "value", ".2f", narrow=True),
    make_published_column("value", "value", narrow=True),
    number_column("n_methods", "methods compared", "d", narrow=True),
    make_published_column("n_methods", "methods compared"),
    number_column("p_permutation", "p permutation", PROBABILITY, narrow=True),
    Column(name="all_permutations_used", header="all permutations", kind="fact"),
    number_column("p_t_approximation", "p t approximation", PROBABILITY),
    make_published_column("p_t_approximation", "p t approximation"),
    Column(name="methods", header="methods", kind="fact", readable=False),
    *CONTEXT,
]

#: The word of a statistic that no method, or hardly one, is behind.
TOO_FEW = "too few methods"


def rank_transfer(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """Rank correlations with exact and approximate p, and how many signs stay."""
    reference = require_reference(study, "rank_transfer")
    values = two_scales(frames, study, reference)
    up, down = improvers(values, reference), failures(values, reference)
    others = values[(values.index != reference) & values[["base", "large"]].notna().all(axis=1)]
    correlation, signs = published.claim("spearman_7"), published.claim("sign_preserved")
    printed = {
        "value": str(correlation["rho"]),
        "n_methods": str(correlation["n"]),
        "p_t_approximation": str(correlation["p"]),
    }
    rows = [
        _correlation(frames, "spearman_improvers", up, reference) | _cells_in_print(printed),
        _correlation(frames, "spearman_all", others, reference) | _cells_in_print({}),
    ]
    for name, part, count in (
        ("signs_improvers", up, str(signs["improvers"])),
        ("signs_failures", down, str(signs["failures"])),
    ):
        rows.append(_signs(frames, name, part, reference) | _cells_in_print({"value": count, "n_methods": count}))
    return make_table(
        "rank_transfer",
        f"What of the order at {study.scale_label(BASE)} is left at {study.scale_label(LARGE)}.",
        study,
        key="statistic",
        columns=COLUMNS,
        rows=[row | context_cells(study, LARGE, frames) for row in rows],
        notes=[
            "Improvers and failures: methods above and below the baseline at the base scale that complete the large.",
            "Printed values: section 5.2.",
        ],
        published=published.format_path("claims", "yaml"),
        scores=frames,
    )


def _correlation(frames: RunFrames, name: str, part: pd.DataFrame, reference: str) -> dict[str, Cell]:
    correlation, runs = rank_correlation(part), _runs_of(frames, part.index, reference)
    row = {"statistic": Cell(name), "n_methods": Cell(len(part), runs), "methods": Cell(" ".join(part.index))}
    if correlation is None or math.isnan(correlation.rho):
        return (
            row
            | {key: Cell(None, word=TOO_FEW) for key in ("value", "p_permutation", "p_t_approximation")}
            | {"all_permutations_used": Cell(TOO_FEW)}
        )
    row |= {
        "value": Cell(correlation.rho, runs),
        "p_permutation": Cell(correlation.p_permutation, runs),
        "p_t_approximation": Cell(correlation.p_t, runs),
    }
    return row | {"all_permutations_used": Cell("yes" if correlation.exact else "no")}


def _signs(frames: RunFrames, name: str, part: pd.DataFrame, reference: str) -> dict[str, Cell]:
    same_signs, n = signs_preserved(part["climb_avg_delta_base"], part["climb_avg_delta_large"])
    runs, no_test = _runs_of(frames, part.index, reference), Cell(None, word="no test")
    row = {
        "statistic": Cell(name),
        "value": number_cell(same_signs if n else None, TOO_FEW, runs),
        "n_methods": Cell(n, runs),
    }
    row |= {"p_permutation": no_test, "all_permutations_used": Cell("no test"), "p_t_approximation": no_test}
    return row | {"methods": Cell(" ".join(part.index))}


def _cells_in_print(texts: dict[str, str]) -> dict[str, Cell]:
    return {
        f"{name}_published": make_printed_cell(texts.get(name, NOT_PRINTED))
        for name in ("value", "n_methods", "p_t_approximation")
    }


def _runs_of(frames: RunFrames, methods: pd.Index, reference: str) -> tuple[str, ...]:
    return tuple(frames.runs[frames.runs["method"].isin([*methods, reference])].index)
