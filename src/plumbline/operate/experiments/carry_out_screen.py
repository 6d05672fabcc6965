"""Carries out `plumbline screen`: runs many changes in one design, whoever trains them, and confirms what they gain
together.

A folder's ideas and the methods of a study are two sources, which supply what differs (`ScreenSource`).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from plumbline.core.errors import UsageError
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.experiment import ArmRun
from plumbline.verdict.decision.loop import Trainer
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.screen.screen_design import Factor, Level, count_parameters
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: Runs of a design beyond its parameters, from which sigma is told, at least.
SPARE = 3


class ScreenSource(Protocol):
    """Factors and the runs of their combinations, whoever trains them."""

    @property
    def options(self) -> argparse.Namespace:
        """The command line."""

    @property
    def place(self) -> ExperimentFolders:
        """Where the experiments lie that this one is compared with."""

    @property
    def bank(self) -> Bank:
        """The runs that are known, as they are when this is first read."""

    @property
    def baseline_name(self) -> str:
        """What the ledger calls what candidates are compared with."""

    @property
    def record(self) -> dict[str, Any]:
        """The request, to be repeated: equal ones are one screen."""

    @property
    def terms(self) -> ScreenTerms:
        """What is settled before the first run; its name is without the digest of `record`, and its seed is the lowest
        that the first run may have.
        """

    @property
    def factors(self) -> tuple[Factor, ...]:
        """What is varied; the first level of each is the baseline's."""

    @property
    def forbidden(self) -> tuple[tuple[Level, Level], ...]:
        """Levels that are never in one run."""

    def hold(self) -> AbstractContextManager[object]:
        """Hold the folder of the runs, where it is not held yet."""

    def trainer(self, arms: Mapping[str, Mapping[str, str]]) -> Trainer:
        """Make what trains these arms, each by its name: factor -> level. `BASELINE` is among them, at the first level
        of every factor.
        """

    def name_level(self, level: Level) -> str:
        """Name a level as the ledger and a page name its try: the idea, or the method."""

    def arm_evidence(self, settings: Mapping[str, str]) -> Evidence:
        """What is known of an arm beside its runs: the files that differ from the baseline, and those that measure."""

    def list_refusals(self) -> list[str]:
        """List why nothing may be run; empty if it may."""

    def take_bank(self) -> list[ArmRun]:
        """Have the baseline's runs made that are not there, and return them: the same ones each time, however many are
        made later.
        """

    def remark(self) -> None:
        """Report what a user may not expect, before the first run."""

    def list_past_seconds(self) -> list[float]:
        """List how long each run of the baseline took that has a value."""


def read_rule(options: argparse.Namespace, factors: Sequence[Factor]) -> dict[str, Any]:
    """Read the rule and the numbers of runs, as fields of the terms.

    Raises:
        UsageError: a number of runs or a level cannot be meant.
    """
    parameters = count_parameters(factors)
    runs = options.runs or 4 * -(-(parameters + SPARE) // 4)
    if runs <= parameters:
        raise UsageError(
            f"--runs {runs}: {len(factors)} ideas need {parameters + 1} runs at least, and {parameters + SPARE} "
            "to tell sigma from them well; ask for more runs, or take ideas out"
        )
    if not 0 < options.level < 0.5:
        raise UsageError(f"--level {options.level:g} must lie between 0 and 0.5")
    if options.fresh_runs < 2:
        raise UsageError("--fresh-runs 1: one run has no spread; ask for two or more")
    return {
        "rule": options.rule,
        "level": options.level,
        "runs": runs,
        "fresh_runs": options.fresh_runs,
        "leave_one_out": options.leave_one_out,
    }
