"""Runs the verbs of an experiment in a folder with a `plumbline.toml`: the arms are commits, run by its own command."""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from plumbline.core import command_line
from plumbline.core.errors import PlumblineError
from plumbline.core.formats import rough_duration
from plumbline.operate.experiments.carry_out_experiment import (
    SettledExperiment,
    decide,
    entry_of,
    page_of,
    require_plausible,
    rule,
    settle_try,
    tell,
    told,
    with_own_page,
)
from plumbline.operate.experiments.experiment_folders import ExperimentFolders
from plumbline.operate.experiments.folder_arguments import (
    arms_of,
    question_again,
    question_of,
    record_of,
    require_baseline,
    slug,
)
from plumbline.operate.experiments.folder_baseline import ELSEWHERE, FolderBaseline, commit
from plumbline.operate.experiments.folder_rows import STATUS, append_rows
from plumbline.verdict import implausible_gain
from plumbline.verdict.decision import decision_records
from plumbline.verdict.decision.decision_sentences import sentence
from plumbline.verdict.decision.fix_design import claim
from plumbline.verdict.decision.outcome import BASELINE, Decision, ExperimentQuestion
from plumbline.verdict.formatting import counted
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer import metric
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer
from plumbline.verdict.own_trainer.folder import Folder, is_trusted, trust, trust_obstacle, warn_of_own_tree
from plumbline.verdict.own_trainer.requests import only_a_seed
from plumbline.verdict.own_trainer.snapshot import Arm, Repository
from plumbline.verdict.own_trainer.trainer_file import INJECT, NAME, TrainerFile, load


def run(given: argparse.Namespace, root: Path) -> int:
    """Run a verb in a folder, and return its exit code."""
    if given.verb == "log" and given.forget:
        from plumbline.operate.experiments.forget_keep import forget

        return forget(given.forget, root, place_of(root))
    if given.verb not in VERBS:
        from plumbline.operate.experiments.past_experiments import print_log, print_noise, print_page

        place = place_of(root)
        if given.verb == "page":
            return print_page(given, place)
        baseline = FolderBaseline(load(root), Folder(root), Repository(root), tell)
        if given.verb == "log":
            return print_log(given, place, baseline.arm)
        return print_noise(given, place, baseline.beside_next(place.bank(), place.tried()))
    return VERBS[given.verb](given, root)


def place_of(root: Path) -> ExperimentFolders:
    """Find where a folder's experiments lie."""
    folder = Folder(root)
    return ExperimentFolders(
        pages=folder.pages,
        work=folder.own,
        ledger=folder.ledger,
        where=f"in {root}",
        first="plumbline try -m WORDS",
    )


def _expected(settled: SettledExperiment) -> tuple[str, int, float | None]:
    """Say how many runs are to be made at most, and how long they take by those of the baseline that are there; with
    the two numbers, the seconds None where no run is there.
    """
    trainer, bank = settled.trainer, settled.bank
    runs = [one for step, _ in settled.plan.steps for one in step]
    missing = sum(bank.known(trainer.run_id(*one)) is None for one in runs)
    theirs = bank.of(trainer.group, trainer.method(BASELINE))
    past = [run.seconds for run in theirs if run.seconds and run.value is not None]
    said = f"At most {counted(missing, 'run')} to be made"
    if not past:
        return f"{said}; how long one takes is known when the first has been made.", missing, None
    took = statistics.median(past) * math.ceil(missing / trainer.at_once)
    return (
        f"{said}: {rough_duration(took)}, by the median of {counted(len(past), 'run')} of the baseline.",
        missing,
        took,
    )


