"""Follows the best headline over time, and how far the best of so many tries would have come if nothing had helped.

If no change did anything, every record would be a draw from one law: the first record's headline, plus the noise of a
mean. The best of k draws improves on the first all the same. Its quantile q is where one draw lies with chance
1 - (1 - q)^(1/k), in closed form. A record stands for at least as many tries as the board says, since those that did
not make it are not on the board: the true band is wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from plumbline.stats.distributions import normal_isf
from plumbline.verdict.board.board_rows import Board, BoardRow

#: The band's quantiles of the best of so many tries.
LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgressPoint:
    """A record in the order of the board.

    Attributes:
        at: the day, or where not every record has one, the record's number.
        best: whether it was better than all before.
        low, high: where the best of the tries up to it would lie if nothing had helped; None if that is not known.
    """

    row: BoardRow
    at: float
    value: float
    best: bool
    low: float | None
    high: float | None


def place_records(board: Board) -> list[ProgressPoint]:
    """Place the records of a board in time; those without a headline are left out."""
    rows = [row for row in board.rows if row.claimed is not None]
    days = [row.day for row in rows]
    dated = bool(days) and all(day is not None for day in days)
    if dated:
        order = sorted(range(len(rows)), key=lambda each: (days[each] or date.min, each))
        rows, days = [rows[each] for each in order], [days[each] for each in order]
    sign = 1 if board.lower else -1
    record, first, points = float("inf"), next((row.claimed for row in rows if row.marked), None), list[ProgressPoint]()
    for number, row in enumerate(rows, start=1):
        assert row.claimed is not None
        day = days[number - 1]
        low = high = None
        if board.error is not None and first is not None:
            low, high = compute_luck_band(number * board.tries, first, board.error, lower=board.lower)
        is_best = row.marked and sign * row.claimed < record
        record = sign * row.claimed if is_best else record
        at = float(day.toordinal()) if dated and day is not None else float(number)
        points.append(ProgressPoint(row=row, at=at, value=row.claimed, best=is_best, low=low, high=high))
    return points


def compute_luck_band(tries: int, middle: float, error: float, *, lower: bool) -> tuple[float, float]:
    """The band, the better end first, in which the best of so many draws around a value lies with a chance of 90 %."""
    reach = [float(normal_isf(1 - (1 - q) ** (1 / tries))) * error for q in (LOW, HIGH)]
    return (middle - reach[0], middle - reach[1]) if lower else (middle + reach[0], middle + reach[1])


def count_beyond_luck(points: Sequence[ProgressPoint], *, lower: bool) -> int:
    """How many of the best ones lie beyond the band."""
    return sum(
        point.best and point.low is not None and (point.value < point.low if lower else point.value > point.low)
        for point in points
    )
