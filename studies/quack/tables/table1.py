"""Makes Table 1: final held-out loss by attention, method and base rate, with every tau.

Source: quack study, "Key Results" and "First 3 experiments", which print no losses.
"""

from __future__ import annotations

import math

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.shared_columns import FACTS, label_columns, make_table, number_column, text_column
from plumbline.results.tables.table import Cell, Column, Table, number_cell
from plumbline.specs.study_config import Study

from ..run_cells import ATTENTION_COLUMN, BEST_NOTE, STABLE_NOTE, loss, row_facts
from ..run_grid import ATTENTION, RunGrid

NO_TAU = "no tau"


def table1(frames: RunFrames, study: Study, published: PrintedNumbers) -> Table:
    """One row for each attention, method and base rate."""
    grid = RunGrid(frames, study)
    rows = [
        _row(grid, scale, method, eta) for scale in grid.scales for method in grid.methods(scale) for eta in grid.etas
    ]
    scales = " and ".join(study.scale_label(scale) for scale in grid.scales)
    return make_table(
        "table1",
        f"Final held-out loss (nats a token) by attention, method and base rate: {scales}.",
        study,
        key="setting",
        columns=columns(grid),
        rows=rows,
        notes=[BEST_NOTE, *_at_an_end(grid), STABLE_NOTE, *_describe_stable_runs(grid)],
    )


def columns(grid: RunGrid) -> list[Column]:
    """The table's columns, one for each tau among them."""
    return [
        *label_columns("setting", "Method"),
        ATTENTION_COLUMN,
        Column(name="method", header="method", kind="label", readable=False),
        Column(name="base_lr", header="base LR", kind="label", format="g", narrow=True),
        number_column("validation_loss_best_tau", "loss", ".3f", narrow=True),
        number_column("best_tau", "best tau", "g", narrow=True),
        *(number_column(_tau_column(tau), f"tau {tau:g}", ".3f", narrow=True) for tau in grid.taus),
        text_column("best_tau_grid_position", "best tau in its grid"),
        text_column("stable", "stable", narrow=True),
        text_column("diverged_or_spiked", "diverged or spiked"),
        number_column("largest_loss_rise", "largest loss rise", ".3f"),
        number_column("loss_spikes", "loss spikes", "d"),
        *FACTS,
    ]


def _tau_column(tau: float) -> str:
    return f"validation_loss_tau_{tau:g}"


def _row(grid: RunGrid, scale: str, method: str, eta: float) -> dict[str, Cell]:
    keys, best = grid.keys(scale, method, eta), grid.find_best_run(scale, method, eta)
    tuned = None not in grid.taus_of(method)
    behind, mine = tuple(keys.values()), () if best is None else (best,)
    rise = math.nan if best is None else grid.rise(best)
    troubles = {tau: grid.trouble(key) for tau, key in keys.items()}
    trouble_texts = [f"tau {tau:g}: {word}" if tau is not None else word for tau, word in troubles.items() if word]
    outcome = grid.outcome(best)
    cells = {
        "setting": Cell(f"{scale}/{method}/{eta:g}"),
        "label": Cell(f"{ATTENTION[scale]} {grid.study.definition['methods'][method]['label']}"),
        "attention": Cell(ATTENTION[scale]),
        "method": Cell(method),
        "base_lr": Cell(eta),
        "validation_loss_best_tau": number_cell(grid.loss(best), outcome, behind),
        "best_tau": number_cell(
            grid.tau(best) if outcome == "completed" else math.nan, outcome if tuned else NO_TAU, behind
        ),
        "best_tau_grid_position": Cell(_place(grid, best), behind),
        "stable": Cell(_word(grid, best), mine),
        "diverged_or_spiked": Cell("; ".join(trouble_texts) or "none", behind),
        "largest_loss_rise": number_cell(
            rise if math.isfinite(rise) else math.nan, "not read" if math.isnan(rise) else "not finite", mine
        ),
        "loss_spikes": number_cell(None if best is None else grid.spikes(best), outcome, mine),
    }
    for tau in grid.taus:
        cells[_tau_column(tau)] = loss(grid, keys.get(tau)) if tuned else Cell(None, word="")
    return cells | row_facts(grid, scale, behind, best)


def _word(grid: RunGrid, key: str | None) -> str:
    """yes, no, diverged or missing."""
    outcome = grid.outcome(key)
    if key is None or outcome != "completed":
        return outcome
    return "yes" if grid.stable(key) else "no"


def _place(grid: RunGrid, key: str | None) -> str:
    """Whether a best tau is the grid's lowest or highest, so that a better one may lie beyond it."""
    tau = grid.tau(key)
    if math.isnan(tau) or grid.outcome(key) != "completed":
        return ""
    return {grid.taus[0]: "lowest", grid.taus[-1]: "highest"}.get(tau, "inside")


def _at_an_end(grid: RunGrid) -> list[str]:
    """How many best taus are at an end of their grid."""
    chosen = [
        _place(grid, grid.find_best_run(scale, method, eta))
        for scale in grid.scales
        for method in grid.methods(scale)
        for eta in grid.etas
    ]
    tuned = [place for place in chosen if place]
    ends = sum(place != "inside" for place in tuned)
    sentence = (
        f"Of {len(tuned)} best taus {ends} are the lowest or highest of the grid: a better one may lie beyond it."
    )
    return [sentence] if ends else []


def _describe_stable_runs(grid: RunGrid) -> list[str]:
    """How many of the runs are stable at each base rate, in numbers."""
    sentences = []
    for scale in grid.scales:
        shares = []
        for eta in grid.etas:
            keys = [key for method in grid.methods(scale) for key in grid.keys(scale, method, eta).values()]
            there = [key for key in keys if grid.outcome(key) != "missing"]
            shares.append(f"{sum(map(grid.stable, there))} of {len(there)} at {eta:g}")
        sentences.append(f"Stable runs, {ATTENTION[scale]}: {', '.join(shares)}.")
    return sentences
