"""Holds the rows of a board, and makes them of what the gate found."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

from plumbline.verdict.gate.examined_records import NOT_SHOWN
from plumbline.verdict.gate.gate_words import write_lines
from plumbline.verdict.gate.judgement import BoardNoise, Judgement
from plumbline.verdict.gate.rules import Rules

#: How far a record was checked, from nothing to most.
Tier = Literal["claimed", "logs checked", "run again"]
TIERS: tuple[Tier, ...] = ("claimed", "logs checked", "run again")

#: What "logs checked" means on a board of others' records.
CHECKED = (
    "the headline was computed again from the record's logs; what they hold of code, settings and the size of the "
    "evaluation is the same in all"
)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, kw_only=True, slots=True)
class BoardRow:
    """A record, or a verdict.

    Attributes:
        claimed: the number by which the board is sorted; shown: the headline as it is printed.
        marked: whether it is a record of the board's progress.
        again: who ran it again.
        one_more: the chance that its goal still holds with one more run.
        faults: the kinds of what does not hold.
        lines: what was found, in the gate's words.
        page: of a verdict, its page below the folder.
    """

    name: str
    description: str = ""
    date: str = ""
    claimed: float | None = None
    shown: str = ""
    marked: bool = True
    runs: int = 0
    tier: Tier = "claimed"
    again: str = ""
    verdict: str = ""
    p_goal: float | None = None
    p_predecessor: float | None = None
    predecessor: str = ""
    one_more: float | None = None
    faults: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    page: str = ""

    @property
    def day(self) -> datetime.date | None:
        """The date, where it can be read."""
        return parse_day(self.date)


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """A board of records.

    Attributes:
        headline: what is claimed, as a word; lower: whether less of it is better.
        error: the noise of a headline of the usual number of runs, in its own units; None if it is not known.
        error_words: where the noise is from.
        tries: how many tries a record stands for, at least.
        checked: what "logs checked" means here.
    """

    title: str
    headline: str
    rows: Sequence[BoardRow]
    source: str = ""
    lower: bool = True
    error: float | None = None
    error_words: str = ""
    tries: int = 1
    checked: str = CHECKED
    left_out: Sequence[str] = field(default_factory=tuple)

    def count_by_tier(self) -> dict[str, int]:
        """How many rows there are of each tier."""
        return {tier: sum(row.tier == tier for row in self.rows) for tier in TIERS}


def make_board(judgements: Sequence[Judgement], rules: Rules, noise: BoardNoise) -> Board:
    """Make a board of what the gate found of each record."""
    rows = [_make_row(each, rules) for each in judgements]
    error, error_words = _estimate_error(judgements, rules, noise)
    return Board(
        title=rules.board.title or rules.name,
        headline=rules.board.headline or rules.metric,
        rows=rows,
        source=rules.source,
        lower=rules.lower_headline,
        error=error,
        error_words=error_words,
        tries=rules.board.tries,
    )


def _make_row(judgement: Judgement, rules: Rules) -> BoardRow:
    examined, record = judgement.evidence, judgement.evidence.record
    again = rules.board.again.get(record.name, "")
    tier: Tier = "logs checked" if examined.is_checked else "claimed"
    claimed = record.step if record.step is not None else record.headline.value if record.headline else None
    headline = f"{record.step:,}" if record.step is not None else str(record.headline or "")
    return BoardRow(
        name=record.name,
        description=record.description,
        date=record.date,
        claimed=None if claimed is None else float(claimed),
        shown=headline,
        marked=record.marked,
        runs=len(examined.values),
        tier="run again" if again and examined.is_checked else tier,
        again=again,
        verdict=judgement.verdict,
        p_goal=judgement.goal.p_corrected if judgement.goal else None,
        p_predecessor=judgement.predecessor.p_corrected if judgement.predecessor else None,
        predecessor=judgement.before.record.name if judgement.before else "",
        one_more=judgement.one_more,
        faults=tuple(dict.fromkeys(fault.kind for fault in examined.faults if fault.kind != NOT_SHOWN)),
        lines=tuple(write_lines(judgement, rules)),
        notes=tuple(examined.notes),
    )


def _estimate_error(judgements: Sequence[Judgement], rules: Rules, noise: BoardNoise) -> tuple[float | None, str]:
    """The noise of a headline: of the mean of the usual number of runs, in steps where steps are what counts."""
    runs = [len(each.evidence.values) for each in judgements if each.evidence.values and each.evidence.record.marked]
    if not noise.sigma.sigma or not runs or rules.headline.of == "time":
        return None, "the noise of the headline is not known"
    usual = median(runs)
    error = noise.sigma.sigma / math.sqrt(usual)
    source = f"sigma {noise.sigma.sigma:.3g} of a run, {usual:g} runs a record"
    if rules.table is not None and rules.table.step:
        if rules.predecessor is None or not rules.predecessor.slope:
            return None, "the rules do not say what a step is worth"
        return error / rules.predecessor.slope, f"{source}, {rules.predecessor.slope:g} of {rules.metric} a step"
    return error, source


def parse_day(text: str) -> datetime.date | None:
    """Read a date as boards write it: 2026/04/26, 2026-04-26T..., 05/28/24, Jan 29 2026; None of anything else."""
    match = re.match(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})", text)
    if match:
        year, month, day = map(int, match.groups())
    elif match := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{2}|\d{4})", text.strip()):
        month, day, year = map(int, match.groups())
        year += 2000 if year < 100 else 0
    elif (match := re.match(r"([A-Z][a-z]{2})[a-z]{0,6} (\d{1,2}),? (\d{4})", text)) and match[1].lower() in _MONTHS:
        year, month, day = int(match[3]), _MONTHS.index(match[1].lower()) + 1, int(match[2])
    else:
        return None
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None
