"""Reads from a command line and from `plumbline.toml` the question to a candidate, and requires leave to run it."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

from plumbline.core.errors import PlumblineError, UsageError, nearest
from plumbline.operate.experiments.carry_out_experiment import tell
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.operate.experiments.margin_arguments import add_margin
from plumbline.operate.experiments.past_experiments import ExperimentFolders
from plumbline.verdict.decision.experiment import ExperimentQuestion
from plumbline.verdict.evidence import parse_measures
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer.folder import Folder, is_trusted, trust, trust_obstacle
from plumbline.verdict.own_trainer.git_call import explain_shallow
from plumbline.verdict.own_trainer.snapshot import Arm, Repository
from plumbline.verdict.own_trainer.trainer_file import TrainerFile, load


def open_baseline(file: TrainerFile) -> FolderBaseline:
    """Find what the candidates of a folder are compared with."""
    return FolderBaseline(
        file, Folder(file.folder), Repository(file.folder, (*file.run.output, *file.metric.files)), tell
    )


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


class BrokenTrainerFileError(PlumblineError):
    """A `plumbline.toml` by which the baseline was measured, and which can no longer be read."""

    exit_code = Outcome.CANNOT_BE_JUDGED.exit_code


def load_baseline(options: argparse.Namespace, root: Path) -> FolderBaseline:
    """The baseline of a folder whose command may be run.

    Raises:
        BrokenTrainerFileError: a candidate came with a `plumbline.toml` that cannot be read, and the baseline had one.
        PlumblineError: there is no such file yet that can be read, or its command may not be run.
    """
    try:
        file = load(root)
    except PlumblineError as error:
        if Folder(root).has_baseline:
            raise BrokenTrainerFileError(
                f"nothing can be judged: {error}. The baseline was measured by a file that could be read, and one "
                "file measures both arms: restore it"
            ) from None
        raise
    require_trust(file, options.trust, options.verb)
    return open_baseline(file)


def require_baseline(options: argparse.Namespace, repository: Repository) -> None:
    """Refuse a baseline that names no commit.

    Raises:
        UsageError: it names none; the branch or tag that is most like it is named.
    """
    if options.baseline is not None and not repository.has(options.baseline):
        names = repository.names()
        raise UsageError(
            f"--baseline: {options.baseline!r} names no commit of {repository.top}{nearest(options.baseline, names)} "
            f"(git log --all --oneline lists them{explain_shallow(repository.top)})"
        )


def arms_of(options: argparse.Namespace, baseline: FolderBaseline) -> tuple[Arm, Arm]:
    """The candidate and what it is compared with; the baseline's flags are the candidate's too."""
    repository = baseline.repository
    other = baseline.arm if options.baseline is None else repository.arm(options.baseline)
    candidate = repository.candidate([*other.flags, *options.flags], label=options.message)
    if candidate.method == other.method:
        raise PlumblineError(
            f"there is nothing to try: the working tree is the baseline ({other.words}, {other.commit[:7]}); change "
            "something, name flags (plumbline try -m WORDS -- FLAGS), or another baseline (--baseline HEAD~1)"
        )
    return candidate, other


def question_of(
    options: argparse.Namespace, baseline: FolderBaseline, candidate: Arm, other: Arm
) -> ExperimentQuestion:
    """The question to a candidate: as the command line states it, and else as `plumbline.toml` does."""
    settings = baseline.file.decide
    order = "paired" if options.paired else "interleaved" if options.interleave_baseline else None
    order = order or ("paired" if settings.paired else "interleaved" if settings.interleave_baseline else "bank")
    name = f"{slug(candidate.words)}-{candidate.method}-against-{other.method}"
    name += "" if order == "bank" else f"-{order}"
    question = question_again(baseline, candidate, other, name, baseline.file.metric.called)
    question = add_margin(_state_terms(question, options, baseline), options, order)
    return replace(
        question,
        bank=options.baseline_runs or settings.baseline_runs,
        minimum_gain=0.0 if question.as_good_as else question.minimum_gain,
        target_gain_sigmas=options.target_gain_sigmas or settings.target_gain_sigmas,
        plan=order,  # type: ignore[arg-type]
        session=options.session or settings.session,
        planned_tries=options.planned_tries
        or (settings.planned_tries if options.session in (None, settings.session) else 0)
        or None,
        fresh_runs=settings.baseline_runs
        if options.baseline is None
        else 0,  # with --baseline no keep moves the baseline
    )


def question_at_budgets(
    options: argparse.Namespace, baseline: FolderBaseline, candidate: Arm, other: Arm
) -> ExperimentQuestion:
    """What is the same of a try at each of several budgets; no guard is looked at there."""
    name = f"{candidate.method}-against-{other.method}"  # whatever it is called: no second try by words
    question = question_again(baseline, candidate, other, name, baseline.file.metric.called)
    question = _state_terms(question, options, baseline)
    return replace(question, size=baseline.file.run.size, guards={})


def _state_terms(
    question: ExperimentQuestion, options: argparse.Namespace, baseline: FolderBaseline
) -> ExperimentQuestion:
    """State the terms that every try has: as the command line does, and else as `plumbline.toml`."""
    settings = baseline.file.decide
    return replace(
        question,
        most=options.max_runs or settings.max_runs,
        alpha=settings.alpha if options.alpha is None else options.alpha,
        minimum_gain=settings.minimum_gain if options.minimum_gain is None else options.minimum_gain,
        equal=parse_measures(options.equal, "--equal") or settings.equal,
        first_seed=baseline.first_seed if options.first_seed is None else options.first_seed,
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
        equal=file.decide.equal,
        guards=file.guard,
        unit=file.metric.unit,
        trainer=" ".join(file.run.command.replace("{flags}", "").split()),
        budget=f"at most {file.run.timeout} a run" if file.run.timeout else "",
        # What flags change, such as a number of steps, would make the user's own words of the size untrue.
        size=f"{file.run.size} (candidate with {changed})" if file.run.size and changed else file.run.size,
        differs=(changed,) if changed else (),
        varies="what the trainer's seed changes",
    )


def slug(text: str) -> str:
    """Words as a part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "try"


def require_trust(file: TrainerFile, agreed: bool, verb: str) -> None:
    """Ask once before the command of a folder is run that came from elsewhere.

    Raises:
        PlumblineError: nobody can be asked, or the answer was no.
    """
    if is_trusted(file):
        return
    if not agreed:
        if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
            obstacle = trust_obstacle()
            raise PlumblineError(
                f"{file.path} would run {file.run.command!r}, and may have come from elsewhere: read it, and say "
                f"{'each time' if obstacle else 'once'} that it may (plumbline {verb} --trust)"
                + (f", since that is not remembered: {obstacle}" if obstacle else "")
            )
        profile = f"; by the Snakemake profile {file.where.profile}" if file.where.profile else ""
        tell(f"{file.path} runs: {' '.join(file.run.command.split())}{profile}")
        print("It may have come from elsewhere. Run it in this folder from now on? [y/N] ", end="", file=sys.stderr)
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise PlumblineError(f"{file.path} is not run; nothing was done")
    remember_trust(file)


def remember_trust(file: TrainerFile) -> None:
    """Remember that a folder's command may be run, or report why it will be requested again."""
    if obstacle := trust(file):
        tell(f"mind: that this command may be run is not remembered: {obstacle}")
