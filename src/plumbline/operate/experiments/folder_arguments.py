"""Reads from a command line and from `plumbline.toml` what is asked of a candidate, and for leave to run it."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from dataclasses import replace

from plumbline.core.errors import PlumblineError, UsageError, nearest
from plumbline.operate.experiments.carry_out_experiment import tell
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.verdict.decision.outcome import ExperimentQuestion
from plumbline.verdict.own_trainer.folder import is_trusted, trust, trust_obstacle
from plumbline.verdict.own_trainer.snapshot import Arm, Repository
from plumbline.verdict.own_trainer.trainer_file import TrainerFile


def require_baseline(given: argparse.Namespace, repository: Repository) -> None:
    """Refuse a baseline that names no commit.

    Raises:
        UsageError: it names none; the branch or tag that is most like it is named.
    """
    if given.baseline is not None and not repository.has(given.baseline):
        known = repository.names()
        raise UsageError(
            f"--baseline: {given.baseline!r} names no commit of {repository.top}{nearest(given.baseline, known)} (git "
            "log --all --oneline lists them)"
        )


def arms_of(given: argparse.Namespace, baseline: FolderBaseline) -> tuple[Arm, Arm]:
    """The candidate and what it is compared with; the baseline's flags are the candidate's too."""
    repository = baseline.repository
    other = baseline.arm if given.baseline is None else repository.arm(given.baseline)
    candidate = repository.candidate([*other.flags, *given.flags], words=given.message)
    if candidate.method == other.method:
        raise PlumblineError(
            f"there is nothing to try: the working tree is the baseline ({other.words}, {other.commit[:7]}); change "
            "something, name flags (plumbline try -m WORDS -- FLAGS), or another baseline (--baseline HEAD~1)"
        )
    return candidate, other


def question_of(given: argparse.Namespace, baseline: FolderBaseline, candidate: Arm, other: Arm) -> ExperimentQuestion:
    """What is asked of a candidate: as the command line says, and else as `plumbline.toml` does."""
    asked = baseline.file.decide
    order = "paired" if given.paired else "interleaved" if given.interleave_baseline else None
    order = order or ("paired" if asked.paired else "interleaved" if asked.interleave_baseline else "bank")
    name = f"{slug(candidate.words)}-{candidate.method}-against-{other.method}"
    name += "" if order == "bank" else f"-{order}"
    question = question_again(baseline, candidate, other, name, baseline.file.metric.called)
    return replace(
        question,
        bank=given.baseline_runs or asked.baseline_runs,
        most=given.max_runs or asked.max_runs,
        alpha=asked.alpha if given.alpha is None else given.alpha,
        minimum_gain=asked.minimum_gain if given.minimum_gain is None else given.minimum_gain,
        target_gain_sigmas=given.target_gain_sigmas or asked.target_gain_sigmas,
        plan=order,  # type: ignore[arg-type]
        session=given.session or asked.session,
        planned_tries=given.planned_tries
        or (asked.planned_tries if given.session in (None, asked.session) else 0)
        or None,
        first_seed=baseline.first_seed if given.first_seed is None else given.first_seed,
        fresh_runs=asked.baseline_runs if given.baseline is None else 0,  # with --baseline no keep moves the baseline
    )


def question_again(baseline: FolderBaseline, candidate: Arm, other: Arm, name: str, metric: str) -> ExperimentQuestion:
    """What is the same of a try and of a claim."""
    file, changed = baseline.file, shlex.join(candidate.flags[len(other.flags) :])
    return ExperimentQuestion(
        name=name,
        baseline=other.words,
        candidate=candidate.words,
        metric=metric,
        higher=file.metric.direction == "higher",
        minimum_gain=file.decide.minimum_gain,
        first_seed=baseline.first_seed,
        unit=file.metric.unit,
        trainer=" ".join(file.run.command.replace("{flags}", "").split()),
        budget=f"at most {file.run.timeout} a run" if file.run.timeout else "",
        # What flags change, such as a number of steps, would make the user's own words of the size untrue.
        size=f"{file.run.size} (candidate with {changed})" if file.run.size and changed else file.run.size,
        differs=(changed,) if changed else (),
        varies="what the trainer's seed changes",
    )


def slug(words: str) -> str:
    """Words as a part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:40] or "try"


def require_trust(file: TrainerFile, agreed: bool, verb: str) -> None:
    """Ask once before the command of a folder is run that came from elsewhere.

    Raises:
        PlumblineError: nobody can be asked, or the answer was no.
    """
    if is_trusted(file):
        return
    if not agreed:
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
