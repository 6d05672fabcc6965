"""Draws what the study's figures share: a panel for each arm, a curve for each layer, thick ones for the printed
groups."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.core.run_files import COMPLETED, DIVERGED
from plumbline.results.figures import figure_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import summarize_outcomes
from plumbline.specs.study_config import Study

from ..norm_curves import AS_PUBLISHED, FROZEN, NO_DECAY, SCALE, LayerGroup, count_layers, curve, find_spec, groups

ARMS = (AS_PUBLISHED, NO_DECAY, FROZEN)

#: The printed groups, from the first layers to the last.
COLOURS = {"early": figure_style.BLUE, "middle": figure_style.GREEN, "final": figure_style.RED}

#: Thin lines: a pair's first layer, its second one, and any layer of no pair.
FIRST, SECOND, OTHER = {"linestyle": "-"}, {"linestyle": (0, (1.2, 1.2))}, {"linestyle": "-", "color": "#B0B0B0"}
THIN = {"linewidth": 0.9, "zorder": 3}


def panels(study: Study) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one panel for each arm, on common axes."""
    figure = Figure(figsize=(figure_style.PAGE, 3.4))
    axes = figure.subplots(1, len(ARMS), sharey=True, sharex=True)
    for panel, arm in zip(axes, ARMS, strict=True):
        panel.set_title(figure_style.format_label(study, arm).replace(" (", "\n("), fontsize=8)
        panel.set_xlabel("training step")
        panel.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(figure_style.format_thousands))
    return figure, dict(zip(ARMS, axes, strict=True))


def printed_groups(study: Study) -> list[LayerGroup]:
    """The groups that are drawn thick: those that the paper names."""
    return [group for group in groups(count_layers(study)) if group.name in COLOURS]


def thin_line(study: Study, layer: int) -> dict[str, object]:
    """How a single layer is drawn: in its group's colour, or grey."""
    for group in printed_groups(study):
        if layer in group.layers:
            return THIN | (FIRST if layer == group.layers[0] else SECOND) | {"color": COLOURS[group.name]}
    return THIN | OTHER | {"linewidth": 0.6, "zorder": 2}


def draw(
    axes: Axes, frames: RunFrames, study: Study, arm: str, probe: str, number_format: str
) -> tuple[list[dict[str, object]], list[tuple[float, str, str]]]:
    """An arm's curves into its panel; returns the plotted points, and the thick curves' ends with their labels.

    `number_format`: the format of the numbers at the ends.
    """
    over = curve(frames, arm, probe)
    outcome = summarize_outcomes(frames.select(SCALE, [arm])["outcome"])
    if over.empty:
        figure_style.note_absent(axes, [f"{outcome}, nothing was read" if outcome == COMPLETED else outcome])
        return [], []
    points, ends = [], []
    for layer in over.columns:
        axes.plot(over.index, over[layer], **thin_line(study, layer))
        points += _points(arm, f"layer {layer}", over[layer])
    for group in printed_groups(study):
        mean = over[list(group.layers)].mean(axis=1)
        axes.plot(mean.index, mean, color=COLOURS[group.name], linewidth=2.2, zorder=4)
        points += _points(arm, group.name, mean)
        note = f"{group.name} {mean.iloc[-1]:{number_format}}"
        if outcome == DIVERGED:
            axes.plot(mean.index[-1], mean.iloc[-1], "x", color=COLOURS[group.name], markersize=7, zorder=5)
            note = f"{group.name} diverged"
        ends.append((float(mean.iloc[-1]), note, COLOURS[group.name]))
    return points, ends


def _points(arm: str, curve: str, values: pd.Series) -> list[dict[str, object]]:
    return [{"arm": arm, "curve": curve, "step": int(step), "value": float(value)} for step, value in values.items()]


def frame(study: Study, points: Sequence[dict[str, object]], quantity: str) -> pd.DataFrame:
    """The plotted points as one frame; their values are in a column of the quantity's name."""
    table = pd.DataFrame(list(points), columns=["arm", "curve", "step", "value"])
    return table.rename(columns={"value": quantity}).assign(preset=study.preset_named)


def finish(
    figure: Figure,
    axes: dict[str, Axes],
    study: Study,
    title: str,
    ends: dict[str, list[tuple[float, str, str]]],
    extra: Sequence[Line2D] = (),
) -> None:
    """Title, legend, and the numbers at the curves' ends; limits must be set before."""
    steps = find_spec(study, AS_PUBLISHED)
    if steps is not None:
        axes[AS_PUBLISHED].set_xlim(0, steps.train.steps)
    heading = f"{title}\npreset {study.preset_named} · {study.scale_label(SCALE)}"
    figure.suptitle(heading, fontsize=8.5, x=0.01, ha="left")
    lines = [
        Line2D([], [], color=COLOURS[group.name], linewidth=2.2, label=group.title) for group in printed_groups(study)
    ]
    thin = [(FIRST, "a pair's first layer"), (SECOND, "its second layer")]
    thin += [(OTHER, "any other layer")] if count_layers(study) > 2 * len(lines) else []
    lines += [Line2D([], [], **{"color": figure_style.GREY} | THIN | look, label=label) for look, label in thin]
    figure.legend(handles=[*lines, *extra], loc="outside lower center", ncols=4, fontsize=7.5)
    figure.draw_without_rendering()  # limits and transforms must be final before labels are placed
    for arm, listed in ends.items():
        figure_style.label_curves(axes[arm], listed, gap=0.085)


def axis_limits(points: Sequence[dict[str, object]], *more: float) -> tuple[float, float]:
    """Limits with room around all values that are drawn."""
    values = np.array([*(point["value"] for point in points), *more], dtype=float)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)
    room = 0.06 * (high - low) or 0.1
    return low - room, high + room
