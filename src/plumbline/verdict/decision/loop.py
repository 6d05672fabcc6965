"""Runs an experiment until it is decided: the bank, then candidate runs with a look after each. Imports no pandas.

An arm is known only as a source of values by seed (`Trainer`). The order of the runs depends on no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from scipy import special

from plumbline.core import process_record
from plumbline.core.errors import PlumblineError
from plumbline.core.formats import format_count, format_seconds
from plumbline.stats.after_stopping import GainAfterStopping, estimate, estimate_single_test
from plumbline.stats.fresh_runs import FRESH_LEVEL
from plumbline.stats.sequential import Boundary, Look, boundary, statistic
from plumbline.verdict.decision.bank import LOOP, Bank
from plumbline.verdict.decision.decision_sentences import (
    count_fixed_runs,
    count_further_runs,
    describe_look,
    list_notes,
    name_next_step,
    write_sentence,
)
from plumbline.verdict.decision.experiment import BASELINE, FINISHED, ArmRun, Decision, ExperimentTerms
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import format_value
from plumbline.verdict.outcome import Outcome


class Trainer(Protocol):
    """What trains both arms at one budget."""

    @property
    def group(self) -> str:
        """Trainer and budget, as text that no other trainer or budget has."""
        ...

    @property
    def at_once(self) -> int:
        """How many runs stand next to each other."""
        ...

    def method(self, arm: str) -> str:
        """Name what an arm trains, as the bank keeps it."""
        ...

    def run_id(self, arm: str, seed: int) -> str:
        """Name a run: equal ids are one run."""
        ...

    def run(self, requests: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
        """Train these arms with these seeds, side by side where there is room, and give each run as it ends.

        Raises:
            PlumblineError: the machine is at fault and not the arm (a full disk): nothing is known of the runs that
                were not given.
        """
        ...

    def evidence(self, run: ArmRun) -> RunEvidence:
        """Collect what is known of a run."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOrder:
    """The order of an experiment's runs.

    Attributes:
        steps: the runs of each step, and the look that is taken after it (0: none).
        role: what the runs are for, as the bank keeps it.
        sentinels: seeds of the baseline's runs that are made to notice drift.
    """

    steps: tuple[tuple[tuple[tuple[str, int], ...], int], ...]
    role: str = LOOP
    sentinels: frozenset[int] = frozenset()


def schedule(
    terms: ExperimentTerms,
    baseline_seeds: Sequence[int],
    candidate_seeds: Sequence[int],
    *,
    role: str = LOOP,
    sentinels: frozenset[int] = frozenset(),
) -> RunOrder:
    """Lay out the runs of a design; `baseline_seeds` begins with the bank's.

    Those of a claim are made in turn, so that what moves with time moves both arms alike, also where some of them were
    made before.
    """
    design, candidate = terms.design, terms.candidate
    if terms.claim:
        in_turn = [
            pair
            for theirs, ours in zip(baseline_seeds, candidate_seeds, strict=True)
            for pair in ((BASELINE, theirs), (candidate, ours))
        ]
        return RunOrder(steps=((tuple(in_turn), design.most),), role=role)
    bank = 0 if design.plan == "paired" else design.bank
    later_seeds = iter(baseline_seeds[bank:])
    steps: list[tuple[tuple[tuple[str, int], ...], int]] = []
    if bank:
        steps.append((tuple((BASELINE, seed) for seed in baseline_seeds[:bank]), 0))
    for look, seed in enumerate(candidate_seeds[: design.most], start=1):
        runs = [(candidate, seed)]
        if design.plan == "paired" or (design.plan == "interleaved" and look > 1):
            runs.insert(0, (BASELINE, next(later_seeds)))
        steps.append((tuple(runs), look))
    return RunOrder(steps=tuple(steps), role=role, sentinels=sentinels)


