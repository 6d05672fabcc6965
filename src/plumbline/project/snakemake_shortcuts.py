"""Spares Snakemake what it does anew for each of thousands of jobs, and what nobody reads of a long dry run.

As `snakemake_internals`, this file touches private parts of Snakemake, and the same test fails where another minor
version than it knows is installed. Nothing here changes which jobs there are, or what they are given.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

#: Functions of rules, and of their resources, are a few hundred.
FUNCTIONS = 4096
#: After so many new objects Python looks for garbage; by itself after 700.
OBJECTS = 100_000


def spare_repetitions() -> None:
    """Let Snakemake find out once what is the same for all jobs. A second call in one process changes nothing."""
    import snakemake.common as common
    import snakemake.rules as rules
    from snakemake.dag import DAG
    from snakemake.io import _IOFile

    if hasattr(common.get_function_params, "cache_info"):
        return
    common.get_function_params = rules.get_function_params = lru_cache(FUNCTIONS)(common.get_function_params)
    _IOFile.is_storage = property(_is_storage)
    _IOFile.flags = property(_flags)
    copy_flags = _IOFile.clone_flags

    def clone_flags(file: Any, other: Any, skip_storage_object: bool = False) -> None:
        if _flags(file) or _flags(other):
            copy_flags(file, other, skip_storage_object)

    _IOFile.clone_flags = clone_flags
    compare_all = DAG.check_directory_outputs

    def check_directory_outputs(dag: Any) -> None:
        if has_nested_outputs(str(file) for job in dag.jobs for file in job.output):
            compare_all(dag)

    DAG.check_directory_outputs = check_directory_outputs
    # Jobs, and all that is made for them, stay to the end: to look for garbage among them takes a tenth of the time.
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])


class _NoFlags(dict[str, Any]):
    """The flags of a file that has none and is a plain string: the second string, which can have some, is made for the
    first flag that is set. It is most of what is kept of a file, and few have flags."""

    __slots__ = ("file",)

    def __init__(self, file: Any) -> None:
        self.file = file

    def __setitem__(self, name: str, value: Any) -> None:
        self.file.set_flags({name: value})


def _flags(file: Any) -> Any:
    """The flags of a file of a rule."""
    flags = getattr(file._file, "flags", None)
    return _NoFlags(file) if flags is None else flags


def _is_storage(file: Any) -> bool:
    """Whether a file of a rule lies elsewhere; asked a hundred times for each job."""
    flags = getattr(file._file, "flags", None)
    return bool(flags and flags.get("storage_object"))


def has_nested_outputs(outputs: Iterable[str]) -> bool:
    """Whether one of these paths is a folder that another lies in; Snakemake's own check compares `Path`s in order."""
    paths = {os.path.abspath(path) for path in outputs}
    folders: set[str] = set()
    for path in paths:
        while (path := os.path.dirname(path)) not in folders:
            folders.add(path)
    return bool(folders & paths)


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
