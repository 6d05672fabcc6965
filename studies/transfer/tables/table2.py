"""Makes Table 2: each method's distance from the baseline, in units of the baseline's noise floor; first what is
significant.

Source: transfer study, sections 3.3 and 4.1, Table 2. Columns that the paper lacks: what is significant, Holm and
Benjamini-Hochberg, the distance read as a prediction of one new run (Student's t with n - 1 degrees of freedom) under
each correction, the sampling error of the items, paired over them, and its test alone and with the seeds' spread
(`plumbline.stats.item_noise`), validation loss (its printed values are Table 7's), outcome, number of seeds, run ids.
"""

from __future__ import annotations

import math
from dataclasses import replace

from plumbline.published.printed_numbers import PrintedNumbers, read_printed
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.number_formats import PROBABILITY
from plumbline.results.tables.shared_columns import (
    OUTCOME,
    RUN_IDS,
    SEEDS,
    label_columns,
    make_table,
    number_column,
    text_column,
)
from plumbline.results.tables.table import (
    CONTEXT,
    Cell,
    Column,
    Table,
    list_published_cells,
    make_printed_cell,
    make_published_column,
    require_reference,
)
from plumbline.specs.corpus import REPRODUCTION
from plumbline.specs.study_config import Study
from plumbline.specs.yaml_files import PRESET_NOTES
from plumbline.stats.pooling import combine_estimates, wider_power, wider_spread_p
from plumbline.stats.significance import RULE

from ..base_scale_method_rows import BaseScaleMethodRows, base_scale_method_rows
from ..headline_runs import BASE, lead
from ..item_differences import accuracy_resolves, answers, chance_words, item_cells
from ..loss_differences import loss_cells, loss_columns, loss_floor, loss_lead
from ..protocol_error import sentence

#: Columns of accuracy that a terminal has room for: those of the paper's size, and those next to validation loss.
NARROW = ("significance", "climb_avg", "climb_avg_delta", "z", "z_published")
NARROW_BESIDE_LOSS = ("climb_avg",)

#: Columns of accuracy and of validation loss; those of its tests (`loss_columns`) stand after them at the paper's size,
#: before them elsewhere.
METRIC_COLUMNS = [
    text_column("significance", "significance"),
    number_column("climb_avg", "CLIMB-avg", ".4f", noise="climb_avg_sd_all_seeds"),
    make_published_column("climb_avg", "CLIMB-avg"),
    number_column("climb_avg_delta", "Δ", "+.4f"),
    make_published_column("climb_avg_delta", "Δ"),
    number_column("z", "z", "+.2f"),
    make_published_column("z", "z"),
    number_column("p", "p", PROBABILITY, readable=False),
    number_column("p_bonferroni", "p Bonferroni", PROBABILITY),
    make_published_column("p_bonferroni", "p Bonferroni"),
    number_column("p_holm", "p Holm", PROBABILITY),
    number_column("p_bh", "p BH", PROBABILITY),
    number_column("t_run_vs_seeds", "t, one run vs. seeds", "+.2f", readable=False),
    number_column("p_run_vs_seeds", "p, one run vs. seeds", PROBABILITY),
    number_column("p_run_vs_seeds_bonferroni", "p, one run vs. seeds, Bonferroni", PROBABILITY),
    number_column("p_run_vs_seeds_holm", "p, one run vs. seeds, Holm", PROBABILITY, readable=False),
    number_column("p_run_vs_seeds_bh", "p, one run vs. seeds, BH", PROBABILITY, readable=False),
    number_column("se_items", "SE (items)", ".4f"),
    number_column("t_items", "t, paired items", "+.2f", readable=False),
    number_column("df_items", "df (items)", ".1f", readable=False),
    number_column("p_items", "p, items", PROBABILITY, readable=False),
    number_column("p_items_bonferroni", "p, items Bonferroni", PROBABILITY),
    number_column("t_seeds_and_items", "t, seeds and items", "+.2f", readable=False),
    number_column("p_seeds_and_items", "p, seeds and items", PROBABILITY),
    number_column("p_seeds_and_items_bonferroni", "p, seeds and items Bonferroni", PROBABILITY),
    number_column("p_pooled_seeds_and_items", "p, seeds and items, pooled σ", PROBABILITY, readable=False),
    number_column("p_pooled_seeds_and_items_bonferroni", "p, seeds and items, pooled σ, Bonferroni", PROBABILITY),
    text_column("significance_pooled", "significance, pooled σ"),
    number_column("baseline_seeds_to_decide", "baseline seeds that would decide", "d"),
    number_column("validation_loss", "val. loss", ".4f"),
    make_published_column("validation_loss", "val. loss", readable=False),
]