@dataclass(kw_only=True)
class Experiment:
    """One experiment as it runs.

    Attributes:
        tell: is given a line after each run, with what the look after it says.
    """

    terms: ExperimentTerms
    plan: RunOrder
    trainer: Trainer
    bank: Bank
    tell: Callable[[str], None]
    runs: list[ArmRun] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    _reported: set[tuple[str, int]] = field(default_factory=set)

    def conduct(self) -> Decision:
        """Run until a look decides, a run is lost, or the budget is used up."""
        edges = self._make_boundary()
        for number, (step, look) in enumerate(self.plan.steps):
            if existing := [pair for pair in step if not look and self.find_run(*pair) is not None]:
                self.tell(
                    f"{format_count(len(existing), 'run')} of {self.terms.baseline} "
                    f"{'are' if len(existing) > 1 else 'is'} there"
                )
                self._reported |= {(self.trainer.run_id(*pair), pair[1]) for pair in existing}
            self._make(number)
            runs = [run for pair in step if (run := self.find_run(*pair)) is not None]
            self.runs += runs
            for run in runs[:-1]:
                self._report(run)
            ended, look_text = self._decide_by_lost_runs(), ""
            if ended is None and look and self._can_be_judged():
                try:
                    self._look()
                except PlumblineError as error:
                    ended = self.make_decision(Outcome.CANNOT_BE_JUDGED, reason=str(error))
                else:
                    look_text = f"; {self._describe_look(edges, number)}"
                    ended = self._decide_by_look(edges)
            self._report(runs[-1], look_text)
            if ended is not None:
                return ended
        return self._conclude(Outcome.UNDECIDED)

    def take_bank(self) -> None:
        """Have the runs of the bank made, and none of the candidate."""
        replace(self, plan=replace(self.plan, steps=self.plan.steps[:1]))._make(0)

    def list_bank(self) -> list[float] | None:
        """List the values of the bank's runs, in their order; None where one is missing or has no value."""
        runs = [self.find_run(*pair) for pair in self.plan.steps[0][0]]
        values = [run.value for run in runs if run is not None and run.has_value and run.value is not None]
        return values if len(values) == len(runs) else None

    def _decide_by_look(self, edges: Boundary) -> Decision | None:
        """The decision where the newest look is beyond an edge."""
        at = self.looks[-1]
        if at.t >= edges.keep[at.k - 1]:
            return self._conclude(Outcome.AS_GOOD if self.terms.as_good_as else Outcome.KEEP)
        return self._conclude(Outcome.DISCARD) if at.t <= edges.discard[at.k - 1] else None

    def _make(self, number: int) -> None:
        """Have the runs of a step made, and of steps after it while there is room next to them; where one of its
        baseline's runs has no value, nothing can be judged, and no more are made.
        """
        pairs = self._list_missing(number)
        if not pairs or self._lacks_baseline_value(number):
            return
        for later_step in range(number + 1, len(self.plan.steps)):
            if len(pairs) % self.trainer.at_once == 0:
                break
            pairs += self._list_missing(later_step)[: self.trainer.at_once - len(pairs) % self.trainer.at_once]
        theirs = tuple(seed for arm, seed in self.plan.steps[0][0] if arm == BASELINE and self.terms.design.bank)
        for run in self.trainer.run(pairs):
            if run.arm == BASELINE and run.seed in self.plan.sentinels:
                run = replace(run, sentinel=True)
            baseline_seeds = () if run.arm == BASELINE else theirs
            self.bank.append(self.trainer.group, self.trainer.method(run.arm), run, self.plan.role, baseline_seeds)
            step, look = self.plan.steps[number]
            if (run.arm, run.seed) in (step[:-1] if look else step):  # the last one is told with what it says
                self._report(run)
            if self._lacks_baseline_value(number):
                return
        if missing_pairs := self._list_missing(number):
            arm, seed = missing_pairs[0]
            raise PlumblineError(f"{self.trainer.method(arm)} with seed {seed} was asked for and not made")

    def _lacks_baseline_value(self, number: int) -> bool:
        """Whether a step has a run of the baseline without a value."""
        runs = (self.find_run(arm, seed) for arm, seed in self.plan.steps[number][0] if arm == BASELINE)
        return any(run is not None and not run.has_value for run in runs)

    def _list_missing(self, number: int) -> list[tuple[str, int]]:
        return [(arm, seed) for arm, seed in self.plan.steps[number][0] if self.find_run(arm, seed) is None]

    def find_run(self, arm: str, seed: int) -> ArmRun | None:
        """Find the run in the bank, under the arm's name here: a crash of this very attempt counts too."""
        run_id = self.trainer.run_id(arm, seed)
        run = self.bank.find_run(run_id) or self.bank.find_new_run(run_id)
        return run and run.rename(arm)

    def _decide_by_lost_runs(self) -> Decision | None:
        """The decision where a run has no value, or where means would cross machines."""
        if any(not run.has_value for run in self.runs if run.arm == BASELINE):
            return self.make_decision(Outcome.CANNOT_BE_JUDGED)
        if any(not run.has_value for run in self.runs):
            return self.make_decision(Outcome.CRASHED)
        if len({run.fingerprint for run in self.runs if run.fingerprint}) > 1:
            why = (
                "its runs and the baseline's were not made with the same machine, torch and data, and means do not "
                "cross that; take fresh seeds for both (--first-seed)"
            )
            return self.make_decision(Outcome.CANNOT_BE_JUDGED, reason=why)
        return None

    def _list_values(self, arm: str) -> list[float]:
        return [run.value for run in self.runs if run.arm == arm and run.has_value and run.value is not None]

    def _can_be_judged(self) -> bool:
        count = len(self._list_values(self.terms.candidate))
        return count > 0 and self.terms.design.df(count) >= 1

    def _look(self) -> None:
        self.looks.append(
            statistic(
                self._list_values(BASELINE),
                self._list_values(self.terms.candidate),
                higher=self.terms.higher,
                minimum_gain=self.terms.minimum_gain,
                plan=self.terms.design.plan,
                allow_wider=self.terms.design.allow_wider,
            )
        )

    def _make_boundary(self) -> Boundary:
        design = self.terms.design
        if not self.terms.claim:
            return boundary(design)
        blanks = (math.nan,) * (design.most - 1)
        df = tuple(design.df(look) for look in range(1, design.most + 1))
        keep = float(special.stdtrit(df[-1], 1 - design.alpha))
        return Boundary((*blanks, keep), (*blanks, -keep), df, 0.0)

    def _conclude(self, verdict: Outcome) -> Decision:
        """The decision of the looks that were taken."""
        terms, at = self.terms, self.looks[-1]
        end = "keep" if verdict.is_kept else str(verdict)
        gain = estimate_single_test(at, terms.alpha) if terms.claim else estimate(terms.design, self.looks, end)  # type: ignore[arg-type]
        more_runs = count_further_runs(terms, at) if verdict == Outcome.UNDECIDED else None
        return self.make_decision(verdict, gain, more_runs)

    def make_decision(
        self,
        verdict: Outcome,
        gain: GainAfterStopping | None = None,
        more: int | None = None,
        reason: str = "",
        equal_seeds: tuple[int, ...] = (),
    ) -> Decision:
        """Make the decision of the runs so far; `reason`: why nothing can be judged, where no run says it."""
        candidate_seconds = [run.seconds or 0.0 for run in self.runs if run.arm != BASELINE]
        baseline_seconds = [run.seconds or 0.0 for run in self.runs if run.arm == BASELINE]
        decision = Decision(
            terms=replace(self.terms, fingerprint=next((run.fingerprint for run in self.runs), "")),
            verdict=verdict,
            runs=tuple(self.runs),
            looks=tuple(self.looks),
            boundary=self._make_boundary(),
            sentence="",
            estimate=gain,
            p=gain.p if self.terms.claim and gain is not None else None,
            notes=tuple(list_notes(self.terms)),
            seconds=sum(candidate_seconds),
            bank_seconds=sum(baseline_seconds),
            fixed_runs=None if self.terms.claim or equal_seeds else count_fixed_runs(self.terms.design),
            more=more,
            at=process_record.now(),
            equal_seeds=equal_seeds,
        )
        return replace(decision, sentence=write_sentence(decision, reason=reason))

    def _report(self, run: ArmRun, addition: str = "") -> None:
        """Report once what a run gave, and what the look after it shows."""
        if (run.run_id, run.seed) in self._reported:
            return
        self._reported.add((run.run_id, run.seed))
        took = "" if run.seconds is None else f" ({format_seconds(run.seconds)})"
        value = f"{run.outcome}: {run.why}" if run.why else run.outcome
        if run.outcome == FINISHED and run.value is not None:
            value = format_value(run.value, self.looks[-1].sigma) if self.looks else f"{run.value:.6g}"
        label = self.terms.baseline if run.arm == BASELINE else run.arm
        self.tell(f"{label}, seed {run.seed}: {value}{took}{addition}")

    def _describe_look(self, edges: Boundary, number: int) -> str:
        """What the newest look says, and what is next."""
        at = self.looks[-1]
        label = f"mean gain of {at.k} runs" if at.k > 1 else "gain"  # the value before it is of one run
        sign = "+" if at.gain >= 0 else ""
        text = (
            f"{label} {sign}{format_value(at.gain, at.sigma)} ({at.gain / at.sigma:.1f} sigma); "
            f"{describe_look(at, edges)}"
        )
        if name_next_step(at, edges) != "one more run":
            return text
        return f"{text}, seed {self.plan.steps[number + 1][0][-1][1]}"


