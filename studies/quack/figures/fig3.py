"""Draws Figure 3: the largest logit and how far one update moves logits, over training.

Source: quack study, Mechanisms 1 and 2 (section 4 of the paper that it sums up), which reads one head in the middle.
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..run_grid import ATTENTION, RunGrid
from ._panels import curve, legend, note, over_training, panel_title, title

#: Probe -> what the axis says.
QUANTITIES = {"logit_max": "largest logit (symlog)", "logit_change": "mean |Δ logit| (log)"}
FIRST = "logit_max"

#: The largest logit's axis is linear up to here; where it has ticks.
LINEAR, TICKS = 10.0, (-10, 0, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000, 1_000_000)


@with_house_style
def fig3(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """For each attention a row of panels for each quantity, a column for each base rate; of a method with a tau the
    best one. The scale of the change is logarithmic, that of the largest logit is linear up to 10."""
    grid = RunGrid(frames, study)
    across = max(1, len(grid.etas))
    down = max(1, len(grid.scales) * len(QUANTITIES))
    figure = Figure(figsize=(figure_style.PAGE, 0.9 + 1.7 * down))
    panels = figure.subplots(down, across, sharex=True, sharey="row", squeeze=False)
    rows: list[dict[str, object]] = []
    pairs = [(scale, probe) for scale in grid.scales for probe in QUANTITIES]
    for (scale, probe), line in zip(pairs, panels, strict=False):
        line_rows = []
        for eta, axes in zip(grid.etas, line, strict=True):
            line_rows += _panel(axes, grid, scale, eta, probe)
        rows += line_rows
        line[0].set_ylabel(QUANTITIES[probe])
        if probe == FIRST:
            line[0].set_yscale("symlog", linthresh=LINEAR)
            if line[0].get_ylim()[1] >= LINEAR / 2:
                line[0].yaxis.set_major_locator(mpl.ticker.FixedLocator(TICKS))
                line[0].yaxis.set_major_formatter(mpl.ticker.FuncFormatter(figure_style.format_thousands))
            else:  # all of it is linear
                line[0].yaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
                line[0].yaxis.set_major_formatter(mpl.ticker.ScalarFormatter())
            line[0].yaxis.set_minor_locator(mpl.ticker.NullLocator())
            line[0].set_ylim(bottom=min(0.0, line[0].get_ylim()[0]))
        elif any(row["value"] > 0 for row in line_rows):
            line[0].set_yscale("log")
    over_training(panels[-1], grid)
    legend(figure, grid)
    text = "Logits of the middle layer's middle head: the largest (linear to 10), and how far one step moves them"
    title(figure, grid, text)
    columns = ["run", "attention", "method", "base_lr", "tau", "probe", "step", "value"]
    return FigureWithData(figure, pd.DataFrame(rows, columns=columns).assign(preset=study.preset_named))


def _panel(axes: Axes, grid: RunGrid, scale: str, eta: float, probe: str) -> list[dict[str, object]]:
    rows, gaps = [], []
    curves: dict[str, pd.Series] = {}
    for method in grid.methods(scale):
        key = grid.find_best_run(scale, method, eta)
        read = grid.curve(key, probe)
        read = read[np.isfinite(read)]
        if key is None or read.empty:
            gaps.append(f"{grid.study.definition['methods'][method]['label']}: {_describe_outcome(grid, key)}")
            continue
        curves[method] = read
        axes.plot(read.index, read, **curve(method, len(read)))
        entry = {"run": key, "attention": ATTENTION[scale], "method": method, "base_lr": eta, "tau": grid.tau(key)}
        rows += [entry | {"probe": probe, "step": int(at), "value": float(value)} for at, value in read.items()]
    if probe == FIRST:
        panel_title(axes, grid, scale, eta, curves)
    note(axes, gaps)
    return rows


def _describe_outcome(grid: RunGrid, key: str | None) -> str:
    outcome = grid.outcome(key)
    return "not read" if outcome == "completed" else outcome
