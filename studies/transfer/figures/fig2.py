"""Draws Figure 2: held-out loss over training at the base scale, with where the baseline's seeds lie.

Source: transfer study, Figure 2 (appendix E), which prints one seed of each method and no band.
"""

from __future__ import annotations

import math

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from plumbline.core.run_files import DIVERGED, MISSING
from plumbline.published.printed_numbers import PrintedNumbers, read_printed_value
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, format_label, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study
from plumbline.stats.distributions import t_isf

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
#: What lies beyond each side of the band.
HALF = 0.025
#: Below this many validations a curve is shown whole.
FEW_POINTS = 20


@with_house_style
def fig2(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Held-out loss of the printed six methods over training; those that the study has. Thick: the first seed of each,
    thin: its other seeds, band: where 19 of 20 further seeds of the baseline would lie.
    """
    figure, axes = figure_style.make_canvas(figure_style.PAGE, 3.3)
    rows, ends, absent, late = [], [], [], []
    band = _draw_band(axes, frames, study)
    others = 0
    for method, colour in LOSSES.items():
        key, label = frames.key(BASE, method), format_label(study, method)
        if key is None:
            absent.append(f"{label} (no run of this study)")
            continue
        outcome = frames.runs.loc[key, "outcome"]
        held_out = frames.metrics(key).query("split == 'validation'")
        held_out = held_out[np.isfinite(held_out["loss"].astype(float))]
        if held_out.empty:
            absent.append(f"{label} (missing)" if outcome == MISSING else f"{label} ({outcome} before a held-out loss)")
            continue
        for other in _seeds(frames, method):
            if other != key and len(curve := _validation_curve(frames, other)):
                axes.plot(curve.index, curve.to_numpy(), color=colour, linewidth=0.6, alpha=0.7, zorder=2)
                rows += [_point(other, label, step, loss) for step, loss in curve.items()]
                others += 1
        x, y = held_out["step"].to_numpy(), held_out["loss"].to_numpy()
        axes.plot(x, y, color=colour, zorder=4 if method == "baseline" else 3)
        late.append(float(np.interp(max(0.12 * x[-1], x[min(1, len(x) - 1)]), x, y)))
        note = f"{label} {y[-1]:.3f}"
        if outcome == DIVERGED:
            axes.plot(x[-1], y[-1], "x", color=colour, markersize=8, markeredgewidth=2, zorder=5)
            note = f"{label} diverged"
        ends.append((float(y[-1]), note, colour))
        rows += [_point(key, label, a, b) for a, b in zip(x, y, strict=True)]
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
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(figure_style.format_thousands))
    captions = ["thick: first seeds", *["thin: other seeds"] * bool(others)]
    printed = "hollow: printed" if _mark_printed(axes, published) else ""
    if band:
        captions.append(f"band: 95 % of further seeds of the baseline ({band} seeds, prediction t)")
    figure_style.set_preset_title(
        axes, study, f"Validation loss over training\n{'; '.join(captions)}", BASE, extra=printed
    )
    figure.draw_without_rendering()  # limits and transforms must be final before labels are placed
    figure_style.label_curves(axes, ends)
    figure_style.note_absent(axes, absent)
    return FigureWithData(figure, frame.assign(preset=study.preset_named))


def _point(run: str, label: str, step: float, loss: float) -> dict[str, object]:
    return {"run": run, "label": label, "step": int(step), "validation_loss": float(loss)}


def _seeds(frames: RunFrames, method: str) -> list[str]:
    """The runs of a method at the base scale, by seed."""
    runs = frames.select(BASE, [method])
    return list(runs[runs["method"] == method].sort_values("seed").index)


def _validation_curve(frames: RunFrames, key: str) -> pd.Series:
    """Step -> held-out loss of a run, where that is a number."""
    metrics = frames.metrics(key)
    curve = metrics[metrics["split"] == "validation"].set_index("step")["loss"].astype(float)
    return curve[np.isfinite(curve)]


def _draw_band(axes: Axes, frames: RunFrames, study: Study) -> int:
    """Where a further seed of the baseline lies in 95 % of cases, at each step that its seeds share; the number of its
    seeds, 0 where there is no band.
    """
    curves = [curve for key in _seeds(frames, str(study.reference)) if len(curve := _validation_curve(frames, key))]
    together = pd.concat(curves, axis=1).dropna() if len(curves) > 1 else pd.DataFrame()
    if together.empty:
        return 0
    n = together.shape[1]
    half = float(t_isf(HALF, n - 1)) * together.std(axis=1, ddof=1) * math.sqrt(1 + 1 / n)
    middle = together.mean(axis=1)
    look = {"color": LOSSES["baseline"], "alpha": 0.14, "linewidth": 0, "zorder": 1}
    axes.fill_between(together.index, middle - half, middle + half, **look)
    return n


def _mark_printed(axes: Axes, published: PrintedNumbers) -> bool:
    """The printed final losses, hollow, where the axes reach them: of another text they are no neighbours."""
    printed, end = published.table("table7"), axes.get_xlim()[1]
    losses = {method: read_printed_value(printed, method, "val_loss") for method in LOSSES}
    low, high = axes.get_ylim()
    reached = {method: loss for method, loss in losses.items() if low <= loss <= high and axes.lines}
    for method, loss in reached.items():
        axes.plot(end, loss, "D", mfc="none", mec=LOSSES[method], ms=5, clip_on=False, zorder=6)
    return bool(reached)
