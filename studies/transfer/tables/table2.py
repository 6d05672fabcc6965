"""Makes Table 2: each method's distance from the baseline, in units of the baseline's noise floor; first what is
significant.

Source: transfer study, sections 3.3 and 4.1, Table 2. Columns that the paper lacks: what is significant, Holm and
Benjamini-Hochberg, the distance read as a prediction of one new run (Student's t with n - 1 degrees of freedom) under
each correction, the sampling error of the items, paired over them, and its test alone and with the seeds' spread
(`plumbline.stats.item_noise`), validation loss, outcome, number of seeds, run ids.
"""

from __future__ import annotations

import math

from plumbline.audit.printed_numbers import PrintedNumbers, printed
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import OUTCOME, RUN_IDS, SEEDS, labels, make_table, ours, said
from plumbline.results.tables.table import (
    CONTEXT,
    Column,
    Table,
    from_print,
    printed_cells,
    published_column,
    reference_of,
)
from plumbline.specs.study_config import Study
from plumbline.stats.pooling import together, wider, wider_power
from plumbline.stats.significance import RULE

from ..base_scale_method_rows import BaseScaleMethodRows, base_scale_method_rows
from ..headline_runs import BASE, lead
from ..item_differences import answers, guessed, item_cells
from ..protocol_error import sentence

COLUMNS = [
    *labels("method", "Method"),
    said("significance", "significance", narrow=True),
    ours("climb_avg", "CLIMB-avg", ".4f", narrow=True, noise="climb_avg_sd_all_seeds"),
    published_column("climb_avg", "CLIMB-avg"),
    ours("climb_avg_delta", "Δ", "+.4f", narrow=True),
    published_column("climb_avg_delta", "Δ"),
    ours("z", "z", "+.2f", narrow=True),
    published_column("z", "z", narrow=True),
    ours("p", "p", PROBABILITY, readable=False),
    ours("p_bonferroni", "p Bonferroni", PROBABILITY),
    published_column("p_bonferroni", "p Bonferroni"),
    ours("p_holm", "p Holm", PROBABILITY),
    ours("p_bh", "p BH", PROBABILITY),
    ours("t_run_vs_seeds", "t, one run vs. seeds", "+.2f", readable=False),
    ours("p_run_vs_seeds", "p, one run vs. seeds", PROBABILITY),
    ours("p_run_vs_seeds_bonferroni", "p, one run vs. seeds, Bonferroni", PROBABILITY),
    ours("p_run_vs_seeds_holm", "p, one run vs. seeds, Holm", PROBABILITY, readable=False),
    ours("p_run_vs_seeds_bh", "p, one run vs. seeds, BH", PROBABILITY, readable=False),
    ours("se_items", "SE (items)", ".4f"),
    ours("t_items", "t, paired items", "+.2f", readable=False),
    ours("df_items", "df (items)", ".1f", readable=False),
    ours("p_items", "p, items", PROBABILITY, readable=False),
    ours("p_items_bonferroni", "p, items Bonferroni", PROBABILITY),
    ours("t_seeds_and_items", "t, seeds and items", "+.2f", readable=False),
    ours("p_seeds_and_items", "p, seeds and items", PROBABILITY),
    ours("p_seeds_and_items_bonferroni", "p, seeds and items Bonferroni", PROBABILITY),
    ours("p_pooled_seeds_and_items", "p, seeds and items, pooled σ", PROBABILITY, readable=False),
    ours("p_pooled_seeds_and_items_bonferroni", "p, seeds and items, pooled σ, Bonferroni", PROBABILITY),
    said("significance_pooled", "significance, pooled σ"),
    ours("baseline_seeds_to_decide", "baseline seeds that would decide", "d"),
    ours("validation_loss", "val. loss", ".4f"),
    published_column("validation_loss", "val. loss", readable=False),
    OUTCOME,
    SEEDS,
    Column(name="runs_averaged", header="runs averaged", kind="fact", readable=False),
    ours("climb_avg_all_seeds", "mean of all seeds", ".4f", readable=False),
    ours("climb_avg_sd_all_seeds", "sd over all seeds", ".5f", readable=False),
    RUN_IDS,
    Column(name="category", header="category", kind="fact", readable=False),
    *CONTEXT,
]


