"""Draws Figure 2: attention entropy over training, which the paper infers from key norms and does not measure.

Not of the paper; its groups of layers are.
"""

from __future__ import annotations

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..norm_curves import AS_PUBLISHED, ENTROPY
from ._panels import ARMS, axis_limits, draw, finish, frame, panels


@with_house_style
def fig2(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Each layer's attention entropy, normalised by row, and the printed groups' means, one panel an arm."""
    figure, axes = panels(study)
    points, ends = [], {}
    for arm in ARMS:
        mine, ends[arm] = draw(axes[arm], frames, study, arm, ENTROPY, ".3f")
        points += mine
    axes[AS_PUBLISHED].set_ylim(*axis_limits(points))
    axes[AS_PUBLISHED].set_ylabel("attention entropy (1: uniform)")
    finish(figure, axes, study, "Attention entropy of each row over that of uniform attention", ends)
    return FigureWithData(figure, frame(study, points, "attention_entropy"))
