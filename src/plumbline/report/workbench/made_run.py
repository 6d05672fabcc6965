"""Holds a run of a try as pages show it, wherever it was made, and finds what it was used in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plumbline.report.workbench.printed_curves import Point
from plumbline.report.workbench.tried_changes import TriedChange
from plumbline.verdict.decision.experiment import ArmRun
from plumbline.verdict.own_trainer.requests import Result


@dataclass(frozen=True, kw_only=True)
class MadeRun:
    """A run that was made.

    Attributes:
        title: of its arm, as the person wrote it.
        group: trainer and budget.
        result: what its process left, of a trainer of one's own; None where that is gone, or
            cannot be read, and then why (`unreadable`).
        page: where its page is in the report.
        curves: quantity -> its values over steps.
        changes: what was tried with it, of either arm.
    """

    run: ArmRun
    title: str
    page: str
    curves: Mapping[str, Sequence[Point]]
    changes: Sequence[TriedChange] = ()
    metric: str = ""
    group: str = ""
    at: str = ""
    result: Result | None = None
    unreadable: str = ""

    @property
    def label(self) -> str:
        """Arm and seed."""
        return f"{self.title}, seed {self.run.seed}"


def find_uses(changes: Iterable[TriedChange]) -> dict[str, list[TriedChange]]:
    """Find the changes that each run was used in, by its id."""
    uses: dict[str, list[TriedChange]] = {}
    for change in changes:
        for key in dict.fromkeys(run.run_id for run in (*change.runs, *change.baseline_runs)):
            uses.setdefault(key, []).append(change)
    return uses
