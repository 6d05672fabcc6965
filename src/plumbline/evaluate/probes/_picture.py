"""Draws the probes of one checkpoint: for every probe its values by layer, the null dashed."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from plumbline.core.files import atomic_write_bytes

BLUE, GREY, DOTS = "#0072B2", "#6B6B6B", "#9CC4DE"
COLUMNS = 4


def draw(frame: pd.DataFrame, title: str) -> Figure:
    """Draw a frame of probes as small panels, one per probe, in the frame's order.

    A line is the mean over heads, dots are heads. Numbers that belong to no layer stand in a panel of their own, as
    text.
    """
    names = [name for name, part in frame.groupby("probe", sort=False) if part["layer"].notna().any()]
    layerless = frame[frame["layer"].isna()]
    panels = len(names) + bool(len(layerless))
    lines = -(-panels // COLUMNS)
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 8}):
        figure = Figure(figsize=(2.6 * COLUMNS, 1.9 * lines + 0.7), layout="constrained")
        figure.suptitle(title, parse_math=False, fontsize=9, x=0.01, ha="left")
        grid = list(figure.subplots(lines, COLUMNS, squeeze=False).flat)
        for axes, name in zip(grid, names):
            _panel(axes, name, frame[(frame["probe"] == name) & frame["layer"].notna()])
            axes.set_xlim(-0.4, frame["layer"].max() + 0.4)
        for axes in grid[len(names) :]:
            axes.set_axis_off()
        if len(layerless):
            _text(grid[len(names)], layerless)
        figure.legend(
            handles=[
                Line2D([], [], color=BLUE, marker="o", markersize=3, label="layer (mean over its heads)"),
                Line2D([], [], color=DOTS, marker="o", markersize=2.4, linestyle="none", label="one head"),
                Line2D([], [], color=GREY, linestyle="--", linewidth=1, label="null"),
            ],
            loc="outside lower left",
            ncols=3,
            frameon=False,
        )
    return figure


def _panel(axes: Axes, name: str, part: pd.DataFrame) -> None:
    layers = part.groupby("layer")
    heads = part[part["head"].notna()]
    axes.plot(heads["layer"], heads["value"], "o", color=DOTS, markersize=2.4, markeredgewidth=0)
    mean, null = layers["value"].mean(), layers["null"].mean().dropna()
    axes.plot(mean.index, mean, color=BLUE, marker="o", markersize=3, linewidth=1.2)
    if len(null) == 1:  # a line needs two ends
        axes.axhline(null.iloc[0], color=GREY, linestyle="--", linewidth=1)
    axes.plot(null.index, null, color=GREY, linestyle="--", linewidth=1)
    axes.set_title(name, parse_math=False, fontsize=8.5, loc="left")
    axes.set_xlabel("layer", fontsize=7.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E4E4E4", linewidth=0.5)
    axes.set_axisbelow(True)


def _text(axes: Axes, loose: pd.DataFrame) -> None:
    axes.set_title("of no layer (null)", fontsize=8.5, loc="left")
    lines = [
        f"{row.probe}  {row.value:.5g}" + ("" if pd.isna(row.null) else f"  ({row.null:.5g})")
        for row in loose.itertuples()
    ]
    axes.text(0.0, 0.97, "\n".join(lines), transform=axes.transAxes, va="top", fontsize=7.5, linespacing=1.5)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG; the same numbers give the same bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=160, metadata={"Software": None})
    atomic_write_bytes(path, stream.getvalue())
