"""Training loss over steps."""

from __future__ import annotations

import pandas as pd

from plumbline.published.printed_numbers import PrintedNumbers
from plumbline.results.figures import figure_style
from plumbline.results.figures.figure_style import FigureWithData, with_house_style
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.specs.study_config import Study


@with_house_style
def curves(frames: RunFrames, study: Study, published: PrintedNumbers) -> FigureWithData:
    """A line for each width."""
    figure, axes = figure_style.make_canvas(figure_style.PAGE, 2.5)
    rows = []
    for key, run in frames.runs.iterrows():
        train = frames.metrics(str(key)).query("split == 'train'")
        axes.plot(train["step"], train["loss"], label=study.label(run["method"]))
        rows.append(train[["step", "loss"]].assign(run=key))
    axes.legend()
    return FigureWithData(figure=figure, frame=pd.concat(rows))
