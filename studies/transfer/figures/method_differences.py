"""Draws each method's difference in validation loss with its interval, beside the printed differences at 1.2B and 3B.

Source: ours; the printed z is Table 2's, the printed 3B differences are Table 3's, over the printed spread of the
baseline's seeds at 1.2B (section 3.3), as none is printed at 3B.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from plumbline.audit.printed_numbers import NOT_PRINTED, PrintedNumbers, printed
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import BLUE, GREY, ORANGE, FigureWithData, label_of, styled
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import absent, reference_of
from plumbline.specs.study_config import Study
from plumbline.stats import NoiseFloor, noise_floor
from plumbline.stats.distributions import t_isf
from plumbline.stats.noise_floor import two_sided_t

from ..headline_runs import BASE

#: Half the level of the intervals that are drawn, and the level after Bonferroni from which a mark is filled.
HALF, LEVEL = 0.025, 0.05

#: |z| up to which the printed axis is linear.
LINEAR = 3.0


@styled
def method_differences(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """All methods that have a loss, best first; the mean of all seeds of each."""
    reference = reference_of(study, "method_differences")
    runs = frames.select(BASE, study.methods)
    losses = {
        method: runs.loc[runs["method"] == method, "validation_loss"].dropna().astype(float) for method in study.methods
    }
    floor = noise_floor(losses[reference]) if len(losses[reference]) else noise_floor([math.nan])
    rows = [
        _row(study, published, method, seeds, floor)
        for method, seeds in losses.items()
        if method != reference and len(seeds) and floor.n
    ]
    frame = pd.DataFrame(rows, columns=list(_row(study, published, reference, pd.Series([0.0]), floor)))
    frame = frame.sort_values("lower_loss", ascending=True, kind="stable", ignore_index=True)
    figure = Figure(figsize=(figure_style.PAGE, 0.9 + 0.19 * max(len(frame), 12)))
    ours, theirs = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    _draw_ours(ours, frame, study, floor)
    _draw_theirs(theirs, frame)
    missing = {
        method: absent(runs.loc[runs["method"] == method, "outcome"])
        for method, seeds in losses.items()
        if not len(seeds)
    }
    figure_style.note_absent(theirs, [f"{label_of(study, method)} ({word})" for method, word in missing.items()])
    return FigureWithData(figure, frame.assign(preset=study.preset_named))


def _row(
    study: Study, published: PrintedNumbers, method: str, seeds: pd.Series, floor: NoiseFloor
) -> dict[str, str | float]:
    """What is drawn of a method: by how much its loss is lower, half the interval's width, and what is printed."""
    lower, error = floor.mean - float(seeds.mean()), floor.sigma * math.sqrt(1 / len(seeds) + 1 / max(floor.n, 1))
    p = float(two_sided_t(lower / error, floor.n - 1)) * study.m if floor.usable else math.nan
    spread = _number(printed(published.table("noise_floor"), str(study.reference), "climb_avg_std"))
    return {
        "method": method,
        "label": label_of(study, method),
        "n_seeds": len(seeds),
        "lower_loss": lower,
        "half_interval_95": float(t_isf(HALF, floor.n - 1)) * error if floor.usable else math.nan,
        "resolved": "yes" if p <= LEVEL else "no",
        "z_published": _number(printed(published.table("table2"), method, "z")),
        "z_published_3b": _number(printed(published.table("table3"), method, "delta_3b")) / spread,
    }


def _number(text: str) -> float:
    return math.nan if text == NOT_PRINTED else float(text)


def _draw_ours(axes: Axes, frame: pd.DataFrame, study: Study, floor: NoiseFloor) -> None:
    y = np.arange(len(frame))
    resolved = (frame["resolved"] == "yes").to_numpy(dtype=bool)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.errorbar(
        frame["lower_loss"], y, xerr=frame["half_interval_95"].fillna(0), fmt="none", ecolor=GREY, elinewidth=1.0
    )
    for chosen, face, words in ((resolved, BLUE, "resolved"), (~resolved, "white", "not resolved")):
        if chosen.any():
            axes.scatter(
                frame["lower_loss"][chosen], y[chosen], s=24, facecolor=face, edgecolor=BLUE, zorder=4, label=words
            )
    axes.set_yticks(y, frame["label"])
    axes.set_ylim(-0.7, len(frame) - 0.3)
    axes.set_xlabel("validation loss lower than the baseline's by (nats a token)")
    if len(frame):
        axes.legend(loc="lower right", fontsize=7)
    seeds = f"{floor.n} seeds of the baseline" if floor.n else "no baseline"
    figure_style.name_preset(axes, study, "Trained here, with 95 % intervals", BASE, extra=seeds)


def _draw_theirs(axes: Axes, frame: pd.DataFrame) -> None:
    y = np.arange(len(frame))
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.scatter(frame["z_published"], y, s=26, marker="o", color=BLUE, label="1.2B", zorder=4)
    axes.scatter(frame["z_published_3b"], y, s=26, marker="D", facecolor="none", edgecolor=ORANGE, label="3B", zorder=3)
    axes.set_xscale("symlog", linthresh=LINEAR)
    axes.set_xticks([-100, -30, -10, -3, 0, 3, 10])
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.minorticks_off()
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("printed z of accuracy (log beyond ±3)")
    axes.legend(loc="lower left", fontsize=7)
    axes.set_title("As the paper prints it\n3B over the σ of 1.2B's seeds", fontsize=8.5)