def try_(given: argparse.Namespace, root: Path) -> int:
    """Run the working tree, or other flags, against the baseline until it is decided."""
    file = load(root)
    require_trust(file, given.trust, given.verb)
    baseline = FolderBaseline(file, Folder(root), Repository(root), tell)
    require_baseline(given, baseline.repository)
    place = place_of(root)
    if given.dry_run:
        candidate, other = arms_of(given, baseline)
        question = question_of(given, baseline, candidate, other)
        trainer, bank = baseline.trainer(candidate, other), place.bank()
        record = record_of(question, candidate, other, trainer)
        question = with_own_page(question, record)
        if (known := _decided(place, question, record)) is not None:
            return command_line.print_plan(
                f"{_decided_as(known)}: {known.sentence}", as_json=given.json, runs_at_most=0, seconds_at_most=0.0
            )
        baseline.require_only_try(trainer, question.candidate, bank, question.name)
        settled = settle_try(place, question, trainer, bank, trainer.method(BASELINE), record)
        theirs = [one for step, _ in settled.plan.steps for one in step if one[0] == BASELINE]
        there = sum(bank.known(trainer.run_id(*one)) is not None for one in theirs)
        command = f"{question.trainer} {shlex.join(candidate.flags)}".strip()
        said = f"{candidate.words} against {other.words}: {command}. {rule(settled.terms)}"
        expected, missing, took = _expected(settled)
        said += f" Of the baseline's {len(theirs)} runs {there} are there. {expected}"
        numbers = {"candidate": candidate.words, "baseline": other.words, "command": command, "runs_at_most": missing}
        return command_line.print_plan(said, as_json=given.json, **numbers, seconds_at_most=took)
    with Folder(root).held(shlex.join(["plumbline", "try", "-m", given.message])):
        bank = place.bank()
        baseline.folder.baseline(baseline.repository)
        if (kept := baseline.kept_by(given.message, given.flags)) is not None:
            page = page_of(place, kept)
            decision = decision_records.read(page.with_suffix(".json"))
            _say_decided(decision)
            wanted = given.commit and not baseline.is_head(baseline.arm)
            if not wanted:
                append_rows(baseline.trainer(), decision)
            committed = partial(commit, baseline.repository, baseline.arm)
            rest = [lambda: _with_rows(committed, baseline.trainer(), decision)] if wanted else []
            return _told(partial(told, decision, page, as_json=given.json), rest, as_json=given.json)
        baseline.require_same_machine(bank)
        candidate, other = arms_of(given, baseline)
        if said := warn_of_own_tree(baseline.repository, candidate.commit, file.run.command):
            tell(said)
        lines = baseline.repository.changed_lines(other.commit, candidate.commit) if file.run.seed == INJECT else None
        if lines and candidate.flags == other.flags and only_a_seed(*lines):
            tell("mind: this changes only a seed, which every run changes anyway")
        trainer = baseline.trainer(candidate, other)
        question = question_of(given, baseline, candidate, other)
        record = record_of(question, candidate, other, trainer)
        question = with_own_page(question, record)
        known = _decided(place, question, record)
        if known is not None and not (known.verdict == Outcome.IMPLAUSIBLE and given.accept_implausible):
            decision = known
            _say_decided(decision)
        else:
            baseline.require_only_try(trainer, question.candidate, bank, question.name)
            settled = settle_try(place, question, trainer, bank, trainer.method(BASELINE), record)

            def looked_at(decision: Decision) -> Decision:
                looked = _looked_at(decision, trainer, given.accept_implausible)
                kept = looked.verdict == Outcome.KEEP and looked.terms.fresh_runs
                if not kept:
                    return looked
                return baseline.run_again(looked, trainer, bank, given.message, question.first_seed)

            decision = decide(place, settled, looked_at)
        page = page_of(place, decision.terms.name)
        # What follows is done again where a try was killed in it.
        done = ""
        if decision.verdict == Outcome.KEEP and given.baseline is None:
            asked = {"message": given.message, "flags": given.flags, "page": decision.terms.name}
            done = baseline.move(candidate, decision, asked)
        later = given.commit and decision.verdict == Outcome.KEEP  # the row names the commit, which is yet to be made
        if not later:
            append_rows(trainer, decision)
        lost = _lost_log(decision, baseline, candidate, other)
        log = {"log": str(lost)} if lost else {}
        said = partial(told, decision, page, as_json=given.json, commit=candidate.commit, **log)
        follow = partial(_next, decision, given, baseline, candidate, lost)
        rest = (lambda: done, (lambda: _with_rows(follow, trainer, decision)) if later else follow)
        return _told(said, rest, as_json=given.json)


