"""Draws what the protocol itself is worth: winners where nothing works, and gains found.

Source: transfer study, section 3.3. Not a figure of the paper.
"""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study
from plumbline.stats.protocol_error import ALPHA

from ..headline_runs import BASE
from ..protocol_error import CORRECTIONS, COUNTS, GAINS, STATISTICS, compute_error_rates

COLOURS = {"normal": figure_style.RED, "prediction": figure_style.BLUE}
LINES: dict[str, tuple[str | tuple[int, tuple[int, ...]], str]] = {
    "bonferroni": ("-", "o"),
    "holm": ((0, (4, 2)), "s"),
    "bh": ((0, (1, 1)), "^"),
}

#: Numbers of reference seeds whose gains are drawn: the paper's and the most.
DRAWN = (3, max(COUNTS))


#: Shares have a little room at both ends.
LIMITS = (-0.02, 1.02)


@with_house_style
def protocol_power(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Left: worlds with a survivor by number of reference seeds. Right: gains found, at two numbers of seeds."""
    figure = Figure(figsize=(figure_style.PAGE, 3.4))
    calls_axes, gains_axes = figure.subplots(1, 2)
    rows = [*_nothing_works(calls_axes, study), *_one_works(gains_axes, study)]
    for axes in (calls_axes, gains_axes):
        axes.set_ylim(*LIMITS)
        axes.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1))
    figure_style.set_preset_title(calls_axes, study, f"False calls where none of {study.m} methods works", BASE)
    gains_axes.set_title(
        "How often the one real gain is found\nafter Bonferroni; thin: 3 seeds, thick: 10", fontsize=8.5
    )
    calls_axes.set_ylabel("repeats with a false call")
    gains_axes.set_ylabel("repeats in which it is found")
    handles = [
        mpl.lines.Line2D([], [], color=COLOURS[statistic], linestyle=LINES[correction][0], marker=LINES[correction][1])
        for statistic in STATISTICS
        for correction in CORRECTIONS
    ]
    names = [
        f"{statistic_name}, {correction_name}"
        for statistic_name in STATISTICS.values()
        for correction_name in CORRECTIONS.values()
    ]
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=7.5)
    return FigureWithData(figure, pd.DataFrame(rows).assign(preset=study.preset_named))


def _nothing_works(axes: Axes, study: Study) -> list[dict[str, object]]:
    rows = []
    for statistic in STATISTICS:
        for correction, (line, mark) in LINES.items():
            shares = [compute_error_rates(statistic, correction, study.m, n).survivor for n in COUNTS]
            axes.plot(COUNTS, shares, color=COLOURS[statistic], linestyle=line, marker=mark, markersize=3.5)
            entry = {"panel": "survivor", "statistic": statistic, "correction": correction}
            rows += [
                entry | {"n_seeds": n, "true_gain_sigma": 0.0, "probability": share}
                for n, share in zip(COUNTS, shares, strict=True)
            ]
    axes.axhline(ALPHA, color=figure_style.GREY, linewidth=0.8)
    axes.annotate(
        f"{ALPHA:.0%}, as promised", (max(COUNTS), ALPHA), (0, 3), textcoords="offset points", ha="right", fontsize=7
    )
    axes.set_xlabel("seeds of the baseline")
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
    return rows


def _one_works(axes: Axes, study: Study) -> list[dict[str, object]]:
    rows = []
    ends = []
    for statistic in STATISTICS:
        for n in DRAWN:
            shares = compute_error_rates(statistic, "bonferroni", study.m, n).power
            width = 0.9 if n == min(DRAWN) else 2.0
            axes.plot(GAINS, [shares[gain] for gain in GAINS], color=COLOURS[statistic], linewidth=width, marker=".")
            ends.append((shares[GAINS[-1]], f"{n} seeds", COLOURS[statistic]))
            entry = {"panel": "found", "statistic": statistic, "correction": "bonferroni", "n_seeds": n}
            rows += [entry | {"true_gain_sigma": gain, "probability": shares[gain]} for gain in GAINS]
    axes.set_xlabel("true gain, in σ of the baseline's seeds")
    axes.set_xlim(0, GAINS[-1])
    axes.set_ylim(*LIMITS)
    figure_style.label_curves(axes, ends)
    return rows
