"""The executor's plugin as it is installed, over programs that answer as SLURM does when a part of it is away."""

from __future__ import annotations

import asyncio
import logging
import threading
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import snakemake.cli  # noqa: F401  (its plug-ins look at PATH when they are imported)
import snakemake_executor_plugin_slurm as installed

from plumbline.operate import slurm_executor
from tests.operate.preflight.made_up_plans import program

PARTS = ("query_job_status", "query_job_status_squeue", "Executor.run_job")
DOWN, UP = (f"Slurmctld(primary) at SUPER1 is {state}" for state in ("DOWN", "UP"))


@pytest.fixture
def bin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs that is all of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch, bin: Path, stop: threading.Event, warnings: list[str]) -> Any:
    monkeypatch.setattr(installed, "query_job_status", installed.query_job_status)
    monkeypatch.setattr(installed.Executor, "run_job", lambda executor, job: executor.append(job))
    monkeypatch.setattr(slurm_executor, "PAUSE", 0.01)
    slurm_executor.replace_parts(installed, stop, warnings.append)
    return installed


def ask(plugin: Any, tool: str = "squeue") -> dict[str, str] | None:
    """What the executor learns of its jobs at its next query."""
    command = getattr(plugin, f"query_job_status_{tool}")("plumbline_6f0c")
    states, _ = asyncio.run(plugin.query_job_status(command, logging.getLogger("test")))
    return states


def test_the_plugin_is_one_that_was_read() -> None:
    version = metadata.version("snakemake-executor-plugin-slurm")
    assert version.rpartition(".")[0] in slurm_executor.SEEN_WITH, f"read {PARTS} of {version} and the calls of them"


def test_a_job_that_was_preempted_for_good_has_ended(plugin: Any, bin: Path, warnings: list[str]) -> None:
    """Snakemake waited for it for ever."""
    program(bin, "squeue", "echo '7|PREEMPTED'; echo '8|PENDING'")
    assert ask(plugin) == {"7": "PREEMPTED", "8": "PENDING"} and not warnings
    for _ in range(2):
        assert ask(plugin) == {"7": "CANCELLED", "8": "PENDING"}
    assert len(warnings) == 1 and "job 7 was preempted" in warnings[0]


def test_a_job_that_slurm_forgot_has_ended(plugin: Any, bin: Path, warnings: list[str]) -> None:
    """MinJobAge was over before the next query, or the controller began anew: Snakemake waited for ever."""
    program(bin, "squeue", "echo '7|RUNNING'; echo '9|COMPLETED'")
    ask(plugin)
    program(bin, "squeue", "true")
    assert ask(plugin) == {}, "one answer may be of a controller that has just begun"
    program(bin, "squeue", "echo '7|RUNNING'")
    assert ask(plugin) == {"7": "RUNNING"}
    program(bin, "squeue", "true")
    assert [ask(plugin), ask(plugin), ask(plugin)] == [{}, {"7": "UNKNOWN"}, {}]
    assert len(warnings) == 1 and "job 7" in warnings[0]
    program(bin, "squeue", "exit 1")
    assert ask(plugin) is None, "no answer is none"


def test_a_queue_that_lists_nothing_while_the_controller_is_away_is_no_answer(
    plugin: Any, bin: Path, warnings: list[str]
) -> None:
    """A running job counted as ended, and its files as missing."""
    program(bin, "squeue", "echo '7|RUNNING'; echo '8_[0-2999%5]|PENDING'")
    ask(plugin)
    program(bin, "squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2")
    program(bin, "scontrol", f"echo '{DOWN}'")
    assert [ask(plugin) for _ in range(3)] == [None] * 3
    program(bin, "scontrol", f"echo '{UP}'")
    program(bin, "squeue", "echo '7|RUNNING'; echo '8_0|RUNNING'; echo '8_[1-2999%5]|PENDING'")
    for _ in range(3):
        assert ask(plugin) == {"7": "RUNNING", "8_0": "RUNNING", "8_[1-2999%5]": "PENDING"}
    assert not warnings, "nor is the rest of an array a job that was forgotten"


def test_accounting_that_is_off_or_says_more_than_a_word(plugin: Any, bin: Path) -> None:
    """The executor turns to it while the controller does not answer."""
    program(bin, "sacct", "echo '7|CANCELLED by 1000'; echo '8|RUNNING'; echo '9|PREEMPTED'")
    program(bin, "squeue", "exit 1")
    for _ in range(2):
        assert ask(plugin, "sacct") == {"7": "CANCELLED", "8": "RUNNING", "9": "PREEMPTED"}
    program(bin, "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert ask(plugin, "sacct") is None
    program(bin, "squeue", """case "$*" in *plumbline_6f0c*) echo '8|COMPLETED';; esac""")
    assert ask(plugin, "sacct") == {"8": "COMPLETED"}


def test_jobs_are_submitted_when_the_controller_is_back(
    plugin: Any, bin: Path, warnings: list[str], stop: threading.Event
) -> None:
    """Each failed at once, and with its three attempts the workflow."""
    times = bin / "times"
    program(bin, "scontrol", f'echo x >> {times}; read a < {bin}/answer; echo "$a"; test "$a" = \'{UP}\'')
    (bin / "answer").write_text(f"{DOWN}\n")
    jobs: list[str] = []
    thread = threading.Thread(target=plugin.Executor.run_job, args=(jobs, "first"))
    thread.start()
    while not times.exists() or len(times.read_text()) < 6:
        assert thread.is_alive() and not jobs
    (bin / "answer").write_text(f"{UP}\n")
    thread.join(30)
    assert jobs == ["first"] and len(warnings) == 1 and "scontrol ping" in warnings[0]
    (bin / "answer").write_text(f"{DOWN}\n")
    stop.set()
    plugin.Executor.run_job(jobs, "at Ctrl-C")
    (bin / "scontrol").unlink()
    plugin.Executor.run_job(jobs, "where nobody can say")
    assert len(jobs) == 3
