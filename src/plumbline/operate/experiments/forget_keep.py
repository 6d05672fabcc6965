"""Takes a keep back that was a mistake: the baseline is again what it was before, with the runs that it had."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from plumbline.core.errors import visible
from plumbline.core.terminal_lines import folded
from plumbline.operate.experiments.carry_out_experiment import tell
from plumbline.operate.experiments.experiment_folders import ExperimentFolders
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.operate.experiments.folder_rows import append_rows
from plumbline.verdict.formatting import counted
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.snapshot import Repository
from plumbline.verdict.own_trainer.trainer_file import load

#: Why such a try cannot be judged, as its sentence ends.
WHY = "it was kept, and taken back as a mistake (plumbline log --forget)"


def forget(name: str, root: Path, place: ExperimentFolders) -> int:
    """Take the newest keep back, which `name` names; nothing in git is changed."""
    folder = Folder(root)
    with folder.held(f"plumbline log --forget {name}"):
        baseline = FolderBaseline(load(root), folder, Repository(root), tell)
        decision = place.named(name, claims=False)
        before = baseline.forget(decision.terms.name, lambda page: place.withdraw(page, WHY))
        append_rows(baseline.trainer(), replace(decision, verdict=Outcome.DISCARD))
        trainer, bank = baseline.trainer(), place.bank()
        runs = bank.of(trainer.group, before.method)
        there = sum(run.seed >= baseline.first_seed for run in runs)
        said = (
            f"The baseline is {before.words} ({before.commit[:7]}) again, with its {counted(there, 'run')}; "
            f"{decision.terms.candidate} stands in the log as taken back, and in results.tsv as discard."
        )
        mine = "Your files and commits are as they were: git restore FILE or git revert COMMIT undoes the change."
        print(folded(visible(f"{said}\n{mine}"), sys.stdout))
    return 0
