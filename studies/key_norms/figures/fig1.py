"""Draws Figure 1: key norms over training, next to what weight decay alone makes of a gain.

Source: key_norms study, figure 1 (three means of two layers each, one arm).
"""

from __future__ import annotations

import numpy as np
from matplotlib.lines import Line2D

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study

from ..norm_curves import AS_PUBLISHED, KEY_NORM, decay, find_spec
from ._panels import ARMS, COLOURS, axis_limits, draw, finish, frame, panels, printed_groups


@with_house_style
def fig1(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """Each layer's key norm and the printed groups' means, one panel an arm; dashed, the arm's decay line; diamonds,
    the printed final norms."""
    figure, axes = panels(study)
    prose = published.prose()
    points, ends, extra = [], {}, []
    for arm in ARMS:
        mine, ends[arm] = draw(axes[arm], frames, study, arm, KEY_NORM, ".2f")
        points += mine
        spec = find_spec(study, arm)
        if spec is None:
            continue
        line = spec.model.head_width**0.5 * decay(spec)
        axes[arm].plot(
            np.arange(len(line)), line, color=figure_style.BLACK, linestyle=(0, (4, 2)), linewidth=1.1, zorder=5
        )
        points += [
            {"arm": arm, "curve": "weight decay alone", "step": step, "value": float(value)}
            for step, value in enumerate(line)
        ]
    printed = [float(prose[group.printed].text) for group in printed_groups(study)]
    spec = find_spec(study, AS_PUBLISHED)
    for group, value in zip(printed_groups(study), printed, strict=True):
        marker = {"marker": "D", "markersize": 5, "markeredgecolor": "white", "color": COLOURS[group.name]}
        axes[AS_PUBLISHED].plot(spec.train.steps if spec else 0, value, clip_on=False, zorder=6, **marker)
    points += [
        {
            "arm": AS_PUBLISHED,
            "curve": f"{group.name}, printed",
            "step": spec.train.steps if spec else 0,
            "value": value,
        }
        for group, value in zip(printed_groups(study), printed, strict=True)
    ]
    axes[AS_PUBLISHED].set_ylim(*axis_limits(points))
    axes[AS_PUBLISHED].set_ylabel("key norm")
    extra = [
        Line2D([], [], color=figure_style.BLACK, linestyle=(0, (4, 2)), linewidth=1.1, label="weight decay alone"),
        Line2D([], [], color=figure_style.GREY, marker="D", markersize=5, linestyle="none", label="printed"),
    ]
    finish(figure, axes, study, "Key norm: mean L2 over tokens and heads, after the gain, before RoPE", ends, extra)
    return FigureWithData(figure, frame(study, points, "key_l2_norm"))
