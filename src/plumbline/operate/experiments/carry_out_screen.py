"""Carries out `plumbline screen`: runs many changes in one design, whoever trains them, and confirms what they gain
together.

A folder's ideas and the methods of a study are two sources, which supply what differs (`ScreenSource`). Design and
seeds stand on the disk before the first run; a screen that was stopped is replayed from its runs in the bank, those
without a value among them, and goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from plumbline.core import command_line, process_record
from plumbline.core.errors import PlumblineError, UsageError
from plumbline.core.files import atomic_write_json, canonical_json, read_json, sha256_text
from plumbline.core.formats import format_count
from plumbline.operate.experiments.carry_out_experiment import RunGain, describe_run, shorten_path, tell
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.operate.experiments.screen_evidence import examine_design, examine_fresh_runs
from plumbline.operate.experiments.screen_source import ScreenSource, Settings
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.comparability import every_check
from plumbline.verdict.decision.experiment import BASELINE, ArmRun
from plumbline.verdict.ledger import IN_SCREEN, SCREEN, LedgerEntry
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.screen import screen_page, screen_plan
from plumbline.verdict.screen.screen_course import (
    ScreenDecision,
    advance,
    end_without_verdict,
    withhold,
    withhold_implausible,
)
from plumbline.verdict.screen.screen_design import Factor, Level, ScreenDesign, count_parameters, make_design
from plumbline.verdict.screen.screen_runs import DESIGN, FRESH, ScreenRun, Step
from plumbline.verdict.screen.screen_terms import ScreenTerms

#: Runs of a design beyond its parameters, from which sigma is told, at least.
SPARE = 3


def read_rule(options: argparse.Namespace, factors: Sequence[Factor]) -> dict[str, Any]:
    """Read the rule and the numbers of runs, as fields of the terms.

    Raises:
        UsageError: a number of runs or a level cannot be meant.
    """
    parameters = count_parameters(factors)
    runs = options.runs or 4 * -(-(parameters + SPARE) // 4)
    if runs <= parameters:
        raise UsageError(
            f"--runs {runs}: {parameters} means are to be told, so that {parameters + 1} runs are the least, and "
            f"{parameters + SPARE} tell sigma; ask for more runs, or take ideas out"
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
        "halfway": options.halfway,
        "leave_one_out": options.leave_one_out,
    }


def print_plan(source: ScreenSource) -> int:
    """Print the design, the standard error of each effect and how long the runs take; make nothing."""
    screening = Screening.settle(source)
    as_json = source.options.json
    if (decision := screening.find_decision()) is not None:
        sentence = f"decided already, {decision.at}: {decision.sentence}"
        return command_line.print_plan(sentence, as_json=as_json, runs_at_most=0, seconds_at_most=0.0)
    screening.remark()
    if failing := source.list_refusals():
        return command_line.print_refusal(failing, Outcome.CANNOT_BE_JUDGED.exit_code)
    terms, design = screening.terms, screening.design
    screening.require_runs()
    fresh = 2 * terms.fresh_runs
    missing = terms.runs + fresh - len(screening.list_banked())
    settings = [screening.make_arm(row)[1] for row in design.rows]
    how_long, took = source.estimate_time(settings, terms.first_seed, missing)
    text = (
        f"{screen_plan.describe_plan(terms, design)}\n\n{terms.runs} runs of the design, and {fresh} more where "
        f"something is chosen; {format_count(missing, 'run')} to be made: {how_long}."
    )
    numbers = screen_plan.plan_to_json(terms, design)
    return command_line.print_plan(text, as_json=as_json, runs_at_most=missing, seconds_at_most=took, **numbers)


def screen(source: ScreenSource) -> int:
    """Run the design and what it chooses, unless that was decided, and return the exit code."""
    screening = Screening.settle(source)
    if (decision := screening.find_decision()) is not None:
        tell(f"decided already, {decision.at}; for other seeds: --first-seed")
        return screening.print_decision(decision)
    screening.remark()
    if failing := source.list_refusals():
        return command_line.print_refusal(failing, Outcome.CANNOT_BE_JUDGED.exit_code)
    with source.hold():
        return screening.print_decision(screening.conduct())


@dataclass(kw_only=True)
class Screening:
    """One screen as it runs.

    Attributes:
        terms: with its own name and seeds.
        design: as it is on the disk, or would be.
    """

    source: ScreenSource
    terms: ScreenTerms
    design: ScreenDesign

    @classmethod
    def settle(cls, source: ScreenSource) -> Screening:
        """Settle terms and design: those on the disk where this was begun, else new ones."""
        terms, options = source.terms, source.options
        parts: list[Any] = [
            source.record,
            terms.rule,
            terms.level,
            terms.runs,
            terms.fresh_runs,
            terms.halfway,
            terms.leave_one_out,
        ]
        parts += [list(terms.equal), options.first_seed]
        parts += [terms.minimum_gain] if terms.minimum_gain else []  # screens without one keep their names
        terms = replace(terms, name=f"{terms.name}-{sha256_text(canonical_json(parts))[:8]}")
        record = read_json(_design_file(source.place, terms.name))
        if record is not None:
            design = msgspec.convert(record["design"], ScreenDesign)
            return cls(source=source, terms=replace(terms, first_seed=record["first_seed"]), design=design)
        used = source.bank.list_seeds(source.trainer({}).group)
        terms = replace(terms, first_seed=max([*used, terms.first_seed - 1]) + 1)
        design = make_design(source.factors, forbidden=source.forbidden, runs=terms.runs, seed=terms.first_seed)
        return cls(source=source, terms=terms, design=design)

    @property
    def page(self) -> Path:
        """The page of the screen."""
        return self.source.place.page(self.terms.name)

    def find_decision(self) -> ScreenDecision | None:
        """What was decided of this very screen; where it could not be judged it is asked again."""
        numbers = self.page.with_suffix(".json")
        if not (self.page.exists() and numbers.exists()):
            return None
        decision = screen_page.read(numbers)
        is_accepted = decision.verdict == Outcome.IMPLAUSIBLE and self.source.options.accept_implausible
        return None if decision.verdict == Outcome.CANNOT_BE_JUDGED or is_accepted else decision

    def remark(self) -> None:
        """Report what a user may not expect: another screen that was begun, as after an edit of its ideas."""
        source, folder = self.source, _design_file(self.source.place, self.terms.name).parent
        source.remark()
        if (folder / f"{self.terms.name}.json").exists():
            return
        pages = [source.place.page(path.stem) for path in sorted(folder.glob(f"{source.terms.name}-????????.json"))]
        for page in pages:
            if not page.with_suffix(".json").exists():
                tell(
                    f"mind: {shorten_path(page)} was begun and is not decided; this is another screen, with runs of "
                    "its own. That one goes on with ideas, options and baseline as they were"
                )

    def require_runs(self) -> None:
        """Refuse a design of which a run cannot be made: one whose ideas do not merge, though any two of them do."""
        self.source.trainer(dict(map(self.make_arm, self.design.rows)))

    def conduct(self) -> ScreenDecision:
        """Write the design, enter the tries, run until it is decided, and write the decision with its page."""
        source, terms = self.source, self.terms
        self.require_runs()
        atomic_write_json(
            _design_file(source.place, terms.name),
            {"first_seed": terms.first_seed, "design": msgspec.to_builtins(self.design), "asked": source.record},
        )
        screen_plan.write_plan(terms, self.design, self.page)
        ledgers.append(source.place.ledger, list(self._list_entries()))
        tell(f"the design is {shorten_path(self.page)}")
        past = source.take_bank()
        if lost_runs := [run for run in past if not run.has_value]:
            why = (
                f"a run of {terms.baseline} has no value: seed {lost_runs[0].seed} {lost_runs[0].outcome} "
                f"({lost_runs[0].why})"
            )
            return self._write(end_without_verdict(terms, self.design, (), why))
        runs = list[ScreenRun]()
        values = [run.value for run in past if run.value is not None]
        notes = list[str]()
        while isinstance(step := advance(terms, self.design, values, runs), Step):
            for note in step.notes[len(notes) :]:
                tell(note)
            notes = list(step.notes)
            runs += self._take_runs(step, len(runs))
            prints = {run.fingerprint for run in (*past, *(each.run for each in runs)) if run.fingerprint}
            if len(prints) > 1:
                why = "its runs were not made with the same machine, torch and data, and means do not cross that"
                return self._write(end_without_verdict(terms, self.design, runs, f"{why}; --first-seed begins anew"))
        return self._write(self._hold_to_evidence(step, past))

    def _take_runs(self, step: Step, past_count: int) -> list[ScreenRun]:
        """Have the runs of a step made that are not there, and return all in their order."""
        bank, requests = self.source.bank, list(step.requests)
        names = [self._name(request.settings) for request in requests]
        trainer = self.source.trainer({name: request.settings for name, request in zip(names, requests)})
        pairs = [(name, request.seed) for name, request in zip(names, requests)]
        banked = {run.run_id: run for run in self.list_banked()}
        runs = {pair: run.rename(pair[0]) for pair in pairs if (run := banked.get(trainer.run_id(*pair))) is not None}
        if runs:
            tell(f"{format_count(len(runs), 'run')} {'are' if len(runs) > 1 else 'is'} there")
        missing = [pair for pair in pairs if pair not in runs]
        size = self.source.most_at_once
        for start in range(0, len(missing), size):
            for run in trainer.run(missing[start : start + size]):
                bank.append(trainer.group, trainer.method(run.arm), run, self._role)
                runs[run.arm, run.seed] = run
                tell(f"run {past_count + len(runs)}, seed {run.seed}, {run.arm}: {describe_run(run)}")
        if lost_pairs := [pair for pair in pairs if pair not in runs]:
            raise PlumblineError(f"{lost_pairs[0][0]} with seed {lost_pairs[0][1]} was asked for and not made")
        return [ScreenRun(request, runs[pair]) for request, pair in zip(requests, pairs)]

    @property
    def _role(self) -> str:
        """What the runs are for, as the bank keeps it."""
        return f"{SCREEN}:{self.terms.name}"

    def list_banked(self) -> list[ArmRun]:
        """List the runs of this screen that were made, each once: a crash counts, so that a replay is the same."""
        runs = {banked.run.run_id: banked.run for banked in self.source.bank.runs if banked.role == self._role}
        return list(runs.values())

    def _name(self, settings: Settings) -> str:
        """Name an arm by its levels that are not the baseline's."""
        own_levels = [(f.name, settings[f.name]) for f in self.design.factors if settings[f.name] != f.levels[0]]
        return " + ".join(map(self.source.name_level, own_levels)) or BASELINE

    def make_arm(self, row: Sequence[str]) -> tuple[str, Settings]:
        """Name the arm of a row, with the level of every factor."""
        settings = {factor.name: level for factor, level in zip(self.design.factors, row)}
        return self._name(settings), settings

    def _list_levels(self) -> Iterator[Level]:
        for factor in self.design.factors:
            yield from ((factor.name, level) for level in factor.levels[1:])

    def _make_settings(self, levels: Sequence[Level]) -> dict[str, str]:
        """The baseline's levels, but for these."""
        return {factor.name: factor.levels[0] for factor in self.design.factors} | dict(levels)

    def _hold_to_evidence(self, decision: ScreenDecision, past: Sequence[ArmRun]) -> ScreenDecision:
        """Examine what a decision stands on, and withhold it where a check refuses."""
        source, terms = self.source, self.terms
        of_design = [each for each in decision.runs if each.request.part == DESIGN]
        fresh = [each.run for each in decision.runs if each.request.part == FRESH and each.run.has_value]
        arms = {self._name(each.request.settings): each.request.settings for each in decision.runs}
        trainer = source.trainer(arms)
        answers = examine_design(
            source,
            trainer,
            terms,
            past,
            [(each.request.settings, each.run) for each in of_design],
            decision.effects.residuals if decision.effects else [None] * len(of_design),
            decision.chosen,
        )
        decision = replace(decision, comparability=answers)
        if decision.confirmation is not None:
            settings = self._make_settings(decision.chosen)
            fresh_answers = examine_fresh_runs(source, trainer, terms, settings, fresh)
            if (second_look := source.look_again(arms, fresh)) is not None:
                fresh_answers["trained weights"] = second_look
            evidence = source.arm_evidence(settings)
            decision = replace(decision, fresh_comparability=fresh_answers, changed_files=evidence.changed_files)
            answers = {**answers, **{f"fresh: {name}": answer for name, answer in fresh_answers.items()}}
        refusal = every_check.describe_refusal(answers)
        if refusal and decision.verdict != Outcome.CANNOT_BE_JUDGED:
            return withhold(decision, refusal)
        return self._withhold_implausible(decision) if decision.verdict.is_kept else decision

    def _withhold_implausible(self, decision: ScreenDecision) -> ScreenDecision:
        """Confirm nothing with a level whose gain no modification had, before somebody has examined it; no bound is
        known of what many gain together.
        """
        effects, source = decision.effects, self.source
        if effects is None:
            return decision
        values = {
            part: [each.run.value for each in decision.runs if each.request.part == part and each.run.value is not None]
            for part in (DESIGN, FRESH)
        }
        for effect in effects.effects:
            gain = RunGain(
                value=effect.gain,
                sigma=effects.sigma,
                df=effects.df,
                baseline_values=[effects.baseline],
                candidate_values=[*values[DESIGN], *values[FRESH]],
            )
            if effect.chosen and (reason := source.explain_implausible(gain)) is not None:
                return withhold_implausible(
                    decision, effect.level, reason, looked_at=bool(source.options.accept_implausible)
                )
        return decision

    def _write(self, decision: ScreenDecision) -> ScreenDecision:
        """Enter what was decided, of the whole and of each idea, and write the page with it."""
        source, terms = self.source, self.terms
        keep = source.describe_set(self._make_settings(decision.chosen)) if decision.verdict.is_kept else ""
        decision = replace(decision, asked=source.record, to_keep=keep, at=process_record.now())
        entries = list(self._list_entries(decision))
        with ledgers.append_provisionally(source.place.ledger, entries) as ledger:
            decision = replace(
                decision,
                ledger=ledgers.write_statement(ledger, source.place.pages),
                tries=ledger.count_tries(source.baseline_name, terms.metric),
            )
            screen_page.write(decision, self.page)
        return decision

    def print_decision(self, decision: ScreenDecision) -> int:
        """Print what was decided, and return its exit code."""
        if self.source.options.json:
            print(json.dumps(screen_page.decision_to_json(decision) | {"page": str(self.page)}), flush=True)
        else:
            screen_page.print_decision(decision, shorten_path(self.page))
        return decision.verdict.exit_code

    def _list_entries(self, decision: ScreenDecision | None = None) -> Iterator[LedgerEntry]:
        """Each idea as a try; with a decision, what was decided of it."""
        source, terms = self.source, self.terms
        arms = {source.name_level(level): self._make_settings([level]) for level in self._list_levels()}
        trainer = source.trainer(arms)
        rule = f"screen of {len(arms)} in {terms.runs} runs, {terms.rule} at {terms.level:g}"
        for level in self._list_levels():
            name = source.name_level(level)
            entry = LedgerEntry(
                kind=SCREEN,
                name=f"{name}{IN_SCREEN}{terms.name}",
                fingerprint=sha256_text(canonical_json([trainer.method(BASELINE), trainer.method(name)])),
                baseline=source.baseline_name,
                metric=terms.metric,
                test=rule,
            )
            if decision is not None:
                entry = replace(
                    entry,
                    verdict=decision.verdict_of(level),
                    sentence=decision.sentence_of(level, name),
                    at=decision.at,
                    runs=len(source.bank.runs),
                )
            yield entry


def _design_file(place: ExperimentFolders, name: str) -> Path:
    """Where the design of a screen is kept, with its first seed."""
    return place.work / "screens" / f"{name}.json"
