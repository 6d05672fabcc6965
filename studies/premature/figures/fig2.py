"""Draws Figure 2: what the intervention gains in each architecture, and early upper entropy against that gain.

Source: premature study, Figure 2 (sections 4 and 5.5).
"""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from plumbline.published.printed_numbers import NOT_PRINTED, PrintedNumbers, read_printed
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, format_label, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..run_values import BASE, EARLY, RunValues, name_slowed_run
from ..tables.table3 import ARCHITECTURES

#: Whether gated -> how its bar is hatched: nobody needs colours to tell them.
HATCH = {False: "", True: "////"}

#: Architectures with a gated feed-forward network.
GATED = ("gpt_swiglu", "gpt_geglu", "llama_layernorm", "llama")


@with_house_style
def fig2(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Bars with the printed gains as strokes and numbers; points with the printed ones hollow: beside ours where sizes
    are the paper's, and else in a panel below them, whose axes are their own."""
    table = _values(RunValues(frames, study), published)
    at_paper = study.preset == "paper"
    figure = Figure(figsize=(figure_style.PAGE, 3.7 if at_paper else 4.8))
    right = ["points"] if at_paper else ["points", "printed"]
    axes = figure.subplot_mosaic([["bars", name] for name in right])
    bars_axes = axes["bars"]
    _bars(bars_axes, table, study)
    _printed_points(axes[right[-1]], table)
    _scatter(axes["points"], table)
    titles = {"points": f"Early entropy against gain\npreset {study.preset_named} · {study.scale_label(BASE)}"}
    titles |= {"points": f"{titles['points']} · hollow: printed"} if at_paper else {"printed": "Printed (270M)"}
    for name in right:
        axes[name].set_title(titles[name])
    axes[right[-1]].set_xlabel("upper entropy of the control at 3 %")
    if table["ppl_reduction"].isna().all():
        figure_style.note_absent(axes[right[-1]], ["every architecture: no value"])
    kinds = [
        Patch(facecolor=_colour(gated), hatch=HATCH[gated], edgecolor="white", label=label)
        for gated, label in ((False, "single branch"), (True, "gated"))
    ]
    handles = [
        bars_axes.plot([], [], MARKS[row.architecture], color=_colour(row.gated_ffn), ms=4.5, label=row.label)[0]
        for row in table.itertuples()
    ]
    kinds += bars_axes.plot([], [], "|", color="black", ms=10, mew=1.5, label="printed")
    figure.legend(handles=[*kinds, *handles], loc="outside lower center", ncols=4, fontsize=figure_style.SMALL)
    return FigureWithData(figure, table.assign(preset=study.preset_named))


def _values(run_values: RunValues, published: PrintedNumbers) -> pd.DataFrame:
    """One row for each architecture: gain and entropy of the control at 3 %, reproduced and printed; and why not."""
    print3, print4 = published.table("table3"), published.table("table4")
    rows = []
    for name in ARCHITECTURES:
        control, slow = run_values.key(name), run_values.key(name_slowed_run(name))
        gain, entropy = read_printed(print3, name, "ppl_reduction"), read_printed(print3, name, "entropy_3pct")
        if name in print4.index:
            gain, entropy = print4.loc[name, "ppl_reduction"], print4.loc[name, "upper_entropy_3pct"]
        rows.append(
            {
                "architecture": name,
                "label": format_label(run_values.study, name),
                "gated_ffn": name in GATED,
                "ppl_reduction": run_values.gain(control, slow),
                "ppl_reduction_published": _number(gain),
                "upper_entropy_3pct": run_values.value(control, "entropy", EARLY),
                "upper_entropy_3pct_published": _number(entropy),
                "missing_reason": run_values.word(control, slow, otherwise=""),
            }
        )
    return pd.DataFrame(rows)


def _number(text: str) -> float:
    return math.nan if text == NOT_PRINTED else float(text)


def _colour(gated: bool) -> str:
    return figure_style.GREEN if gated else figure_style.RED


def _bars(axes: Axes, table: pd.DataFrame, study: Study) -> None:
    places = range(len(table) - 1, -1, -1)
    there = pd.concat([table["ppl_reduction"], table["ppl_reduction_published"]]).dropna()
    low, high = (min(0.0, there.min()), max(0.0, there.max())) if len(there) else (0.0, 1.0)
    span = max(high - low, 1e-9)
    for place, row in zip(places, table.itertuples(), strict=True):
        note = "" if math.isnan(row.ppl_reduction_published) else f" (printed {row.ppl_reduction_published:+.3f})"
        axes.plot(row.ppl_reduction_published, place, "|", color="black", ms=10, mew=1.5, zorder=4)
        end = max(value for value in (row.ppl_reduction, row.ppl_reduction_published, 0.0) if not math.isnan(value))
        at = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "fontsize": 7}
        if math.isnan(row.ppl_reduction):
            axes.annotate(f"{row.missing_reason}{note}", (end, place), color=figure_style.GREY, **at)
            continue
        look = {"color": _colour(row.gated_ffn), "hatch": HATCH[row.gated_ffn], "edgecolor": "white", "linewidth": 0}
        axes.barh(place, row.ppl_reduction, height=0.62, **look)
        axes.annotate(f"{row.ppl_reduction:+.3f}{note}", (end, place), **at)
    axes.axvline(0, color="black", linewidth=0.7)
    axes.set_yticks(list(places), list(table["label"]), fontsize=7)
    # Room for the numbers next to the longest bar.
    axes.set_xlim(low - 0.05 * span, high + 1.05 * span)
    axes.set_ylim(-0.6, len(table) - 0.4)
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("control's perplexity less the slowed run's")
    figure_style.set_preset_title(axes, study, "Gained by slowing", BASE)


#: A mark for each architecture, in the order of the bars: points lie too close for names next to them.
MARKS = dict(zip(ARCHITECTURES, "osDv^P*", strict=True))


def _printed_points(axes: Axes, table: pd.DataFrame) -> None:
    for row in table.dropna(subset=["upper_entropy_3pct_published", "ppl_reduction_published"]).itertuples():
        mark, colour = MARKS[row.architecture], _colour(row.gated_ffn)
        axes.plot(row.upper_entropy_3pct_published, row.ppl_reduction_published, mark, mfc="none", mec=colour, ms=7)
    _finish_points(axes)


def _scatter(axes: Axes, table: pd.DataFrame) -> None:
    for row in table.dropna(subset=["ppl_reduction", "upper_entropy_3pct"]).itertuples():
        axes.plot(
            row.upper_entropy_3pct, row.ppl_reduction, MARKS[row.architecture], color=_colour(row.gated_ffn), ms=4.5
        )
    _finish_points(axes)
    figure_style.widen_narrow_limits(axes, "x")


def _finish_points(axes: Axes) -> None:
    axes.axhline(0, color="black", linewidth=0.7)
    axes.margins(x=0.12, y=0.14)
    axes.locator_params(axis="x", nbins=5)
    axes.set_ylabel("perplexity gained")
