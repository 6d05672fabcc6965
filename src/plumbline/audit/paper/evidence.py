"""Decides whether a relation among the numbers of a table is one: whether so many rows agree that chance does not.

A relation is proposed only if two rows of three agree (three at least, where not all do), and more of them than
shuffled rows would, at a level that allows for every relation that was tried. A row that does not agree contradicts
the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, pstdev

from plumbline.audit.paper.lines import Ends

#: Levels: where a name states the relation, where they do and every row agrees (so that nothing can be held
#: against it), and where they do not.
SAID, SAID_ALL, UNSAID = 0.01, 0.1, 1e-4

#: Share of the relations of a paper that are believed which may be none (false discoveries).
FALSE_SHARE = 0.01

#: Share of the rows that must agree.
SHARE = 2 / 3

#: Relative slack of ends that are computed in floats.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many of a relation's rows agree, of how many, and the chance that one does of itself."""

    agree: int
    rows: int
    chance: float

    def holds(self, tries: int, *, stated: bool) -> bool:
        """Whether it is a relation, after so many tries; `stated`: a name states it."""
        few = self.agree < (2 if stated else 4) or (self.agree < 3 and self.agree < self.rows)
        if few or self.agree < SHARE * self.rows - 1e-9:
            return False
        level = UNSAID if not stated else SAID_ALL if self.agree == self.rows else SAID
        return self.chance_of_itself(tries) < level

    def holds_again(self) -> bool:
        """Whether it is a relation where another table of the paper has the same one: nothing was chosen."""
        few = self.agree < 2 or (self.agree < 3 and self.agree < self.rows) or self.agree < SHARE * self.rows - 1e-9
        return not few and self.chance_of_itself(1) < SAID_ALL

    def chance_of_itself(self, tries: int) -> float:
        """Chance that one of so many relations that are tried agrees as often, though none is one."""
        return tail(self.agree, self.rows, self.chance) * max(1, tries)


def meets(first: Ends, second: Ends) -> bool:
    """Whether two numbers can be one."""
    low, _, high = first
    other_low, _, other_high = second
    if low <= other_high and other_low <= high:
        return True
    slack = _SLACK * max(abs(low), abs(high), abs(other_low), abs(other_high))
    return low <= other_high + slack and other_low <= high + slack


def rounds_to(printed: Ends, computed: Ends) -> bool:
    """Whether what the printed inputs give, taken as they are, rounds to the printed number."""
    slack = _SLACK * abs(computed[1])
    return printed[0] - slack <= computed[1] <= printed[2] + slack


def rate_agreement(printed: Sequence[Ends], computed: Sequence[Ends]) -> Agreement:
    """Compare what is printed in each row with what is computed for it.

    The chance of an agreement is the larger of two: how often rows agree with what is computed for others, and how wide
    the intervals are in what the numbers span.
    """
    rows = len(printed)
    agree = sum(map(meets, printed, computed))
    if rows < 2 or agree < 2:  # of so few no chance is asked
        return Agreement(agree, rows, 1.0)
    shifts = range(1, min(rows, 12))
    hits = sum(meets(printed[n], computed[(n + shift) % rows]) for shift in shifts for n in range(rows))
    # Where most agree, the middle of them gives their span: a single far one would make all others look near.
    values = sorted([ends[1] for ends in printed])
    trim = len(values) // 10
    reach = values[-1 - trim] - values[trim]
    width = sorted(a[2] - a[0] + b[2] - b[0] for a, b in zip(printed, computed, strict=True))[rows // 2]
    width_share = min(1.0, width / reach) if reach > 0 else 1.0
    return Agreement(agree, rows, max(hits / (rows * len(shifts)), width_share, 1e-4))


def chance_of_a_mean(printed: Sequence[Ends], computed: Sequence[Ends], values: Sequence[Sequence[float]]) -> float:
    """Chance that another mean of so many numbers would pass for the one of these.

    Args:
        values: what each row's mean is of; means of as many like them spread as these do, over the root of how many.
    """
    chances = []
    for printed_ends, computed_ends, parts in zip(printed, computed, values, strict=True):
        spread = math.sqrt(12) * pstdev(parts) / math.sqrt(len(parts))
        width = printed_ends[2] - printed_ends[0] + computed_ends[2] - computed_ends[0]
        chances.append(min(1.0, width / spread) if spread > 0 else 1.0)
    return max(0.01, median(chances))


def find_level(chances: Sequence[float], searches: int) -> float:
    """The chance up to which relations are believed, so that of those at most `FALSE_SHARE` are none.

    Args:
        chances: of each relation that holds, that it agrees as often of itself.
        searches: how many were looked for in all of the paper (Benjamini and Hochberg's procedure).
    """
    ordered, of = sorted(chances), max(searches, len(chances))
    return max((chance for n, chance in enumerate(ordered, 1) if chance <= FALSE_SHARE * n / of), default=0.0)


def tail(agree: int, rows: int, chance: float) -> float:
    """Chance that at least so many of the rows agree, each with this chance."""
    if chance >= 1:
        return 1.0
    return sum(math.comb(rows, k) * chance**k * (1 - chance) ** (rows - k) for k in range(agree, rows + 1))
