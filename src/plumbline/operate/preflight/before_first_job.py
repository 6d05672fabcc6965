"""Refuses or warns of what the configuration alone shows would stop a run: at a dry run, and before a run's first
job.

A missing or empty folder is refused: nothing that reads it can be made. So is a user's own method that is not causal or
fails another of the checks of `plumbline.operate.preflight.method_checks`, and a run that would be scored through
another tokenizer than its own. What another machine may well have (Debian's tools, a network, an account) is a warning
here; `python -m plumbline.operate.preflight` checks more.
"""

from __future__ import annotations

import sys
from typing import Any

from plumbline import __version__
from plumbline.core import fingerprint_file
from plumbline.core.errors import visible
from plumbline.operate.preflight import cluster, dry_run
from plumbline.project import Project, snakemake_internals
from plumbline.specs.yaml_files import PROJECT


def watch(workflow: Any, project: Project) -> None:
    """Have a workflow's jobs checked by `check` as soon as Snakemake knows them.

    Called once, when its rules are read.
    """

    def check_built() -> None:
        if snakemake_internals.makes_files(workflow) and not dry_run.tell(workflow, project):
            check(project, snakemake_internals.list_needed_jobs(workflow))

    if snakemake_internals.is_main_process(workflow):
        snakemake_internals.on_dag_built(workflow, check_built)


def check(project: Project, jobs: list[Any]) -> None:
    """Refuse, or warn of, what the jobs of a configuration lack.

    Raises:
        ApiError: a user's own folder is not there, or has nothing to read; of all such folders. A user's own method
            fails a check that is made before it is trained. A run that is to be scored has another tokenizer now. A
            file that is read lies in the future. A product that is shown is not what was made. Jobs go to SLURM,
            from a folder that its jobs cannot start in. The environment narrows the products of jobs that compute.
    """
    from snakemake_interface_common.exceptions import ApiError  # printed without a traceback

    from plumbline.operate.preflight import (
        clock,
        data_archives,
        environment,
        folders,
        hub,
        originals,
        sharing,
        tokenizers,
    )
    from plumbline.operate.preflight.check_result import STOP
    from plumbline.operate.preflight.method_checks import check_file

    plan = _make_dry_run(project, jobs)
    refused = [result.message for result in folders.check(plan) if result.state == STOP]
    if account := dry_run.account(jobs):
        refused += [result.message for result in cluster.check_paths(project.root)]
    refused += (
        check_file.list_refusals(plan)
        + sharing.list_refusals(jobs)
        + tokenizers.list_refusals(plan)
        + clock.list_refusals(jobs)
        + originals.list_refusals(jobs, project.paths.results)
    )
    refused += environment.list_refusals(plan)
    if refused:
        raise ApiError("\n".join(refused))
    warnings = (
        check_file.list_warnings(plan)
        + sharing.warn_of_withheld(project.paths.work, jobs)
        + folders.warn_of_replaced(plan)
        + [
            result.message
            for result in (*data_archives.check_tools(plan), *hub.check_offline(plan))
            if result.state == STOP
        ]
    )
    if account == cluster.PLACEHOLDER:
        warnings.append(cluster.PLACEHOLDER_MESSAGE)
    written = (fingerprint_file.read(project.root / PROJECT) or {}).get("version", __version__)
    if written != __version__:
        warnings.append(
            f"this project was written by plumbline-lm {written}, and {__version__} is installed: "
            "plumbline init . --upgrade"
        )
    for message in warnings:
        print(f"warning: {visible(message)}", file=sys.stderr)


def _make_dry_run(project: Project, jobs: list[Any]) -> dry_run.DryRun:
    # Without resources, which ask SLURM's queue in some profiles; those are evaluated when they are needed.
    planned_jobs = tuple(dry_run.JobToRun(rule=job.rule.name, wildcards=dict(job.wildcards.items())) for job in jobs)
    return dry_run.DryRun(project=project, jobs=planned_jobs)


def enter_planned_runs(workflow: Any, project: Project) -> None:
    """Enter what is about to be trained; called when a run begins, which a dry run never does."""
    enter(_make_dry_run(project, snakemake_internals.list_needed_jobs(workflow)))


def enter(plan: dry_run.DryRun) -> None:
    """Enter the methods of a user's own file in the ledger, when the first of their runs is about to be trained: what
    is dropped after a look is paid for.
    """
    mine = plan.project.mine
    if mine is None:
        return
    jobs = ("{study}/{scale}/{method}/s{seed}".format(**job.wildcards) for job in plan.of("pretrain"))
    if {run.key for run in mine.own}.intersection(jobs):
        from plumbline.verdict import ledger
        from plumbline.verdict.own_method import ledger_costs

        ledger.append(plan.project.root / plan.project.paths.verdict_ledger, ledger_costs.make_entries(mine))
