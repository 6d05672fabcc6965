"""The transfer study's figures: finished runs in, a picture and its numbers out.

Source: transfer study, Figures 1 to 3 (section 5.3 and appendix E).
"""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm

from plumbline.results import style
from plumbline.results.published import Published
from plumbline.results.runs import DIVERGED, MISSING, RunFrames
from plumbline.results.style import Picture, label_of, styled
from plumbline.results.table import task_source
from plumbline.specs.sheet import Study
from plumbline.studies.transfer.tables.task_deltas import deltas, sorted_methods, tasks_of

#: Figure 1's runs at the large scale: method, seed, colour, line.
GRADIENTS = [
    ("baseline", 42, style.BLUE, "-"),
    ("hybrid_norm", 42, style.RED, "-"),
    ("hybrid_norm", 43, style.ORANGE, (0, (5, 2))),
    ("hybrid_norm", 44, style.VIOLET, (0, (1, 1.5))),
]
#: Figure 2's six methods with their colours: improvers cold, failures warm.
LOSSES = {
    "baseline": style.BLACK,
    "qknorm": style.BLUE,
    "softpick": style.GREEN,
    "sigmoid_attn": style.ORANGE,
    "ssmax": style.RED,
    "attnres": style.VIOLET,
}


@styled
def fig1(frames: RunFrames, study: Study, published: Published) -> Picture:
    """Gradient norm before clipping of the baseline and of HybridNorm's seeds at the large scale.

    A cross marks the last finite step of a run that diverged.
    """
    figure, axes = style.canvas(style.PAGE, 3.1)
    curves, absent = [], []
    for method, seed, colour, line in GRADIENTS:
        key = f"{study.name}/large/{method}/s{seed}"
        label = f"{label_of(study, method)}, seed {seed}"
        if frames.runs.loc[key, "outcome"] == MISSING:
            absent.append(f"{label} (missing)")
            continue
        train = frames.metrics(key).query("split == 'train'")
        finite = np.isfinite(train["grad_norm"].to_numpy())
        steps, norms = train["step"].to_numpy()[finite], train["grad_norm"].to_numpy()[finite]
        curves.append((key, label, frames.runs.loc[key, "outcome"], colour, line, steps, norms))
    lost = [steps[-1] for _, _, outcome, _, _, steps, _ in curves if outcome == DIVERGED and len(steps)]
    # As in the document, the stretch in which the runs diverge; the whole of training where none does.
    until = max(lost) * 1.06 if lost else max((steps[-1] for *_, steps, _ in curves if len(steps)), default=1)
    rows = []
    for key, label, outcome, colour, line, steps, norms in curves:
        kept = steps <= until
        x, y = style.thin(steps[kept], norms[kept])
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
            {"run": key, "label": label, "step": int(a), "grad_norm": float(b), "terminal": bool(mark)}
            for a, b, mark in zip(x, y, marks, strict=True)
        ]
    if rows:
        values = pd.DataFrame(rows)["grad_norm"]
        if values.max() > 20 * values.min() > 0:
            axes.set_yscale("log")
        else:
            axes.set_ylim(0, values.max() * 1.15)
    axes.set_xlim(0, until)
    axes.set_xlabel("training step")
    axes.set_ylabel("gradient norm before clipping")
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(_thousands))
    style.name_preset(axes, study, "Gradient norm; a cross is the last finite step before a divergence", "large")
    if rows:
        figure.legend(loc="outside lower center", ncols=2, fontsize=7.5)
    style.note_absent(axes, absent)
    columns = ["run", "label", "step", "grad_norm", "terminal"]
    return Picture(figure, pd.DataFrame(rows, columns=columns).assign(preset=study.preset))


@styled
def fig2(frames: RunFrames, study: Study, published: Published) -> Picture:
    """Held-out loss of six methods over training at the base scale, the first seed of each."""
    figure, axes = style.canvas(style.PAGE, 3.3)
    rows, ends, absent, late = [], [], [], []
    for method, colour in LOSSES.items():
        mine = frames.select("base", [method]).sort_values("seed").head(1)
        key, outcome, label = str(mine.index[0]), mine["outcome"].iloc[0], label_of(study, method)
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
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(_thousands))
    style.name_preset(axes, study, "Validation loss of six methods", "base")
    _finish(figure, axes, ends, absent)
    return Picture(figure, frame.assign(preset=study.preset))


@styled
def fig3(frames: RunFrames, study: Study, published: Published) -> Picture:
    """Each method's distance from the baseline on each task, in points of accuracy, methods best first."""
    tasks = tasks_of(frames, published)
    values = deltas(frames, study, tasks).loc[sorted_methods(frames, study)]
    points = 100 * values.to_numpy(dtype=float)
    runs = frames.select("base", study.methods)
    figure, axes = style.canvas(style.PAGE, 5.6)
    there = np.abs(points[np.isfinite(points)])
    # One cell far out must not bleach the others: beyond the bound colour saturates, the number still tells.
    bound = float(np.quantile(there, 0.8)) if there.size and there.max() > 0 else 1.0
    bound = max(bound, 1e-9)
    shades = mpl.colormaps["RdBu"].with_extremes(bad="#EEEEEE")
    image = axes.imshow(np.ma.masked_invalid(points), cmap=shades, norm=TwoSlopeNorm(0.0, -bound, bound), aspect="auto")
    for (row, column), value in np.ndenumerate(points):
        if np.isfinite(value):
            dark = abs(value) > 0.62 * bound
            shown = f"{value:+.1f}" if abs(value) < 99.5 else f"{value:+.0f}"
            shown = "0.0" if shown in ("+0.0", "-0.0") else shown.replace("-", "−")
            axes.text(column, row, shown, ha="center", va="center", fontsize=6, color="white" if dark else "black")
    for row, method in enumerate(values.index):
        if not np.isfinite(points[row]).any():
            outcomes = set(runs[runs["method"] == method].sort_values("seed")["outcome"].head(1))
            word = DIVERGED if DIVERGED in outcomes else MISSING
            axes.text((len(tasks) - 1) / 2, row, word, ha="center", va="center", fontsize=7, color=style.GREY)
    axes.set_xticks(range(len(tasks)), [task.replace("_", " ") for task in tasks], rotation=38, ha="right")
    axes.set_yticks(range(len(values)), [label_of(study, method) for method in values.index])
    axes.grid(False)
    axes.set_xticks(np.arange(len(tasks) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(values) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    bar = figure.colorbar(image, ax=axes, extend="both", shrink=0.7, pad=0.015)
    bar.set_label(f"distance from the baseline (points of accuracy; colour ends at ±{bound:.1f})")
    bar.outline.set_linewidth(0.5)
    source = task_source(frames)
    style.name_preset(
        axes, study, "Per-task distance from the baseline, methods by CLIMB-avg", "base", extra=f"items: {source}"
    )
    long = values.rename_axis("method").reset_index().melt("method", var_name="task", value_name="delta")
    long["word"] = ["" if np.isfinite(value) else "no value" for value in long["delta"]]
    return Picture(figure, long.assign(preset=study.preset))


#: Below this many validations a curve is shown whole.
FEW_POINTS = 20


def _finish(figure: mpl.figure.Figure, axes: Axes, ends: list[tuple[float, str, str]], absent: list[str]) -> None:
    figure.draw_without_rendering()  # limits and transforms must be final before labels are placed
    style.direct_labels(axes, ends)
    style.note_absent(axes, absent)


def _thousands(value: float, _position: int) -> str:
    return f"{value:,.0f}"


FIGURES = {"fig1": fig1, "fig2": fig2, "fig3": fig3}
