"""Draws what was stated of small models: each gain with its bounds, between the minimum and the target, by size.

Statements have units of their own: 0 is what must be exceeded and 1 the target, of each.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import BLUE, GREEN, GREY, ORANGE, RED, FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.results.runs.stated_values import RunValues
from plumbline.specs import small_file, small_runs
from plumbline.specs.study_config import Study
from plumbline.stats.stated_tests import NOT_DECIDED, NOT_SEEN, REVERSED, SEEN
from plumbline.verdict.small_models.statement_gains import ContrastGain, compute_gains, join_verdicts

#: Up to which gain, in units of the target, the axis is linear.
LINEAR = 2.0
#: Gains that the axis names on either side, in the same units.
TICKS = (1, 2, 5, 10, 20, 50, 100)
#: Verdict -> the colour of its bounds.
COLOURS = {SEEN: GREEN, REVERSED: RED, NOT_SEEN: ORANGE, NOT_DECIDED: GREY}
#: The marks of the sizes, in their order.
MARKS = ("o", "D", "s", "^")


@with_house_style
def small_gains(frames: RunFrames, study: Study, published: object) -> FigureWithData:
    """A row for each contrast and size, statement by statement from above."""
    spec = small_file.load_small(study.name, study.root)
    runs = small_runs.list_stated_runs(study.definition, spec, study.root)
    values = RunValues(frames)
    rows = []
    for statement in spec.statements:
        for size in statement.sizes:
            gains = compute_gains(spec, statement, size, runs, values)
            rows += [_make_row(gain, join_verdicts(gains), study) for gain in gains]
    frame = pd.DataFrame(rows)
    drawn_rows = frame[frame["gain"].notna()].reset_index(drop=True)
    figure, axes = figure_style.make_canvas(figure_style.PAGE, 1.3 + 0.19 * max(len(drawn_rows), 8))
    _draw(axes, drawn_rows, list(spec.sizes))
    axes.set_title(f"What was stated of small models\npreset {study.preset_named}", fontsize=8.5)
    names = _name_absent(frame) if len(drawn_rows) else [f"all {len(frame)} gains, whose runs are not there"]
    figure_style.note_absent(axes, names)
    return FigureWithData(figure, frame.assign(preset=study.preset_named))


def _make_row(gain: ContrastGain, verdict: str, study: Study) -> dict[str, str | float]:
    tested, (zero, one) = gain.tested, gain.scale

    def to_scale(value: float) -> float:
        return (value - zero) / (one - zero)

    numbers = (math.nan,) * 3 if tested is None else (tested.gain, tested.low, tested.high)
    label = gain.statement.id.replace("_", " ")
    if len(gain.statement.contrasts) > 1 and gain.statement.test != "order":
        label += f": {gain.contrast.replace('_', ' ')}"
    return {
        "row": label,
        "size": gain.size,
        "label": study.scale_label(gain.size),
        "verdict": verdict,
        "contrast_verdict": gain.verdict,
        "lacking": gain.word or ("too few seeds" if tested is None else ""),
        **dict(zip(("gain", "low", "high"), numbers, strict=True)),
        **dict(zip(("drawn_gain", "drawn_low", "drawn_high"), map(to_scale, numbers), strict=True)),
    }


def _name_absent(frame: pd.DataFrame) -> list[str]:
    """What is not drawn, and why; a size of which nothing is by its own name, since its gains would fill the page."""
    names = list[str]()
    for label, gains in frame.groupby("label", sort=False):
        absent = gains[gains["gain"].isna()]
        if len(absent) == len(gains) and absent["lacking"].nunique() == 1:
            names.append(f"every gain at {label} ({absent['lacking'].iloc[0]})")
        else:
            names += (absent["row"] + ", " + absent["label"] + " (" + absent["lacking"] + ")").tolist()
    return names


def _draw(axes: Axes, drawn_rows: pd.DataFrame, sizes: list[str]) -> None:
    y = -np.arange(len(drawn_rows))
    for place, row in zip(y, drawn_rows.to_dict("records"), strict=True):
        colour = COLOURS.get(row["contrast_verdict"], GREY)
        axes.plot([row["drawn_low"], row["drawn_high"]], [place, place], color=colour, linewidth=1.4)
        mark = MARKS[sizes.index(row["size"]) % len(MARKS)]
        axes.scatter(row["drawn_gain"], place, marker=mark, s=20, facecolor="white", edgecolor=colour, zorder=4)
    for x, style in ((0.0, "-"), (1.0, "--")):
        axes.axvline(x, color=BLUE, linewidth=0.9, linestyle=style)
    texts = [f"{row['row']}, {row['label']}" for row in drawn_rows.to_dict("records")]
    axes.set_yticks(y, texts, fontsize=figure_style.SMALL)
    axes.set_ylim(-max(len(drawn_rows), 8) + 0.3, 0.7)
    axes.set_xscale("symlog", linthresh=LINEAR)
    axes.set_xticks([0, *(sign * tick for tick in TICKS for sign in (-1, 1))])
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.minorticks_off()
    edge = 1.2 * max([LINEAR, *drawn_rows["drawn_low"].abs(), *drawn_rows["drawn_high"].abs()])
    axes.set_xlim(-edge, edge)
    axes.set_xlabel(f"gain with one-sided bounds: minimum at 0, target at 1 (log beyond ±{LINEAR:g})")
    for word, colour in COLOURS.items():
        axes.plot([], [], color=colour, label=word)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(COLOURS), columnspacing=1, fontsize=7)
