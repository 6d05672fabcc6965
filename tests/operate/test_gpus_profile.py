"""profiles/gpus with stand-ins for devices: one run a device, and no more jobs than devices."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import warm_processes

#: A rank on some devices of which it claims its own by a file that must not be there.
JOB = """
import os, time
seen = os.environ["CUDA_VISIBLE_DEVICES"]
own = seen.split(",")[int(os.environ.get("LOCAL_RANK", 0))]
os.close(os.open(f"using-{own}", os.O_CREAT | os.O_EXCL))
time.sleep(0.3)
with open("seen", "a") as file:
    file.write(seen + "\\n")
os.remove(f"using-{own}")
"""

#: Seven trainings that take no time; the last one gets all devices. Of the plan the profile asks size and length alone.
SNAKEFILE = """
import plumbline.project.profiles
plumbline.project.profiles.size_of = lambda wildcards: "node" if wildcards.seed == "6" else "one_gpu"
plumbline.project.profiles.compile_flag = lambda wildcards: ""

rule all:
    input: expand("out{seed}", seed=range(7))

rule pretrain:
    output: touch("out{seed}")
    log: "log{seed}"
    resources: launch="python"
    shell: "exec {resources.launch} job.py > {log} 2>&1"
"""


def snakemake(folder: Path, *args: str, devices: str) -> subprocess.CompletedProcess[str]:
    variables = {"PLUMBLINE_DEVICES": devices, "PLUMBLINE_DEVICE_LOCKS": str(folder / "locks")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return warm_processes.module(
        "snakemake", args, folder, os.environ | variables | {"PATH": path}, timeout=300, together=False
    )


@pytest.mark.workflow
def test_jobs_of_a_workflow_never_share_a_device(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "job.py").write_text(JOB)
    process = snakemake(tmp_path, "--profile", str(repository / "profiles/gpus"), devices="0,1,2")
    assert process.returncode == 0, process.stderr
    assert 'Provided resources: gpu=Resource("gpu", 3)' in process.stderr
    devices = [line.split(",") for line in (tmp_path / "seen").read_text().split()]
    assert sorted(len(names) for names in devices) == [1, 1, 1, 1, 1, 1, 3, 3, 3]
    assert {name for names in devices for name in names} == {"0", "1", "2"}


def test_the_workflow_launches_by_size(repository: Path) -> None:
    """At paper size a run has whole nodes, its evaluation one device; at smoke size each has one."""

    def dry_run(preset: str) -> subprocess.CompletedProcess[str]:
        scores = f"work/{preset}/scores/transfer/base/baseline/s42/scores.parquet"
        args = ("--dry-run", "-p", scores, "--profile", "profiles/gpus", "--config", f"preset={preset}")
        return snakemake(repository, *args, "studies=[transfer]", devices="0,1,2")

    paper = dry_run("paper")
    assert paper.returncode == 0, paper.stdout[-2000:]
    launches = set(re.findall(r"launch=(.*?),.*?gpu=(\d)", paper.stdout))
    torchrun = "python -m plumbline.operate.gpu_queue --devices 3 torchrun --standalone --nproc-per-node=3"
    assert launches == {(torchrun, "3"), ("python -m plumbline.operate.gpu_queue python", "1")}
    smoke = dry_run("smoke").stdout
    assert set(re.findall(r"launch=(.*?),.*?gpu=(\d)", smoke)) == {
        ("python -m plumbline.operate.gpu_queue python", "1")
    }
