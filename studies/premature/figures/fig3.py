"""Draws Figure 3: upper attention specialises later under the intervention, lower routing does not.

Source: premature study, Figure 3 (sections 5.3 and 5.4): A events, B entropy, C logits with the top singular value at
3 % as an inset, D perplexity lost when upper queries and keys are zeroed.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..release_rule_replay import find_maturity
from ..run_values import BASE, EARLY, SHARP, RunValues

#: Side of a pair -> colour, and mark: nobody needs colours to tell them.
SIDES = {"control": figure_style.RED, "intervention": figure_style.BLUE}
MARKS = {"control": "o", "intervention": "s"}

#: Claim -> panel, and for each printed value its side and percent of training.
PRINTED: dict[str, tuple[str, dict[str, tuple[str, float]]]] = {
    "entropy_3pct": ("entropy", {"control": ("control", 3), "intervention": ("intervention", 3)}),
    "readout_20pct": ("entropy", {"selective_upper_entropy": ("intervention", 20)}),
    "logit_3pct": ("logit", {"control": ("control", 3), "intervention": ("intervention", 3)}),
    "ablation_control": ("ablation", {"at_3pct": ("control", 3), "at_end": ("control", 100)}),
    "ablation_intervention": ("ablation", {"at_3pct": ("intervention", 3), "at_end": ("intervention", 100)}),
    "lower_routing_same": ("matured", {"control_pct": ("control", 3), "intervention_pct": ("intervention", 3)}),
    "sharp_crossing": ("sharp", {"control_pct": ("control", 3), "intervention_pct": ("intervention", 20)}),
}

#: Event -> its row in panel A.
EVENTS = {"matured": "lower half copies", "sharp": f"upper entropy below {SHARP:g}"}

#: A mark before this percent of training leaves no room for words at the left edge of panel A.
EARLY_MARK = 2.5


@with_house_style
def fig3(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Thin lines are seeds, thick ones their mean; hollow marks are printed numbers, of the paper's own size."""
    table = pd.concat([_tabulate_runs(RunValues(frames, study)), _tabulate_print(published)], ignore_index=True)
    figure = Figure(figsize=(figure_style.PAGE, 5.4))
    grid = figure.subplots(2, 2)
    _events(grid[0, 0], table)
    _curves(grid[0, 1], table, "entropy", "entropy, upper half")
    _curves(grid[1, 0], table, "logit", "mean |z|, upper half")
    _curves(grid[1, 1], table, "ablation", "perplexity lost (symlog)")
    grid[0, 1].set_ylim(top=1.02)
    _inset(grid[1, 0], table)
    grid[1, 1].set_yscale("symlog", linthresh=1.0)
    titles = ["A  When routing matures and attention sharpens", "B  Upper attention entropy"]
    titles += ["C  Upper logits; inset: top singular value at 3 %", "D  Upper queries and keys zeroed"]
    for axes, title in zip(grid.flat, titles, strict=True):
        axes.set_title(title)
        axes.set_xscale("symlog", linthresh=3.0, linscale=1.0)
        axes.set_xticks([0, 1, 3, 6, 12, 20, 50, 100], ["0", "1", "3", "6", "12", "20", "50", "100"])
        axes.minorticks_off()
        axes.set_xlim(-0.2, 115)
        axes.set_xlabel("percent of training (log from 3 on)")
    marks = [grid[0, 1].plot([], [], color=SIDES[side], marker=MARKS[side], ms=4)[0] for side in SIDES]
    hollow = grid[0, 1].plot([], [], "D", mfc="none", mec=figure_style.GREY, ms=4.5)[0]
    figure.legend([*marks, hollow], [*SIDES, "printed (270M)"], loc="outside lower center", ncols=3, fontsize=7.5)
    lines = [f"preset {study.preset_named} · {study.scale_label(BASE)}", _name_absent(table)]
    figure.suptitle("\n".join(filter(None, lines)), fontsize=8, x=0.01, ha="left")
    return FigureWithData(figure, table.assign(preset=study.preset_named))


def _tabulate_runs(run_values: RunValues) -> pd.DataFrame:
    """Rows of panel, side, seed, percent of training, value and null; an event's value is the percent itself."""
    rows: list[dict[str, Any]] = []
    for seed, *pair in run_values.pairs():
        for side, key in zip(SIDES, pair, strict=True):
            run = {
                "arm": side,
                "seed": str(seed),
                "run": key or "",
                "missing_reason": run_values.word(key, otherwise=""),
            }
            curves = {"entropy": run_values.curve(key, "entropy"), "logit": run_values.curve(key, "logit_mean_abs")}
            curves |= {"ablation": run_values.ablation(key), "singular": run_values.curve(key, "bilinear_top")}
            for panel, curve in curves.items():
                rows += [
                    run | {"panel": panel, "training_pct": 100 * at, "value": value} for at, value in curve.items()
                ]
            for panel, at in (("matured", find_maturity(run_values, key)), ("sharp", run_values.find_sharp_point(key))):
                rows.append(run | {"panel": panel, "training_pct": 100 * at, "value": math.nan})
    columns = ["panel", "arm", "seed", "training_pct", "value", "run", "missing_reason"]
    return pd.DataFrame(rows, columns=columns)


