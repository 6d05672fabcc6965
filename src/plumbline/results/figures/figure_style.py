"""Defines how figures look, and saves them: the same bytes from the same numbers."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from plumbline.core.csv_text import write_frame
from plumbline.core.errors import visible
from plumbline.core.files import atomic_write_bytes, atomic_write_text
from plumbline.specs.study_config import Study

#: Okabe and Ito's palette: told apart by every kind of colour vision, black included.
BLUE, ORANGE, GREEN, RED, VIOLET, SKY, BLACK = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#000000",
)
GREY = "#6B6B6B"

#: The smallest letters: at a column's width they are still five points high.
SMALL = 7.0

#: A page's width, in inches, and the smallest letters in one.
PAGE, LETTERS = 7.2, 16

RC = {
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.3,
    "lines.solid_capstyle": "round",
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "svg.fonttype": "path",
    "svg.hashsalt": "plumbline",
}


@dataclass(frozen=True, slots=True)
class FigureWithData:
    """A figure and the numbers that it shows, one row for each plotted point."""

    figure: Figure
    frame: pd.DataFrame


def with_house_style(draw: Callable[..., FigureWithData]) -> Callable[..., FigureWithData]:
    """Decorate a drawing function: it draws in the house's style, and leaves matplotlib's settings as they were."""

    @wraps(draw)
    def in_style(*arguments: object) -> FigureWithData:
        with mpl.rc_context(RC):
            return draw(*arguments)

    return in_style


def make_canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """Make a figure (sizes in inches) with one axes; no window, no global figure."""
    figure = Figure(figsize=(width, height))
    return figure, figure.add_subplot()


def format_label(study: Study, method: str) -> str:
    """Write a method's printed name with its exponent raised, and nothing that matplotlib takes for a formula."""
    return study.label(method).replace("^2", "²").replace("$", r"\$")


def set_preset_title(axes: Axes, study: Study, title: str, *scales: str, extra: str = "") -> None:
    """Set a title that nobody can mistake: what is shown, at which preset and scale."""
    labels = " and ".join(study.scale_label(scale) for scale in scales)
    axes.set_title(f"{title}\npreset {study.preset_named} · {labels}{' · ' + extra if extra else ''}", fontsize=8.5)


def label_curves(axes: Axes, ends: Sequence[tuple[float, str, str]], *, gap: float = 0.052) -> None:
    """Label curves at the right edge: (y of the curve's end, text, colour), moved apart where they would touch.

    `gap` is the least distance in shares of the axes' height. Call it after the limits are set.
    """
    to_axes = axes.transData + axes.transAxes.inverted()
    x_end = axes.get_xlim()[1]
    heights = np.array([float(to_axes.transform((x_end, y))[1]) for y, _, _ in ends])
    order = np.argsort(heights, kind="stable")
    steps = gap * np.arange(len(ends))
    # The least squares of moves that leave a gap between neighbours is an isotonic regression.
    moved = isotonic_regression(np.clip(heights[order], 0.0, 1.0) - steps).x if ends else steps
    placed = np.clip(moved, 0.0, max(0.0, 1.0 - gap * (len(ends) - 1))) + steps
    for at, position in zip(order, placed, strict=True):
        _, text, colour = ends[int(at)]
        start = float(np.clip(heights[at], 0, 1))
        leader = {"color": colour, "linewidth": 0.6, "clip_on": False, "transform": axes.transAxes}
        axes.plot([1.004, 1.03], [start, position], solid_capstyle="butt", **leader)
        axes.text(1.036, position, text, color=colour, transform=axes.transAxes, fontsize=7.5, va="center")


def note_absent(axes: Axes, names: Iterable[str]) -> None:
    """Write below a panel which runs it lacks: inside it would cover others."""
    listed = list(names)
    if listed:
        width = axes.get_position().width * axes.figure.get_figwidth()
        text = "not drawn:\n" + wrap_names(listed, int(width * LETTERS))
        place = {"xytext": (0, -2), "textcoords": "offset points", "va": "top", "ha": "center"}
        axes.annotate(text, (0.5, 0), xycoords=axes.xaxis.label, fontsize=SMALL, color=GREY, **place)


def wrap_names(names: Iterable[str], width: int) -> str:
    """Names in lines of at most `width` letters, none broken in two."""
    text = ", ".join(name.replace(" ", "\N{NO-BREAK SPACE}") for name in names)
    return textwrap.fill(text, width, break_on_hyphens=False).replace("\N{NO-BREAK SPACE}", " ")


def widen_narrow_limits(axes: Axes, side: str, share: float = 1e-3) -> None:
    """Widen the limits of a `side` (x or y) whose values are nearly alike, so that the labels of its ticks differ
    within a few digits; `share`: of the values' size.
    """
    low, high = getattr(axes, f"get_{side}lim")()
    middle, least = (low + high) / 2, share * max(abs(low), abs(high))
    if high - low < least:
        getattr(axes, f"set_{side}lim")(middle - least / 2, middle + least / 2)


def format_thousands(value: float, _position: int) -> str:
    """Write a tick's label with a comma between thousands, as a formatter of matplotlib."""
    return f"{value:,.0f}"


def thin_curve(steps: np.ndarray, values: np.ndarray, most: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    """Thin a curve to at most about `most` points, so that a spike survives.

    Of each stretch the largest value is kept, and the last point always.
    """
    if steps.size <= most:
        return steps, values
    edges = np.linspace(0, steps.size, most + 1).astype(int)
    places = [low + int(np.argmax(values[low:high])) for low, high in pairwise(edges)]
    places = sorted({*places, steps.size - 1})
    return steps[places], values[places]


def save(picture: FigureWithData, out: str | Path) -> list[Path]:
    """Save a picture as `out` (png) and, next to it, as svg and its numbers as csv; returns the paths."""
    out = Path(out)
    paths = [out, out.with_suffix(".svg"), out.with_suffix(".csv")]
    with mpl.rc_context(RC):
        for path, kind, labels in ((paths[0], "png", {"Software": None}), (paths[1], "svg", {"Date": None})):
            stream = io.BytesIO()
            picture.figure.savefig(stream, format=kind, metadata=labels)
            content = stream.getvalue()
            # Labels stand in it as they are, in comments, where an XML file cannot hold every letter either.
            atomic_write_bytes(path, visible(content.decode()).encode() if kind == "svg" else content)
    atomic_write_text(paths[2], write_frame(picture.frame))
    return paths
