"""What the plan alone tells of what would stop a run: at a dry run, and before the first job of a run.

A missing or empty folder is refused: nothing that reads it can be made. So is a method of one's own that is not causal
or fails another of the checks of `plumbline.experiment.properties`. What another machine may well have (Debian's
tools, a network, an account) is a warning here; `python -m plumbline.operate.preflight` looks closer.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from plumbline import __version__
from plumbline.core import fingerprint_file
from plumbline.operate.console.rule_names import HIDDEN
from plumbline.project import Project
from plumbline.specs.config import PROJECT

#: The account that profiles/slurm names until a site puts its own there.
PLACEHOLDER = "plumbline"

#: Who is told of a plan in the place of a person: `plumbline.operate.preflight`.
_TOLD: list[list[tuple[Any, Project]]] = []


@contextlib.contextmanager
def told_to(listener: list[tuple[Any, Project]]) -> Iterator[None]:
    """For the time of a block, plans are put into `listener`, and nothing is refused or warned of here."""
    _TOLD.append(listener)
    try:
        yield
    finally:
        _TOLD.pop()


def watch(workflow: Any, plan: Project) -> None:
    """Let a plan of `workflow` be looked at when its jobs are known: called once, when its rules are read."""
    if not workflow.is_main_process:
        return
    build = workflow._build_dag

    def built() -> None:
        build()
        # Who only looks (--summary, --rulegraph, --unlock, --touch) makes nothing.
        if workflow.execution_settings is None or workflow.touch:
            return
        if _TOLD:
            _TOLD[-1].append((workflow, plan))
        else:
            look(plan, list(workflow.dag.needrun_jobs()))

    workflow._build_dag = built


def look(plan: Project, jobs: list[Any]) -> None:
    """Refuse, or warn of, what the jobs of a plan lack.

    Raises:
        ApiError: a folder of one's own is not there, or has nothing to read; of all such folders. A method of one's own
            does not hold to what is checked before it is trained.
    """
    from snakemake.exceptions import ApiError  # said without a traceback

    from plumbline.operate.preflight import folders, hub, own, packages, sharing
    from plumbline.operate.preflight.finding import STOP
    from plumbline.operate.preflight.planned import Job, Planned

    # Without resources, which ask SLURM's queue in some profiles; those are evaluated when they are needed.
    known = tuple(Job(rule=job.rule.name, wildcards=dict(job.wildcards.items())) for job in jobs)
    planned = Planned(plan=plan, jobs=known)
    refused = [found.words for found in folders.look(planned) if found.state == STOP]
    refused += own.refused(planned) + sharing.refused(jobs)
    if refused:
        raise ApiError("\n".join(refused))
    warnings = (
        own.flagged(planned)
        + sharing.withheld(plan.paths.work, jobs)
        + [found.words for found in (*packages.tools(planned), *hub.offline(planned)) if found.state == STOP]
    )
    if placeholder(name := account(jobs)):
        warnings.append(account_words(name))
    written = (fingerprint_file.read(plan.root / PROJECT) or {}).get("version", __version__)
    if written != __version__:
        warnings.append(
            f"this project was written by plumbline-lm {written}, and {__version__} is installed: "
            "plumbline init . --upgrade"
        )
    for words in warnings:
        print(f"warning: {words}", file=sys.stderr)


def account(jobs: Iterable[Any]) -> str:
    """The account that Snakemake's jobs give SLURM; empty where they give none."""
    job = next((job for job in jobs if job.rule.name not in HIDDEN), None)
    return str(job.resources.get("slurm_account", "")) if job is not None else ""


def placeholder(name: str) -> bool:
    """Whether an account is the one that profiles/slurm ships, of which few sites will know."""
    return name == PLACEHOLDER


def account_words(name: str) -> str:
    """What to do about it."""
    return (
        f"profiles/slurm/config.v9+.yaml: default-resources.slurm_account: {name!r} is a placeholder; put your account "
        "and partitions into an overlay (docs/on-your-cluster.md, step 2): sacctmgr show associations user=$USER"
    )