def _tabulate_print(published: PrintedNumbers) -> pd.DataFrame:
    rows = []
    for claim, (panel, values) in PRINTED.items():
        printed = published.claim(claim)
        for name, (side, percent) in values.items():
            event = panel in EVENTS
            at, value = (float(printed[name]), math.nan) if event else (percent, float(printed[name]))
            rows.append({"panel": panel, "arm": side, "seed": "printed", "training_pct": at, "value": value})
    return pd.DataFrame(rows).assign(run="", missing_reason="")


def _events(axes: Axes, table: pd.DataFrame) -> None:
    """A mark at the percent of training of each event; those that never happen are named at an edge without marks."""
    for row, (panel, label) in enumerate(reversed(EVENTS.items())):
        for offset, (side, colour) in zip((0.14, -0.14), SIDES.items(), strict=True):
            mine = table[(table["panel"] == panel) & (table["arm"] == side)]
            measured, printed = mine[mine["seed"] != "printed"], mine[mine["seed"] == "printed"]
            y = row + offset
            axes.plot(measured["training_pct"], [y] * len(measured), MARKS[side], color=colour, ms=5, alpha=0.6)
            axes.plot(printed["training_pct"], [y] * len(printed), "D", mfc="none", mec=colour, ms=9)
            there = measured[measured["missing_reason"] == ""]
            never = int(there["training_pct"].isna().sum())
            if never:
                text = f"never: {never} of {len(there)}"
                x, place = (0.99, "right") if (mine["training_pct"] < EARLY_MARK).any() else (0.01, "left")
                at = axes.get_yaxis_transform()
                axes.text(x, y, text, ha=place, va="center", fontsize=7, color=colour, transform=at)
        axes.text(0.01, row + 0.42, label, fontsize=7.2, transform=axes.get_yaxis_transform(), va="center")
    axes.set_yticks([])
    axes.set_ylim(-0.4, 1.6)


def _curves(axes: Axes, table: pd.DataFrame, panel: str, label: str) -> None:
    for side, colour in SIDES.items():
        mine = table[(table["panel"] == panel) & (table["arm"] == side)]
        measured, printed = mine[mine["seed"] != "printed"], mine[mine["seed"] == "printed"]
        for _, run in measured.groupby("seed"):
            axes.plot(run["training_pct"], run["value"], color=colour, linewidth=0.6, alpha=0.5)
        mean = measured.groupby("training_pct")["value"].mean()
        axes.plot(mean.index, mean.to_numpy(), color=colour, marker=MARKS[side], ms=3)
        axes.plot(printed["training_pct"], printed["value"], "D", mfc="none", mec=colour, ms=5)
    axes.set_ylabel(label)
    if table[(table["panel"] == panel) & (table["seed"] != "printed")].empty:
        figure_style.note_absent(axes, ["every run: no value"])


def _inset(axes: Axes, table: pd.DataFrame) -> None:
    """Top singular value of the upper heads' bilinear form at 3 %, one bar a side; its size is not printed."""
    mine = table[(table["panel"] == "singular") & (table["training_pct"].round(6) == round(100 * EARLY, 6))]
    if mine.empty:
        return
    means = mine.groupby("arm")["value"].mean()
    # Above the highest curve, wherever that is.
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.75 * (high - low))
    small = axes.inset_axes((0.7, 0.7, 0.28, 0.22))
    small.bar(range(len(SIDES)), [means.get(side, math.nan) for side in SIDES], color=list(SIDES.values()), width=0.6)
    small.set_xticks(range(len(SIDES)), ["control", "slowed"], fontsize=7)
    small.tick_params(axis="y", labelsize=7, length=2)
    small.set_title("σ₁ of W_QᵀW_K", fontsize=7, loc="center", pad=2)
    small.margins(y=0.25)
    small.grid(visible=False)


def _name_absent(table: pd.DataFrame) -> str:
    """Name the runs that are not drawn, for the top of the page."""
    there = table[(table["panel"] == "sharp") & (table["missing_reason"] != "")]
    names = [f"{row.arm} {row.seed} ({row.missing_reason})" for row in there.itertuples()]
    letters = int(figure_style.PAGE * figure_style.LETTERS * figure_style.SMALL / 8)
    return figure_style.wrap_names(["not drawn: " + names[0], *names[1:]], letters) if names else ""
