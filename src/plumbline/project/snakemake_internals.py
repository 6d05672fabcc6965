"""Holds every private part of Snakemake that is read or replaced here, behind functions with plain names.

Snakemake promises its command line, what a rule sees of its job (wildcards, input, output, params, log, resources,
threads), `snakemake.utils`, and the interfaces of its plugins. All else that is used here may change with any minor
version. So no other file but `snakemake_messages` and `snakemake_shortcuts` touches a private part, and a test
(tests/architecture/test_snakemake_internals.py) fails where another minor version than `SEEN_WITH` is installed: check
each function of all three, then write the version there. Snakemake is imported inside the functions, since what merely
prints help imports this module too.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

#: Minor versions of Snakemake whose source was read for all that follows.
SEEN_WITH = ("9.27",)

#: Snakemake's default limit: so many jobs in so many seconds.
DEFAULT_RATE = (100, 1)


def parse_config_word(word: str) -> dict[str, Any]:
    """Read one KEY=VALUE word of `--config` as Snakemake does.

    Raises:
        ValueError: it is not of that form.
    """
    from snakemake.cli import parse_config

    config: dict[str, Any] = parse_config([word])
    return config


def profile_files(argv: Sequence[str]) -> list[Path]:
    """Find the files of the profiles in force, the last one strongest; Snakemake finds them itself.

    They are those of --profile (or of $SNAKEMAKE_PROFILE), then the workflow's own.
    """
    from snakemake.cli import parse_args

    with contextlib.redirect_stderr(io.StringIO()):  # which it has printed already
        parser, _ = parse_args(list(argv))
    return [Path(path) for path in parser._default_config_files]


def find_profile(profile: str) -> Path | None:
    """Find the file of a profile that is named as for --profile; None if there is none."""
    from snakemake.cli import get_profile_dir

    match = get_profile_dir(profile)
    return None if match is None else Path(match[1])


def read_profile(path: Path) -> Mapping[str, Any]:
    """Read a profile, its expressions evaluated.

    Raises:
        ConfigFileParserException: of configargparse, where it cannot be read.
    """
    from snakemake.profiles import ProfileConfigFileParser

    with open(path, encoding="utf-8") as stream:
        profile: Mapping[str, Any] = ProfileConfigFileParser().parse(stream)
    return profile


def executor_and_cores(argv: Sequence[str]) -> tuple[str, Any]:
    """Read which executor a command line and its profiles choose, and how many cores they give it (None: unstated)."""
    from snakemake import cli

    _, options = cli.parse_args(list(argv))
    return options.executor or "local", options.cores


def main(argv: Sequence[str]) -> None:
    """Run Snakemake in this process; it ends with SystemExit."""
    from snakemake import cli

    cli.main(list(argv))


def is_main_process(workflow: Any) -> bool:
    """Whether this is the Snakemake that a person started, not one that it starts for its jobs."""
    return bool(workflow.is_main_process)


def source_folder(workflow: Any) -> Path:
    """Return the folder of the main Snakefile."""
    return Path(workflow.basedir)


def config_files(workflow: Any) -> list[Path]:
    """List the files that --configfile names."""
    return [Path(path) for path in workflow.config_settings.configfiles]


def config_words(workflow: Any) -> list[str]:
    """List the KEY=VALUE words of --config that Snakemake uses."""
    return list(workflow.config_settings.config_args or ())


def use_config(workflow: Any, config: dict[str, Any], arguments: list[str]) -> None:
    """Make a workflow, and the processes that run its jobs, use another --config; to be called before `configfile:`."""
    workflow.config_settings = dataclasses.replace(workflow.config_settings, config=config, config_args=arguments)
    workflow.globals["config"] = copy.deepcopy(workflow.config_settings.overwrite_config)


def resources_in_force(workflow: Any) -> dict[str, dict[str, str]]:
    """List what Snakemake goes by of resources: option -> RULE:NAME or the like -> value."""
    settings = workflow.resource_settings
    return _collect_resources(settings.overwrite_resources, settings.overwrite_threads, settings.default_resources)


def parse_resources(values_by_option: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
    """Parse words of --set-resources, --set-threads and --default-resources, by option, as Snakemake does."""
    options = _parse_options(values_by_option)
    return _collect_resources(options.set_resources, options.set_threads, options.default_resources)


def use_resources(workflow: Any, values_by_option: Mapping[str, Sequence[str]]) -> None:
    """Make a workflow, and the processes that run its jobs, use these words; to be called before the first rule."""
    options = _parse_options(values_by_option)
    workflow.resource_settings = dataclasses.replace(
        workflow.resource_settings,
        overwrite_resources=options.set_resources,
        overwrite_threads=options.set_threads,
        default_resources=options.default_resources,
    )


def _parse_options(values_by_option: Mapping[str, Sequence[str]]) -> Any:
    from snakemake.cli import parse_args

    options = [word for option, values in values_by_option.items() if values for word in (f"--{option}", *values)]
    return parse_args(["--workflow-profile", "none", *options])[1]


def _collect_resources(resources: Any, threads: Any, defaults: Any) -> dict[str, dict[str, str]]:
    by_rule = {f"{rule}:{name}": str(value.raw) for rule, of in (resources or {}).items() for name, value in of.items()}
    return {
        "set-resources": by_rule,
        "set-threads": {rule: str(value.raw) for rule, value in (threads or {}).items()},
        "default-resources": {name: str(value.raw) for name, value in (defaults or {}).items()},
    }


def on_dag_built(workflow: Any, call: Callable[[], None]) -> None:
    """Call a function each time that Snakemake knows its jobs, in dry runs and the like too (`onstart` is for runs)."""
    build = workflow._build_dag

    def build_and_call() -> None:
        build()
        call()

    workflow._build_dag = build_and_call


class _EdgesThatRun(dict[Any, dict[Any, Any]]):
    """Job -> those behind it that run because it does, as its graph has them (job -> job -> files): behind files that
    are there and `ancient` none does.
    """

    def __init__(self, direction: Mapping[Any, Mapping[Any, Any]]) -> None:
        super().__init__()
        self.direction = direction

    def __missing__(self, job: Any) -> dict[Any, Any]:
        self[job] = {
            neighbour: files
            for neighbour, files in self.direction[job].items()
            if not all(file.is_ancient and os.path.exists(file) for file in files)
        }
        return self[job]


def force_jobs(workflow: Any, choose: Callable[[list[Any]], list[Any]]) -> None:
    """Force those of all jobs that `choose` returns, before Snakemake first asks which of them are needed.

    Snakemake's own --forcerun makes a target of each file that it is given; these are forced if they are requested.
    Besides, Snakemake asks no reason of the jobs behind a needed one, since they run anyway: behind an `ancient` file
    they do not, and one whose own files are missing was passed over (its issue 4166). They are asked here.
    """
    build = workflow._build_dag

    def build_forced() -> None:
        dag = workflow.dag
        update, traverse, forced = dag.update_needrun, dag.bfs, False

        async def update_needrun(*arguments: Any, **options: Any) -> None:
            nonlocal forced
            if not forced:
                forced = True
                for job in choose(list(dag.jobs)):
                    dag.forcefiles.update(job.output)
            dag.bfs = lambda direction, *jobs, **keywords: traverse(_EdgesThatRun(direction), *jobs, **keywords)
            try:
                await update(*arguments, **options)
            finally:
                dag.bfs = traverse

        dag.update_needrun = update_needrun
        build()

    workflow._build_dag = build_forced


def list_all_jobs(workflow: Any) -> list[Any]:
    """List the jobs of the graph, those that need not run too."""
    return list(workflow.dag.jobs)


def list_needed_jobs(workflow: Any) -> list[Any]:
    """List the jobs that are to run and have not."""
    return list(workflow.dag.needrun_jobs())


def compares_parameters(workflow: Any) -> bool:
    """Whether a job runs again when its parameters are others (--rerun-triggers)."""
    return any(trigger.name == "PARAMS" for trigger in workflow.rerun_triggers)


def makes_files(workflow: Any) -> bool:
    """Whether jobs are run, or would be except for a dry run; not with --summary, --rulegraph, --unlock, --touch."""
    return workflow.execution_settings is not None and not workflow.touch


def only_touches(workflow: Any) -> bool:
    """Whether files are only made to look new (--touch)."""
    return bool(workflow.touch)


def stays_here(job: Any) -> bool:
    """Whether a job is run where Snakemake is, not on a cluster. Snakemake itself does so for all jobs of a dry run."""
    rule = job.rule
    return rule.group is None and (rule.name in job.dag.workflow._localrules or rule.norun)


def list_numbered_jobs(workflow: Any) -> list[tuple[int, str, Any, Mapping[str, Any]]]:
    """List the jobs that are to run, each as (number, rule, wildcards, resources).

    The number is the one that the log calls the job by; the resources are what it takes of the limited ones.
    """
    dag = workflow.dag
    return [(dag.jobid(job), job.rule.name, job.wildcards, job.scheduler_resources) for job in dag.needrun_jobs()]


def resource_limits(workflow: Any) -> dict[str, Any]:
    """List how much of each resource all jobs at one time may take; None and large numbers mean no limit."""
    return {name: getattr(limit, "value", limit) for name, limit in workflow.global_resources.items()}


def runs_jobs_here(workflow: Any) -> bool:
    """Whether jobs are run on this machine, not by a cluster."""
    return bool(workflow.local_exec)


def without_default_rate_limit(workflow: Any) -> None:
    """Take the scheduler's default rate limit away; a limit that somebody has chosen is left alone.

    With any limit Snakemake 9.27.1 starts one more timer each time that it looks for jobs, and each timer makes it look
    again (snakemake/snakemake#3744): after some hundred jobs it looks over all that are ready a hundred times a second,
    and keeps a core busy. Without a limit it looks when a job has ended. To be called when the scheduler is there and
    has not begun (`onstart`); no option of the command line says "no limit".
    """
    scheduler = workflow.scheduler
    limiter = scheduler.job_rate_limiter
    if limiter is not None and (limiter.max_jobs, limiter.timespan) == DEFAULT_RATE:
        scheduler.job_rate_limiter = None


def before_cancelling(workflow: Any, call: Callable[[], None]) -> None:
    """Call a function when Snakemake is about to cancel its jobs, or to wait for those of this machine, at Ctrl-C.

    To be called when the scheduler is there (`onstart`).
    """
    executor = workflow.scheduler._executor
    cancel = executor.cancel

    def cancel_after() -> None:
        call()
        cancel()

    executor.cancel = cancel_after


def take_lock_over(
    hold: Callable[[Path], AbstractContextManager[None]], before_unlocking: Callable[[Path], None]
) -> None:
    """Hold a context manager around Snakemake's own lock, and call a function before a person's command removes
    locks.

    Both are given the folder `.snakemake`. Only here is it known that jobs will be run: when a Snakefile is read, a
    dry run is like any other; `onstart` comes after the lock, and where it fails the locks of all are removed. A
    second call in one process changes nothing.
    """
    from snakemake.persistence import PersistenceBase

    lock, cleanup_locks = PersistenceBase.lock, PersistenceBase.cleanup_locks
    if lock.__module__ == __name__:
        return

    @contextmanager
    def lock_within(persistence: Any) -> Iterator[None]:
        with hold(persistence.path), lock(persistence):
            yield

    def cleanup_locks_after(persistence: Any) -> None:
        before_unlocking(persistence.path)
        cleanup_locks(persistence)

    PersistenceBase.lock, PersistenceBase.cleanup_locks = lock_within, cleanup_locks_after


def lock_files(folder: Path) -> list[Path]:
    """List the files with which Snakemake locks what it is to make; `folder` is `.snakemake`."""
    return sorted((folder / "locks").glob("*.lock"))


def include_other_processes(find: Callable[[Sequence[str]], Sequence[int]]) -> None:
    """Let benchmarks count, next to a job's own processes, those that `find` returns for the names of these.

    Their descendants count too. A second call in one process changes nothing.
    """
    import psutil
    import snakemake.benchmark as benchmark

    if benchmark.BenchmarkTimer.__module__ == __name__:
        return

    class JobProcess(psutil.Process):
        def children(self, recursive: bool = False) -> list[psutil.Process]:
            descendants = super().children(recursive)
            names = []
            for process in (self, *descendants):
                with contextlib.suppress(psutil.Error):
                    names.append(process.name())
            for number in find(names):
                with contextlib.suppress(psutil.Error):
                    child = psutil.Process(number)
                    descendants += [child, *child.children(recursive)]
            return descendants

    class Timer(benchmark.BenchmarkTimer):  # type: ignore[misc]
        def __init__(self, pid: int, *rest: Any) -> None:
            super().__init__(pid, *rest)
            self.main = JobProcess(pid)

    benchmark.BenchmarkTimer = Timer
