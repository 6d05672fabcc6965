"""Draws Figure 3: each method's distance from the baseline on each task.

Source: transfer study, Figure 3 (appendix E).
"""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm

from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, format_label, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import describe_task_source, require_reference
from plumbline.specs.study_config import Study
from plumbline.stats.noise_floor import noise_floor, two_sided_t

from ..headline_runs import BASE, base_values, best_first, headline_runs
from ..task_differences import deltas, list_tasks

#: The level of a mark.
LEVEL = 0.05


@with_house_style
def fig3(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Each method's distance from the baseline on each task, in points of accuracy, methods best first."""
    reference, tasks = require_reference(study, "fig3"), list_tasks(frames, study, published)
    order = best_first(base_values(frames, study, reference))
    values = deltas(frames, study, tasks, reference).loc[order]
    points = 100 * values.to_numpy(dtype=float)
    runs = frames.select(BASE, study.methods)
    figure, axes = figure_style.make_canvas(figure_style.PAGE, 6.2)
    bound, outside = _bound(np.abs(points[np.isfinite(points)]))
    p = _p_of_cells(frames, study, tasks, reference, list(values.index))
    cells = int(p.notna().to_numpy().sum())
    shades = mpl.colormaps["RdBu"].with_extremes(bad="#EEEEEE")
    image = axes.imshow(np.ma.masked_invalid(points), cmap=shades, norm=TwoSlopeNorm(0.0, -bound, bound), aspect="auto")
    for (row, column), value in np.ndenumerate(points):
        if np.isfinite(value):
            dark = abs(value) > 0.62 * bound
            text = f"{value:+.1f}" if abs(value) < 99.5 else f"{value:+.0f}"
            text = "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")
            stars = _stars(float(p.iloc[row, column]), cells)
            axes.text(column, row, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
            place = {"ha": "right", "va": "center", "fontsize": 7, "fontweight": "bold"}
            axes.text(column + 0.5, row - 0.27, stars, color="white" if dark else "black", **place)
    for row, method in enumerate(values.index):
        if not np.isfinite(points[row]).any():
            outcomes = set(runs[runs["method"] == method].sort_values("seed")["outcome"].head(1))
            word = DIVERGED if DIVERGED in outcomes else MISSING
            axes.text((len(tasks) - 1) / 2, row, word, ha="center", va="center", fontsize=7, color=figure_style.GREY)
    axes.set_xticks(range(len(tasks)), [task.replace("_", " ") for task in tasks], rotation=38, ha="right")
    axes.set_yticks(range(len(values)), [format_label(study, method) for method in values.index])
    axes.grid(False)
    axes.set_xticks(np.arange(len(tasks) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(values) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=axes, extend="both" if outside else "neither", shrink=0.7, pad=0.015)
    ends = f"; colour ends at ±{bound:.1f}" if outside else ""
    bar.set_label(f"distance from the baseline (points of accuracy{ends})")
    bar.outline.set_linewidth(0.5)
    source = describe_task_source(frames)
    figure_style.set_preset_title(
        axes, study, "Per-task distance from the baseline, methods by CLIMB-avg", BASE, extra=f"items: {source}"
    )
    axes.set_xlabel(_key(cells), fontsize=7.5, loc="left")
    long = values.rename_axis("method").reset_index().melt("method", var_name="task", value_name="score_minus_baseline")
    long["missing_reason"] = ["" if np.isfinite(value) else "no value" for value in long["score_minus_baseline"]]
    long["p_run_vs_seeds"] = p.to_numpy().T.ravel()
    long["mark"] = [_stars(float(p_value), cells) for p_value in long["p_run_vs_seeds"]]
    return FigureWithData(figure, long.assign(preset=study.preset_named))


def _bound(sizes: np.ndarray) -> tuple[float, bool]:
    """Where the colours end, and whether a value lies beyond: at the largest one, unless few are far larger than all
    others and would bleach them; their numbers still tell.
    """
    if not sizes.size or sizes.max() == 0:
        return 1.0, False
    most, usual = float(sizes.max()), float(np.quantile(sizes, 0.95))
    return (usual, True) if 0 < 2 * usual < most else (most, False)


def _p_of_cells(frames: RunFrames, study: Study, tasks: list[str], reference: str, methods: list[str]) -> pd.DataFrame:
    """Methods x tasks: two-sided p of the method's first seed as one more of the reference's seeds (prediction t);
    NaN if there is none.
    """
    runs = frames.select(BASE, study.methods)

    def scores(method: str) -> list[pd.Series]:
        read = [frames.task_scores(str(key)) for key in headline_runs(runs, method, reference).index]
        return [series.astype(float).reindex(tasks) for series in read if len(series)]

    p_values = pd.DataFrame(math.nan, index=methods, columns=tasks)
    seeds = scores(reference)
    for task in tasks if len(seeds) > 1 else []:
        floor = noise_floor([float(task_scores[task]) for task_scores in seeds])
        for method in methods if floor.usable else []:
            if method != reference and (own := scores(method)):
                p_values.loc[method, task] = float(two_sided_t(floor.prediction(float(own[0][task])), floor.n - 1))
    return p_values


def _stars(p: float, cells: int) -> str:
    """Two where a cell survives the correction for all cells, one where it stands out by itself."""
    return "" if math.isnan(p) or p > LEVEL else "**" if p * cells <= LEVEL else "*"


def _key(cells: int) -> str:
    if not cells:
        return "no significance: it takes two scored seeds of the baseline that differ"
    return (
        f"* beyond the baseline's seeds on that task (prediction t, {LEVEL:.0%}; by luck some {LEVEL * cells:.0f} of "
        f"{cells} cells)\n** after Bonferroni over all cells. The noise of items is not counted in."
    )
