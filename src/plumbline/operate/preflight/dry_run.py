"""Lists the jobs of a Snakemake command line from Snakemake's own dry run, without those that are done already."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from plumbline.operate.console.rule_names import HIDDEN
from plumbline.project import Project, snakemake_internals
from plumbline.specs.study_config import Run

#: Snakemake's executors that work on this machine.
HERE = ("local", "dryrun", "touch")


@dataclass(frozen=True, kw_only=True, slots=True)
class JobToRun:
    """A job that is to do. `memory`: MB that it asks for.

    `resources`: its resources and `threads`, if it goes to the executor; empty if it is run where Snakemake is.
    """

    rule: str
    wildcards: dict[str, str] = field(default_factory=dict)
    memory: int = 0
    resources: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_job(cls, job: Any) -> JobToRun:
        """Make a job from one of Snakemake's."""
        memory = job.resources.get("mem_mb", 0)
        return cls(
            rule=job.rule.name,
            wildcards={key: str(value) for key, value in job.wildcards.items()},
            memory=memory if isinstance(memory, int) else 0,
            resources={}
            if snakemake_internals.stays_here(job)
            else dict(job.resources.items()) | {"threads": job.threads},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class DryRun:
    """A configuration and the jobs that a command line would run under it.

    `account`: the account that jobs give to SLURM; `memory_limit`: MB that all jobs at one time may ask for, None for
    no limit.
    """

    project: Project
    jobs: tuple[JobToRun, ...]
    executor: str = "local"
    account: str = ""
    memory_limit: int | None = None

    @property
    def runs_on_other_machines(self) -> bool:
        """Whether jobs are run on other machines than this one."""
        return self.executor not in HERE

    def of(self, *rules: str) -> list[JobToRun]:
        """List the jobs of some rules."""
        return [job for job in self.jobs if job.rule in rules]

    def values(self, rule: str, *wildcards: str) -> list[tuple[str, ...]]:
        """List the values of a rule's wildcards over its jobs, each combination once."""
        return sorted({tuple(job.wildcards[name] for name in wildcards) for job in self.of(rule)})

    def runs(self, rule: str = "pretrain") -> list[Run]:
        """List the runs that jobs of a rule are for."""
        return [self.project.run(*of_run) for of_run in self.values(rule, "study", "scale", "method", "seed")]

    def describe_jobs(self) -> str:
        """State how many jobs there are of each rule, as in ``26 of pretrain, 1 of table``."""
        counts = Counter(job.rule for job in self.jobs if job.rule not in HIDDEN)
        return ", ".join(f"{number} of {rule}" for rule, number in sorted(counts.items())) or "nothing to be done"


@dataclass(frozen=True, kw_only=True, slots=True)
class DryRunAnswer:
    """The answer of a dry run: the jobs, if it succeeded, and Snakemake's error, if it refused."""

    dry_run: DryRun | None
    refused: str


#: Who receives a plan in the place of a person.
_TOLD: list[list[tuple[Any, Project]]] = []


@contextlib.contextmanager
def _listen(listener: list[tuple[Any, Project]]) -> Iterator[None]:
    """For the time of a block, plans are put into `listener`, and nothing is refused or warned of."""
    _TOLD.append(listener)
    try:
        yield
    finally:
        _TOLD.pop()


def tell(workflow: Any, project: Project) -> bool:
    """Give a workflow and its configuration to an `ask` in this process that waits for them; whether there is one."""
    if _TOLD:
        _TOLD[-1].append((workflow, project))
    return bool(_TOLD)


def ask(arguments: Sequence[str]) -> DryRunAnswer:
    """Make a dry run of a Snakemake command line (its words, without the program) in this process."""
    argv = ["--dry-run", "--quiet", "rules", "progress", "--nocolor", *arguments]
    plans: list[tuple[Any, Project]] = []
    output, previous_argv, path = io.StringIO(), sys.argv, os.environ.get("PATH", "")
    sys.argv, code, executor = ["snakemake", *argv], 0, "local"
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), _listen(plans):
            executor, cores = snakemake_internals.executor_and_cores(argv)
            if executor not in HERE and cores is None:
                # A dry run takes the profile's `jobs` for it, and would cut threads by that.
                argv = ["--cores", str(sys.maxsize), *argv]
            output.truncate(output.seek(0))
            snakemake_internals.main(argv)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except Exception as error:  # of a profile's own code, which is read while the command line is
        output.write(f"{type(error).__name__}:\n{error}")
        code = 1
    finally:
        sys.argv, os.environ["PATH"] = previous_argv, path
    refused = _extract_refusal(output.getvalue()) if code else ""
    if not plans:
        return DryRunAnswer(dry_run=None, refused=refused or "Snakemake planned nothing and gave no reason")
    return DryRunAnswer(dry_run=_dry_run(*plans[0], executor), refused=refused)


def _dry_run(workflow: Any, project: Project, executor: str) -> DryRun:
    jobs = snakemake_internals.list_needed_jobs(workflow)
    limit = snakemake_internals.resource_limits(workflow).get("mem_mb")
    return DryRun(
        project=project,
        jobs=tuple(map(JobToRun.from_job, jobs)),
        executor=executor,
        account=account(jobs),
        memory_limit=limit if isinstance(limit, int) and 0 < limit < sys.maxsize else None,
    )


def account(jobs: Iterable[Any]) -> str:
    """Read the account that Snakemake's jobs give to SLURM; empty if they give none."""
    job = next((job for job in jobs if job.rule.name not in HIDDEN), None)
    return str(job.resources.get("slurm_account", "")) if job is not None else ""


def _extract_refusal(output: str) -> str:
    """What Snakemake refused with, out of all that it printed."""
    if match := re.search(r"^error: (.+)", output, re.M | re.S):
        return " ".join(match[1].split())
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    heads = [number for number, line in enumerate(lines) if re.search(r"(Error|Exception)\b.*:$", line)]
    last = lines[heads[-1] + 1 :] if heads else lines[-1:]
    ends = [number for number, line in enumerate(last) if re.match(r"(Wildcards|Traceback):$|File \"", line)]
    sentence = " ".join(last[: ends[0]] if ends else last)
    # What others (a profile's reader, say) put before one of ours says nothing more.
    _, ours, output = sentence.partition("PlumblineError: ")
    return output if ours else sentence
