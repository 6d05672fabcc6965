"""Draws Figure 2: how well an MLP with a skip stands in for one in another basis, and the best linear map, by width.

Source: query_free study, Figure 2 (appendix 8.4), of which ranges and two distances are printed.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..basis_transfer_results import DISTANCE, ERROR, LINEAR, LINEAR_EQ_13, MLP, MLP_EQ_13, finals

COLOURS = {MLP: figure_style.BLUE, LINEAR: figure_style.ORANGE}
LABELS = {MLP: "MLP with a skip, fitted", LINEAR: "linear map, ridge regression"}

#: How the printed distances are meant.
WORDS = {MLP: "about", LINEAR: "above"}

#: Panel -> quantity, by what it is multiplied, title and axis.
PANELS = {
    "error": (ERROR, 100.0, "Relative L2 error", "relative L2 error (%)"),
    "distance": (DISTANCE, 1.0, "Mean cosine distance", "1 - mean cosine"),
}

#: The linear map's error without a sample, by its closed form.
EXACT = "exact_relative_l2"


@with_house_style
def fig2(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Errors left, cosine distances right; bands and dashes are printed, hollow marks the best linear map of all."""
    results = finals(frames)
    figure = Figure(figsize=(figure_style.PAGE, 3.3))
    axes = dict(zip(PANELS, figure.subplots(1, 2), strict=True))
    rows = []
    for panel, (quantity, times, title, label) in PANELS.items():
        panel_axes = axes[panel]
        if results is None:
            figure_style.note_absent(panel_axes, [f"the measurement ({MISSING})"])
        else:
            for arm, colour in COLOURS.items():
                line = times * results[arm, quantity]
                panel_axes.plot(line.index, line.to_numpy(), "o-", color=colour, ms=4.5, zorder=4)
                rows += [_point(panel, arm, "reproduced", h, value) for h, value in line.items()]
        panel_axes.set_title(title + "\n", fontsize=8.5)
        panel_axes.set_xlabel("width h")
        panel_axes.set_ylabel(label)
    if results is not None:
        mark = {"mfc": "none", "mec": figure_style.BLACK, "ms": 8, "zorder": 3}
        for arm, shape, name in ((LINEAR, "s", "best linear map"), (LINEAR_EQ_13, "D", "best linear map without -X")):
            exact = 100 * results[arm, EXACT]
            axes["error"].plot(exact.index, exact.to_numpy(), shape, label=f"{name}, closed form", **mark)
            rows += [_point("error", name, "closed form", h, value) for h, value in exact.items()]
        for panel, (quantity, times, _, _) in PANELS.items():
            for arm in (MLP_EQ_13, LINEAR_EQ_13):  # in the numbers alone: the picture shows what is claimed
                line = times * results[arm, quantity]
                rows += [_point(panel, arm, "reproduced", h, value) for h, value in line.items()]
        for panel_axes in axes.values():
            panel_axes.set_xticks(list(results.index))
            panel_axes.margins(x=0.12)
    printed_rows, labels = _draw_printed(axes, published)
    rows += printed_rows
    axes["error"].set_title(f"{PANELS['error'][2]}\npreset {study.preset}{_sizes(study)}", fontsize=8.5)
    for panel, panel_axes in axes.items():
        hidden = (MLP_EQ_13, LINEAR_EQ_13)
        values = [row["value"] for row in rows if row["panel"] == panel and row["curve"] not in hidden]
        panel_axes.set_ylim(0, 1.1 * max(values))
        if results is None:
            panel_axes.set_xticks([])
    _legend(figure, axes["error"])
    figure.draw_without_rendering()  # limits and transforms must be final before labels are placed
    for panel, panel_axes in axes.items():
        figure_style.label_curves(panel_axes, labels[panel], gap=0.14)
    columns = ["panel", "curve", "source", "width", "value"]
    return FigureWithData(figure, pd.DataFrame(rows, columns=columns).assign(preset=study.preset))


def _point(panel: str, line: str, source: str, h: object, value: float) -> dict[str, object]:
    return {"panel": panel, "curve": line, "source": source, "width": h, "value": float(value)}


def _draw_printed(
    axes: dict[str, Axes], published: PrintedNumbers
) -> tuple[list[dict[str, object]], dict[str, list[tuple[float, str, str]]]]:
    """The printed ranges of errors as bands, the printed distances as dashes, of no single width; returns their points,
    and for each panel the labels beside it."""
    rows: list[dict[str, object]] = []
    labels: dict[str, list[tuple[float, str, str]]] = {panel: [] for panel in axes}
    errors, distances = published.claim("mlp_transfer_error"), published.claim("mlp_transfer_cosdist")
    for arm, colour in COLOURS.items():
        low, high = errors[arm]
        axes["error"].axhspan(low, high, color=colour, alpha=0.15, linewidth=0, zorder=1)
        axes["distance"].axhline(distances[arm], color=colour, linestyle=(0, (4, 2)), linewidth=1.0, zorder=2.5)
        rows += [_point("error", arm, "published", None, end) for end in (low, high)]
        rows.append(_point("distance", arm, "published", None, distances[arm]))
        labels["error"].append(((low + high) / 2, f"printed:\n{low} to {high} %", colour))
        labels["distance"].append((distances[arm], f"printed:\n{WORDS[arm]} {distances[arm]}", colour))
    return rows, labels


def _sizes(study: Study) -> str:
    """How the experiment was cut down, where it was."""
    options = study.definition.get("measurements", {}).get("basis_transfer", {}).get(study.preset)
    return f" · {options['steps']:,} steps of {options['batch']:,}" if options else ""


def _legend(figure: Figure, axes: Axes) -> None:
    handles, _ = axes.get_legend_handles_labels()
    lines = [axes.plot([], [], "o-", color=colour, ms=4.5, label=LABELS[arm])[0] for arm, colour in COLOURS.items()]
    figure.legend(handles=[*lines, *handles], loc="outside lower center", ncols=3, fontsize=7)
