"""Snakemake's scheduler keeps a limit that was chosen, loses the default one, and rests while jobs run."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.scheduling.job_scheduler import JobRateLimiter
from snakemake.settings.types import MaxJobsPerTimespan

from plumbline.project.snakemake_internals import without_default_rate_limit
from tests import warm_processes

#: Ten jobs at once, and then one that sleeps; how often the scheduler looked for jobs is written down at the end.
SNAKEFILE = """
import sys
sys.path.insert(0, {source!r})
from plumbline.project.snakemake_internals import without_default_rate_limit
from snakemake.scheduling.job_scheduler import JobScheduler

looked = []
before = JobScheduler.job_selector
JobScheduler.job_selector = lambda self, jobs: looked.append(1) or before(self, jobs)

rule all:
    input: "last"

rule one:
    output: touch("one/{{number}}")

rule last:
    input: expand("one/{{number}}", number=range(10))
    output: touch("last")
    shell: "sleep 1"

rule busy:
    output: touch("busy/{{number}}")
    shell: "sleep 1"

onstart:
    {call}

onsuccess:
    open("looked", "w").write(str(len(looked)))
"""


def looks(folder: Path, call: str) -> int:
    """How often the scheduler looked for jobs, of which one is always waiting."""
    folder.mkdir()
    source = str(Path(__file__).resolve().parents[2] / "src")
    (folder / "Snakefile").write_text(SNAKEFILE.format(source=source, call=call))
    args = ("all", "busy/1", "busy/2", "--cores", "1", "--quiet", "all")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SNAKEMAKE")}
    process = warm_processes.module("snakemake", args, folder, environment, timeout=300, together=True)
    assert process.returncode == 0, process.stdout
    return int((folder / "looked").read_text())


def make_limited(most: int, seconds: int) -> SimpleNamespace:
    scheduler = SimpleNamespace(job_rate_limiter=JobRateLimiter(MaxJobsPerTimespan.parse_choice(f"{most}/{seconds}s")))
    return SimpleNamespace(scheduler=scheduler)


def test_the_default_limit_goes_and_a_chosen_one_stays() -> None:
    default, chosen = make_limited(100, 1), make_limited(10, 60)
    without_default_rate_limit(default)
    without_default_rate_limit(chosen)
    assert default.scheduler.job_rate_limiter is None and chosen.scheduler.job_rate_limiter.max_jobs == 10
    without_default_rate_limit(default)


@pytest.mark.workflow
def test_the_scheduler_rests_while_jobs_run(tmp_path: Path) -> None:
    """Snakemake alone looks again and again while a job runs and others wait; here once for each job that ends."""
    rested = looks(tmp_path / "rests", "without_default_rate_limit(workflow)")
    assert rested <= 2 * 13
    # 29 to 31 times against 14.
    assert looks(tmp_path / "alone", "pass") > 1.4 * rested
