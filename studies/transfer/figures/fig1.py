"""Draws Figure 1: gradient norms of the baseline and of HybridNorm's seeds at the large scale.

Source: transfer study, Figure 1 (section 5.3).
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, format_label, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..headline_runs import LARGE

#: The method whose runs the paper shows to diverge.
DIVERGES = "hybrid_norm"

#: Figure 1's runs at the large scale: method, seed, colour, line.
GRADIENTS = [
    ("baseline", 42, figure_style.BLUE, "-"),
    (DIVERGES, 42, figure_style.RED, "-"),
    (DIVERGES, 43, figure_style.ORANGE, (0, (5, 2))),
    (DIVERGES, 44, figure_style.VIOLET, (0, (1, 1.5))),
]


@with_house_style
def fig1(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Gradient norm before clipping of the baseline and of HybridNorm's seeds at the large scale.

    A cross marks the last finite step of a run that diverged.
    """
    figure, axes = figure_style.make_canvas(figure_style.PAGE, 3.1)
    curves, absent = [], []
    for method, seed, colour, line in GRADIENTS:
        key, label = frames.key(LARGE, method, seed), f"{format_label(study, method)}, seed {seed}"
        if key is None:
            absent.append(f"{label} (no run of this study)")
            continue
        if frames.runs.loc[key, "outcome"] == MISSING:
            absent.append(f"{label} (missing)")
            continue
        train = frames.metrics(key).query("split == 'train'")
        finite = np.isfinite(train["grad_norm"].to_numpy())
        steps, norms = train["step"].to_numpy()[finite], train["grad_norm"].to_numpy()[finite]
        curves.append((key, label, frames.runs.loc[key, "outcome"], colour, line, steps, norms))
    lost = [steps[-1] for _, _, outcome, _, _, steps, _ in curves if outcome == DIVERGED and len(steps)]
    # As in the paper, the stretch in which the runs diverge; the whole of training where none does.
    until = max(lost) * 1.06 if lost else max((steps[-1] for *_, steps, _ in curves if len(steps)), default=1)
    rows: list[dict[str, object]] = []
    scale = ""
    for key, label, outcome, colour, line, steps, norms in curves:
        visible = steps <= until
        x, y = figure_style.thin_curve(steps[visible], norms[visible])
        if not len(x):
            absent.append(f"{label} (no finite step)")
            continue
        note = ""
        if outcome == DIVERGED:
            axes.plot(x[-1], y[-1], "x", color=colour, markersize=8, markeredgewidth=2, zorder=4)
            note = f": diverged at step {int(frames.runs.loc[key, 'step']):,}"
        axes.plot(x, y, color=colour, linestyle=line, label=label + note, zorder=3)
        marks = [outcome == DIVERGED and step == x[-1] for step in x]
        rows += [
            {"run": key, "label": label, "step": int(a), "grad_norm": float(b), "last_before_divergence": bool(mark)}
            for a, b, mark in zip(x, y, marks, strict=True)
        ]
    if rows:
        values = pd.DataFrame(rows)["grad_norm"]
        if values.max() > 20 * values.min() > 0:
            axes.set_yscale("log")
            scale = ", log"
        else:
            axes.set_ylim(0, values.max() * 1.15)
    axes.set_xlim(0, until)
    axes.set_xlabel("training step")
    axes.set_ylabel(f"gradient norm before clipping{scale}")
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(figure_style.format_thousands))
    crosses = any(row["last_before_divergence"] for row in rows)
    explanation = "; a cross is the last finite step before a divergence" if crosses else ""
    figure_style.set_preset_title(axes, study, f"Gradient norm{explanation}", LARGE)
    _mark_printed(axes, study, published)
    if rows:
        figure.legend(loc="outside lower center", ncols=2, fontsize=7.5)
    figure_style.note_absent(axes, absent)
    columns = ["run", "label", "step", "grad_norm", "last_before_divergence"]
    return FigureWithData(figure, pd.DataFrame(rows, columns=columns).assign(preset=study.preset_named))


def _mark_printed(axes: Axes, study: Study, published: PrintedNumbers) -> None:
    """Hollow: the steps at which the paper's runs were no numbers any more, as high as it prints their norms before
    that, and the spike of the first seed; at its own size alone, as steps of other sizes are others."""
    printed, spike = published.table("table6"), published.claim("hybrid_spike")
    rows = printed.loc[[DIVERGES]].set_index("seed")
    marks = [(seed, float(row["nan_step"]), float(row["pre_nan_grad_norm"])) for seed, row in rows.iterrows()]
    marks.append((str(GRADIENTS[1][1]), float(spike["step"]), float(spike["spike"])))
    colours = {str(seed): colour for method, seed, colour, _ in GRADIENTS if method == DIVERGES}
    label = "printed: last norm at the NaN step, and the spike"
    for seed, step, norm in marks if study.preset == "paper" else ():
        axes.plot(step, norm, "D", mfc="none", mec=colours[seed], ms=6, zorder=5)
    if study.preset == "paper":
        axes.plot([], [], "D", mfc="none", mec=figure_style.GREY, ms=6, label=label)
