"""Draws Figure 2: final held-out loss against the base rate, for each attention; every tau, and what diverged.

Source: quack study, Mechanism 2 (section 4 of the paper that it sums up).
"""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.core.run_files import COMPLETED, DIVERGED
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..run_grid import ATTENTION, RunGrid
from ._panels import best_taus, colour, legend, mark, title

#: Methods stand side by side at a base rate, this many decades apart.
APART = 0.045


@with_house_style
def fig2(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """A panel for each attention: the best tau's loss joined by lines, every other tau as a small mark; hollow marks
    are runs that completed and were not stable, crosses at the upper edge runs that diverged."""
    grid = RunGrid(frames, study)
    figure = Figure(figsize=(figure_style.PAGE, 3.5))
    panels = figure.subplots(1, max(1, len(grid.scales)), sharey=True, squeeze=False)[0]
    rows: list[dict[str, object]] = []
    for scale, axes in zip(grid.scales, panels, strict=False):
        rows += _panel(axes, grid, scale)
    # Crosses stand at the upper edge of all panels, which is known when everything else is drawn.
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high + 0.1 * (high - low))
    for scale, axes in zip(grid.scales, panels, strict=False):
        top = high + 0.05 * (high - low)
        for row in rows:
            if row["attention"] == ATTENTION[scale] and row["outcome"] == DIVERGED:
                look = {"color": colour(str(row["method"])), "markersize": 6 if row["is_best_tau"] else 4}
                axes.plot(row["plotted_at_lr"], top, "x", markeredgewidth=1.5 if row["is_best_tau"] else 0.8, **look)
        axes.set_xlabel("base learning rate, and the best tau at it")
        axes.set_title(ATTENTION[scale], fontsize=8)
    panels[0].set_ylabel("final loss (nats per token)")
    grey = {"color": figure_style.GREY, "linestyle": "none"}
    completed = [row for row in rows if row["outcome"] == COMPLETED]
    keys: dict[str, tuple[dict[str, object], bool]] = {
        "not stable": ({"marker": "o", "markersize": 4, "mfc": "none"}, any(not row["stable"] for row in completed)),
        "diverged": ({"marker": "x", "markersize": 6}, any(row["outcome"] == DIVERGED for row in rows)),
        "other taus": (
            {"marker": ".", "markersize": 4, "alpha": 0.6},
            any(not row["is_best_tau"] for row in completed),
        ),
    }
    extra = [Line2D([], [], label=label, **grey, **look) for label, (look, is_drawn) in keys.items() if is_drawn]
    legend(figure, grid, extra, marks=True)
    title(figure, grid, "Final validation loss against the base rate")
    columns = [
        "run",
        "attention",
        "method",
        "base_lr",
        "tau",
        "is_best_tau",
        "outcome",
        "stable",
        "validation_loss",
        "plotted_at_lr",
    ]
    return FigureWithData(figure, pd.DataFrame(rows, columns=columns).assign(preset=study.preset_named))


def _panel(axes: Axes, grid: RunGrid, scale: str) -> list[dict[str, object]]:
    axes.set_xscale("log")
    rows, missing = [], 0
    methods = grid.methods(scale)
    for number, method in enumerate(methods):
        shift = 10 ** (APART * (number - (len(methods) - 1) / 2))
        line = []
        for eta in grid.etas:
            best = grid.find_best_run(scale, method, eta)
            for tau, key in grid.keys(scale, method, eta).items():
                outcome, loss, x = grid.outcome(key), grid.loss(key), eta * shift
                missing += outcome not in (COMPLETED, DIVERGED)
                chosen, stable = key == best, outcome == COMPLETED and grid.stable(key)
                place = {
                    "run": key,
                    "attention": ATTENTION[scale],
                    "method": method,
                    "base_lr": eta,
                    "plotted_at_lr": x,
                }
                place |= {"tau": math.nan if tau is None else tau, "is_best_tau": chosen, "outcome": outcome}
                rows.append(place | {"stable": stable, "validation_loss": loss})
                if outcome != COMPLETED:
                    continue
                line += [(x, loss)] if chosen else []
                face = {"mfc": colour(method) if stable else "white", "mec": colour(method), "linestyle": "none"}
                size = {"marker": mark(method), "markersize": 5} if chosen else {"marker": "o", "markersize": 2.4}
                axes.plot(x, loss, **face, **size, alpha=1.0 if chosen else 0.55, zorder=4 if chosen else 3)
        axes.plot([x for x, _ in line], [loss for _, loss in line], color=colour(method), linewidth=1.0, zorder=2)
    ticks = ["\n".join([f"{eta:g}", *(f"τ {best}" for best in best_taus(grid, scale, eta))]) for eta in grid.etas]
    axes.set_xticks(grid.etas, ticks)
    axes.minorticks_off()
    if grid.etas:
        axes.set_xlim(grid.etas[0] / 1.8, grid.etas[-1] * 1.8)
    figure_style.note_absent(axes, [f"missing: {missing} runs"] if missing else [])
    return rows
