"""`--profile slurm` on a real SLURM: what the executor makes of it, the smoke preset, and the faults of clusters.

By default the short part; PLUMBLINE_CLUSTER=all adds every fault (about half an hour on two cores).
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import snakemake_on_cluster as throwaway
from cluster_faults import EXCLUSIVE, QUICK, SEPARATE, TWO_NODES
from fault_trials import STEPS, Bench, Result, Training
from snakemake_on_cluster import HERE, PROFILES, STANDIN, Snakemake, Workspace, slurm, state, until

pytestmark = pytest.mark.cluster
Scenario = Callable[[Training], str]
SMALL = (*PROFILES, "--profile", str(HERE / "small"))
SNAKEFILE = ("--snakefile", str(STANDIN))
#: What takes minutes is for those who change this part, and for releases.
ALL = os.environ.get("PLUMBLINE_CLUSTER") == "all"
long = pytest.mark.skipif(not ALL, reason="PLUMBLINE_CLUSTER is not all")
#: What goes through the cluster whole, with its methods and trainings: Table 2, or that of a study with one method.
TABLE, METHODS, TRAININGS = ("table2", 20, 26) if ALL else ("short/table2", 2, 5)
SHORT = """\
study: short
title: One method more
extends: transfer
seeds: [42]
methods: {ssmax_again: {label: SSMax again, model: {mixer: {name: ssmax}}}}
"""
#: The runs of the noise floor in the study that it extends, and as many of them as a floor has at least.
FLOOR, LEAST = "methods: [baseline, qknorm, softpick], seeds: [43, 44]", "methods: [baseline], seeds: [43]"


@pytest.fixture(scope="module")
def bench(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


@dataclass
class Background:
    """What runs while short tests do: it mostly waits for SLURM and for Snakemake's polls."""

    table: Workspace
    driver: Snakemake
    faults: dict[str, Future[Result]]


@pytest.fixture(scope="module")
def background(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Background]:
    """The main table through the cluster, the quick faults, and the run that those are compared with."""
    table = Workspace.checkout(tmp_path_factory.mktemp("table") / "w")
    short = table.path / "studies/short/study.yaml"
    short.parent.mkdir()
    short.write_text(SHORT)
    if not ALL:  # each training is a job, with Snakemakes of its own
        study = table.path / "studies/transfer/study.yaml"
        assert FLOOR in study.read_text()
        study.write_text(study.read_text().replace(FLOOR, LEAST))
    driver = table.snakemake(f"results/{TABLE}.csv", "--config", "preset=smoke", profiles=SMALL)
    with ThreadPoolExecutor(len(QUICK) + 1) as pool:
        pool.submit(bench.reference)
        faults = {scenario.__name__: pool.submit(bench.run, scenario) for scenario in QUICK}
        yield Background(table=table, driver=driver, faults=faults)
    driver.end()


@pytest.fixture
def workspace(cluster: None, tmp_path: Path) -> Iterator[Workspace]:
    place = Workspace.standin(tmp_path / "w")
    yield place
    for log in place.path.glob("snakemake.*.txt"):
        for job in re.findall(r"submitted with SLURM jobid (\d+)", log.read_text()):
            subprocess.run(["scancel", job], env=throwaway.cluster_environment(), capture_output=True)


def count(workspace: Workspace, seed: int = 1, steps: int = 100, **pretrain: object) -> Snakemake:
    """Start one job that counts to `steps`, wait until it counts."""
    started = workspace.path / f"state.{seed}.starts"
    already = started.read_text().count("\n") if started.exists() else 0
    target = f"runs/transfer/base/count/s{seed}/outcome.json"
    driver = workspace.snakemake(
        target, *SNAKEFILE, profiles=workspace.small(**pretrain), environment={"STEPS": str(steps)}
    )
    until(lambda: started.exists() and started.read_text().count("\n") > already, 240, "the payload")
    return driver


def starts(workspace: Workspace, seed: int = 1) -> list[int]:
    """At which step each start of a counting job began."""
    return [int(line.split()[0]) for line in (workspace.path / f"state.{seed}.starts").read_text().splitlines()]


