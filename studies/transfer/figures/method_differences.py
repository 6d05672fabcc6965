"""Draws each method's difference in validation loss at both scales with its interval, next to the printed differences.

Source: ours; the printed z is Table 2's, the printed 3B differences are Table 3's, over the printed spread of the
baseline's seeds at 1.2B (section 3.3), as none is printed at 3B. Which methods diverge at 3B is Table 6.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter, StrMethodFormatter

from plumbline.published.printed_numbers import PrintedNumbers, read_printed_value
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import BLUE, GREY, ORANGE, FigureWithData, format_label, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.tables.table import missing_word, require_reference
from plumbline.specs.study_config import Study

from ..headline_runs import BASE, LARGE
from ..scale_differences import ScaleDifferences, scale_differences
from ..tables.order_across_scales import LOSS, list_printed_divergences

#: Up to which nats, and which |z|, an axis is linear.
LINEAR_NATS, LINEAR_Z = 0.2, 3.0

#: Where a mark says that a run diverges: left of every printed z.
DIVERGED_AT = -250.0

#: Rows below the methods, for the keys.
KEY_ROWS = 2.3

#: Scale -> its mark, its colour, and how far from a method's line it is drawn.
MARKS = {BASE: ("o", BLUE, 0.17), LARGE: ("D", ORANGE, -0.17)}


@with_house_style
def method_differences(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """All methods that have a loss at the base scale, best first; the mean of all seeds of each."""
    reference = require_reference(study, "method_differences")
    differences = {scale: scale_differences(frames, study, reference, scale, LOSS) for scale in (BASE, LARGE)}
    others = [method for method in study.methods if method != reference]
    with_loss = [method for method in others if math.isfinite(differences[BASE].delta.get(method, math.nan))]
    spread = read_printed_value(published.table("noise_floor"), str(study.reference), "climb_avg_std")
    columns = ["method", "label", *(f"{name}_{scale}" for scale in (BASE, LARGE) for name in _OURS)]
    columns += [*PRINTED_Z, "diverges_3b_published"]
    rows = [_row(study, published, method, differences, spread) for method in with_loss]
    frame = pd.DataFrame(rows, columns=columns)
    frame = frame.sort_values(f"lower_loss_{BASE}", ascending=True, kind="stable", ignore_index=True)
    figure = Figure(figsize=(figure_style.PAGE, 0.9 + 0.22 * (max(len(frame), 12) + KEY_ROWS)))
    ours, theirs = figure.subplots(1, 2, sharey=True, width_ratios=[3, 2])
    _draw_ours(ours, frame, study, differences, reference)
    _draw_theirs(theirs, frame)
    runs = frames.select(BASE, study.methods)
    missing = {
        method: missing_word(runs.loc[runs["method"] == method, "outcome"])
        for method in others
        if method not in with_loss
    }
    figure_style.note_absent(ours, [f"{format_label(study, method)} ({word})" for method, word in missing.items()])
    return FigureWithData(figure, frame.assign(preset=study.preset_named))


#: What is drawn of a method at each scale, and from the paper.
_OURS = ("n_seeds", "lower_loss", "half_interval_95", "resolved")
PRINTED_Z = ("z_published", "z_published_3b")


def _row(
    study: Study, published: PrintedNumbers, method: str, differences: dict[str, ScaleDifferences], spread: float
) -> dict[str, str | float]:
    """What is drawn of a method: by how much its loss is lower, half the interval's width, and what is printed."""
    row: dict[str, str | float] = {"method": method, "label": format_label(study, method)}
    for scale, at_scale in differences.items():
        p = float(at_scale.p_bonferroni.get(method, math.nan))
        row |= {
            f"n_seeds_{scale}": int(at_scale.seeds.get(method, 0)),
            f"lower_loss_{scale}": -float(at_scale.delta.get(method, math.nan)),
            f"half_interval_95_{scale}": float(at_scale.half_interval.get(method, math.nan)),
            f"resolved_{scale}": "not known" if math.isnan(p) else "yes" if at_scale.is_resolved()[method] else "no",
        }
    return row | {
        "z_published": read_printed_value(published.table("table2"), method, "z"),
        "z_published_3b": read_printed_value(published.table("table3"), method, "delta_3b") / spread,
        "diverges_3b_published": "yes" if method in list_printed_divergences(published) else "no",
    }


