"""Draws a board's progress, and the card that says it small, as SVG by templates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import Any

from plumbline.verdict.board.board_rows import Board
from plumbline.verdict.board.progress import ProgressPoint, beyond_luck, progress
from plumbline.verdict.decision.decision_picture import clean, shortened
from plumbline.verdict.decision.picture_axis import WIDTH, Axis, labels
from plumbline.verdict.formatting import counted

#: Where the data begins and ends, in pixels; its height.
LEFT, RIGHT, TOP, HEIGHT = 76, 684, 56, 300


@cache
def environment() -> Any:
    """The templates of a board and those of an experiment's picture."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader("plumbline.verdict.board"), PackageLoader("plumbline.verdict.decision")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda each: clean(each) if isinstance(each, str) and not hasattr(each, "__html__") else each,
    )


def progress_svg(board: Board) -> str:
    """Draw the records over time, the best so far as a line, and the band of luck."""
    points = progress(board)
    axis = Axis.of(
        [point.value for point in points if point.best]
        + [end for point in points for end in (point.low, point.high) if end is not None]
    )
    first, last = (points[0].at, points[-1].at) if points else (0.0, 1.0)

    def x(at: float) -> float:
        return round(LEFT + (at - first) / ((last - first) or 1.0) * (RIGHT - LEFT), 1)

    def y(value: float) -> float:
        return round(TOP + (1 - axis.share(value)) * HEIGHT, 1)

    better = "lower" if board.lower else "higher"
    write = labels([point.value for point in points])
    drawn = [
        {
            "x": x(point.at),
            "y": y(point.value),
            "best": point.best,
            "checked": point.row.tier != "claimed",
            "says": f"{point.row.name}: {point.row.shown or write(point.value)}, {point.row.tier}",
        }
        for point in points
        if axis.low <= point.value <= axis.high
    ]
    beyond = len(points) - len(drawn)
    known = [point for point in points if point.low is not None and point.high is not None]
    band = [f"{x(point.at)} {y(point.low or 0.0)}" for point in known]
    band += [f"{x(point.at)} {y(point.high or 0.0)}" for point in reversed(known)]
    text: str = (
        environment()
        .get_template("progress.svg.j2")
        .render(
            width=WIDTH,
            height=TOP + HEIGHT + 64,
            left=LEFT,
            right=RIGHT,
            top=TOP,
            bottom=TOP + HEIGHT,
            title=f"{board.title}: {board.headline} over time",
            head=f"{shortened(board.headline, 24)} of each record; the line is the best so far, {better} is better",
            description=description(board, points),
            ticks=[(y(tick), axis.label(tick)) for tick in axis.ticks],
            times=_times(points, x),
            points=drawn,
            line=_steps([point for point in points if point.best], x, y, RIGHT),
            band="M" + "L".join(band) + "Z" if len(known) > 1 else "",
            band_says=f"the best of so many tries if nothing helped ({board.error_words})"
            if known
            else f"no band of luck: {board.error_words}",
            beyond=f"{counted(beyond, 'record')} outside the picture" if beyond else "",
        )
    )
    return text


def card_svg(board: Board) -> str:
    """Draw the card: the title, the best record, and how many were checked."""
    points = progress(board)
    best = [point for point in points if point.best]
    tiers = board.counted()
    text: str = (
        environment()
        .get_template("card.svg.j2")
        .render(
            width=480,
            height=150,
            title=board.title,
            best=f"{best[-1].row.shown} {board.headline}" if best else "no record",
            by=f"record {best[-1].row.name}" if best else "",
            tiers=", ".join(f"{number} {tier}" for tier, number in tiers.items()),
            kept=f"{sum(row.verdict == 'keep' for row in board.rows)} of {len(board.rows)} kept by the gate",
        )
    )
    return text


def description(board: Board, points: Sequence[ProgressPoint]) -> str:
    """Say what the picture shows, for who cannot see it."""
    best = [point for point in points if point.best]
    if not best:
        return f"{counted(len(board.rows), 'row')}, none with a number that could be followed over time."
    said = (
        f"{counted(len(points), 'record')}, {len(best)} better than all before, from {best[0].row.shown} to "
        f"{best[-1].row.shown} {board.headline}."
    )
    if board.error is not None:
        said += (
            " If nothing helped, the best of so many tries would lie beyond the shaded band in one case of twenty; "
            f"{beyond_luck(points, lower=board.lower)} of the best do."
        )
    tested = [point.row for point in best if point.row.p_predecessor is not None]
    if tested:
        beaten = sum((row.p_predecessor or 0.0) < 0.01 for row in tested)
        said += f" Of {len(tested)} that can be tested against the best before, {beaten} beat it at p < .01."
    return said


def _steps(best: Sequence[ProgressPoint], x: Any, y: Any, right: float) -> str:
    if not best:
        return ""
    parts = [f"M{x(best[0].at)} {y(best[0].value)}"]
    for point in best[1:]:
        parts.append(f"H{x(point.at)}V{y(point.value)}")
    return "".join([*parts, f"H{right}"])


def _times(points: Sequence[ProgressPoint], x: Any) -> list[tuple[float, str, str]]:
    """The first, the middle and the last time, as days where they are days, and how each is anchored."""
    if not points:
        return []
    first, last = points[0].at, points[-1].at
    dated = all(point.row.day is not None for point in points)
    found = []
    for at, anchor in ((first, "start"), ((first + last) / 2, "middle"), (last, "end")):
        words = date.fromordinal(round(at)).isoformat() if dated else f"record {round(at)}"
        found.append((x(at), words, anchor))
    return found
