"""Draws Figure 3: each method's distance from the baseline on each task.

Source: transfer study, Figure 3 (appendix E).
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from matplotlib.colors import TwoSlopeNorm

from plumbline.audit.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, label_of, styled
from plumbline.results.runs.finished_runs import DIVERGED, MISSING, RunFrames
from plumbline.results.tables.table import reference_of, task_source
from plumbline.specs.study_config import Study

from ..headline_runs import BASE, base_values, best_first
from ..task_differences import deltas, tasks_of


@styled
def fig3(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Each method's distance from the baseline on each task, in points of accuracy, methods best first."""
    reference, tasks = reference_of(study, "fig3"), tasks_of(frames, study, published)
    order = best_first(base_values(frames, study, reference))
    values = deltas(frames, study, tasks, reference).loc[order]
    points = 100 * values.to_numpy(dtype=float)
    runs = frames.select(BASE, study.methods)
    figure, axes = figure_style.canvas(figure_style.PAGE, 5.6)
    there = np.abs(points[np.isfinite(points)])
    # One cell far out must not bleach the others: beyond the bound colour saturates, the number still tells.
    bound = float(np.quantile(there, 0.8)) if there.size and there.max() > 0 else 1.0
    bound = max(bound, 1e-9)
    shades = mpl.colormaps["RdBu"].with_extremes(bad="#EEEEEE")
    image = axes.imshow(np.ma.masked_invalid(points), cmap=shades, norm=TwoSlopeNorm(0.0, -bound, bound), aspect="auto")
    for (row, column), value in np.ndenumerate(points):
        if np.isfinite(value):
            dark = abs(value) > 0.62 * bound
            shown = f"{value:+.1f}" if abs(value) < 99.5 else f"{value:+.0f}"
            shown = "0.0" if shown in ("+0.0", "-0.0") else shown.replace("-", "−")
            axes.text(column, row, shown, ha="center", va="center", fontsize=6, color="white" if dark else "black")
    for row, method in enumerate(values.index):
        if not np.isfinite(points[row]).any():
            outcomes = set(runs[runs["method"] == method].sort_values("seed")["outcome"].head(1))
            word = DIVERGED if DIVERGED in outcomes else MISSING
            axes.text((len(tasks) - 1) / 2, row, word, ha="center", va="center", fontsize=7, color=figure_style.GREY)
    axes.set_xticks(range(len(tasks)), [task.replace("_", " ") for task in tasks], rotation=38, ha="right")
    axes.set_yticks(range(len(values)), [label_of(study, method) for method in values.index])
    axes.grid(False)
    axes.set_xticks(np.arange(len(tasks) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(values) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=axes, extend="both", shrink=0.7, pad=0.015)
    bar.set_label(f"distance from the baseline (points of accuracy; colour ends at ±{bound:.1f})")
    bar.outline.set_linewidth(0.5)
    source = task_source(frames)
    figure_style.name_preset(
        axes, study, "Per-task distance from the baseline, methods by CLIMB-avg", BASE, extra=f"items: {source}"
    )
    long = values.rename_axis("method").reset_index().melt("method", var_name="task", value_name="score_minus_baseline")
    long["missing_reason"] = ["" if np.isfinite(value) else "no value" for value in long["score_minus_baseline"]]
    return FigureWithData(figure, long.assign(preset=study.preset_named))
