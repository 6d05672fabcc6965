"""Says what would stop a run before anything runs: ``python -m plumbline.operate.preflight``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from plumbline.core.command_line import Parser, run
from plumbline.core.errors import PlumblineError, visible
from plumbline.operate.preflight import (
    cluster,
    data_archives,
    disk_and_memory,
    environment,
    folders,
    gpu,
    hub,
    in_use,
    tasks,
)
from plumbline.operate.preflight.check_result import NOTE, OK, STOP, UNKNOWN, CheckResult, at_once
from plumbline.operate.preflight.dry_run import DryRun, ask

#: What is checked once there is a plan, in the order in which it is printed.
SECTIONS: tuple[Callable[[DryRun], list[CheckResult]], ...] = (
    environment.check,
    folders.check,
    folders.copies_on_both_sides,
    tasks.check,
    data_archives.check,
    hub.check,
    gpu.check,
    disk_and_memory.check,
    in_use.list_trainers,
    cluster.check,
)


def check(arguments: list[str], directory: Path) -> list[CheckResult]:
    """Check everything that a Snakemake command line (its words, without the program) would need in `directory`."""
    answer = ask(arguments)
    results = in_use.check(directory)
    if answer.dry_run is None:
        unplanned = environment.check_executor(answer.refused)
        return [*results, *(unplanned or [CheckResult(state=STOP, subject="plan", message=answer.refused)])]
    dry_run = answer.dry_run
    settings = dry_run.project.config
    plan_summary = (
        f"preset {dry_run.project.name}, machine {settings['machine']}, "
        f"executor {dry_run.executor}: {dry_run.describe_jobs()}"
    )
    if answer.refused:
        results.append(CheckResult(state=STOP, subject="plan", message=answer.refused))
    else:
        results.insert(0, CheckResult(state=OK, subject="plan", message=plan_summary))
    for section in at_once(lambda section: _check_section(section, dry_run), SECTIONS):
        results += section
    return results


def _check_section(section: Callable[[DryRun], list[CheckResult]], dry_run: DryRun) -> list[CheckResult]:
    try:
        return section(dry_run)
    except PlumblineError as problem:
        return [CheckResult(state=STOP, subject=section.__module__.rpartition(".")[2], message=str(problem))]


def arguments() -> Parser:
    """Build the parser of this verb's own help; every other word of the command line is Snakemake's."""
    return Parser(
        "Says what would stop a run before anything runs; the arguments are those of the snakemake command to be run. "
        "Nothing is made, submitted or removed; a package index, the hub and SLURM are asked where jobs that are still "
        "to do need them.",
        usage="%(prog)s [TARGET ...] [--profile P ...] [--config K=V ...]",
        epilog=f"A line is {OK}, {NOTE}, {UNKNOWN} (from here) or {STOP}; exit code 1 if anything would stop.",
    )


def main() -> int:
    """Print a line for each thing that was checked; exit 1 if one of them would stop the run."""
    _, snakemake_arguments = arguments().parse_known_args()
    results = check(snakemake_arguments, Path.cwd())
    for result in results:
        print(visible(str(result)))
    stops = sum(result.state == STOP for result in results)
    print(
        f"{stops} of {len(results)} would stop the run"
        if stops
        else "nothing that can be checked from here would stop it"
    )
    sys.stdout.flush()
    return 1 if stops else 0


if __name__ == "__main__":
    run(main)
