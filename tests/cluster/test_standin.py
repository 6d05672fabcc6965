"""What the executor plugin makes of our profile, shown with jobs that cost nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import harness
import pytest
from harness import STANDIN, Snakemake, Workspace, slurm, state, until

pytestmark = pytest.mark.cluster
SNAKEFILE = ("--snakefile", str(STANDIN))


@pytest.fixture
def workspace(cluster: None, tmp_path: Path) -> Iterator[Workspace]:
    place = Workspace.standin(tmp_path / "w")
    yield place
    for log in place.path.glob("snakemake.*.txt"):
        for job in re.findall(r"submitted with SLURM jobid (\d+)", log.read_text()):
            subprocess.run(["scancel", job], env=harness.cluster_environment(), capture_output=True)


def count(workspace: Workspace, seed: int = 1, steps: int = 100, **pretrain: object) -> Snakemake:
    """Start one job that counts to `steps`, wait until it counts."""
    started = workspace.path / f"state.{seed}.starts"
    already = started.read_text().count("\n") if started.exists() else 0
    target = f"runs/transfer/base/count/s{seed}/outcome.json"
    driver = workspace.snakemake(
        target, *SNAKEFILE, profiles=workspace.small(**pretrain), environment={"STEPS": str(steps)}
    )
    until(lambda: started.exists() and started.read_text().count("\n") > already, 60, "the payload")
    return driver


def starts(workspace: Workspace, seed: int = 1) -> list[int]:
    """At which step each start of a counting job began."""
    return [int(line.split()[0]) for line in (workspace.path / f"state.{seed}.starts").read_text().splitlines()]


def test_requests_of_the_paper_preset_are_granted(workspace: Workspace) -> None:
    """profiles/slurm as it stands, but for account and partitions: one node of eight GPUs, two, and none."""
    shown = {scale: f"runs/transfer/{scale}/show/s42/outcome.json" for scale in ("base", "large")}
    shards = [f"tokens/train-{shard:04d}.npy" for shard in range(3)]
    driver = workspace.snakemake(*shown.values(), *shards, *SNAKEFILE, "--retries", "0")
    assert driver.wait(120) == 0, driver.output()[-3000:]
    base, large = ((workspace.path / path).read_text() for path in shown.values())
    for text, nodes, minutes in ((base, 1, "1-00:00:00"), (large, 2, "2-00:00:00")):
        assert f"NumNodes={nodes} " in text and f"gres/gpu={8 * nodes}" in text
        assert f"TimeLimit={minutes} " in text and "Partition=gpus " in text and "Account=lab " in text
        assert "MinMemoryNode=800000M " in text and f"NumTasks={nodes} " in text
        assert not re.search(r"Deadline=(N/A|Unknown)", text)
    # Three shards are one SLURM job, on processors alone.
    assert len(driver.jobs()) == 3
    small = (workspace.path / shards[0]).read_text()
    assert all((workspace.path / shard).read_text().split()[0] == small.split()[0] for shard in shards)
    assert "gres/gpu" not in small and "Partition=cpus " in small
    # Rule and wildcards are in sacct, and every log is where it is said to be.
    accounts = slurm("sacct", "-nXP", "-o", "Comment%80", "-j", ",".join(driver.jobs()))
    assert "rule_pretrain_wildcards_transfer_large_show_42" in accounts
    logs = re.findall(r"log: (\S+/\d+\.log)", driver.output())
    assert len(logs) == 3 and all(Path(log).stat().st_size > 0 for log in logs)


def test_cancelled_job_is_noticed_and_goes_on(workspace: Workspace) -> None:
    """Through sacct the plugin never sees it ("CANCELLED by 0"); through squeue it does."""
    driver = count(workspace)
    time.sleep(2)
    slurm("scancel", driver.job())
    assert driver.wait(120) == 0, driver.output()[-3000:]
    assert re.search(r"SLURM status is: 'CANCELLED'", driver.output())
    first, second = starts(workspace)
    assert first == 0 < second


@pytest.mark.slow
def test_status_queries_that_fail_lose_no_job(workspace: Workspace) -> None:
    """With the plugin's defaults five failed queries, a moment here, and all jobs are forgotten."""
    driver = count(workspace, steps=300)
    os.kill(harness.daemon("munged"), signal.SIGKILL)
    time.sleep(25)
    harness.up()
    assert driver.wait(180) == 0, driver.output()[-3000:]
    assert starts(workspace) == [0]


@pytest.mark.slow
def test_job_that_can_never_start_is_given_up(workspace: Workspace) -> None:
    """It asks for a node that is drained, and for good; the deadline ends that."""
    slurm("scontrol", "update", "nodename=n2", "state=drain", "reason=test")
    try:
        extra = "'--nodelist=n2 --deadline=now+65'"
        profiles = workspace.small(slurm_partition="cpus", gres="", launch="python", runtime=1, slurm_extra=extra)
        target = "runs/transfer/base/count/s1/outcome.json"
        driver = workspace.snakemake(target, *SNAKEFILE, "--retries", "0", profiles=profiles)
        assert driver.wait(180) == 1
    finally:
        slurm("scontrol", "update", "nodename=n2", "state=resume")
    assert "SLURM status is: 'DEADLINE'" in driver.output()


def test_second_snakemake_does_not_run_what_still_runs(workspace: Workspace) -> None:
    """Killed and started again while its job runs: the second job waits in the queue for the first."""
    first = count(workspace, steps=250)
    job = first.job()
    first.kill()
    assert state(job) == "RUNNING"
    listing = subprocess.run(
        [sys.executable, "-m", "plumbline.cluster.orphans"],
        cwd=workspace.path, env=harness.cluster_environment(), capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert listing.split("\t")[0] == job and "rule_pretrain_wildcards_transfer_base_count_1" in listing
    subprocess.run(
        [sys.executable, "-m", "snakemake", *SNAKEFILE, "--unlock", "--cores", "1"],
        cwd=workspace.path, env=harness.cluster_environment(), check=True, capture_output=True,
    )  # fmt: skip
    second = workspace.snakemake(
        "runs/transfer/base/count/s1/outcome.json", *SNAKEFILE, profiles=workspace.small(), environment={"STEPS": "250"}
    )
    waiting = second.job()
    assert waiting != job
    reason = slurm("squeue", "--noheader", f"--jobs={waiting}", "--format=%T %r").strip()
    assert reason == "PENDING Dependency", reason
    assert second.wait(180) == 0, second.output()[-3000:]
    assert starts(workspace) == [0, 250]