def table2(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """All methods of the study, best CLIMB-avg first, the rows without a value last."""
    reference = reference_of(study, "table2")
    rows = base_scale_method_rows(frames, study, reference)
    behind = answers(frames, rows.floor_runs.index)
    by_item = item_cells(frames, study, reference, behind, rows)
    print2, print7 = published.table("table2"), published.table("table7")
    cells = [
        row
        | by_item[method]
        | {
            "p_bonferroni_published": from_print(
                printed(print2, method, "p_bonf"), bound=printed(print2, method, "p_bonf_bound")
            )
        }
        | printed_cells(print2, method, {"climb_avg": "climb_avg", "climb_avg_delta": "delta", "z": "z"})
        | printed_cells(print7, method, {"validation_loss": "val_loss"})
        for method, row in rows.cells.items()
    ]
    return make_table(
        "table2",
        f"Main results at {study.scale_label(BASE)}, sorted by CLIMB-avg.",
        study,
        key="method",
        columns=COLUMNS,
        rows=cells,
        notes=[*_notes(study, rows, study.label(reference)), *_of_proxies(frames)],
        published=published.shown("table2"),
        warnings=lead(study, cells, guessed(frames, study, behind)),
        scores=frames,
    )


def _of_proxies(frames: RunFrames) -> list[str]:
    """What SE (items) takes for granted, and items made here have not."""
    if all(source == "benchmark" for source in frames.task_sources.values()):
        return []
    return [
        "Proxies of different tasks are made from the same held-out sentences, and SE (items) takes the items of "
        "different tasks as independent: it is slightly too small, and so are p, items and p, seeds and items."
    ]


def _notes(study: Study, rows: BaseScaleMethodRows, label: str) -> list[str]:
    floor = rows.floor
    if floor.usable:
        floor_note = f"{label}: mean {floor.mean:.4f}, unbiased σ {floor.sigma:.5f} over {floor.n} seeds."
    else:
        floor_note = f"{label}: {floor.n} seeds with a value give no noise floor."
    if floor.missing:
        floor_note += f" {floor.missing} of its {len(rows.floor_runs)} seeds have no value and do not enter."
    freedom = f" with {floor.n - 1} degrees of freedom" if floor.usable else ""
    return [
        floor_note + " Its row is the mean of its seeds; every other row is its first seed, as in the paper.",
        RULE,
        f"Δ = x − mean, z = Δ/σ, p two-sided normal, corrected for m = {study.m} methods; p, one run vs. "
        f"seeds, reads the same Δ as the prediction of one new run, Δ/(σ√(1 + 1/n)), Student's t{freedom}.",
        "SE (items): standard error of Δ over items, from differences item by item between the method's run and the "
        "mean of the reference's seeds; p, items: these runs on other items; p, seeds and items: both other, "
        f"Δ/√(items² + σ²(1 + 1/n)), Student's t{freedom}; what seeds owe to single items is in both terms, so that "
        "it errs to the careful side.",
        *_of_pooling(rows),
        *([sentence(study.m, floor.n)] if floor.usable else []),
    ]


def _of_pooling(rows: BaseScaleMethodRows) -> list[str]:
    """The second reading of the noise floor, and the test beside it."""
    if len(rows.spreads) < 2:
        return []
    own, others = rows.spreads[0], together(*rows.spreads[1:])
    whole, p, power = together(*rows.spreads), wider(own, others), wider_power(own.df, others.df, times=3)
    tested = "cannot be tested: the others do not spread" if math.isnan(p) else f"has p = {p:.2g} (one-sided F)"
    return [
        f"Pooled σ {whole.sigma:.5f} with {whole.df} degrees of freedom, over {len(rows.spreads)} methods with seeds "
        "(interpretation pooled_sigma): significance, pooled σ, is by the same rule. That the reference spreads no "
        f"more than the others {tested}; a test of so few seeds sees a threefold spread in {power:.0%} of cases. "
        "Baseline seeds that would decide: the fewest at which p, seeds and items, would be at most 0.05 after "
        "Bonferroni, were Δ and the reference's own σ what they are now."
    ]
