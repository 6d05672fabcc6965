"""Writes a board as static pages: `index.html`, its pictures, and every number as `board.json`.

Nothing is fetched from anywhere, nothing runs in the browser, and what others wrote is escaped by the templates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.files import atomic_write_json, atomic_write_text, make_folder
from plumbline.core.formats import format_count
from plumbline.verdict.board.board_rows import TIERS, Board, BoardRow
from plumbline.verdict.board.progress import ProgressPoint, count_beyond_luck, place_records
from plumbline.verdict.formatting import format_p
from plumbline.verdict.page import fill_template
from plumbline.verdict.picture_parts import (
    Axis,
    choose_digits,
    draw_dot,
    draw_path,
    draw_picture,
    draw_text,
    read_style,
    shorten,
    write_text,
)

#: Where the data of the progress begins and ends, in pixels; its height.
LEFT, RIGHT, TOP, HEIGHT = 76, 684, 56, 300


def write_board(board: Board, folder: Path) -> list[Path]:
    """Write the page, its pictures and its numbers; the page last, so that what it refers to is there."""
    make_folder(folder)
    files, progress, page = write_numbers(board, folder), folder / "progress.svg", folder / "index.html"
    files.insert(1, progress)
    atomic_write_text(progress, draw_progress(board))
    atomic_write_text(page, write_html(board))
    fingerprint_file.write(page, "", companions=files, rows=len(board.rows))
    return [*files, page]


def write_numbers(board: Board, folder: Path) -> list[Path]:
    """Write every number of a board, and its card."""
    numbers, card = folder / "board.json", folder / "card.svg"
    atomic_write_json(numbers, board_to_json(board))
    atomic_write_text(card, draw_card(board))
    return [numbers, card]


def write_html(board: Board) -> str:
    """The page as HTML."""
    return fill_template(
        "board.html.j2",
        board=board,
        rows=[_row_contents(row) for row in reversed(board.rows)],
        pictured=any(row.claimed is not None for row in board.rows),
        wide=any(len(row.name) > 20 for row in board.rows),
        tiers=[(tier, board.count_by_tier()[tier]) for tier in TIERS],
        said=describe_progress(board, place_records(board)),
        goal=any(row.p_goal is not None for row in board.rows),
        before=any(row.p_predecessor is not None for row in board.rows),
    )


def _row_contents(row: BoardRow) -> dict[str, Any]:
    return {
        "row": row,
        "goal": format_p(row.p_goal) if row.p_goal is not None else "",
        "before": format_p(row.p_predecessor) if row.p_predecessor is not None else "",
        "one_more": f"{100 * row.one_more:.0f} %" if row.one_more is not None else "",
        "faults": ", ".join(row.faults),
        "lines": [_split_markdown(line.removeprefix("- ")) for line in (*row.lines, *row.notes)],
    }


def _split_markdown(line: str) -> list[tuple[bool, str]]:
    """A line of Markdown as pieces: whether each is code, and its words."""
    return [(number % 2 == 1, part.replace("**", "")) for number, part in enumerate(line.split("`"))]


def board_to_json(board: Board) -> dict[str, Any]:
    """Everything of a board as an object."""
    places = {id(point.row): point for point in place_records(board)}
    return {
        "title": board.title,
        "headline": board.headline,
        "lower_is_better": board.lower,
        "source": board.source,
        "error_of_a_headline": board.error,
        "tries_a_record": board.tries,
        "tiers": board.count_by_tier(),
        "left_out": list(board.left_out),
        "records": [
            {
                "record": row.name,
                "description": row.description,
                "date": row.date,
                "headline": row.claimed,
                "runs": row.runs,
                "tier": row.tier,
                "run_again_by": row.again or None,
                "verdict": row.verdict,
                "does_not_hold": list(row.faults),
                "p_goal": row.p_goal,
                "p_predecessor": row.p_predecessor,
                "predecessor": row.predecessor or None,
                "one_more_run": row.one_more,
                "best_so_far": places[id(row)].best if id(row) in places else False,
                "luck": [places[id(row)].low, places[id(row)].high] if id(row) in places else None,
                "lines": list(row.lines),
                "notes": list(row.notes),
            }
            for row in board.rows
        ],
    }


def draw_progress(board: Board) -> str:
    """Draw the records over time, the best so far as a line, and the band of luck."""
    points = place_records(board)
    axis = Axis.of(
        [point.value for point in points if point.best]
        + [end for point in points for end in (point.low, point.high) if end is not None]
    )
    first, last = (points[0].at, points[-1].at) if points else (0.0, 1.0)

    def x(time: float) -> float:
        return round(LEFT + (time - first) / ((last - first) or 1.0) * (RIGHT - LEFT), 1)

    def y(value: float) -> float:
        return round(TOP + (1 - axis.share(value)) * HEIGHT, 1)

    direction = "lower" if board.lower else "higher"
    write = choose_digits([point.value for point in points])
    dots = [point for point in points if axis.low <= point.value <= axis.high]
    note = f" {format_count(len(points) - len(dots), 'record')} outside the picture." if dots != points else ""
    with_band = [(x(each.at), each.low, each.high) for each in points if each.low is not None and each.high is not None]
    band = [f"{at} {y(low)}" for at, low, _ in with_band]
    band += [f"{at} {y(high)}" for at, _, high in reversed(with_band)]
    luck = f"the best of so many tries if nothing helped ({board.error_words})"
    luck = luck if with_band else f"no band of luck: {board.error_words}"
    head = f"{shorten(board.headline, 14)} of each record; the line is the best so far, {direction} is better"
    elements = [draw_text(16, 24, head, kind="head"), draw_text(16, 42, luck, kind="small")]
    for tick in axis.ticks:
        elements.append(draw_path("grid", f"M{LEFT} {y(tick)}H{RIGHT}"))
        elements.append(draw_text(LEFT - 10, y(tick) + 4, axis.label(tick), kind="small", anchor="end"))
    if len(with_band) > 1:
        elements.append(draw_path("discard", f"M{'L'.join(band)}Z", luck))
    if leaders := [point for point in points if point.best]:
        elements.append(draw_path("path", _draw_steps(leaders, x, y)))
    for point in dots:
        kind, radius = ("candidate", 5) if point.best else ("baseline", 3.5)
        text = f"{point.row.name}: {point.row.shown or write(point.value)}, {point.row.tier}"
        pale = point.row.tier == "claimed"
        elements.append(draw_dot(kind, x(point.at), y(point.value), text, radius=radius, pale=pale))
    bottom = TOP + HEIGHT
    for place, text, anchor in _choose_times(points, x):
        elements.append(draw_text(place, bottom + 20, text, kind="small", anchor=anchor))
    text = f"Pale: claimed, not checked. Shaded: luck alone.{note}"
    elements.append(draw_text(16, bottom + 46, text, kind="small"))
    title = f"{board.title}: {board.headline} over time"
    return draw_picture(title, describe_progress(board, points), bottom + 64, elements)


def draw_card(board: Board) -> str:
    """Draw the card: the title, the best record, and how many were checked."""
    leaders = [point for point in place_records(board) if point.best]
    record = f"{leaders[-1].row.shown} {board.headline}" if leaders else "no record"
    tiers = ", ".join(f"{number} {tier}" for tier, number in board.count_by_tier().items())
    kept_text = f"{sum(row.verdict == 'keep' for row in board.rows)} of {len(board.rows)} kept by the gate"
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 150" width="480" height="150" role="img" '
        'aria-labelledby="title">',
        f'<title id="title">{write_text(board.title)}: {write_text(record)}; {tiers}; {kept_text}</title>',
        read_style(),
        '<rect class="paper" width="480" height="150" rx="8"/>',
        '<rect class="grid" x=".5" y=".5" width="479" height="149" rx="8"/>',
        draw_text(20, 34, board.title, kind="head"),
        f'<text x="20" y="70" style="font-size: 22px; font-weight: 600">{write_text(record)}</text>',
        draw_text(20, 90, f"record {leaders[-1].row.name}" if leaders else "", kind="small"),
        draw_text(20, 116, tiers),
        draw_text(20, 134, kept_text, kind="small"),
        "</svg>",
    ]
    return "\n".join(lines)


def describe_progress(board: Board, points: Sequence[ProgressPoint]) -> str:
    """State what the picture shows, for who cannot see it."""
    leaders = [point for point in points if point.best]
    if not leaders:
        return f"{format_count(len(board.rows), 'row')}, none with a number that could be followed over time."
    sentence = (
        f"{format_count(len(points), 'record')}, {len(leaders)} better than all before, from {leaders[0].row.shown} to "
        f"{leaders[-1].row.shown} {board.headline}."
    )
    if board.error is not None:
        sentence += (
            " If nothing helped, the best of so many tries would lie beyond the shaded band in one case of twenty; "
            f"{count_beyond_luck(points, lower=board.lower)} of the best do."
        )
    tested = [point.row for point in leaders if point.row.p_predecessor is not None]
    if tested:
        beaten = sum((row.p_predecessor or 0.0) < 0.01 for row in tested)
        sentence += f" Of {len(tested)} that can be tested against the best before, {beaten} beat it at p < .01."
    return sentence


def _draw_steps(leaders: Sequence[ProgressPoint], x: Any, y: Any) -> str:
    segments = [f"H{x(point.at)}V{y(point.value)}" for point in leaders[1:]]
    return "".join([f"M{x(leaders[0].at)} {y(leaders[0].value)}", *segments, f"H{RIGHT}"])


def _choose_times(points: Sequence[ProgressPoint], x: Any) -> list[tuple[float, str, str]]:
    """The first, the middle and the last time, as days where they are days, and how each is anchored."""
    if not points:
        return []
    first, last = points[0].at, points[-1].at
    dated = all(point.row.day is not None for point in points)
    return [
        (x(at), date.fromordinal(round(at)).isoformat() if dated else f"record {round(at)}", anchor)
        for at, anchor in ((first, "start"), ((first + last) / 2, "middle"), (last, "end"))
    ]
