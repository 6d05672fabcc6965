"""Table 3: the same methods at the base and at the large scale; and how much of the order survives.

Source: transfer study, sections 5.1 and 5.2, Table 3.
"""

from __future__ import annotations

import math

import pandas as pd

from plumbline.cli import PlumblineError
from plumbline.results.published import Published, printed
from plumbline.results.runs import RunFrames
from plumbline.results.table import (
    CONTEXT,
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
from plumbline.stats import SpearmanResult, descending_ranks, signs_preserved, spearman
from plumbline.studies.transfer.tables.table2 import headline_runs

BASE, LARGE = "base", "large"


def columns(study: Study) -> list[Column]:
    """The table's columns, with the scales' labels under this preset."""
    base, large = study.scale_label(BASE), study.scale_label(LARGE)
    return [
        Column(name="method", header="Method", kind="label", readable=False),
        Column(name="label", header="Method", kind="label"),
        Column(name="climb_avg_base", header=base, kind="reproduced", show=fixed(4)),
        Column(name="climb_avg_base_published", header="1.2B", kind="published"),
        Column(name="climb_avg_large", header=large, kind="reproduced", show=fixed(4)),
        Column(name="climb_avg_large_published", header="3B", kind="published"),
        Column(name="delta_base", header=f"Δ {base}", kind="reproduced", show=fixed(4, sign=True)),
        Column(name="delta_large", header=f"Δ {large}", kind="reproduced", show=fixed(4, sign=True)),
        Column(name="delta_large_published", header="Δ 3B", kind="published"),
        Column(name="rank_base", header=f"rank {base}", kind="reproduced"),
        Column(name="rank_base_published", header="rank 1.2B", kind="published"),
        Column(name="rank_large", header=f"rank {large}", kind="reproduced"),
        Column(name="rank_large_published", header="rank 3B", kind="published"),
        Column(name="sign_preserved", header="sign preserved", kind="reproduced"),
        Column(name="outcome", header="outcome", kind="fact"),
        Column(name="n_seeds_large", header="seeds", kind="fact"),
        *CONTEXT,
    ]


def two_scales(frames: RunFrames, study: Study) -> pd.DataFrame:
    """On the method: base and large CLIMB-avg, their deltas from the reference, ranks; NaN where there is none.

    At the base scale the reference is the mean of its seeds and ranks go over all methods; at the large scale every
    method is one seed, the reference too, and ranks go over the methods that completed.
    """
    reference = study.sheet["noise_floor"]["reference"]
    base_runs, large_runs = frames.select(BASE, study.methods), frames.select(LARGE, study.methods)
    base = pd.Series(
        {m: headline_runs(base_runs, m, reference)["climb_avg"].mean() for m in study.methods}, dtype=float
    )
    methods = [method for method in study.methods if method in set(large_runs["method"])]
    large = pd.Series({m: _first_seed(large_runs, m)["climb_avg"].mean() for m in methods}, dtype=float)
    frame = pd.DataFrame({"base": base.reindex(methods), "large": large}, index=pd.Index(methods, name="method"))
    frame["delta_base"] = frame["base"] - base.get(reference, math.nan)
    frame["delta_large"] = frame["large"] - large.get(reference, math.nan)
    frame["rank_base"] = descending_ranks(base).reindex(methods)
    frame["rank_large"] = descending_ranks(large)
    return frame


def _first_seed(runs: pd.DataFrame, method: str) -> pd.DataFrame:
    return runs[runs["method"] == method].sort_values("seed").head(1)


def table3(frames: RunFrames, study: Study, published: Published) -> Table:
    """One row for each method of the large scale, best first there; those without a value last."""
    reference = study.sheet["noise_floor"]["reference"]
    values, print3 = two_scales(frames, study), published.table("table3")
    base_runs, large_runs = frames.select(BASE, study.methods), frames.select(LARGE, study.methods)
    floor_base = tuple(headline_runs(base_runs, reference, reference).index)
    floor_large = tuple(_first_seed(large_runs, reference).index)
    rows = []
    for method in values.sort_values("large", ascending=False, kind="stable", na_position="last").index:
        value = values.loc[method]
        mine, all_large = _first_seed(large_runs, method), large_runs[large_runs["method"] == method]
        base_mine = headline_runs(base_runs, method, reference)
        word, base_word = absent(mine["outcome"]), absent(base_mine["outcome"])
        own, base_own = tuple(mine.index), tuple(base_mine.index)
        rows.append(
            {
                "method": Cell(method),
                "label": Cell(study.label(method)),
                "climb_avg_base": number(float(value["base"]), base_word, base_own),
                "climb_avg_base_published": Cell(printed(print3, method, "climb_avg_1p2b")),
                "climb_avg_large": number(float(value["large"]), word, own),
                "climb_avg_large_published": Cell(printed(print3, method, "climb_avg_3b")),
                "delta_base": number(float(value["delta_base"]), base_word, _both(base_own, floor_base)),
                "delta_large": number(float(value["delta_large"]), word, _both(own, floor_large)),
                "delta_large_published": Cell(printed(print3, method, "delta_3b")),
                "rank_base": _rank(value["rank_base"], base_word, base_runs.index),
                "rank_base_published": Cell(printed(print3, method, "rank_1p2b")),
                "rank_large": _rank(value["rank_large"], word, large_runs.index),
                "rank_large_published": Cell(printed(print3, method, "rank_3b")),
                "sign_preserved": Cell(
                    _sign(value, method == reference, word, base_word), _both(base_own, own, floor_base, floor_large)
                ),
                "outcome": Cell(joint_outcome(all_large["outcome"]), tuple(all_large.index)),
                "n_seeds_large": Cell(int((all_large["outcome"] == "completed").sum()), tuple(all_large.index)),
            }
            | context(study, LARGE, frames)
        )
    return Table(
        name="table3",
        title=f"CLIMB-avg at {study.scale_label(LARGE)} beside {study.scale_label(BASE)}.",
        study=study.name,
        preset=study.preset,
        key="method",
        columns=columns(study),
        rows=rows,
        notes=[
            "Δ at the large scale is from its single-seed baseline: it has no noise floor of its own.",
            *(f"{statistic}: {text}." for statistic, text in _sentences(values, reference)),
            *notes_of(study, frames, scores=True),
        ],
        published=published.shown("table3"),
    )


def improvers(values: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Methods above the reference at the base scale that completed at the large one (the document's seven)."""
    return values[(values["delta_base"] > 0) & values["large"].notna() & (values.index != reference)]


def failures(values: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Methods below the reference at the base scale that completed at the large one (the document's two)."""
    return values[(values["delta_base"] < 0) & values["large"].notna() & (values.index != reference)]


def rank_correlation(values: pd.DataFrame) -> SpearmanResult | None:
    """Spearman's rho between the scales; None for fewer than three methods."""
    try:
        return spearman(values["base"], values["large"])
    except PlumblineError:
        return None


def _sentences(values: pd.DataFrame, reference: str) -> list[tuple[str, str]]:
    up, down = improvers(values, reference), failures(values, reference)
    others = values[values.index != reference]
    said = []
    for name, part in (("improvers", up), ("all methods that completed both", others)):
        found = rank_correlation(part)
        if found is not None and not math.isnan(found.rho):
            how = "exact permutation" if found.exact else "random permutations"
            text = f"ρ = {found.rho:+.2f} over n = {found.n}, p = {probability(found.p_permutation)} ({how}), "
            said.append((f"Spearman of the {name}", text + f"{probability(found.p_t)} (t approximation)"))
    for name, part in (("improvers", up), ("methods below the baseline", down)):
        kept, n = signs_preserved(part["delta_base"], part["delta_large"])
        said.append((f"Signs preserved, {name}", f"{kept} of {n}"))
    return said


def _both(*keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for part in keys for key in part))


def _rank(rank: float, word: str, runs: pd.Index) -> Cell:
    shown = rank if math.isnan(rank) or rank % 1 else int(rank)
    return number(shown, word, runs)


def _sign(value: pd.Series, is_reference: bool, word: str, base_word: str) -> str:
    if is_reference:
        return "reference"
    if math.isnan(value["delta_large"]):
        return word
    if math.isnan(value["delta_base"]):
        return base_word
    return "yes" if value["delta_base"] * value["delta_large"] > 0 else "no"


RANK_COLUMNS = [
    Column(name="statistic", header="Statistic", kind="label"),
    Column(name="value", header="value", kind="reproduced", show=fixed(2)),
    Column(name="value_published", header="value", kind="published"),
    Column(name="n", header="n", kind="reproduced"),
    Column(name="n_published", header="n", kind="published"),
    Column(name="p_exact", header="p permutation", kind="reproduced", show=probability),
    Column(name="exact", header="all permutations", kind="fact"),
    Column(name="p_t", header="p t approximation", kind="reproduced", show=probability),
    Column(name="p_t_published", header="p t approximation", kind="published"),
    Column(name="methods", header="methods", kind="fact", readable=False),
    *CONTEXT,
]


def rank_transfer(frames: RunFrames, study: Study, published: Published) -> Table:
    """Section 5.2's numbers: rank correlations with exact and approximate p, and how many signs stay."""
    reference = study.sheet["noise_floor"]["reference"]
    values = two_scales(frames, study)
    up, down = improvers(values, reference), failures(values, reference)
    others = values[(values.index != reference) & values[["base", "large"]].notna().all(axis=1)]
    correlation, signs = published.claim("spearman_7"), published.claim("sign_preserved")
    missing = Cell("too few methods")
    rows = []
    for name, part, print_ in (
        ("spearman_improvers", up, tuple(str(correlation[name]) for name in ("rho", "n", "p"))),
        ("spearman_all", others, ("not printed",) * 3),
    ):
        found, runs = rank_correlation(part), _runs_of(frames, part.index, reference)
        row = {"statistic": Cell(name), "value": missing, "n": Cell(len(part), runs), "p_exact": missing}
        row |= {"exact": missing, "p_t": missing}
        if found is not None and not math.isnan(found.rho):
            row |= {"value": Cell(found.rho, runs), "p_exact": Cell(found.p_permutation, runs)}
            row |= {"exact": Cell("yes" if found.exact else "no"), "p_t": Cell(found.p_t, runs)}
        row |= {"value_published": Cell(print_[0]), "n_published": Cell(print_[1]), "p_t_published": Cell(print_[2])}
        rows.append(row | {"methods": Cell(" ".join(part.index))} | context(study, LARGE, frames))
    for name, part, print_ in (
        ("signs_improvers", up, str(signs["improvers"])),
        ("signs_failures", down, str(signs["failures"])),
    ):
        kept, n = signs_preserved(part["delta_base"], part["delta_large"])
        runs, no_test = _runs_of(frames, part.index, reference), Cell("no test")
        row = {"statistic": Cell(name), "value": Cell(kept, runs), "value_published": Cell(print_)}
        row |= {"n": Cell(n, runs), "n_published": Cell(print_), "p_exact": no_test, "exact": no_test, "p_t": no_test}
        row |= {"p_t_published": Cell("not printed"), "methods": Cell(" ".join(part.index))}
        rows.append(row | context(study, LARGE, frames))
    return Table(
        name="rank_transfer",
        title=f"What of the order at {study.scale_label(BASE)} is left at {study.scale_label(LARGE)}.",
        study=study.name,
        preset=study.preset,
        key="statistic",
        columns=RANK_COLUMNS,
        rows=rows,
        notes=[
            "Improvers and failures: methods above and below the baseline at the base scale that complete the large.",
            "Printed values: section 5.2.",
            *notes_of(study, frames, scores=True),
        ],
        published="config/studies/transfer/published/claims.yaml",
    )


def _runs_of(frames: RunFrames, methods: pd.Index, reference: str) -> tuple[str, ...]:
    return tuple(frames.runs[frames.runs["method"].isin([*methods, reference])].index)
