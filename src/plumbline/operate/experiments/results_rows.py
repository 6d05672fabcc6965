"""Writes what was decided in a folder into its `results.tsv`, in the columns and words that autoresearch has."""

from __future__ import annotations

from plumbline.verdict.decision.outcome import BASELINE, Decision
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer

#: The word of `results.tsv` for a verdict; those that autoresearch has, where it has one.
STATUS = {
    Outcome.KEEP: "keep",
    Outcome.AS_GOOD: "keep",
    Outcome.DISCARD: "discard",
    Outcome.UNDECIDED: "undecided",
    Outcome.IMPLAUSIBLE: "implausible",
    Outcome.CRASHED: "crash",
}


def append_rows(trainer: CommandTrainer, decision: Decision) -> None:
    """Write a decision's row of `results.tsv`, of what was judged; before the first one the baseline's, as readers of
    the file expect it."""
    if decision.verdict == Outcome.CANNOT_BE_JUDGED:
        return
    for arm in (*([] if trainer.folder.has_rows() else [BASELINE]), decision.terms.candidate):
        record = decision.asked["arms"][arm == BASELINE]
        head = trainer.repository.arm("HEAD")  # where it is this code, it is the commit that the history has
        same = head.tree == trainer.repository.recall(record).tree
        commits = (head.commit[:7], record["commit"][:7]) if same else (record["commit"][:7],)
        trainer.folder.append_row(decision.terms.metric, _row(trainer, decision, arm, commits[0]), known_as=commits)


def _row(trainer: CommandTrainer, decision: Decision, arm: str, commit: str) -> tuple[str, ...]:
    """The columns of autoresearch, then the number of runs and p; of the fresh runs, where there are any."""
    runs = [run for run in decision.runs if run.arm == arm]
    values = decision.baseline_values if arm == BASELINE else decision.fresh_values or decision.candidate_values
    mean, memory = sum(values) / max(1, len(values)), trainer.memory_gb(runs) or 0.0
    cells = (commit, f"{mean:.6f}", f"{memory:.1f}")
    if arm == BASELINE:
        return (*cells, STATUS[Outcome.KEEP], decision.terms.baseline, str(len(values)), "")
    p = "" if decision.estimate is None else f"{decision.estimate.p:.3g}"
    return (*cells, STATUS[decision.verdict], arm, str(len(values)), p)
