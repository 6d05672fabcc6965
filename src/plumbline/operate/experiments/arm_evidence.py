"""Collects what is known of two commits of a folder beside their runs, and refuses those that no runs could compare."""

from __future__ import annotations

from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.verdict.comparability import fixed_files
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.decision.outcome import BASELINE
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.own_trainer.fixed_files import list_fixed
from plumbline.verdict.own_trainer.snapshot import Arm


def gather(baseline: FolderBaseline, candidate: Arm, other: Arm, metric: str) -> Evidence:
    """Collect which files of a candidate differ from those of the `other` arm, and which of them measure."""
    changed = baseline.repository.list_changed_files(other.commit, candidate.commit)
    fixed = list_fixed(baseline.file, baseline.repository, other, changed)
    return Evidence(metric=metric, changed_files=changed, fixed_files=fixed)


def list_refusals(evidence: Evidence, candidate: Arm) -> list[str]:
    """List why arms cannot be compared, whatever their runs would give; empty if they can."""
    answer = fixed_files.check(ComparedArms(evidence=evidence, baseline=BASELINE, candidate=candidate.words))
    return [f"{candidate.words}: {answer.text}"] if answer.answer == Answer.REFUSES else []
