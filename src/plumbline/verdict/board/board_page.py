"""Writes a board as static pages: `index.html`, its pictures, and every number as `board.json`.

Nothing is fetched from anywhere, nothing runs in the browser, and what others wrote is escaped by the template.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plumbline.core import fingerprint_file
from plumbline.core.files import atomic_write_json, atomic_write_text, make_folder
from plumbline.verdict.board.board_rows import TIERS, Board, BoardRow
from plumbline.verdict.board.progress import progress
from plumbline.verdict.board.progress_picture import card_svg, description, environment, progress_svg
from plumbline.verdict.formatting import p as p_words


def write_board(board: Board, folder: Path) -> list[Path]:
    """Write the page, its pictures and its numbers; the page last, so that what it refers to is there."""
    make_folder(folder)
    files = [folder / name for name in ("board.json", "progress.svg", "card.svg", "index.html")]
    atomic_write_json(files[0], as_json(board))
    atomic_write_text(files[1], progress_svg(board))
    atomic_write_text(files[2], card_svg(board))
    atomic_write_text(files[3], page(board))
    fingerprint_file.write(files[3], "", companions=files[:3], rows=len(board.rows))
    return files


def page(board: Board) -> str:
    """The page as HTML."""
    text: str = (
        environment()
        .get_template("board.html.j2")
        .render(
            board=board,
            rows=[_shown(row) for row in reversed(board.rows)],
            pictured=any(row.claimed is not None for row in board.rows),
            wide=any(len(row.name) > 20 for row in board.rows),
            tiers=[(tier, board.counted()[tier]) for tier in TIERS],
            said=description(board, progress(board)),
            goal=any(row.p_goal is not None for row in board.rows),
            before=any(row.p_predecessor is not None for row in board.rows),
        )
    )
    return text


def _shown(row: BoardRow) -> dict[str, Any]:
    return {
        "row": row,
        "goal": p_words(row.p_goal) if row.p_goal is not None else "",
        "before": p_words(row.p_predecessor) if row.p_predecessor is not None else "",
        "one_more": f"{100 * row.one_more:.0f} %" if row.one_more is not None else "",
        "faults": ", ".join(row.faults),
        "lines": [_parts(line.removeprefix("- ")) for line in (*row.lines, *row.notes)],
    }


def _parts(line: str) -> list[tuple[bool, str]]:
    """A line of Markdown as pieces: whether each is code, and its words."""
    return [(number % 2 == 1, part.replace("**", "")) for number, part in enumerate(line.split("`"))]


def as_json(board: Board) -> dict[str, Any]:
    """Everything of a board as an object."""
    places = {id(point.row): point for point in progress(board)}
    return {
        "title": board.title,
        "headline": board.headline,
        "lower_is_better": board.lower,
        "source": board.source,
        "error_of_a_headline": board.error,
        "tries_a_record": board.tries,
        "tiers": board.counted(),
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
