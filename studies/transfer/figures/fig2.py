"""Draws Figure 2: held-out loss over training at the base scale.

Source: transfer study, Figure 2 (appendix E).
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd

from plumbline.audit.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, label_of, styled
from plumbline.results.runs.finished_runs import DIVERGED, MISSING, RunFrames
from plumbline.specs.study_config import Study

from ..headline_runs import BASE

#: Figure 2's six methods with their colours: improvers cold, failures warm.
LOSSES = {
    "baseline": figure_style.BLACK,
    "qknorm": figure_style.BLUE,
    "softpick": figure_style.GREEN,
    "sigmoid_attn": figure_style.ORANGE,
    "ssmax": figure_style.RED,
    "attnres": figure_style.VIOLET,
}
#: Below this many validations a curve is shown whole.
FEW_POINTS = 20


@styled
def fig2(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Held-out loss of the printed six methods over training, the first seed of each; those that the study has."""
    figure, axes = figure_style.canvas(figure_style.PAGE, 3.3)
    rows, ends, absent, late = [], [], [], []
    for method, colour in LOSSES.items():
        key = frames.key(BASE, method)
        if key is None:
            absent.append(f"{method} (no run of this study)")
            continue
        outcome, label = frames.runs.loc[key, "outcome"], label_of(study, method)
        held_out = frames.metrics(key).query("split == 'validation'")
        held_out = held_out[np.isfinite(held_out["loss"].astype(float))]
        if held_out.empty:
            absent.append(f"{label} (missing)" if outcome == MISSING else f"{label} ({outcome} before a held-out loss)")
            continue
        x, y = held_out["step"].to_numpy(), held_out["loss"].to_numpy()
        axes.plot(x, y, color=colour, zorder=4 if method == "baseline" else 3)
        late.append(float(np.interp(max(0.12 * x[-1], x[min(1, len(x) - 1)]), x, y)))
        note = f"{label} {y[-1]:.3f}"
        if outcome == DIVERGED:
            axes.plot(x[-1], y[-1], "x", color=colour, markersize=8, markeredgewidth=2, zorder=5)
            note = f"{label} diverged"
        ends.append((float(y[-1]), note, colour))
        rows += [
            {"run": key, "label": label, "step": int(a), "validation_loss": float(b)} for a, b in zip(x, y, strict=True)
        ]
    frame = pd.DataFrame(rows, columns=["run", "label", "step", "validation_loss"])
    if rows:
        low, high = frame["validation_loss"].min(), max(max(late), max(y for y, *_ in ends))
        if frame["step"].nunique() < FEW_POINTS:
            high = frame["validation_loss"].max()
        room = 0.05 * (high - low) or 0.1
        # The steep beginning of a long run, alike for all, would leave no room for its end.
        axes.set_ylim(low - room, high + room)
        axes.set_xlim(0, frame["step"].max())
    axes.set_xlabel("training step")
    axes.set_ylabel("validation loss (nats per token)")
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(figure_style.thousands))
    figure_style.name_preset(axes, study, "Validation loss over training", BASE)
    figure.draw_without_rendering()  # limits and transforms must be final before labels are placed
    figure_style.direct_labels(axes, ends)
    figure_style.note_absent(axes, absent)
    return FigureWithData(figure, frame.assign(preset=study.preset_named))
