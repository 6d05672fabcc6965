"""Draws Figure 1: the mechanism, as a diagram: two factors of one growth term, and what acts on each.

Source: premature study, Figure 1 (sections 1 and 6). Nothing in it is measured.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

#: Box -> centre (x, y), width, text, colour. The unit of both axes is about a line of text.
BOXES: dict[str, tuple[float, float, float, str, str]] = {
    "write": (11, 27, 20, "single-branch FFNs write\ninto an unsettled stream", figure_style.GREY),
    "energy": (36, 27, 21, "immature residual energy\n$R_P = \\|X_P\\|_F^2$", figure_style.ORANGE),
    "rate": (11, 11, 20, "upper queries and keys\nlearn at full speed early", figure_style.GREY),
    "step": (36, 11, 21, "step size\n$\\eta_{upper}$", figure_style.BLUE),
    "growth": (
        61,
        19,
        19,
        "growth of upper logits\n$\\|\\Delta Z_P\\|_F \\leq C\\,\\eta_{upper}\\,R_P^2$",
        figure_style.RED,
    ),
    "sharp": (85, 27, 17, "few keys take all:\nentropy collapses", figure_style.GREY),
    "reliance": (85, 11, 17, "the model comes to\nneed these matches", figure_style.GREY),
    "gate": (36, 38, 29, "multiplicative gate (SwiGLU, GEGLU):\nwrites less, $\\bar\\rho R_P$", figure_style.GREEN),
    "slow": (
        36,
        0,
        29,
        "intervention: $\\alpha\\,\\eta_{upper}$ with $\\alpha = 1/4$\nuntil the lower half copies",
        figure_style.GREEN,
    ),
}

#: From box, to box, whether it holds back what it points at.
ARROWS = [
    ("write", "energy", False),
    ("rate", "step", False),
    ("energy", "growth", False),
    ("step", "growth", False),
    ("growth", "sharp", False),
    ("sharp", "reliance", False),
    ("growth", "reliance", False),
    ("gate", "energy", True),
    ("slow", "step", True),
]

HEIGHT = 7.0


@with_house_style
def fig1(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Boxes and arrows; green holds back what it points at."""
    figure, axes = figure_style.make_canvas(figure_style.PAGE, 3.3)
    for x, y, width, text, colour in BOXES.values():
        _box(axes, x, y, width, text, colour)
    for start, end, holds_back in ARROWS:
        _arrow(axes, start, end, holds_back)
    axes.set_xlim(0, 95)
    axes.set_ylim(-5, 43)
    axes.axis("off")
    axes.set_title(
        "How upper attention specialises too early, and the two sides from which it is held back", fontsize=8.5
    )
    rows = [{"cause": start, "effect": end, "inhibits": back} for start, end, back in ARROWS]
    return FigureWithData(figure, pd.DataFrame(rows).assign(preset=study.preset_named))


def _box(axes: Axes, x: float, y: float, width: float, text: str, colour: str) -> None:
    corner = (x - width / 2, y - HEIGHT / 2)
    look = {"boxstyle": "round,pad=0,rounding_size=1.2", "linewidth": 1.2, "edgecolor": colour, "facecolor": "white"}
    axes.add_patch(FancyBboxPatch(corner, width, HEIGHT, **look, zorder=2))
    axes.text(x, y, text, ha="center", va="center", fontsize=7, zorder=3)


def _arrow(axes: Axes, start: str, end: str, holds_back: bool) -> None:
    """From the edge of one box to that of another: a bar for what holds back, a head for what drives."""
    (x0, y0, w0, *_), (x1, y1, w1, *_) = BOXES[start], BOXES[end]
    if abs(x1 - x0) < 1:
        down = y1 < y0
        a, b = (x0, y0 - HEIGHT / 2 if down else y0 + HEIGHT / 2), (x1, y1 + HEIGHT / 2 if down else y1 - HEIGHT / 2)
    else:
        a, b = (x0 + w0 / 2, y0), (x1 - w1 / 2, y1)
    arrow_style = "|-|,widthA=0,widthB=4" if holds_back else "-|>,head_length=4,head_width=2"
    colour = figure_style.GREEN if holds_back else "#444444"
    axes.add_patch(FancyArrowPatch(a, b, arrowstyle=arrow_style, color=colour, linewidth=1.2, shrinkA=1, shrinkB=2))
