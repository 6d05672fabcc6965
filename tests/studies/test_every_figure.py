"""What a reader sees of every figure, at each shape of its runs: nothing over another, cut, covered or empty."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from plumbline.results.figures import figure_style
from tests.studies.made_shapes import SHAPES, draw_shape
from tests.studies.made_targets import FIGURES, make_target

#: Pixels by which boxes around letters may meet: they hold some white.
SLACK = 1.0
HALF_LETTER = 4.0
SEEN = [
    pytest.param(study, name, shape, marks=[pytest.mark.slow] if shape == "smoke" else [])
    for shape in SHAPES
    for study, name in FIGURES
]


@cache
def finish(study: str, name: str, shape: str) -> Figure:
    """A figure as it is saved, with its layout done."""
    figure = draw_shape(study, name, shape).figure
    with mpl.rc_context(figure_style.RC):
        figure.draw_without_rendering()
    return figure


def list_axes(figure: Figure) -> list[Axes]:
    """Panels and insets."""
    return [axes for panel in figure.axes for axes in (panel, *panel.child_axes)]


def list_tick_labels(axes: Axes) -> Iterator[list[Text]]:
    """The labels of each axis that are drawn."""
    for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
        low, high = sorted(axis.get_view_interval())
        room = 1e-9 * (high - low)
        ticks = [tick for tick in axis.get_major_ticks() if low - room <= tick.get_loc() <= high + room]
        labels = [tick.label1 for tick in ticks]
        yield [label for label in labels if label.get_visible() and label.get_text().strip()]


def list_texts(figure: Figure) -> list[Text]:
    """All that can be read."""
    axis_of_panels = [axis for axes in list_axes(figure) for axis in (axes.xaxis, axes.yaxis)]
    ticks = [tick for axis in axis_of_panels for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())]
    of_ticks = {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
    others = [text for text in figure.findobj(Text) if id(text) not in of_ticks]
    off = {id(text) for axes in list_axes(figure) if not axes.axison for text in (axes.xaxis.label, axes.yaxis.label)}
    visible = [text for text in others if text.get_visible() and text.get_text().strip() and id(text) not in off]
    return visible + [label for axes in list_axes(figure) for labels in list_tick_labels(axes) for label in labels]


def shrink(text: Text) -> Bbox:
    """The box around a text, a little smaller."""
    box = text.get_window_extent()
    return Bbox.from_extents(box.x0 + SLACK, box.y0 + SLACK, box.x1 - SLACK, box.y1 - SLACK)


def meets(one: Text, other: Text) -> bool:
    """Whether two texts lie over each other; parallel slanted ones do where lines of letters do."""
    slope = math.radians(one.get_rotation())
    if one.get_rotation() % 90 and one.get_rotation() == other.get_rotation():
        (ax, ay), (bx, by) = (text.get_transform().transform(text.get_position()) for text in (one, other))
        height = one.get_fontsize() * one.get_figure().dpi / 72
        return abs((bx - ax) * math.sin(slope) - (by - ay) * math.cos(slope)) < height
    return bool(shrink(one).overlaps(shrink(other)))


@pytest.mark.parametrize(("study", "name", "shape"), SEEN)
def test_no_text_lies_over_another(study: str, name: str, shape: str) -> None:
    texts = list_texts(finish(study, name, shape))
    over = [(a.get_text(), b.get_text()) for a, b in combinations(texts, 2) if meets(a, b)]
    assert over == []


@pytest.mark.parametrize(("study", "name", "shape"), SEEN)
def test_labels_of_neighbouring_ticks_are_apart(study: str, name: str, shape: str) -> None:
    """By half a letter, or a row of numbers reads as one."""
    close = []
    for axes in list_axes(finish(study, name, shape)):
        for labels in list_tick_labels(axes):
            level = [label for label in labels if label.get_rotation() % 90 == 0]
            boxes = sorted((label.get_window_extent() for label in level), key=lambda box: (box.x0, -box.y0))
            for left, right in combinations(boxes, 2):
                across = max(left.x0, right.x0) - min(left.x1, right.x1)
                down = max(left.y0, right.y0) - min(left.y1, right.y1)
                if down < 0 and across < HALF_LETTER:
                    close.append((axes.get_title(loc="left"), left.bounds, right.bounds))
    assert close == []


@pytest.mark.parametrize(("study", "name", "shape"), SEEN)
def test_texts_lie_inside_the_figure(study: str, name: str, shape: str) -> None:
    figure = finish(study, name, shape)
    page, cut = figure.bbox, []
    for text in list_texts(figure):
        box = shrink(text)
        if box.x0 < page.x0 or box.y0 < page.y0 or box.x1 > page.x1 or box.y1 > page.y1:
            cut.append(text.get_text())
    assert cut == []


@pytest.mark.parametrize(("study", "name", "shape"), SEEN)
def test_no_note_covers_what_is_drawn(study: str, name: str, shape: str) -> None:
    covered = []
    for axes in list_axes(finish(study, name, shape)):
        points = np.array([point for point in list_points(axes) if axes.bbox.contains(*point)])
        for text in axes.texts:
            if points.size and text.get_text().strip() and not axes.images:
                box = shrink(text)
                inside = (points[:, 0] > box.x0) & (points[:, 0] < box.x1)
                inside &= (points[:, 1] > box.y0) & (points[:, 1] < box.y1)
                covered += [text.get_text()] * bool(inside.any())
    assert covered == []


def list_points(axes: Axes) -> Iterator[tuple[float, float]]:
    """Pixels along every line of data, and of every mark; lines across a whole panel are no data."""
    for line in axes.lines:
        if line.get_transform() == axes.transData and len(line.get_xdata()):
            pixels = axes.transData.transform(np.column_stack(line.get_data()).astype(float))
            pixels = pixels[np.isfinite(pixels).all(axis=1)]
            if len(pixels) == 1 and isinstance(line.get_markevery(), tuple):
                continue  # marks that stand apart along a line do not stand on a lone point
            yield from pixels
            if line.get_linestyle() != "None":
                for start, end in pairwise(pixels):
                    yield from np.linspace(start, end, 40)
    for collection in axes.collections:
        offsets = np.ma.filled(np.ma.asarray(collection.get_offsets(), dtype=float), np.nan)
        if len(offsets) and collection.get_offset_transform() == axes.transData:
            yield from axes.transData.transform(offsets[np.isfinite(offsets).all(axis=1)])


@pytest.mark.parametrize(("name", "shape"), [(name, shape) for name in ("fig1", "fig3") for shape in ("paper", "demo")])
def test_curves_of_six_methods_are_told_apart_in_grey(name: str, shape: str) -> None:
    figure = finish("quack", name, shape)
    colours: dict[tuple[str, str], set[str]] = {}
    for axes in figure.axes:
        for line in axes.lines:
            if len(line.get_xdata()) > 1:
                look = (f"{line.get_linestyle()} {line.get_linewidth()}", str(line.get_marker()))
                colours.setdefault(look, set()).add(str(line.get_color()))
    dashes, marks = ({look[place] for look in colours} for place in (0, 1))
    assert len(colours) == len(dashes) == len(marks) == len(set.union(*colours.values())) == 6


def test_marks_that_lie_on_each_other_are_hollow() -> None:
    """Of six methods that were read once each, two are hidden where marks are full."""
    lines = [line for axes in finish("quack", "fig3", "smoke").axes for line in axes.lines]
    assert lines and {line.get_markerfacecolor() for line in lines if len(line.get_xdata()) == 1} == {"none"}


@pytest.mark.parametrize(("study", "name", "shape"), [seen for seen in SEEN if seen.values[2] != "gaps"])
def test_every_panel_whose_runs_exist_shows_something(study: str, name: str, shape: str) -> None:
    empty = []
    for axes in finish(study, name, shape).axes:
        drawn_there = any(axes.bbox.padded(1).contains(*point) for point in list_points(axes))
        if not (drawn_there or axes.images or axes.patches or axes.get_label() == "<colorbar>"):
            empty.append(axes.get_title(loc="left"))
    assert empty == []
    assert len(draw_shape(study, name, shape).frame)


#: Figures whose printed numbers are marks in them: column or claim, and at which shapes.
PRINTED: dict[tuple[str, str], tuple[list[float], tuple[str, ...]]] = {
    ("key_norms", "fig1"): ([5.3, 9.3, 9.8], ("paper", "demo", "gaps")),
    ("premature", "fig2"): ([0.5858, 0.5179, 0.3928, 0.1075, 0.2253, 0.0182, 0.0549, 0.621, 0.729], ("paper", "gaps")),
    ("premature", "fig3"): ([3, 20, 0.35, 17.4, 82.3, 146.1, 1.308], ("paper", "demo", "gaps")),
    ("query_free", "fig1"): ([2.955, 2.956, 2.944, 2.929], ("paper",)),
    ("query_free", "fig2"): ([0.002, 0.009, 4, 6, 11, 14], ("paper", "demo", "gaps")),
    ("transfer", "fig1"): ([3500, 2900, 2800, 3400, 0.83, 0.19, 0.18], ("paper",)),
    ("transfer", "fig2"): ([2.4814, 2.4771, 2.4890, 2.5474, 2.5630, 2.8165], ("paper",)),
    ("transfer", "method_differences"): ([4.47, 2.51, -77.68, -29.94], ("paper", "demo")),
}
#: Of what the first reads the order of its columns alone; the second draws nothing but printed numbers.
OTHERS = {("transfer", "fig3"), ("transfer", "protocol_thresholds")}


@pytest.mark.parametrize(
    ("study", "name", "shape"), [(*figure, shape) for figure, (_, shapes) in PRINTED.items() for shape in shapes]
)
def test_printed_numbers_are_marks(study: str, name: str, shape: str) -> None:
    marks = np.array([value for axes in finish(study, name, shape).axes for value in list_marks(axes)])
    values = PRINTED[study, name][0]
    assert [value for value in values if not np.isclose(marks, value, rtol=1e-6).any()] == []


def test_every_figure_that_reads_printed_numbers_marks_them() -> None:
    reads = {figure for figure in FIGURES if declares(*figure)}
    assert reads == {*PRINTED, *OTHERS}


def declares(study: str, name: str) -> list[str]:
    """The printed files that a figure reads."""
    return list(make_target(study, name).study.definition["targets"][name]["published"])


def list_marks(axes: Axes) -> Iterator[float]:
    """Where marks, lines across a panel and bands stand, along either axis; no curve of a run."""
    for line in axes.lines:
        if len(line.get_xdata()) <= 2:
            yield from np.concatenate([np.asarray(part, dtype=float) for part in line.get_data()])
    for collection in axes.collections:
        yield from np.ma.filled(np.ma.asarray(collection.get_offsets(), dtype=float), np.nan).ravel()
    for patch in axes.patches:
        yield from patch.get_path().transformed(patch.get_patch_transform()).vertices.ravel()


def test_texts_of_the_diagram_fit_their_boxes() -> None:
    (axes,) = finish("premature", "fig1", "paper").axes
    boxes = [patch.get_window_extent() for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    least = 6 * SLACK
    for text in axes.texts:
        own = text.get_window_extent()
        (box,) = [box for box in boxes if box.contains((own.x0 + own.x1) / 2, (own.y0 + own.y1) / 2)]
        assert own.x0 - box.x0 > least and box.x1 - own.x1 > least, text.get_text()