def _told(decision: Callable[[], int], rest: Iterable[Callable[[], str]], *, as_json: bool) -> int:
    """Print a decision, and do and tell what follows it, which may yet be refused (a commit, by a hook): as JSON the
    decision comes last, since there is one object, and it may be an error.
    """
    code = None if as_json else decision()
    for follow in rest:
        if line := follow():
            tell(line)
    return decision() if code is None else code


def _with_rows(follow: Callable[[], str], trainer: CommandTrainer, decision: Decision) -> str:
    """Do what follows a decision, and write its row, also where a commit is refused."""
    try:
        return follow()
    finally:
        append_rows(trainer, decision)


def _decided(place: ExperimentFolders, question: ExperimentQuestion, record: dict[str, Any]) -> Decision | None:
    """What was decided of these very arms, whatever it was called: of this question, or of any other where fresh runs
    did not confirm a keep, after which there is no second try.
    """
    candidate, baseline = record["methods"]
    for path in place.pages.glob(f"*-{candidate}-against-{baseline}*.json"):
        known = decision_records.read(path)
        if any(known.asked.get(key) != record[key] for key in ("trainer", "methods")) or known.terms.claim:
            continue
        same = (
            known.asked.get("design") == record["design"]
            and known.verdict in STATUS
            and known.verdict != Outcome.CRASHED
        )
        unread = known.verdict == Outcome.KEEP and question.fresh_runs and not known.fresh  # kept with --baseline
        if (known.is_unconfirmed or (same and not unread)) and path.with_suffix(".md").exists():
            return known
    return None


def _say_decided(decision: Decision) -> None:
    others = "the same code has no second try" if decision.is_unconfirmed else "for other seeds: --first-seed"
    tell(f"{_decided_as(decision)}; {others}")


def _decided_as(decision: Decision) -> str:
    return f"decided already as `{decision.terms.candidate}`, {decision.at}"


def confirm(given: argparse.Namespace, root: Path) -> int:
    """Run what was kept again with fresh seeds: all of it against the start, or one try against its baseline."""
    file = load(root)
    require_trust(file, given.trust, given.verb)
    baseline = FolderBaseline(file, Folder(root), Repository(root), tell)
    place = place_of(root)
    with Folder(root).held(shlex.join(["plumbline", "confirm", *([given.name] if given.name else [])])):
        bank = place.bank()
        if given.name is None:
            candidate, other, together = baseline.arm, baseline.first, baseline.kept_since_first
            if len(together) > 1:  # the gain is that of all of them, and no name of one may stand for it
                candidate = replace(candidate, words=" + ".join(together))
        else:
            arms = place.named(given.name, kept=True).asked["arms"]
            (candidate, other), together = map(baseline.repository.recalled, arms), ()
        trainer = baseline.trainer(candidate, other)
        trainer.held_out = bool(file.metric.held_out)
        name = f"{slug(candidate.words)}-{candidate.method}-against-{other.method}.confirmed"
        question = replace(question_again(baseline, candidate, other, trainer, name), together=together)
        terms, plan = claim(question, trainer, bank)
        record = record_of(question, candidate, other, trainer)
        entry = entry_of(question, trainer, trainer.method(BASELINE), f"t of a claim at {terms.alpha:g}", record)
        settled = SettledExperiment(terms=terms, plan=plan, trainer=trainer, bank=bank, entry=entry, record=record)
        decision = decide(place, settled, lambda decision: _looked_at(decision, trainer, given.accept_implausible))
        return told(decision, page_of(place, name), as_json=given.json)


