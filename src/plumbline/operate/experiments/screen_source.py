"""Declares what a screen asks of whoever trains its runs: a folder's command, or the rules of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from plumbline.operate.experiments.carry_out_experiment import RunGain, RunsSource
from plumbline.verdict.comparability.check_answer import CheckAnswer
from plumbline.verdict.decision.experiment import ArmRun
from plumbline.verdict.decision.loop import Trainer
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.screen.screen_design import Factor, Level
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: Factor -> the level that a run has of it.
Settings = Mapping[str, str]


class ScreenSource(RunsSource, Protocol):
    """Factors and the runs of their combinations; equal requests (`record`) are one screen."""

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

    def trainer(self, arms: Mapping[str, Settings]) -> Trainer:
        """Make what trains these arms, each by its name: factor -> level. `BASELINE` is one of them, whether or not it
        is named, with the first level of every factor.
        """

    def name_level(self, level: Level) -> str:
        """Name a level as the ledger and a page name its try: the idea, or the method."""

    def arm_evidence(self, settings: Settings) -> Evidence:
        """What is known of an arm beside its runs: the files that differ from the baseline, and those that measure."""

    def list_refusals(self) -> list[str]:
        """List why nothing may be run; empty if it may."""

    def take_bank(self) -> list[ArmRun]:
        """Have the baseline's runs made that are not there, and return them: the same ones each time, however many are
        made later.
        """

    def remark(self) -> None:
        """Report what a user may not expect, before the first run."""

    def look_again(self, arms: Mapping[str, Settings], runs: Sequence[ArmRun]) -> CheckAnswer | None:
        """Check the fresh runs of both arms, which are among `arms`, as a try does before a keep; None where nothing
        more is known of them.
        """

    def explain_implausible(self, gain: RunGain) -> str | None:
        """What to look at, where nothing ever gained so much as one level."""

    def describe_set(self, settings: Settings) -> str:
        """State how the levels that were chosen can be kept; nothing here moves a baseline."""

    @property
    def most_at_once(self) -> int:
        """How many runs are asked for together, where so many are missing."""

    def estimate_time(self, rows: Sequence[Settings], first_seed: int, missing: int) -> tuple[str, float | None]:
        """Estimate how long the runs take that are missing: as the end of a sentence, and in seconds.

        Args:
            rows: the design's, of which the first has the seed `first_seed`, each later one the next.
            missing: how many runs are, those that confirm what is chosen among them.
        """
