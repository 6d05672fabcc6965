"""Draws the printed z of every method beside the distance that it takes to be called, by seeds of the baseline.

Source: transfer study, section 3.3, whose z is Table 2's. Not a figure of the paper.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from plumbline.published.printed_numbers import PrintedNumbers, read_printed_value
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, format_label, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import require_reference
from plumbline.specs.study_config import Study

from ..protocol_error import STATISTICS, Statistic, find_threshold

#: The paper's own rule first; then what pays for the spread's being an estimate, from fewer seeds to more.
RULES: tuple[tuple[Statistic, int], ...] = (("normal", 3), ("prediction", 3), ("prediction", 6), ("prediction", 10))
COLOURS = {"normal": figure_style.RED, "prediction": figure_style.BLUE}
LINES = {3: "-", 6: (0, (4, 2)), 10: (0, (1, 1))}


@with_house_style
def protocol_thresholds(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Every method but the baseline, best first: gains are filled, losses are not."""
    reference = require_reference(study, "protocol_thresholds")
    printed = published.table("table2")
    thresholds = {rule: find_threshold(rule[0], study.m, rule[1]) for rule in RULES}
    rows = []
    for method in (name for name in study.methods if name != reference):
        z = read_printed_value(printed, method, "z")
        called = {f"called_{statistic}_{n}": abs(z) >= least for (statistic, n), least in thresholds.items()}
        rows.append({"method": method, "label": format_label(study, method), "z_published": z} | called)
    frame = pd.DataFrame(rows).sort_values("z_published", ascending=False, kind="stable", ignore_index=True)
    figure, axes = figure_style.make_canvas(figure_style.PAGE, 4.6)
    _draw_methods(axes, frame)
    for (statistic, n), least in thresholds.items():
        number = int(frame[f"called_{statistic}_{n}"].sum())
        label = f"{STATISTICS[statistic]}, {n} seeds: |z| from {least:.1f} on, {number} of {len(frame)}"
        axes.axvline(least, color=COLOURS[statistic], linestyle=LINES[n], linewidth=1.2, label=label)
    axes.set_title("Printed distances at 1.2B, and from where on each rule calls them different", fontsize=8.5)
    figure.legend(loc="outside lower center", ncols=2, fontsize=7.5)
    limits = {f"threshold_{statistic}_{n}": least for (statistic, n), least in thresholds.items()}
    return FigureWithData(figure, frame.assign(**limits, preset=study.preset_named))


def _draw_methods(axes: Axes, frame: pd.DataFrame) -> None:
    sizes, places = frame["z_published"].abs(), range(len(frame))
    for gains, face, label in ((True, "black", "better than the baseline"), (False, "white", "worse")):
        chosen = [place for place in places if (frame["z_published"][place] > 0) == gains]
        axes.plot(sizes[chosen], chosen, "o", color="black", markerfacecolor=face, markersize=4.5, label=label)
    axes.set_xscale("log")
    axes.set_xlim(0.15, 120)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlabel("|z| as printed (Table 2), in spreads of the baseline's three seeds")
    axes.set_yticks(list(places), list(frame["label"]), fontsize=7.5)
    axes.invert_yaxis()
