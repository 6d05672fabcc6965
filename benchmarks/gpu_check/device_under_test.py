"""Describes the device under test, and times its work."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from benchmarks import machine_description
from plumbline.core import provenance
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.numeric_environment import list_recorded
from plumbline.plan.machines import load, names_device
from plumbline.specs.yaml_files import ROOT, read_yaml

#: What a bundle carries in place of git's history (`make gpu-check-bundle`).
COMMIT = Path("work/gpu-check/commit")
#: Distributions that matter to the numbers, where they are installed.
PACKAGES = ("triton", "flash-attn", "flash_attn_3")


def describe(kind: str) -> dict[str, Any]:
    """The machine for the head of the page: device, driver, versions, commit, and the peak that is stated for it.

    Raises:
        PlumblineError: `cuda` is wanted, and torch sees none.
    """
    facts = {"device": "processor", "host": machine_description.describe(), **provenance.describe_code()}
    facts["code_sha256"] = provenance.code_sha256()  # so that a copy that was changed is told from its commit
    if facts.get("git_commit") is None and COMMIT.is_file():
        facts |= {"code_from": "a bundle", "git_commit": COMMIT.read_text(encoding="utf-8").strip()}
    facts |= {each.name: each.version for each in metadata.distributions() if each.name in PACKAGES}
    facts |= list_recorded()
    if kind == "cpu":
        return facts
    if not torch.cuda.is_available():
        raise PlumblineError("torch sees no CUDA device here; --rehearse needs none")
    properties = torch.cuda.get_device_properties(0)
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(["sh", "-c", " ".join(query)], capture_output=True, text=True).stdout.strip()
    facts |= {"device": properties.name, "memory_gib": round(properties.total_memory / 2**30, 1)}
    facts |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "driver": driver or None}
    return facts | find_stated_peak(properties.name)


def find_stated_peak(name: str) -> dict[str, Any]:
    """The peak of the entry of config/machines.yaml whose device this is; empty if none is."""
    for machine in map(load, read_yaml(ROOT / "config" / "machines.yaml")):
        if machine.device == "cuda" and names_device(machine.device_name, name):
            return {"machine": machine.name, "peak_tflops": machine.peak_tflops}
    return {}


def milliseconds(work: Callable[[], Any], rehearsal: bool) -> float:
    """Median time of some calls, each until the device has done it, after others that are not timed."""
    timings = []
    for _ in range(3 if rehearsal else 11):
        began = time.perf_counter()
        work()
        if not rehearsal:
            torch.cuda.synchronize()
        timings.append(1e3 * (time.perf_counter() - began))
    return statistics.median(timings[1 if rehearsal else 3 :])


def peak_gib(rehearsal: bool) -> float | None:
    """The most memory that a row's tensors have had; None on a processor, where nobody counts."""
    if rehearsal:
        return None
    return round(torch.cuda.max_memory_allocated() / 2**30, 2)


if __name__ == "__main__":
    run(lambda: print(json.dumps(describe(sys.argv[1]))))