def test_requests_of_the_paper_preset_are_granted(workspace: Workspace) -> None:
    """profiles/slurm as it stands, except for account and partitions: one node of eight GPUs, two, and none."""
    outcomes = {scale: f"runs/transfer/{scale}/show/s42/outcome.json" for scale in ("base", "large")}
    shards = [f"tokens/train-{shard:04d}.npy" for shard in range(3)]
    driver = workspace.snakemake(
        *outcomes.values(), *shards, *SNAKEFILE, "--retries", "0", "--preemptible-retries", "0"
    )
    assert driver.wait(300) == 0, driver.output()[-3000:]
    base, large = ((workspace.path / path).read_text() for path in outcomes.values())
    for text, nodes in ((base, 1), (large, 2)):
        assert f"NumNodes={nodes} " in text and f"gres/gpu={8 * nodes}" in text
        # The stand-in's rules give no limit of their own, as the product's do from the plan's model.
        assert "TimeLimit=02:00:00 " in text and "Partition=gpus " in text and "Account=lab " in text
        assert "MinMemoryNode=100M " in text, "what the rule asks for: the profile has no number of its own"
        assert f"NumTasks={nodes} " in text
        assert not re.search(r"Deadline=(N/A|Unknown)", text)
    # Three shards are one SLURM job, on processors alone.
    assert len(driver.jobs()) == 3
    small = (workspace.path / shards[0]).read_text()
    assert all((workspace.path / shard).read_text().split()[0] == small.split()[0] for shard in shards)
    assert "gres/gpu" not in small and "Partition=cpus " in small
    # Rule and wildcards are in sacct, and every log is where it is stated to be.
    accounts = slurm("sacct", "-nXP", "-o", "Comment%80", "-j", ",".join(driver.jobs()))
    assert "rule_pretrain_wildcards_transfer_large_show_42" in accounts
    logs = re.findall(r"log: (\S+/\d+\.log)", driver.output())
    assert len(logs) == 3 and all(Path(log).stat().st_size > 0 for log in logs)


@long
@pytest.mark.slow
def test_cancelled_job_is_noticed_and_goes_on(workspace: Workspace) -> None:
    """Through sacct the plugin never sees it ("CANCELLED by 0"); through squeue it does."""
    driver = count(workspace)
    time.sleep(2)
    slurm("scancel", driver.job())
    assert driver.wait(300) == 0, driver.output()[-3000:]
    assert re.search(r"SLURM status is: 'CANCELLED'", driver.output())
    first, second = starts(workspace)
    assert first == 0 < second


@long
@pytest.mark.slow
def test_status_queries_that_fail_lose_no_job(workspace: Workspace) -> None:
    """With the plugin's defaults five failed queries, a moment here, and all jobs are forgotten."""
    driver = count(workspace, steps=300)
    os.kill(throwaway.daemon("munged"), signal.SIGKILL)
    time.sleep(25)
    throwaway.up()
    assert driver.wait(300) == 0, driver.output()[-3000:]
    assert starts(workspace) == [0]


@long
@pytest.mark.slow
def test_jobs_are_submitted_when_the_controller_is_back(workspace: Workspace) -> None:
    """Away for a minute: three tries of a job of the data stage took less, and the workflow had ended."""
    os.kill(throwaway.daemon("slurmctld"), signal.SIGTERM)
    try:
        driver = workspace.snakemake("tokens/train-0000.npy", *SNAKEFILE, profiles=workspace.small())
        until(lambda: "scontrol ping" in driver.output(), 120, "a job to submit")
        time.sleep(60)
        assert driver.process.poll() is None and not driver.jobs()
    finally:
        throwaway.up()
    assert driver.wait(120) == 0, driver.output()[-3000:]
    assert len(driver.jobs()) == 1


