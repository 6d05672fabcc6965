"""Reads a rules file: how a community's records are read, what they must show, and where each number is from."""

from __future__ import annotations

import re
import tomllib
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Literal

from msgspec import Struct

from plumbline.core.errors import PlumblineError, nearest
from plumbline.core.structs import convert
from plumbline.core.toml_keys import check_keys
from plumbline.verdict.sources.bounded_reading import LineForm, read_text
from plumbline.verdict.sources.records import TablePart
from plumbline.verdict.sources.submissions import SubmissionsPart
from plumbline.verdict.sources.training_log import LogPart

#: What a rule does about a number that was chosen after looking: nothing, p times the number of looks, or a fault.
Chosen = Literal["allowed", "paid", "refused"]
#: Largest number of a rules file.
MOST = 1e12
#: The rules files of the package.
FOLDER = resources.files("plumbline.verdict.gate") / "rules_files"


class HeadlinePart(Struct, frozen=True, forbid_unknown_fields=True):
    """What the headline is of.

    Attributes:
        of: the mean of the metric over the runs, or the training time of the log that the row names.
        divisor: by which the log's time is divided to be in the headline's unit.
        differs: what a headline is that the logs do not say; `noted` where the rules have it measured again.
    """

    of: Literal["mean", "time"] = "mean"
    divisor: float = 1.0
    differs: Literal["fault", "noted"] = "fault"
    source: str = ""


class GoalPart(Struct, frozen=True, forbid_unknown_fields=True):
    """The fixed value that the mean has to be better than, at a level; `sigma`: the noise that the rules assume."""

    value: float
    alpha: float
    source: str
    sigma: float | None = None


class PredecessorPart(Struct, frozen=True, forbid_unknown_fields=True):
    """The test against the best record before.

    Attributes:
        slope: what a step fewer costs in the metric.
        required: whether a record that is not shown to be better is refused.
    """

    alpha: float
    source: str
    minimum_gain: float = 0.0
    slope: float = 0.0
    required: bool = False


class RunsPart(Struct, frozen=True, forbid_unknown_fields=True):
    """How many runs: at least; a number that was fixed beforehand (0: none was); what more looks cost."""

    source: str
    least: int = 1
    fixed: int = 0
    chosen: Literal["allowed", "paid"] = "allowed"