def require_trust(file: TrainerFile, said: bool, verb: str) -> None:
    """Ask once before the command of a folder is run that came from elsewhere.

    Raises:
        PlumblineError: nobody can be asked, or the answer was no.
    """
    if is_trusted(file):
        return
    if not said:
        if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
            lost = trust_obstacle()
            raise PlumblineError(
                f"{file.path} would run {file.run.command!r}, and may have come from elsewhere: read it, and say "
                f"{'each time' if lost else 'once'} that it may (plumbline {verb} --trust)"
                + (f", since that is not remembered: {lost}" if lost else "")
            )
        profile = f"; by the Snakemake profile {file.where.profile}" if file.where.profile else ""
        tell(f"{file.path} runs: {' '.join(file.run.command.split())}{profile}")
        print("It may have come from elsewhere. Run it in this folder from now on? [y/N] ", end="", file=sys.stderr)
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise PlumblineError(f"{file.path} is not run; nothing was done")
    remember_trust(file)


def remember_trust(file: TrainerFile) -> None:
    """Remember that a folder's command may be run, or tell why it will be asked for again."""
    if lost := trust(file):
        tell(f"mind: that this command may be run is not remembered: {lost}")


def _looked_at(decision: Decision, trainer: CommandTrainer, looked_at: bool) -> Decision:
    """Ask for a look at a gain that is larger than any, and name the parts of the machine that differ, where means
    would cross them, with what to run.
    """
    if decision.verdict == Outcome.KEEP and len(decision.terms.together) > 1:
        return decision  # each was looked at when it was kept, and no bound is known of what many gain
    if decision.verdict == Outcome.KEEP:
        at, values = decision.looks[-1], decision.baseline_values
        mean, every = sum(values) / len(values), (*values, *decision.candidate_values)
        positive_loss = not decision.terms.higher and min(every) > 0
        words = implausible_gain.flagged_of_own_trainer(at.gain, at.sigma, at.df, mean, positive_loss=positive_loss)
        return require_plausible(decision, words, looked_at=looked_at)
    if decision.verdict != Outcome.CANNOT_BE_JUDGED or not all(run.has_value for run in decision.runs):
        return decision
    differ = trainer.changed(decision.runs)
    reason = f"of the baseline, {ELSEWHERE.format('; '.join(differ))}"
    return replace(decision, sentence=sentence(decision, reason=reason)) if differ else decision


def _next(
    decision: Decision, given: argparse.Namespace, baseline: FolderBaseline, candidate: Arm, lost: Path | None
) -> str:
    """Say what is next for whoever made the change."""
    if decision.verdict == Outcome.KEEP:
        changed = not baseline.is_head(candidate)
        if given.commit and changed:
            return commit(baseline.repository, candidate)
        change = f"{baseline.repository.to_commit(candidate.words)} (nothing was committed); " if changed else ""
        return f"Next: {change}plumbline confirm for the number to claim."
    if decision.verdict == Outcome.CRASHED:
        return f"Next: {f'the whole log is {lost}; ' if lost else ''}plumbline try again when that is put right."
    if decision.verdict == Outcome.CANNOT_BE_JUDGED:
        return "" if lost is None else _of_a_lost_baseline(lost)
    if decision.verdict == Outcome.IMPLAUSIBLE:
        return "Next: look at what the change does (git diff); plumbline try again with --accept-implausible keeps it."
    return "Next: another change" + ("." if given.flags else "; git diff shows this one, git restore FILE undoes it.")


def _of_a_lost_baseline(log: Path) -> str:
    """What is to be done where a run of the baseline has no value."""
    lines = [f"{log} ends with:", *(f"  {line}" for line in metric.last_lines(log))]
    lines.append(
        f"Next: put right what broke the baseline ({NAME}, if it is its metric or its command; or the code, and commit "
        "that), then: plumbline setup-trainer, which takes its runs."
    )
    return "\n".join(lines)


def _lost_log(decision: Decision, baseline: FolderBaseline, candidate: Arm, other: Arm) -> Path | None:
    """The log of a run that has no value, where that decided; None where each has one."""
    lost = [run for run in decision.runs if not run.has_value]
    return baseline.folder.log((other if lost[0].arm == BASELINE else candidate).method, lost[0].seed) if lost else None


VERBS = {"try": try_, "confirm": confirm}
