"""Holds what a record's logs state of it: the runs that count, with their values, and what does not hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from plumbline.core.formats import format_count
from plumbline.verdict.comparability.settings_comparison import SettingsComparison
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import quote
from plumbline.verdict.sources.records import Record
from plumbline.verdict.sources.training_log import Evaluation, LoggedRun

#: The kind of a headline that misses its logs by less than two units of its last digit: its runs are still its runs.
LAST_DIGIT = "last digit"
#: Kinds that break a rule, while the logs state what the record says.
TOO_FEW, LEFT_OUT, STOP = "number of runs", "left out", "stop step"
#: The kind of what no log shows: nothing says that it does not hold.
NOT_SHOWN = "not shown"


#: Where a printed value stands: runs with one of their evaluations.
Hits = list[tuple[LoggedRun, Evaluation]]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something for which a record is not what its logs say: of a kind, as text."""

    kind: str
    words: str


@dataclass(kw_only=True)
class ExaminedRecord:
    """What a record's logs state of it.

    Attributes:
        chosen: the runs that count, each with the evaluation that does; values: of them, and of seeds that are listed
            without a number; origin: where they are from; uncounted: further runs of its folder, as text.
        copies: how many files, or parts of files, hold a run that another one holds.
        copied_seeds: of the copies that say another seed than their original, the original by that seed.
        instead: what a headline that is not the runs' mean is, where that is known.
        faults: for which it cannot be judged; `notes`: what a reader has to know next to them.
        headline, runs, code, machine, stop: what was found of each, as text.
        looks: among how many evaluated steps the claimed one was chosen; 1 where it was fixed beforehand.
        settings: how the printed settings of its runs compare.
        headline_agrees: whether the headline was computed again from the logs, and is what they say.
        mean: of the values; None without any.
    """

    record: Record
    chosen: Hits = field(default_factory=list)
    values: tuple[RunEvidence, ...] = ()
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    headline: str = ""
    runs: str = ""
    code: str = ""
    machine: str = ""
    stop: str = ""
    looks: int = 1
    origin: str = ""
    uncounted: str = ""
    copies: int = 0
    copied_seeds: dict[str, LoggedRun] = field(default_factory=dict)
    instead: str = ""
    headline_agrees: bool = False
    settings: SettingsComparison = field(default_factory=SettingsComparison)

    @property
    def mean(self) -> float | None:
        """The mean of the values that are finite."""
        return math.fsum(self.finite_values) / len(self.finite_values) if self.finite_values else None

    @property
    def finite_values(self) -> list[float]:
        """The values of the runs that have one."""
        return [each.value for each in self.values if each.value is not None]

    def count(self, hits: Hits) -> None:
        """Count runs, each with the evaluation whose value it has; a run that diverged at any time has none."""
        self.chosen = hits
        self.values = tuple(run.evidence(evaluation, lost=has_diverged(run)) for run, evaluation in hits)

    def note_uncounted(self, runs: Sequence[LoggedRun], label: str | None) -> None:
        """Note runs of its folder that do not count, and with which values of the line with a label they end."""
        if not runs:
            return
        ends = [
            next((each for each in reversed(run.evaluations) if each.label == label), run.evaluations[-1])
            for run in runs
        ]
        finite = sorted((each for each in ends if math.isfinite(each.value)), key=attrgetter("value"))
        values = list(dict.fromkeys(each.printed for each in (*finite[:1], *finite[-1:])))
        values += ["no number"] if len(finite) < len(ends) else []
        self.uncounted = (
            f"{format_count(len(runs), 'further run')} of its folder not counted ({quote(runs[0].file.name)}"
            f"{f' and {len(runs) - 1} more' if len(runs) > 1 else ''}; at the end {' to '.join(values)})"
        )
        self.notes.append(f"{self.uncounted}.")

    def blame(self, kind: str, text: str) -> None:
        """Note something for which the record is not what its logs say."""
        self.faults.append(Fault(kind, text))

    @property
    def pools(self) -> bool:
        """Whether its runs may tell the noise: of one configuration, each once, of one metric."""
        return all(fault.kind in (LAST_DIGIT, TOO_FEW, LEFT_OUT, STOP) for fault in self.faults)

    @property
    def is_checked(self) -> bool:
        """Whether there are logs, and they say what the record says."""
        return (
            bool(self.values)
            and self.headline_agrees
            and all(fault.kind in (TOO_FEW, LEFT_OUT, STOP) for fault in self.faults)
        )


def has_diverged(run: LoggedRun) -> bool:
    """Whether any of its values is not a number, later on or before."""
    return any(not math.isfinite(each.value) for each in run.evaluations)
