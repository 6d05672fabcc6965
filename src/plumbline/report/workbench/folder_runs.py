"""Gathers the runs of a trainer's folder: how each ended, the end of its log, its curves, and what it was made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.report.workbench.change_pages import write_name
from plumbline.report.workbench.made_run import MadeRun, find_uses
from plumbline.report.workbench.printed_curves import read_curves
from plumbline.report.workbench.tried_changes import TriedChange
from plumbline.verdict.decision.bank import BankedRun, read_runs
from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.requests import Result, read_result


def gather_runs(folder: Folder, changes: Sequence[TriedChange]) -> dict[str, MadeRun]:
    """Read every run of a folder's bank, by its id, in the order in which they were made."""
    changes_by_run = find_uses(changes)
    bank = read_runs(folder.bank_file)
    titles = _name_methods(bank)
    metrics = {change.series[-1]: change.metric for change in changes}
    runs = {}
    for banked in bank:
        run = banked.run
        result, unreadable = _read_result(folder, run.run_id)
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
            unreadable=unreadable,
            page=f"runs/{run.run_id}.html",
            curves=read_curves(folder.own.joinpath("logs", *end), metric),
            changes=changes_by_run.get(run.run_id, []),
        )
    return runs


def _read_result(folder: Folder, run_id: str) -> tuple[Result | None, str]:
    """What the process of a run left; where that cannot be read, why."""
    if not run_id.isalnum():
        return None, ""
    path = folder.runs / f"{run_id}.result.json"
    try:
        return read_result(path), ""
    except PlumblineError as error:
        return None, str(error)
    except OSError as error:
        return None, f"{path} cannot be read ({error.strerror})"


def _name_methods(runs: Sequence[BankedRun]) -> Mapping[str, str]:
    """What people call each method: a baseline that was a candidate before goes by its own name."""
    names: dict[str, str] = {}
    for banked in runs:
        if names.get(banked.method, BASELINE) == BASELINE:
            names[banked.method] = write_name(banked.run.arm)
    return names
