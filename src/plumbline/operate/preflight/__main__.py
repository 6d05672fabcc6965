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

#: What is looked at once there is a plan, in the order in which it is told.
SECTIONS: tuple[Callable[[DryRun], list[CheckResult]], ...] = (
    environment.check,
    folders.check,
    folders.copies_on_both_sides,
    tasks.check,
    data_archives.check,
    hub.check,
    gpu.check,
    disk_and_memory.check,
    in_use.trainers,
    cluster.check,
)


def check(words: list[str], directory: Path) -> list[CheckResult]:
    """Check everything that a Snakemake command line (its words, without the program) would need in `directory`."""
    asked = ask(words)
    found = in_use.check(directory)
    if asked.dry_run is None:
        unplanned = environment.executor(asked.refused)
        return [*found, *(unplanned or [CheckResult(state=STOP, what="plan", words=asked.refused)])]
    dry_run = asked.dry_run
    settings = dry_run.project.config
    words_of_plan = (
        f"preset {dry_run.project.name}, machine {settings['machine']}, "
        f"executor {dry_run.executor}: {dry_run.counted()}"
    )
    if asked.refused:
        found.append(CheckResult(state=STOP, what="plan", words=asked.refused))
    else:
        found.insert(0, CheckResult(state=OK, what="plan", words=words_of_plan))
    for section in at_once(lambda section: _looked(section, dry_run), SECTIONS):
        found += section
    return found


def _looked(section: Callable[[DryRun], list[CheckResult]], dry_run: DryRun) -> list[CheckResult]:
    try:
        return section(dry_run)
    except PlumblineError as problem:
        return [CheckResult(state=STOP, what=section.__module__.rpartition(".")[2], words=str(problem))]


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
    _, words = arguments().parse_known_args()
    found = check(words, Path.cwd())
    for one in found:
        print(visible(str(one)))
    stops = sum(one.state == STOP for one in found)
    print(
        f"{stops} of {len(found)} would stop the run"
        if stops
        else "nothing that can be checked from here would stop it"
    )
    sys.stdout.flush()
    return 1 if stops else 0


if __name__ == "__main__":
    run(main)
