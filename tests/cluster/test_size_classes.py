"""One run of each size class by profiles/slurm as it stands: its nodes, GPUs, launcher, flags and walltime slices, with
a model of smoke width on fake GPUs.

Two things differ from what a user types: the time limit, so that a slice is minutes and not a day (TERM still comes
five minutes before its end), and the launcher of the fault tests between torchrun and the trainer, which lets a step
take a while. Ranks compute on processors, sixteen of them for two nodes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import snakemake_on_cluster as throwaway
import yaml
from snakemake_on_cluster import HERE, PROFILES, REPOSITORY, Workspace, slurm

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("PLUMBLINE_CLUSTER") != "all", reason="PLUMBLINE_CLUSTER is not all: minutes"),
]
#: Minutes by which the profile's TERM comes before the end of a slice.
BEFORE = 5
STEPS = 30
#: Sixteen compilers on two true cores would take minutes; tests/train compiles. The flag reaches the trainer, which
#: then states that it was instructed not to.
UNCOMPILED = {"TORCHDYNAMO_DISABLE": "1"}
#: Tokens of a sequence at smoke.
CONTEXT = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeClass:
    """A size class, the run that stands for it, and what the profile promises.

    `runtime`: minutes of a slice, more where more ranks have to start. A run sleeps as long as its first slice has
    until TERM, and so never ends in it.
    """

    name: str
    study: str
    scale: str
    label: str
    nodes: int
    ranks: int
    micro_batch: int
    strategy: str
    runtime: int

    @property
    def pause(self) -> float:
        """Seconds of sleep a step."""
        return 60 * (self.runtime - BEFORE) / STEPS

    @property
    def run(self) -> str:
        """The run's place among the runs."""
        return f"{self.study}/{self.scale}/baseline/s42"


CLASSES = (
    SizeClass(
        name="one_gpu", study="query_free", scale="base", label="270k", nodes=1, ranks=1, micro_batch=8,
        strategy="ddp", runtime=6,
    ),
    SizeClass(
        name="node", study="transfer", scale="base", label="80k", nodes=1, ranks=8, micro_batch=8,
        strategy="ddp", runtime=7,
    ),
    SizeClass(
        name="two_nodes", study="transfer", scale="large", label="150k", nodes=2, ranks=16, micro_batch=4,
        strategy="fsdp", runtime=9,
    ),
)  # fmt: skip


def settings() -> dict[str, Any]:
    """What profiles/slurm asks for a training, as it stands."""
    profile = yaml.safe_load((REPOSITORY / "profiles/slurm/config.v9+.yaml").read_text())
    return profile["set-resources"]


@pytest.fixture(scope="module")
def workspace(cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A checkout in which the runs have their size class at smoke, batches for that many ranks, and data."""
    place = Workspace.checkout(tmp_path_factory.mktemp("sizes") / "w")
    for size_class in CLASSES:
        path = place.path / "studies" / size_class.study / "study.yaml"
        before, smoke, after = path.read_text().partition(f"    smoke:\n      label: {size_class.label}\n")
        batch = size_class.ranks * size_class.micro_batch * CONTEXT
        train = f"steps: {STEPS}, batch_tokens: {batch}, validate_every: {STEPS}, validation_sequences: 16"
        after, times = re.subn(
            r"train: \{steps: \d+, [^}]*\}", f"train: {{{train}, precision: float32}}", after, count=1
        )
        assert smoke and times == 1, "the study has its scale at smoke, and what it trains there"
        path.write_text(f"{before}{smoke}      size: {size_class.name}\n{after}")
    packs = [
        f"work/smoke/corpora/{corpus}/packs/context{CONTEXT}/{split}"
        for corpus in ("climbmix", "openwebtext")
        for split in ("train", "validation")
    ]
    command = [sys.executable, "-m", "snakemake", *packs, "--config", "preset=smoke"]
    process = subprocess.run(command, cwd=place.path, env=throwaway.cluster_environment(), capture_output=True)
    assert process.returncode == 0, process.stderr.decode()[-3000:]
    return place


def overlay(place: Workspace, size_class: SizeClass) -> tuple[str, ...]:
    """Profiles as a user names them, and one more with the two things that differ."""
    resources = settings()
    # After the last word of each launcher, before the quote that ends it.
    between = rf"\1 {HERE / 'fault_launcher.py'}'"
    launch, times = re.subn(r"( python|:29500)'", between, resources["pretrain"]["launch"])
    assert times == len(CLASSES)
    resources["pretrain"] |= {
        "runtime": size_class.runtime,
        "launch": launch.replace(" python ", f" {sys.executable} "),
    }
    folder = place.path / "slices"
    folder.mkdir(exist_ok=True)
    (folder / "config.v9+.yaml").write_text(yaml.safe_dump({"set-resources": resources}))
    return (*PROFILES, "--profile", str(folder))


@pytest.mark.parametrize("size", CLASSES, ids=lambda one: one.name)
def test_a_run_of_each_size_class_goes_through_the_profile(workspace: Workspace, size: SizeClass) -> None:
    """One after another, as all nodes are one machine here, with one port to meet at."""
    target = f"work/smoke/runs/{size.run}/outcome.json"
    driver = workspace.snakemake(
        target, "--config", "preset=smoke", "machine=h100",
        profiles=overlay(workspace, size),
        environment={"TRAIN_PAUSE": str(size.pause), "TRAIN_OPTIONS": "--report-every 0.001s"} | UNCOMPILED,
    )  # fmt: skip
    try:
        assert driver.wait(1500) == 0, driver.output()[-4000:]
    finally:
        driver.end()
    jobs = driver.jobs()
    accounts = slurm("sacct", "-nXP", "-o", "State,NNodes,AllocTRES,TimelimitRaw", "-j", ",".join(jobs)).splitlines()
    for line in accounts:
        _, nodes, granted, limit = line.split("|")
        assert (int(nodes), int(limit)) == (size.nodes, size.runtime), line
        assert f"gres/gpu={size.ranks}," in f"{granted},", line
    assert len(jobs) >= 2 and accounts[-1].startswith("COMPLETED"), "it was cut into slices"
    assert "SLURM status is: 'FAILED'" in driver.output() and "Trying to restart" in driver.output()
    manifest = json.loads((workspace.path / target).with_name("manifest.json").read_text())
    outcome = json.loads((workspace.path / target).read_text())
    assert (outcome["outcome"], outcome["steps"]) == ("completed", STEPS)
    assert manifest["world_size"] == size.ranks and manifest["micro_batch"] == size.micro_batch
    assert (manifest["strategy"], manifest["accumulation"]) == (size.strategy, 1)
    assert manifest["slurm_job_id"] == jobs[-1]
    began = [start["step"] for start in manifest["starts"]]
    assert len(began) == len(jobs) and began == sorted(set(began)), "each slice went on where the one before it stopped"
    flags = re.search(r"trainer_flags=(.*?), compiled=", driver.output())
    assert flags and f"--micro-batch {size.micro_batch}" in flags[1] and f"{flags[1]} >" in driver.output()
    assert ("--strategy fsdp" in flags[1]) == (size.strategy == "fsdp")
    log = (workspace.path / f"logs/smoke/pretrain/{size.run.replace('/', '.')}.log").read_text()
    assert (manifest["compiled"] or manifest["not_compiled"] is not None) == ("--compile" in flags[1]), log
    assert Path(workspace.path / "work/smoke/state" / size.run).is_dir()
