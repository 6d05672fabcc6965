"""Draws Figure 1: held-out loss over training, and how far each configuration is from the baseline at every evaluation.

Source: query_free study, Figure 1 (section 5.1), which has the first of the two panels. Printed are the final losses
alone.
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..run_values import (
    BASELINE,
    IDENTITY,
    LARGE_MLP,
    SCALE,
    SMALL_D,
    SMALL_MLP,
    RunValues,
    count_parameters,
    find_spec,
)

#: The baselines warm and black, the reduced models cold, and dashed: they may lie on a baseline.
COLOURS = {
    SMALL_MLP: figure_style.ORANGE,
    SMALL_D: figure_style.RED,
    BASELINE: figure_style.BLACK,
    IDENTITY: figure_style.BLUE,
    LARGE_MLP: figure_style.GREEN,
}

LINES = {IDENTITY: (0, (3, 2)), LARGE_MLP: (0, (6, 1.5))}

#: The share of training from which on there is room for the curves.
SHOWN = 0.1


@with_house_style
def fig1(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Left the losses, right their distance from the baseline's in percent; diamonds are the printed final losses."""
    values = RunValues(frames, study)
    printed = published.table("table2", key="config_id")["val_loss_60k"].astype(float)
    curves = {method: validation_curve(values, method) for method in COLOURS}
    figure = Figure(figsize=(figure_style.PAGE, 3.6))
    losses, distances = figure.subplots(1, 2)
    steps = find_spec(study, BASELINE).train.steps
    absent, rows = [], []
    for method, curve in curves.items():
        if curve.empty:
            outcome = values.outcome(method)
            reason = outcome if outcome == MISSING else f"{outcome} before a held-out loss"
            absent.append(f"{figure_style.format_label(study, method)} ({reason})")
        apart = 100 * (curve / curves[BASELINE].reindex(curve.index) - 1)
        for axes, line in ((losses, curve), (distances, apart)):
            _draw(axes, line, method, diverged=values.outcome(method) == DIVERGED)
        rows += [
            {"run": values.key(method), "method": method, "source": "reproduced", "step": int(step)}
            | {"validation_loss": float(loss), "loss_vs_baseline_pct": float(apart[step])}
            for step, loss in curve.items()
        ]
        final = {
            "validation_loss": printed[method],
            "loss_vs_baseline_pct": 100 * (printed[method] / printed[BASELINE] - 1),
        }
        rows.append({"run": "", "method": method, "source": "published", "step": steps} | final)
    frame = pd.DataFrame(rows)
    # Losses of another text and tokenizer are not neighbours of the printed ones; distances in percent may be.
    ours, printed_rows = frame[frame["source"] == "reproduced"], frame[frame["source"] == "published"]
    _limits(losses, ours if len(ours) else frame, "validation_loss", SHOWN * steps)
    _limits(distances, frame, "loss_vs_baseline_pct", SHOWN * steps)
    marked = [
        _marks(axes, printed_rows, column)
        for axes, column in ((losses, "validation_loss"), (distances, "loss_vs_baseline_pct"))
    ]
    distances.axhline(0, color=figure_style.GREY, linewidth=0.6, zorder=1)
    losses.set_ylabel("validation loss (nats per token)")
    distances.set_ylabel("loss against the baseline's (%)")
    for axes in (losses, distances):
        axes.set_xlim(0, steps)
        axes.set_xlabel("training step")
        axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(figure_style.format_thousands))
    figure_style.set_preset_title(losses, study, "Validation loss over training", SCALE)
    distances.set_title("The same, against the baseline\n", fontsize=8.5)
    figure_style.note_absent(losses, absent)
    _legend(figure, study, [method for method, curve in curves.items() if len(curve)], printed=any(marked))
    return FigureWithData(figure, frame.assign(preset=study.preset_named))


def validation_curve(values: RunValues, method: str) -> pd.Series:
    """Step -> held-out loss of a run's evaluations that gave a number."""
    key = values.key(method)
    if key is None:
        return pd.Series(dtype=float)
    metrics = values.frames.metrics(key)
    mine = metrics[metrics["split"] == "validation"].set_index("step")["loss"].astype(float)
    return mine[np.isfinite(mine)].sort_index()


def _draw(axes: Axes, line: pd.Series, method: str, *, diverged: bool) -> None:
    zorder = 3 if method == BASELINE else 4
    axes.plot(line.index, line.to_numpy(), color=COLOURS[method], linestyle=LINES.get(method, "-"), zorder=zorder)
    if diverged and len(line):
        mark = {"markersize": 8, "markeredgewidth": 2, "zorder": 5}
        axes.plot(line.index[-1], line.iloc[-1], "x", color=COLOURS[method], **mark)


def _marks(axes: Axes, printed: pd.DataFrame, column: str) -> int:
    """What is printed, where the axes reach it; how many marks that are."""
    low, high = axes.get_ylim()
    reached = printed[printed[column].between(low, high)]
    for row in reached.itertuples():
        mark = {"mfc": "none", "mec": COLOURS[row.method], "ms": 5, "clip_on": False, "zorder": 6}
        axes.plot(row.step, getattr(row, column), "D", **mark)
    return len(reached)


def _limits(axes: Axes, frame: pd.DataFrame, column: str, start: float) -> None:
    """Room for what comes after `start`: a long run's steep beginning is alike for all."""
    late = frame[(frame["step"] >= start) & frame[column].notna()]
    low, high = late[column].min(), late[column].max()
    room = 0.06 * (high - low) or 0.1
    axes.set_ylim(low - room, high + room)


def _legend(figure: Figure, study: Study, methods: list[str], *, printed: bool) -> None:
    """A key for what is drawn."""
    handles = []
    for method in methods:
        body = count_parameters(find_spec(study, method).model).body
        label = f"{figure_style.format_label(study, method)} ({_millions(body)})"
        handles.append(Line2D([], [], color=COLOURS[method], linestyle=LINES.get(method, "-"), label=label))
    hollow = {"marker": "D", "linestyle": "none", "mfc": "none", "mec": figure_style.GREY, "ms": 5}
    if printed:
        handles.append(Line2D([], [], label="printed, at 60k steps of the paper's sizes", **hollow))
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=7)


def _millions(count: int) -> str:
    return f"{count / 1e6:.2f}M"
