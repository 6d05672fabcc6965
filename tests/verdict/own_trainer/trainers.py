"""Stand-in trainers in git repositories of their own, and an experiment on them without a command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from plumbline.operate.experiments.profile_runs import ProfileRuns
from plumbline.verdict.decision.experiment import BASELINE, Decision, ExperimentQuestion
from plumbline.verdict.decision.fix_design import fix_design
from plumbline.verdict.decision.loop import Experiment
from plumbline.verdict.own_trainer import trainer_file
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.snapshot import Repository

#: A trainer of a few lines: its loss is normal around 1 less a gain. It reads its flags itself: argparse takes longer
#: to import than all else that it does.
TRAIN = """\
import random, sys, time
flags = {"--seed": 0, "--gain": 0, "--wait": 0} | dict(zip(sys.argv[1::2], sys.argv[2::2]))
random.seed(int(flags["--seed"]))
time.sleep(float(flags["--wait"]))
gain = float(flags["--gain"])
SHIFT = 0.0
print(f"val_bpb:          {1 - gain - SHIFT + random.gauss(0, 0.01):.6f}")
"""
COMMAND = f"{sys.executable} train.py {{flags}}"
METRIC = r"pattern = '^val_bpb:\s+(\S+)'"


def git(folder: Path, *options: str) -> str:
    """Run git in a folder, as a user has it set up."""
    name = ("-c", "user.name=me", "-c", "user.email=me@localhost", "-c", "protocol.file.allow=always")
    process = subprocess.run(["git", *name, *options], cwd=folder, check=True, capture_output=True, text=True)
    return process.stdout.strip()


def write_toml(folder: Path, *run: str, command: str = COMMAND, metric: str = METRIC, more: str = "") -> None:
    """Write a plumbline.toml; `run` are further lines of its first part."""
    text = "\n".join(["[run]", f"command = {command!r}", *run, "[metric]", metric, more])
    (folder / "plumbline.toml").write_text(text + "\n", encoding="utf-8")


def make(folder: Path, train: str = TRAIN) -> Path:
    """Make a repository with a trainer, its plumbline.toml, and one commit."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "train.py").write_text(train, encoding="utf-8")
    write_toml(folder)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "start")
    return folder


def trainer(
    folder: Path, *flags: str, lines: list[str] | None = None, candidates: Mapping[str, Sequence[str]] | None = None
) -> CommandTrainer:
    """The baseline and the working tree with flags, as arms; `candidates`: several by their names, each with flags."""
    file, own = trainer_file.load(folder), Folder(folder)
    repository = Repository(folder, tuple(file.metric.files))
    arms = {BASELINE: own.hold_baseline(repository)}
    for name, options in (candidates or {"candidate": flags}).items():
        arms[name] = repository.candidate(options, "a change")
    tell = [].append if lines is None else lines.append
    return CommandTrainer(file=file, repository=repository, folder=own, arms=arms, tell=tell, profile_jobs=ProfileRuns)


def decide(folder: Path, *flags: str, bank: int = 3, most: int = 3) -> Decision:
    """Run the working tree against the baseline until it is decided."""
    own = Folder(folder)
    with own.hold("plumbline try"):
        arms, own_bank = trainer(folder, *flags), own.bank()
        question = ExperimentQuestion(
            name="try", baseline="start", candidate="candidate", metric=arms.metric, higher=False, bank=bank, most=most
        )
        terms, plan = fix_design(question, arms, own_bank)
        return Experiment(terms=terms, plan=plan, trainer=arms, bank=own_bank, tell=print).conduct()


if __name__ == "__main__":  # a try in a separate process, to be killed
    print(decide(Path(sys.argv[1]), *sys.argv[2:]).verdict)
