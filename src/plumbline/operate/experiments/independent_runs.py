"""Finds out whether a baseline's runs are draws of their own: seeds are run twice where nothing else tells what seeds
do, and runs that read what others had left are refused before a candidate is run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.verdict.comparability import carried_state, every_check, seed_beside_rerun
from plumbline.verdict.comparability.check_answer import Answer
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.experiment import BASELINE, ArmRun
from plumbline.verdict.evidence import Evidence
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.own_trainer import first_values
from plumbline.verdict.own_trainer.command_trainer import CommandTrainer, name_rerun
from plumbline.verdict.own_trainer.requests import Result, read_result


class DependentRunsError(PlumblineError):
    """The baseline's runs are no draws of their own, so that nothing can be judged beside them."""

    exit_code = Outcome.CANNOT_BE_JUDGED.exit_code


def take_bank(baseline: FolderBaseline, trainer: CommandTrainer, bank: Bank) -> list[ArmRun]:
    """Have the baseline's runs made that are not there, and return all of them.

    Args:
        baseline: of the folder.
        trainer: of the baseline.
        bank: of the folder.

    Raises:
        PlumblineError: a run was not made, or they are no draws of their own; where nothing was kept yet, what is
            committed by the next time is the baseline then.
    """
    try:
        size = baseline.file.decide.baseline_runs
        for count in (min(size, max(2, trainer.at_once)), size):  # so that two runs show it, and not all are paid for
            runs = baseline.take_bank(trainer, bank, count)
            if count == size and all(run.has_value for run in runs):
                run_seeds_twice(baseline, trainer, bank, runs)
            if reason := explain_dependence(trainer, runs):
                raise DependentRunsError(f"nothing can be judged beside the baseline's runs: {reason}")
            if not all(run.has_value for run in runs):
                break
    except PlumblineError as error:
        if error.exit_code == Outcome.CANNOT_BE_JUDGED.exit_code:
            _release(baseline)
        raise
    return runs


def release_dependent(baseline: FolderBaseline, bank: Bank) -> None:
    """Let what is committed now be the baseline where the runs of what it was are no draws of their own.

    Where something was kept the baseline stays.
    """
    trainer = baseline.trainer()
    if explain_dependence(trainer, baseline.list_runs(trainer, bank)):
        _release(baseline)


def _release(baseline: FolderBaseline) -> None:
    if not baseline.labels_kept_since_first:
        (baseline.folder.own / "baseline.json").unlink(missing_ok=True)


def run_seeds_twice(baseline: FolderBaseline, trainer: CommandTrainer, bank: Bank, runs: Sequence[ArmRun]) -> None:
    """Run seeds of the baseline once more, one after the other until it is clear whether they have an effect, if that
    was never done here and what its runs print first does not tell it.

    Args:
        baseline: of the folder.
        trainer: of the baseline.
        bank: of the folder.
        runs: those of the baseline.
    """
    runs = [run for run in runs if run.has_value]
    pairs, run_ids = _read_reruns(baseline, trainer.group, bank), {run.run_id for run in runs}
    if len(runs) < 2 or (pairs and not any(run.run_id in run_ids for run, _ in pairs)):
        return  # it was done with other runs of this folder
    if first_values.are_apart(*(trainer.evidence(run).printed_first for run in runs)):
        return
    for run in runs[: seed_beside_rerun.PAIRS]:
        if seed_beside_rerun.check(_compare_with_itself(trainer, runs)).answer not in (Answer.NOT_KNOWN, Answer.TOLD):
            return
        if read_result(baseline.folder.runs / f"{name_rerun(run.run_id)}.result.json") is None:
            trainer.tell(
                f"{trainer.arms[BASELINE].words}, seed {run.seed} runs once more: what its runs print first does not "
                "tell whether the seed has an effect, or rounding alone makes them differ; once a folder"
            )
            for _ in replace(trainer, again=True).run([(BASELINE, run.seed)]):
                pass


def _read_reruns(baseline: FolderBaseline, group: str, bank: Bank) -> list[tuple[ArmRun, Result]]:
    """The runs of the folder's first baseline that were made twice, and how each second one ended."""
    first, pairs = (baseline.first if baseline.labels_kept_since_first else baseline.arm).method, []
    for banked in bank.runs:
        if (banked.group, banked.method) == (group, first):
            result = read_result(baseline.folder.runs / f"{name_rerun(banked.run.run_id)}.result.json")
            if result is not None:
                pairs.append((banked.run, result))
    return pairs


def list_reruns(baseline: FolderBaseline, bank: Bank) -> list[dict[str, Any]]:
    """List the seeds that were run twice, each with both values, of those runs that have one."""
    return [
        {"seed": run.seed, "values": [run.value, rerun.value]}
        for run, rerun in _read_reruns(baseline, baseline.trainer().group, bank)
        if run.value is not None and rerun.value is not None
    ]


def explain_dependence(trainer: CommandTrainer, runs: Sequence[ArmRun]) -> str:
    """State why the baseline's runs are no draws of their own, with the remedy; empty where nothing shows that."""
    arms = _compare_with_itself(trainer, runs)
    return every_check.describe_refusal({"carried": carried_state.check(arms), "rerun": seed_beside_rerun.check(arms)})


def _compare_with_itself(trainer: CommandTrainer, runs: Sequence[ArmRun]) -> ComparedArms:
    evidence = {str(run.seed): trainer.evidence(run) for run in runs}
    return ComparedArms(
        evidence=Evidence(metric=trainer.metric, runs={BASELINE: evidence}),
        baseline=BASELINE,
        candidate=BASELINE,
        labels={BASELINE: trainer.arms[BASELINE].words or BASELINE},
    )
