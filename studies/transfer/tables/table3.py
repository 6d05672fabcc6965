"""Makes Table 3: the same methods at the base and at the large scale; and how much of the order survives.

Source: transfer study, sections 5.1 and 5.2, Table 3.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import format_probability
from plumbline.results.tables.shared_columns import OUTCOME, label_columns, make_table, number_column, text_column
from plumbline.results.tables.table import (
    CONTEXT,
    Cell,
    Column,
    Table,
    context_cells,
    list_published_cells,
    make_published_column,
    missing_word,
    number_cell,
    require_reference,
    summarize_outcomes,
)
from plumbline.specs.study_config import Study
from plumbline.stats.rank_correlation import signs_preserved

from ..headline_runs import BASE, LARGE, first_seed, headline_runs
from ..two_scales import failures, improvers, rank_correlation, two_scales

#: Our columns, and the printed table's names of them.
PRINTED = {"climb_avg_base": "climb_avg_1p2b", "climb_avg_large": "climb_avg_3b", "climb_avg_delta_large": "delta_3b"}
PRINTED |= {"rank_base": "rank_1p2b", "rank_large": "rank_3b"}


def columns(study: Study) -> list[Column]:
    """The table's columns, with the scales' labels under this preset."""
    base, large = study.scale_label(BASE), study.scale_label(LARGE)
    return [
        *label_columns("method", "Method"),
        number_column("climb_avg_base", base, ".4f", narrow=True),
        make_published_column("climb_avg_base", "1.2B"),
        number_column("climb_avg_large", large, ".4f", narrow=True),
        make_published_column("climb_avg_large", "3B"),
        number_column("climb_avg_delta_base", f"Δ {base}", "+.4f"),
        number_column("climb_avg_delta_large", f"Δ {large}", "+.4f", narrow=True),
        make_published_column("climb_avg_delta_large", "Δ 3B", narrow=True),
        number_column("rank_base", f"rank {base}", "g"),
        make_published_column("rank_base", "rank 1.2B"),
        number_column("rank_large", f"rank {large}", "g", narrow=True),
        make_published_column("rank_large", "rank 3B"),
        text_column("sign_preserved", "sign preserved"),
        OUTCOME,
        Column(name="n_seeds_large", header="seeds", kind="fact", format="d"),
        *CONTEXT,
    ]


def table3(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each method of the large scale, best first there; those without a value last."""
    reference = require_reference(study, "table3")
    values, print3 = two_scales(frames, study, reference), published.table("table3")
    base_runs, large_runs = frames.select(BASE, study.methods), frames.select(LARGE, study.methods)
    floor_base = tuple(headline_runs(base_runs, reference, reference).index)
    floor_large = tuple(first_seed(large_runs, reference).index)
    rows = []
    for method in values.sort_values("large", ascending=False, kind="stable", na_position="last").index:
        value = values.loc[method]
        mine, all_large = first_seed(large_runs, method), large_runs[large_runs["method"] == method]
        base_mine = headline_runs(base_runs, method, reference)
        word, base_word = missing_word(mine["outcome"]), missing_word(base_mine["outcome"])
        own, base_own = tuple(mine.index), tuple(base_mine.index)
        rows.append(
            {
                "method": Cell(method),
                "label": Cell(study.label(method)),
                "climb_avg_base": number_cell(float(value["base"]), base_word, base_own),
                "climb_avg_large": number_cell(float(value["large"]), word, own),
                "climb_avg_delta_base": number_cell(
                    float(value["climb_avg_delta_base"]), base_word, _join_keys(base_own, floor_base)
                ),
                "climb_avg_delta_large": number_cell(
                    float(value["climb_avg_delta_large"]), word, _join_keys(own, floor_large)
                ),
                "rank_base": _rank(value["rank_base"], base_word, base_runs.index),
                "rank_large": _rank(value["rank_large"], word, large_runs.index),
                "sign_preserved": Cell(
                    _sign(value, method == reference, word, base_word),
                    _join_keys(base_own, own, floor_base, floor_large),
                ),
                "outcome": Cell(summarize_outcomes(all_large["outcome"]), tuple(all_large.index)),
                "n_seeds_large": Cell(int((all_large["outcome"] == "completed").sum()), tuple(all_large.index)),
            }
            | list_published_cells(print3, method, PRINTED)
            | context_cells(study, LARGE, frames)
        )
    return make_table(
        "table3",
        f"CLIMB-avg at {study.scale_label(LARGE)} beside {study.scale_label(BASE)}.",
        study,
        key="method",
        columns=columns(study),
        rows=rows,
        notes=[
            "Δ at the large scale is from its single-seed baseline: it has no noise floor of its own.",
            *(f"{statistic}: {text}." for statistic, text in _sentences(values, reference)),
        ],
        published=published.format_path("table3"),
        scores=frames,
    )


def _sentences(values: pd.DataFrame, reference: str) -> list[tuple[str, str]]:
    up, down = improvers(values, reference), failures(values, reference)
    others = values[values.index != reference]
    sentences = []
    for name, part in (("the improvers", up), ("all methods that completed both", others)):
        spearman = rank_correlation(part)
        if spearman is not None and not math.isnan(spearman.rho):
            kind = "exact permutation" if spearman.exact else "random permutations"
            text = (
                f"ρ = {spearman.rho:+.2f} over n = {spearman.n}, p = {format_probability(spearman.p_permutation)} "
                f"({kind}), "
            )
            sentences.append((f"Spearman of {name}", text + f"{format_probability(spearman.p_t)} (t approximation)"))
    for name, part in (("improvers", up), ("methods below the baseline", down)):
        same_signs, n = signs_preserved(part["climb_avg_delta_base"], part["climb_avg_delta_large"])
        sentences.append((f"Signs preserved, {name}", f"{same_signs} of {n}"))
    return sentences


def _join_keys(*keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for part in keys for key in part))


def _rank(rank: float, word: str, runs: pd.Index) -> Cell:
    value = rank if math.isnan(rank) or rank % 1 else int(rank)
    return number_cell(value, word, runs)


def _sign(value: pd.Series, is_reference: bool, word: str, base_word: str) -> str:
    if is_reference:
        return "reference"
    if math.isnan(value["climb_avg_delta_large"]):
        return word
    if math.isnan(value["climb_avg_delta_base"]):
        return base_word
    return "yes" if value["climb_avg_delta_base"] * value["climb_avg_delta_large"] > 0 else "no"