class StoppingPart(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done about a step that was chosen among several that were evaluated."""

    source: str
    chosen: Chosen = "paid"


class SamePart(Struct, frozen=True, forbid_unknown_fields=True):
    """What must be the same over a record's logs, but for lines with one of these words; whether each has its code."""

    source: str
    code_in_log: bool = False
    code_may_differ: tuple[str, ...] = ("seed",)
    configuration_may_differ: tuple[str, ...] = ("seed", "time", "run_id", "uuid", "log", "path", "date")


class BoardPart(Struct, frozen=True, forbid_unknown_fields=True):
    """The board: its title; the headline's name; how many tries a record stands for at least; who ran one again."""

    title: str = ""
    headline: str = ""
    tries: int = 1
    again: dict[str, str] = {}


class Rules(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The rules of a community's records.

    Attributes:
        source: where the rules stand.
        metric: what the logs measure and the tests compare.
        goal, predecessor: None where there is no such rule.
    """

    name: str
    source: str
    metric: str
    log: LogPart
    runs: RunsPart
    stopping: StoppingPart
    same: SamePart
    higher: bool = False
    table: TablePart | None = None
    submissions: SubmissionsPart | None = None
    headline: HeadlinePart = HeadlinePart()
    goal: GoalPart | None = None
    predecessor: PredecessorPart | None = None
    board: BoardPart = BoardPart()

    @cached_property
    def lower_headline(self) -> bool:
        """Whether a lower headline is the better one."""
        return not self.higher or self.headline.of == "time"


#: The tables of a rules file.
PARTS = {
    "log": LogPart,
    "table": TablePart,
    "submissions": SubmissionsPart,
    "headline": HeadlinePart,
    "goal": GoalPart,
    "predecessor": PredecessorPart,
    "runs": RunsPart,
    "stopping": StoppingPart,
    "same": SamePart,
    "board": BoardPart,
}


def known() -> list[str]:
    """The names of the rules files that travel in the package."""
    return sorted(each.name.removesuffix(".toml") for each in FOLDER.iterdir() if each.name.endswith(".toml"))


def read_rules(given: str) -> Rules:
    """Read a rules file, or one of the package by its name.

    Raises:
        PlumblineError: there is no such file, or its content is none.
    """
    if re.fullmatch(r"[a-z0-9-]+", given) and not Path(given).is_file():
        if given not in known():
            raise PlumblineError(f"--rules {given}: neither a file nor one of {known()}{nearest(given, known())}")
        text = (FOLDER / f"{given}.toml").read_text(encoding="utf-8")
    else:
        if not Path(given).is_file():
            raise PlumblineError(f"--rules {given}: no such file; name one, or one of the package: {known()}")
        text = read_text(Path(given))
    try:
        check_keys(text)
        read = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError
        raise PlumblineError(f"{given} cannot be read as TOML ({error})") from None
    for key, part in PARTS.items():
        if isinstance(read.get(key), dict):
            read[key] = convert(part, read[key], f"{given}, [{key}]")
    _check_numbers(read, given)
    rules: Rules = convert(Rules, read, given)
    _check(rules, given)
    return rules


def _check_numbers(read: dict[str, object], given: str) -> None:
    """Refuse numbers that no rule can mean: not finite, or beyond what is computed with."""
    for key in PARTS:
        part = read.get(key)
        for name in getattr(part, "__struct_fields__", ()):
            value = getattr(part, name)
            if isinstance(value, int | float) and not abs(value) <= MOST:
                raise PlumblineError(f"{given}: {key}.{name} is no finite number up to {MOST:g}; write the rules' own")


def _says(source: str) -> bool:
    return any(letter.isalnum() for letter in source)


def _check(rules: Rules, given: str) -> None:
    if (rules.table is None) == (rules.submissions is None):
        raise PlumblineError(f"{given}: records are read from a [table] or from [submissions]; write one of them")
    if not _says(rules.source):
        raise PlumblineError(f"{given}: source is empty; say where the rules stand")
    for part in ("runs", "stopping", "same", "goal", "predecessor", "headline"):
        there = getattr(rules, part)
        if there not in (None, HeadlinePart()) and not _says(there.source):
            raise PlumblineError(f"{given}: {part}.source is empty; say where its numbers are from")
        alpha = getattr(there, "alpha", 0.01)
        if not 0 < alpha < 0.5:
            raise PlumblineError(f"{given}: {part}.alpha = {alpha:g} must lie between 0 and 0.5; it is one-sided")
    if rules.runs.least < 1 or rules.runs.fixed < 0:
        raise PlumblineError(f"{given}: runs.least must be 1 or more, and runs.fixed 0 or more")
    if rules.goal is not None and rules.goal.sigma is not None and not rules.goal.sigma > 0:
        raise PlumblineError(f"{given}: goal.sigma must be above 0, in the metric's units")
    if rules.predecessor is not None and not (rules.predecessor.minimum_gain >= 0 and rules.predecessor.slope >= 0):
        raise PlumblineError(f"{given}: predecessor.minimum_gain and predecessor.slope must be 0 or more")
    if not rules.headline.divisor > 0 or rules.board.tries < 1:
        raise PlumblineError(f"{given}: headline.divisor must be above 0, and board.tries 1 or more")
    if not rules.log.lines and rules.log.names:
        raise PlumblineError(f"{given}: log.lines is empty; write an evaluation's line with {{value}}")
    for form in (
        *rules.log.forms,
        *rules.log.other_forms,
        *([LineForm(rules.table.headline_form)] if rules.table else []),
    ):
        if "value" not in form.places:
            raise PlumblineError(f"{given}: {form.text!r} has no {{value}}")