@long
@pytest.mark.slow
def test_job_that_can_never_start_is_given_up(workspace: Workspace) -> None:
    """It asks for a node that is drained, and for good; the deadline ends that."""
    slurm("scontrol", "update", "nodename=n2", "state=drain", "reason=test")
    try:
        extra = "'--nodelist=n2 --deadline=now+65'"
        profiles = workspace.small(slurm_partition="cpus", gres="", launch="python", runtime=1, slurm_extra=extra)
        target = "runs/transfer/base/count/s1/outcome.json"
        driver = workspace.snakemake(target, *SNAKEFILE, "--preemptible-retries", "0", profiles=profiles)
        assert driver.wait(300) == 1
    finally:
        slurm("scontrol", "update", "nodename=n2", "state=resume")
    assert "SLURM status is: 'DEADLINE'" in driver.output()


def test_second_snakemake_does_not_run_what_still_runs(background: Background, workspace: Workspace) -> None:
    """Killed and started again while its job runs: the second job waits in the queue for the first."""
    hold = workspace.path / "hold"
    hold.touch()  # until all has been seen, however long a busy machine takes over it
    first = count(workspace)
    job = first.job()
    first.kill()
    assert state(job) == "RUNNING"
    listing = throwaway.verb(workspace.path, "plumbline.operate.locks.orphan_jobs")
    assert listing.split("\t")[0] == job and "rule_pretrain_wildcards_transfer_base_count_1" in listing
    throwaway.verb(workspace.path, "snakemake", *SNAKEFILE, "--unlock", "--cores", "1")
    second = workspace.snakemake("runs/transfer/base/count/s1/outcome.json", *SNAKEFILE, profiles=workspace.small())
    waiting = second.job()
    assert waiting != job
    reason = slurm("squeue", "--noheader", f"--jobs={waiting}", "--format=%T %r").strip()
    assert reason == "PENDING Dependency", reason
    hold.unlink()
    assert second.wait(300) == 0, second.output()[-3000:]
    assert starts(workspace) == [0, 100]


def check(result: Result) -> None:
    """Whatever was done to it, the run ends with the weights of a run that nobody disturbed."""
    assert result.equal, result
    assert result.starts == sorted(result.starts) and result.lost <= STEPS, result


@pytest.mark.parametrize("name", [scenario.__name__ for scenario in QUICK])
def test_quick_fault(background: Background, name: str) -> None:
    result = background.faults[name].result()
    check(result)
    assert len(result.starts) > 1 and result.starts[1] > 0, result
    if name in ("cancelled", "walltime"):  # it was asked to stop, and saved
        assert result.lost == 0, result


def test_smoke_preset_through_the_cluster(background: Background) -> None:
    """`snakemake TABLE --profile slurm`, with the names of this cluster's account and partitions."""
    workspace, driver = background.table, background.driver
    assert driver.wait(1200) == 0, driver.output()[-4000:]
    table = (workspace.path / f"results/{TABLE}.csv").read_text()
    assert len(table.splitlines()) == METHODS + 1, table
    accounts = slurm("sacct", "-nXP", "-o", "JobID,State,AllocTRES,Comment", "-j", ",".join(driver.jobs())).splitlines()
    assert all("|COMPLETED|" in line for line in accounts), accounts
    trainings = [line for line in accounts if "rule_pretrain_wildcards_" in line]
    assert len(trainings) == TRAININGS and all("gres/gpu=1" in line for line in trainings)
    assert len(accounts) < TRAININGS + 10  # all else is packed
    logs = [Path(log) for log in re.findall(r"\(log: (\S+)\)", driver.output())]
    assert len(logs) == len(accounts) and all(log.exists() for log in logs)
    manifests = list(workspace.path.glob("work/smoke/runs/**/manifest.json"))
    jobs = {json.loads(manifest.read_text())["slurm_job_id"] for manifest in manifests}
    assert jobs <= set(driver.jobs()) and len(jobs) == TRAININGS


@long
@pytest.mark.slow
@pytest.mark.parametrize("scenario", SEPARATE + EXCLUSIVE + TWO_NODES, ids=lambda scenario: scenario.__name__)
def test_fault(bench: Bench, scenario: Scenario) -> None:
    check(bench.run(scenario, "large" if scenario in TWO_NODES else "base"))
