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
AfterLooking = Literal["allowed", "paid", "refused"]
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
    chosen: AfterLooking = "paid"


class SamePart(Struct, frozen=True, forbid_unknown_fields=True):
    """What must be the same in a record's logs, except lines with one of these words; whether each has its code."""

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
        goal, predecessor: None if there is no such rule.
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


def list_known_rules() -> list[str]:
    """The names of the rules files that travel in the package."""
    return sorted(each.name.removesuffix(".toml") for each in FOLDER.iterdir() if each.name.endswith(".toml"))


def read_rules(name: str) -> Rules:
    """Read a rules file, or one of the package by its name.

    Raises:
        PlumblineError: there is no such file, or its content is none.
    """
    if re.fullmatch(r"[a-z0-9-]+", name) and not Path(name).is_file():
        if name not in list_known_rules():
            raise PlumblineError(
                f"--rules {name}: neither a file nor one of {list_known_rules()}{nearest(name, list_known_rules())}"
            )
        text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    else:
        if not Path(name).is_file():
            raise PlumblineError(f"--rules {name}: no such file; name one, or one of the package: {list_known_rules()}")
        text = read_text(Path(name))
    try:
        check_keys(text)
        contents = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError
        raise PlumblineError(f"{name} cannot be read as TOML ({error})") from None
    for key, part in PARTS.items():
        if isinstance(contents.get(key), dict):
            contents[key] = convert(part, contents[key], f"{name}, [{key}]")
    _check_numbers(contents, name)
    rules: Rules = convert(Rules, contents, name)
    _check(rules, name)
    return rules


def _check_numbers(contents: dict[str, object], file: str) -> None:
    """Refuse numbers that no rule can mean: not finite, or beyond what is computed with."""
    for key in PARTS:
        part = contents.get(key)
        for name in getattr(part, "__struct_fields__", ()):
            value = getattr(part, name)
            if isinstance(value, int | float) and not abs(value) <= MOST:
                raise PlumblineError(f"{file}: {key}.{name} is no finite number up to {MOST:g}; write the rules' own")


def _has_text(source: str) -> bool:
    return any(letter.isalnum() for letter in source)


def _check(rules: Rules, file: str) -> None:
    if (rules.table is None) == (rules.submissions is None):
        raise PlumblineError(f"{file}: records are read from a [table] or from [submissions]; write one of them")
    if not _has_text(rules.source):
        raise PlumblineError(f"{file}: source is empty; say where the rules stand")
    for part in ("runs", "stopping", "same", "goal", "predecessor", "headline"):
        rule = getattr(rules, part)
        if rule not in (None, HeadlinePart()) and not _has_text(rule.source):
            raise PlumblineError(f"{file}: {part}.source is empty; say where its numbers are from")
        alpha = getattr(rule, "alpha", 0.01)
        if not 0 < alpha < 0.5:
            raise PlumblineError(f"{file}: {part}.alpha = {alpha:g} must lie between 0 and 0.5; it is one-sided")
    if rules.runs.least < 1 or rules.runs.fixed < 0:
        raise PlumblineError(f"{file}: runs.least must be 1 or more, and runs.fixed 0 or more")
    if rules.goal is not None and rules.goal.sigma is not None and not rules.goal.sigma > 0:
        raise PlumblineError(f"{file}: goal.sigma must be above 0, in the metric's units")
    if rules.predecessor is not None and not (rules.predecessor.minimum_gain >= 0 and rules.predecessor.slope >= 0):
        raise PlumblineError(f"{file}: predecessor.minimum_gain and predecessor.slope must be 0 or more")
    if not rules.headline.divisor > 0 or rules.board.tries < 1:
        raise PlumblineError(f"{file}: headline.divisor must be above 0, and board.tries 1 or more")
    if not rules.log.lines and rules.log.names:
        raise PlumblineError(f"{file}: log.lines is empty; write an evaluation's line with {{value}}")
    for form in (
        *rules.log.forms,
        *rules.log.other_forms,
        *([LineForm(rules.table.headline_form)] if rules.table else []),
    ):
        if "value" not in form.places:
            raise PlumblineError(f"{file}: {form.text!r} has no {{value}}")
