"""Draws Figure 3: query norms over training. Scores are the product of both norms; the paper tracks keys alone.

Not of the paper; its groups of layers are.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..norm_curves import AS_PUBLISHED, QUERY_NORM
from ._panels import ARMS, axis_limits, draw, finish, frame, panels


@with_house_style
def fig3(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Each layer's query norm and the printed groups' means, one panel an arm."""
    figure, axes = panels(study)
    points, ends = [], {}
    for arm in ARMS:
        mine, ends[arm] = draw(axes[arm], frames, study, arm, QUERY_NORM, ".2f")
        points += mine
    axes[AS_PUBLISHED].set_ylim(*axis_limits(points))
    axes[AS_PUBLISHED].set_ylabel("query norm")
    finish(figure, axes, study, "Query norm: mean L2 over tokens and heads, after the gain, before RoPE", ends)
    return FigureWithData(figure, frame(study, points, "query_l2_norm"))