def _draw_ours(
    axes: Axes, frame: pd.DataFrame, study: Study, differences: dict[str, ScaleDifferences], reference: str
) -> None:
    axes.axvline(0, color=GREY, linewidth=0.8)
    for scale, (mark, colour, shift) in MARKS.items():
        x, there = frame[f"lower_loss_{scale}"], frame[f"lower_loss_{scale}"].notna().to_numpy(dtype=bool)
        if not there.any():
            continue
        y = np.arange(len(frame)) + shift
        half = frame[f"half_interval_95_{scale}"].fillna(0)
        axes.errorbar(x[there], y[there], xerr=half[there], fmt="none", ecolor=GREY, elinewidth=1.0)
        resolved = (frame[f"resolved_{scale}"] == "yes").to_numpy(dtype=bool)
        for chosen, face in ((resolved & there, colour), (~resolved & there, "white")):
            axes.scatter(x[chosen], y[chosen], s=22, marker=mark, facecolor=face, edgecolor=colour, zorder=4)
        # For the legend: its own colours, whichever marks there are.
        seeds = int(differences[scale].seeds.get(reference, 0))
        text = f"{study.scale_label(scale)}, {seeds} seed{'s' * (seeds != 1)} of the baseline"
        axes.scatter([], [], s=22, marker=mark, facecolor=colour, edgecolor=colour, label=text)
    axes.scatter([], [], s=22, marker="o", facecolor="white", edgecolor=GREY, label="open: not resolved")
    axes.set_xscale("symlog", linthresh=LINEAR_NATS, linscale=1.2)
    axes.set_xticks([-1, -0.2, -0.1, 0, 0.1, 0.2, 0.4])
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.minorticks_off()
    axes.set_yticks(np.arange(len(frame)), frame["label"])
    axes.set_ylim(-KEY_ROWS - 0.5, len(frame) - 0.3)
    axes.set_xlabel(f"validation loss lower than the baseline's by\n(nats a token; log beyond ±{LINEAR_NATS})")
    axes.legend(loc="lower right", fontsize=7)
    scales = [scale for scale in MARKS if frame[f"lower_loss_{scale}"].notna().any()]
    figure_style.set_preset_title(axes, study, "Trained here, with 95 % intervals", *(scales or [BASE]))


def _draw_theirs(axes: Axes, frame: pd.DataFrame) -> None:
    y = np.arange(len(frame))
    axes.axvline(0, color=GREY, linewidth=0.8)
    for column, label, (mark, colour, shift) in zip(PRINTED_Z, ("1.2B", "3B"), MARKS.values(), strict=True):
        axes.scatter(frame[column], y + shift, s=22, marker=mark, color=colour, label=label, zorder=4)
    lost = (frame["diverges_3b_published"] == "yes").to_numpy(dtype=bool)
    if lost.any():
        place = np.full(int(lost.sum()), DIVERGED_AT)
        shift = MARKS[LARGE][2]
        axes.scatter(place, y[lost] + shift, s=24, marker="x", color=ORANGE, label="3B: diverges", zorder=4)
    axes.set_xscale("symlog", linthresh=LINEAR_Z)
    axes.set_xticks([-100, -10, -3, 0, 3, 10])
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.minorticks_off()
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("printed z of accuracy\n(log beyond ±3)")
    axes.legend(loc="lower left", fontsize=7)
    axes.set_title("By the numbers that the paper prints\n3B over the σ of 1.2B's seeds", fontsize=8.5)
