"""Judges whether a reproduced number agrees with the printed one: within noise, beyond it, or not to be judged here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from plumbline.published.printed_numbers import NOT_PRINTED
from plumbline.stats.power import compute_resolvable_distance

#: The preset whose runs are of the paper's size; at the others no cell of runs is judged, as no claim is.
JUDGED = "paper"


@dataclass(frozen=True, slots=True)
class CellMark:
    """A judgement on a cell: its class in the style sheet, a sign that stands in the cell, and what it means."""

    name: str
    sign: str
    meaning: str


WITHIN = CellMark("within", "✓", "within noise of the printed number")
BEYOND = CellMark("beyond", "≠", "beyond noise of the printed number")
SAME = CellMark("within", "=", "computed or set, and the same as what is printed, to its last digit")
OTHER = CellMark("beyond", "≠", "computed or set, and not what is printed")
UNKNOWN = CellMark("unknown", "?", "trained once, or its spread is not known: not judged")
ELSEWHERE = CellMark("elsewhere", "◦", "of another size than the paper's: not judged")

TEXTS = CellMark("elsewhere", "◦", "trained on other texts than the paper's: not judged")

#: In the order of a legend.
MARKS = (WITHIN, BEYOND, SAME, OTHER, UNKNOWN, ELSEWHERE, TEXTS)


@dataclass(frozen=True, slots=True)
class SeedSpread:
    """How far apart runs are that differ by their seed: `sigma`, a standard deviation, and `freedom`, its degrees of
    freedom.
    """

    sigma: float
    freedom: int

    @classmethod
    def pool(cls, spreads: Sequence[SeedSpread]) -> SeedSpread | None:
        """Pool the spreads of several rows, as if the same noise were behind all; None if there are none."""
        freedom = sum(spread.freedom for spread in spreads)
        if not freedom:
            return None
        return cls(math.sqrt(sum(spread.freedom * spread.sigma**2 for spread in spreads) / freedom), freedom)

    def resolves(self, seeds: int) -> float:
        """Compute how far one more run must lie from the mean of `seeds` runs to differ at 5 %, by Student's t."""
        seeds_behind = self.freedom + 1
        return compute_resolvable_distance(self.sigma, seeds_behind) * math.sqrt(
            (1 + 1 / seeds) / (1 + 1 / seeds_behind)
        )


def judge_cell(
    ours: str,
    printed: str,
    preset: str,
    *,
    trained: bool,
    spread: SeedSpread | None = None,
    seeds: int = 0,
    texts: bool = True,
) -> CellMark | None:
    """Judge a reproduced cell next to a printed one; None if there is nothing to compare.

    A printed number is taken for one more run, next to our `seeds`. What no run is behind has no noise: it must
    round to what is printed.

    Args:
        ours: as the csv has it, empty if there is none; a number or a word.
        printed: as the paper prints it; likewise.
        trained: whether runs or measurements are behind the cell.
        spread: the noise of runs like those behind the cell; None if it is not known.
        texts: whether all of those runs read the paper's texts.
    """
    if not ours or printed in ("", NOT_PRINTED):
        return None
    if not trained and _rounds_to(ours, printed):
        return SAME
    if preset != JUDGED:  # sizes and rates are that preset's, too
        return ELSEWHERE
    if not trained:
        return OTHER
    if not texts:
        return TEXTS
    value, text = _parse_number(ours), _parse_number(printed)
    if value is None or text is None:  # words: a signature, a mechanism
        return UNKNOWN if ours != printed else None
    if spread is None or not seeds:
        return UNKNOWN
    near = _rounds_to(ours, printed) or abs(float(value - text)) <= spread.resolves(seeds)
    return WITHIN if near else BEYOND


def _rounds_to(ours: str, printed: str) -> bool:
    value, text = _parse_number(ours), _parse_number(printed)
    if value is None or text is None:
        return ours.strip().lower() == printed.strip().lower()
    exponent = text.as_tuple().exponent
    unit = Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0)
    # Ours went through a double: a half of the last digit may have lost its last bit.
    return abs(value - text) <= unit / 2 + abs(text) * Decimal("1e-12")


def _parse_number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.replace(",", "").replace("−", "-"))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