def decide_by_fresh_runs(decision: Decision, runs: Sequence[ArmRun]) -> Decision:
    """Decide by the fresh runs of what the looks of a decision kept.

    The runs that were examined are there because they looked good, beside runs of the baseline that may have been poor
    by luck, and are older. Fresh ones of both arms, in turn, tell the gain without that.

    It stays kept where its fresh runs beat the baseline's fresh ones, by more than the minimum gain, at
    `FRESH_LEVEL`, one-sided; else it is undecided. It crashed where one of its own has no value, and cannot be judged
    where one of the baseline's has none, or they were made elsewhere than the others.
    """
    terms = decision.terms
    decision_with_runs = replace(
        decision,
        fresh=tuple(runs),
        estimate=None,
        estimate_after_stopping=decision.estimate,
    )
    if lost_runs := [run for run in runs if not run.has_value]:
        whose = "the baseline's" if lost_runs[0].arm == BASELINE else "its"
        return _end(
            decision_with_runs,
            Outcome.CANNOT_BE_JUDGED if lost_runs[0].arm == BASELINE else Outcome.CRASHED,
            f"seed {lost_runs[0].seed} of {whose} fresh runs {lost_runs[0].outcome} ({lost_runs[0].why})",
        )
    if len({run.fingerprint for run in (*decision_with_runs.runs, *decision_with_runs.fresh) if run.fingerprint}) > 1:
        why = (
            "its fresh runs and the baseline's were not made with the same machine, torch and data, and means do not "
            "cross that; the same command makes others"
        )
        return _end(decision_with_runs, Outcome.CANNOT_BE_JUDGED, why)
    try:
        look = statistic(
            decision_with_runs.fresh_baseline_values,
            decision_with_runs.fresh_values,
            higher=terms.higher,
            minimum_gain=terms.minimum_gain,
        )
    except PlumblineError as error:
        return _end(decision_with_runs, Outcome.CANNOT_BE_JUDGED, str(error))
    gain = estimate_single_test(look, terms.alpha)
    verdict = decision.verdict if gain.p <= FRESH_LEVEL else Outcome.UNDECIDED
    return _end(replace(decision_with_runs, estimate=gain), verdict)


def _end(decision: Decision, verdict: Outcome, reason: str = "") -> Decision:
    ended = replace(decision, verdict=verdict)
    return replace(ended, sentence=write_sentence(ended, reason=reason))