FACT_COLUMNS = [
    OUTCOME,
    SEEDS,
    Column(name="runs_averaged", header="runs averaged", kind="fact", readable=False),
    number_column("climb_avg_all_seeds", "mean of all seeds", ".4f", readable=False),
    number_column("climb_avg_sd_all_seeds", "sd over all seeds", ".5f", readable=False),
    RUN_IDS,
    Column(name="category", header="category", kind="fact", readable=False),
    *CONTEXT,
]


#: What stands above it at demo size in place of the note that other tables have.
DEMO = (
    "The paper's experiment on tiny models: what they tell apart holds of this size and budget alone, and is no "
    "evidence about the methods at the paper's."
)


def columns(study: Study) -> list[Column]:
    """Validation loss leads where the size is not the paper's; accuracy leads where it is."""
    at_paper_size = study.preset == REPRODUCTION
    narrow = NARROW if at_paper_size else NARROW_BESIDE_LOSS
    loss = loss_columns(lead=not at_paper_size)
    accuracy = [replace(column, narrow=column.name in narrow) for column in METRIC_COLUMNS]
    first = [*accuracy, *loss] if at_paper_size else [*loss, *accuracy]
    return [*label_columns("method", "Method"), *first, *FACT_COLUMNS]


def table2(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """All methods of the study, best first by CLIMB-avg (at the paper's size) or by validation loss (elsewhere); rows
    without a value last."""
    reference = require_reference(study, "table2")
    at_paper_size = study.preset == REPRODUCTION
    rows = base_scale_method_rows(frames, study, reference)
    behind = answers(frames, rows.floor_runs.index)
    by_item = item_cells(frames, study, reference, behind, rows)
    by_loss = loss_cells(frames, study, reference, rows)
    print2, print7 = published.table("table2"), published.table("table7")
    cells = [
        row
        | by_item[method]
        | by_loss[method]
        | {
            "p_bonferroni_published": make_printed_cell(
                read_printed(print2, method, "p_bonf"), bound=read_printed(print2, method, "p_bonf_bound")
            )
        }
        | list_published_cells(print2, method, {"climb_avg": "climb_avg", "climb_avg_delta": "delta", "z": "z"})
        | list_published_cells(print7, method, {"validation_loss": "val_loss"}, source=published.format_path("table7"))
        for method, row in rows.cells.items()
    ]
    accuracy = lead(study, cells, chance_words(frames, study, behind), accuracy_resolves(rows, by_item, study.m))
    loss = loss_lead(study, cells, loss_floor(frames, study, reference))
    if not at_paper_size:
        cells.sort(key=_by_loss)
    return make_table(
        "table2",
        f"Main results at {study.scale_label(BASE)}, sorted by {'CLIMB-avg' if at_paper_size else 'validation loss'}.",
        study,
        key="method",
        columns=columns(study),
        rows=cells,
        notes=[*_notes(study, rows, study.label(reference)), *_note_on_proxies(frames)],
        published=published.format_path("table2"),
        warnings=accuracy if at_paper_size else [*loss, *accuracy],
        scores=frames,
        demo=DEMO if loss else PRESET_NOTES["demo"],
    )


def _by_loss(row: dict[str, Cell]) -> float:
    value = row["validation_loss"].value
    return float(value) if value is not None else math.inf


def _note_on_proxies(frames: RunFrames) -> list[str]:
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
        *_note_on_pooling(rows),
        *([sentence(study.m, floor.n)] if floor.usable else []),
    ]


def _note_on_pooling(rows: BaseScaleMethodRows) -> list[str]:
    """The second reading of the noise floor, and the test next to it."""
    if len(rows.spreads) < 2:
        return []
    own, others = rows.spreads[0], combine_estimates(*rows.spreads[1:])
    whole, p, power = (
        combine_estimates(*rows.spreads),
        wider_spread_p(own, others),
        wider_power(own.df, others.df, times=3),
    )
    tested = "cannot be tested: the others do not spread" if math.isnan(p) else f"has p = {p:.2g} (one-sided F)"
    return [
        f"Pooled σ {whole.sigma:.5f} with {whole.df} degrees of freedom, over {len(rows.spreads)} methods with seeds "
        "(interpretation pooled_sigma): significance, pooled σ, is by the same rule. That the reference spreads no "
        f"more than the others {tested}; a test of so few seeds sees a threefold spread in {power:.0%} of cases. "
        "Baseline seeds that would decide: the fewest at which p, seeds and items, would be at most 0.05 after "
        "Bonferroni, were Δ and the reference's own σ what they are now."
    ]
