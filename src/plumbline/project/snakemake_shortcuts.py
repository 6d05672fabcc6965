"""Spares Snakemake what it does anew for each of thousands of jobs, and what nobody reads of a long dry run.

As `snakemake_internals`, this file touches private parts of Snakemake, and the same test fails where another minor
version than it knows is installed. Nothing here changes which jobs there are, or what they are given.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

#: Functions of rules, and of their resources, are a few hundred.
FUNCTIONS = 4096


def remember_signatures() -> None:
    """Let Snakemake look at the parameters of a rule's function once, not for each job of the rule.

    A second call in one process changes nothing.
    """
    import snakemake.common as common
    import snakemake.rules as rules

    if not hasattr(common.get_function_params, "cache_info"):
        common.get_function_params = rules.get_function_params = lru_cache(FUNCTIONS)(common.get_function_params)


def output_settings(workflow: Any) -> Any:
    """Return what is requested of Snakemake's messages: dry run, --printshellcmds, loggers and the like."""
    return workflow.output_settings


def announce_jobs_briefly(workflow: Any) -> None:
    """Let the dry run of a workflow log of a job its rule and resources alone, the first job of each rule excepted,
    whose command is written, so that one which cannot be is told."""
    from snakemake.executors.dryrun import Executor
    from snakemake.logging import logger
    from snakemake_interface_logger_plugins.common import LogEvent

    print_job = Executor.printjob
    announced: set[str] = set()

    def print_briefly(executor: Any, job: Any) -> None:
        if job.dag.workflow is not workflow:
            print_job(executor, job)
            return
        for each in job.jobs if job.is_group() else (job,):
            name = each.rule.name
            if name in announced:
                logger.info("", extra={"event": LogEvent.JOB_INFO, "rule_name": name, "resources": each.resources})
            else:
                print_job(executor, each)
                announced.add(name)

    Executor.printjob = print_briefly
