"""Draws Figure 1: held-out loss over training, for each attention and base rate.

Source: quack study, Mechanism 2 (section 4 and figure 2 of the paper that it sums up).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.core.run_files import DIVERGED
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..run_grid import ATTENTION, RunGrid
from ._panels import colour, curve, legend, list_absent, note, over_training, panel_title, title

#: The share of training before which curves are steep and alike, and which does not set the limits.
EARLY = 0.15


@with_house_style
def fig1(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """One row of panels for each attention, one column for each base rate; of a method with a tau the best one."""
    grid = RunGrid(frames, study)
    figure = Figure(figsize=(figure_style.PAGE, 1.0 + 2.25 * max(1, len(grid.scales))))
    rows: list[dict[str, object]] = []
    panels = figure.subplots(max(1, len(grid.scales)), max(1, len(grid.etas)), sharex=True, sharey="row", squeeze=False)
    for scale, across in zip(grid.scales, panels, strict=False):
        late = []
        for eta, axes in zip(grid.etas, across, strict=True):
            panel_rows, panel_losses = _panel(axes, grid, scale, eta)
            rows += panel_rows
            late += panel_losses
        if late:
            room = 0.06 * (max(late) - min(late)) or 0.1
            across[0].set_ylim(min(late) - room, max(late) + room)
        across[0].set_ylabel("validation loss (nats per token)")
    over_training(panels[-1], grid)
    cross = Line2D([], [], color=figure_style.GREY, marker="x", linestyle="none", markersize=6, label="diverged")
    ended = any(grid.outcome(key) == DIVERGED for key in {str(row["run"]) for row in rows})
    legend(figure, grid, [cross] if ended else [])
    title(figure, grid, "Validation loss over training; of QuacK and the ablation the best tau at each base rate")
    columns = ["run", "attention", "method", "base_lr", "tau", "step", "validation_loss"]
    return FigureWithData(figure, pd.DataFrame(rows, columns=columns).assign(preset=study.preset_named))


def _panel(axes: Axes, grid: RunGrid, scale: str, eta: float) -> tuple[list[dict[str, object]], list[float]]:
    """Draws the curves; returns the plotted points, and the losses that limits are set by."""
    rows, late = [], []
    curves: dict[str, pd.Series] = {}
    for method in grid.methods(scale):
        key = grid.find_best_run(scale, method, eta)
        steps, losses = grid.validation_curve(key)
        steps, losses = steps[np.isfinite(losses)], losses[np.isfinite(losses)]
        if key is None or not steps.size:
            continue
        curves[method] = pd.Series(losses, index=steps)
        axes.plot(steps, losses, **curve(method, len(steps)))
        if grid.outcome(key) == DIVERGED:
            axes.plot(steps[-1], losses[-1], "x", color=colour(method), markersize=7, markeredgewidth=1.8, zorder=5)
        late_losses = losses[steps >= EARLY * grid.spec(key).train.steps]
        late += (late_losses if late_losses.size else losses).tolist()
        entry = {"run": key, "attention": ATTENTION[scale], "method": method, "base_lr": eta, "tau": grid.tau(key)}
        rows += [entry | {"step": int(a), "validation_loss": float(b)} for a, b in zip(steps, losses, strict=True)]
    panel_title(axes, grid, scale, eta, curves)
    note(axes, list_absent(grid, scale, eta, drawn_methods=curves))
    return rows, late
