"""A user's own trainer on a real SLURM: every requested run is made, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from cluster_faults import resume
from snakemake_on_cluster import HERE, cluster_environment, slurm, state, until

from tests.verdict.own_trainer.trainers import git, make, write_toml

pytestmark = pytest.mark.cluster
#: Waits as long as a file is there, so that all runs of it may be found running.
TRAIN = """\
import os, random, sys, time
seed = int(sys.argv[sys.argv.index("--seed") + 1])
with open(os.environ["STARTS"], "a") as starts:
    starts.write(f"{seed} {os.environ.get('SLURM_JOB_ID')} {os.environ.get('SLURMD_NODENAME')}\\n")
while os.path.exists(os.environ["STARTS"] + ".hold"):
    time.sleep(0.1)
print(f"val_bpb: {random.Random(seed).gauss(1, 0.01) - 0.1 * ('--better' in sys.argv):.6f}")
"""
#: What is made for hours is asked about soon, and all runs go on concurrently.
SITE = """\
jobs: 4
slurm-init-seconds-before-status-checks: 1
max-status-checks-per-second: 1
latency-wait: 5
set-threads: {train: 1}
set-resources: {train: {gres: "'gpu:1'", mem_mb: 200}}
"""
DECIDE = "[decide]\nbaseline_runs = 2\nmax_runs = 2"


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start a try in its own session."""
    arguments = ["try", "--trust", "--baseline", "HEAD", "-m", "better", "--", "--better"]
    environment = cluster_environment() | {"STARTS": f"{folder}.starts"}
    with open(f"{folder}.txt", "ab") as log:
        command = [sys.executable, "-m", "plumbline", *arguments]
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)


def commit(folder: Path) -> None:
    """Commit everything: else a run comes first, by which it is known what runs write."""
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "a site")


def starts(folder: Path) -> list[list[str]]:
    """Seed, job and node of each start of the trainer."""
    path = Path(f"{folder}.starts")
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def runs(folder: Path) -> list[tuple[int, float, str]]:
    """The bank: seed, value and method of every run."""
    lines = map(json.loads, (folder / ".plumbline/runs.jsonl").read_text().splitlines())
    return sorted(
        (ledger_line["run"]["seed"], ledger_line["run"]["value"], ledger_line["method"]) for ledger_line in lines
    )


def test_a_node_and_the_try_are_lost_and_no_run_is(cluster: None, tmp_path: Path) -> None:
    """A node goes down under its runs, then the try and its Snakemake are killed in the middle of all, and repeated."""
    here = make(tmp_path / "here", TRAIN)
    (here / "site").mkdir()
    (here / "site" / "config.v9+.yaml").write_text(SITE)
    there = Path(shutil.copytree(here, tmp_path / "there"))
    write_toml(here, more=DECIDE)
    commit(here)
    assert start(here).wait() == 0
    write_toml(there, more=f'{DECIDE}\n[where]\nprofile = "slurm, {HERE / "profile"}, site"')
    commit(there)
    hold = Path(f"{there}.starts.hold")
    hold.touch()
    first = start(there)
    try:
        until(lambda: len(starts(there)) == 4, 120, "four runs at work")
        lost = Counter(node for _, _, node in starts(there)).most_common(1)[0][0]
        slurm("scontrol", "update", f"nodename={lost}", "state=down", "reason=test")
        until(lambda: len(starts(there)) > 4, 120, "a run again, on another node")
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        resume(lost)
    second = start(there)
    jobs = {job for _, job, _ in starts(there)}
    until(lambda: "submitted" in Path(f"{there}.txt").read_text().rpartition("SLURM run ID")[2], 120, "second jobs")
    hold.unlink()
    assert second.wait(timeout=240) == 0, Path(f"{there}.txt").read_text()[-3000:]
    assert runs(there) == runs(here) and len(runs(there)) == 4
    until(lambda: not [job for job in jobs if state(job) == "RUNNING"], 60, "the end of what the try had running")
    # Once more than the node that was lost asks for: a seed of the baseline is run twice, once a folder.
    assert all(count < 4 for count in Counter(seed for seed, _, _ in starts(there)).values()), starts(there)
