"""Draws what the study's figures share: a row of panels for each attention, a colour and a mark for each method."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plumbline.results.figures import figure_style

from ..run_grid import ATTENTION, RunGrid

#: Characters of a line above a panel.
TITLE_WIDTH = 38

#: Method -> colour, mark, and of its curve width and dashes, which tell it apart in grey too: narrower ones lie on top,
#: so that curves that coincide are all seen.
LOOKS = {
    "default": (figure_style.BLACK, "o", 2.7, "-"),
    "qk_norm": (figure_style.BLUE, "s", 2.3, "--"),
    "qk_clip_30": (figure_style.SKY, "v", 2.3, "-."),
    "qk_clip_100": (figure_style.ORANGE, "^", 1.9, ":"),
    "quack": (figure_style.GREEN, "D", 0.9, "-"),
    "ablation": (figure_style.RED, "P", 1.4, (0, (1, 1, 4, 1))),
}

#: How far apart the marks of a curve are, as a share of a panel's diagonal.
MARKS_APART = 0.36


def colour(method: str) -> str:
    """A method's colour."""
    return LOOKS[method][0]


def mark(method: str) -> str:
    """A method's mark."""
    return LOOKS[method][1]


def curve(method: str, points: int) -> dict[str, Any]:
    """How a method's curve over training is drawn: marks of different methods stand at different places.

    A curve of one point is its mark, hollow, as others may lie on it.
    """
    own, sign, width, dashes = LOOKS[method]
    start = MARKS_APART * (0.2 + list(LOOKS).index(method) / len(LOOKS))
    alone = {"markersize": 6, "mfc": "none", "clip_on": False}
    marks = {"markersize": 3.5, "markevery": (start, MARKS_APART)} if points > 1 else alone
    return {"color": own, "linewidth": width, "linestyle": dashes, "zorder": 5 - width / 2, "marker": sign, **marks}


def methods(grid: RunGrid) -> list[str]:
    """Methods with a run, in the order of the looks."""
    there = {method for scale in grid.scales for method in grid.methods(scale)}
    return [method for method in LOOKS if method in there]


def legend(figure: Figure, grid: RunGrid, extra: Iterable[Line2D] = (), *, marks: bool = False) -> None:
    """Below the panels: a line for each method, and what else there is to say."""
    lines = [
        Line2D(
            [],
            [],
            **({"color": colour(method), "marker": mark(method)} if marks else curve(method, 2) | {"markevery": None}),
            label=grid.study.definition["methods"][method]["label"],
        )
        for method in methods(grid)
    ]
    figure.legend(handles=[*lines, *extra], loc="outside lower center", ncols=4, fontsize=7.5, handlelength=3.2)


def title(figure: Figure, grid: RunGrid, text: str) -> None:
    """What is shown, at which preset and scales."""
    scales = " and ".join(grid.study.scale_label(scale) for scale in grid.scales)
    figure.suptitle(f"{text}\npreset {grid.study.preset_named} · {scales}", fontsize=8.5, x=0.01, ha="left")


def best_taus(grid: RunGrid, scale: str, eta: float) -> list[str]:
    """As ``QuacK 0.1``: which tau stands for each method that has one."""
    labels = []
    for method in grid.methods(scale):
        tau = grid.tau(grid.find_best_run(scale, method, eta))
        if not math.isnan(tau):
            labels.append(f"{grid.study.definition['methods'][method]['label']} {tau:g}")
    return labels


def panel_title(axes: Axes, grid: RunGrid, scale: str, eta: float, curves: Mapping[str, pd.Series]) -> None:
    """Attention and base rate, the taus that stand for methods there, and which of the curves drawn are one."""
    best = best_taus(grid, scale, eta)
    lines = [f"{ATTENTION[scale]}, base rate {eta:g}"]
    lines += [f"tau: {', '.join(best)}"] if best else []
    for sentence in find_equal_curves(grid, curves):
        lines += textwrap.wrap(sentence, TITLE_WIDTH)
    axes.set_title("\n".join(lines), fontsize=7.5)


def over_training(panels: Iterable[Axes], grid: RunGrid) -> None:
    """Steps of a whole run along the lowest panels."""
    steps = max((run.spec.train.steps for run in grid.study.runs.values()), default=1)
    for axes in panels:
        axes.set_xlim(0, 1.02 * steps)
        axes.set_xlabel("training step")
        axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(figure_style.format_thousands))


def note(axes: Axes, names: Iterable[str]) -> None:
    """What a panel lacks, as the last lines above it."""
    lines = [axes.get_title(loc="left"), figure_style.wrap_names(names, TITLE_WIDTH)]
    axes.set_title("\n".join(filter(None, lines)), fontsize=7.5)


def find_equal_curves(grid: RunGrid, curves: Mapping[str, pd.Series]) -> list[str]:
    """Methods whose curves in a panel are the same to the last digit, so that one hides the other."""
    remaining, lines = list(curves), []
    while remaining:
        first, *others = remaining
        same = [first, *(other for other in others if curves[first].equals(curves[other]))]
        if len(same) > 1:
            lines.append(
                "the same curve: " + ", ".join(grid.study.definition["methods"][method]["label"] for method in same)
            )
        remaining = [other for other in others if other not in same]
    return lines


def list_absent(grid: RunGrid, scale: str, eta: float, *, drawn_methods: Iterable[str]) -> list[str]:
    """Methods that a panel lacks, with the reason."""
    have = set(drawn_methods)
    lines = []
    for method in grid.methods(scale):
        key = grid.find_best_run(scale, method, eta)
        if method not in have:
            lines.append(f"{grid.study.definition['methods'][method]['label']}: {grid.outcome(key)}")
    return lines
