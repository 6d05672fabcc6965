"""Gathers the runs of a trainer's folder: how each ended, the end of its log, its curves, and what it was made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from plumbline.report.workbench.made_run import MadeRun, find_uses
from plumbline.report.workbench.printed_curves import read_curves
from plumbline.report.workbench.tried_changes import TriedChange
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.requests import read_result


def gather_runs(folder: Folder, changes: Sequence[TriedChange]) -> dict[str, MadeRun]:
    """Read every run of a folder's bank, by its id, in the order in which they were made."""
    used = find_uses(changes)
    bank = folder.bank()
    titles = _name_methods(bank)
    metrics = {change.series[-1]: change.metric for change in changes}
    runs = {}
    for banked in bank.runs:
        run = banked.run
        result = read_result(folder.runs / f"{run.run_id}.result.json") if run.run_id.isalnum() else None
        metric = metrics.get(banked.group, "")
        # The folder may have been moved: of the path that its process wrote, the end counts.
        end = Path(result.log).parts[-2:] if result and result.log else (banked.method, f"seed-{run.seed}.log")
        runs[run.run_id] = MadeRun(
            run=run,
            title=titles[banked.method],
            metric=metric,
            group=banked.group,
            at=banked.at,
            result=result,
            page=f"runs/{run.run_id}.html",
            curves=read_curves(folder.own.joinpath("logs", *end), metric),
            changes=used.get(run.run_id, []),
        )
    return runs


def _name_methods(bank: Bank) -> Mapping[str, str]:
    """What people call each method: a baseline that was a candidate before goes by its own name."""
    names: dict[str, str] = {}
    for banked in bank.runs:
        if names.get(banked.method, BASELINE) == BASELINE:
            names[banked.method] = banked.run.arm
    return names
