"""Two Snakemakes in one directory: the second is refused, the first is unharmed, and a kill -9 is not an obstacle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from plumbline.operate.locks.workflow_lock import RECORD
from tests.workflow.project_copy import Project

SMOKE = ("--config", "preset=smoke", "studies=[transfer]")
PLAN = ("--config", "preset=smoke", "--config", "studies=[transfer]")
#: A job that begins, and ends when it is let go, whatever signal comes; and one that has nothing to do with it.
RULES = """

rule waits:
    output:
        "work/waited",
    shell:
        "trap '' INT TERM; touch begun; while [ ! -e go ]; do sleep 0.05; done; touch {output}"


rule other:
    output:
        "work/other",
    shell:
        "touch {output}"
"""
pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def project(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project.copy(repository, tmp_path_factory.mktemp("drivers") / "project")
    with (project.root / "Snakefile").open("a") as file:
        file.write(RULES)
    return project


@pytest.fixture
def first(project: Project) -> Iterator[Popen[bytes]]:
    """A Snakemake whose job has begun."""
    for name in ("begun", "go", "work/waited", "work/other"):
        (project.root / name).unlink(missing_ok=True)
    process = project.start_snakemake("work/waited", *SMOKE, log=project.root / "said")
    try:
        while not (project.root / "begun").exists():
            assert process.poll() is None, "Snakemake ended before its job had begun"
            time.sleep(0.02)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def locks(project: Project) -> dict[str, str]:
    return {path.name: path.read_text() for path in (project.root / ".snakemake" / "locks").glob("*.lock")}


def test_a_second_one_is_refused_and_the_first_is_unharmed(project: Project, first: Popen[bytes]) -> None:
    locks_held = locks(project)
    assert any("work/waited" in text for text in locks_held.values())
    refusal = f"{project.root} is held by process {first.pid} on "
    for arguments in ("work/waited", "plan", "--unlock"):
        second = project.snakemake(arguments, *SMOKE)
        assert second.returncode == 1 and f"Error: {refusal}" in second.stdout, second.stdout[-3000:]
        assert "(snakemake work/waited " in second.stdout and "plumbline plan" in second.stdout
        assert locks(project) == locks_held, arguments
    # What makes nothing may run next to it, and --nolock claims to know better.
    assert project.python("-m", "plumbline.plan", *PLAN).returncode == 0
    assert project.planned("work/other", *SMOKE) == {"other": 1}
    assert project.snakemake("work/other", "--nolock", *SMOKE).returncode == 0
    assert locks(project) == locks_held
    (project.root / "go").touch()
    assert first.wait(300) == 0 and (project.root / "work/waited").exists()
    assert not locks(project) and not (project.root / ".snakemake" / RECORD).exists()


def test_after_a_kill_9_the_next_one_starts(project: Project, first: Popen[bytes]) -> None:
    """At once, or by the command that make calls before a start."""
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    assert locks(project)
    message = f"removed the lock of a Snakemake that no longer runs (process {first.pid} on "
    lock_bytes = {path: path.read_bytes() for path in (project.root / ".snakemake/locks").iterdir()}
    record = (project.root / ".snakemake" / RECORD).read_text()
    cleared = project.python("-m", "plumbline.operate.locks.workflow_lock")
    assert cleared.returncode == 0 and cleared.stdout.startswith(message)
    assert not locks(project)

    for path, content in lock_bytes.items():
        path.write_bytes(content)
    (project.root / ".snakemake" / RECORD).write_text(record)
    (project.root / "go").touch()
    again = project.snakemake("work/waited", *SMOKE)
    assert again.returncode == 0 and message in again.stdout, again.stdout[-3000:]
    assert (project.root / "work/waited").exists() and not locks(project)


def test_ctrl_c_again_and_again_waits_for_the_jobs(project: Project, first: Popen[bytes]) -> None:
    """Snakemake alone fell to the second one, with tracebacks about asyncio."""
    output_file = project.root / "said"
    for message in ("Terminating processes on user request", "waiting for the jobs to end; to leave them", ""):
        os.killpg(first.pid, signal.SIGINT)
        while message not in output_file.read_text():
            assert first.poll() is None, output_file.read_text()
            time.sleep(0.02)
    (project.root / "go").touch()
    assert first.wait(60) == 1 and "Traceback" not in output_file.read_text()
    assert not locks(project) and not (project.root / ".snakemake" / RECORD).exists()
    assert project.snakemake("work/waited", *SMOKE).returncode == 0
    assert (project.root / "work/waited").exists()
