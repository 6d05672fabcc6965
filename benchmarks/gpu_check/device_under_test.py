"""The device under test: what it is, and how its work is timed."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

from benchmarks.gpu_check.output_folders import TOLD

PACKAGES = ("triton", "flash-attn")


def describe(kind: str) -> dict[str, Any]:
    """The machine for the head of the page: device, driver, versions, commit, and the peak that is stated for it.

    Raises:
        PlumblineError: `cuda` is asked for and torch sees none.
    """
    import torch

    from benchmarks.machine_description import describe as line
    from plumbline.core.errors import PlumblineError
    from plumbline.core.provenance import code_sha256, describe_code

    facts = {"device": "processor", "host": line(), **describe_code()}
    if facts.get("git_commit") is None and TOLD.is_file():
        packed = json.loads(TOLD.read_text(encoding="utf-8"))["code"]
        changed = packed.pop("code_sha256", None) != code_sha256()
        facts |= {"code_from": "a bundle", **packed} | ({"git_dirty": True} if changed else {})
    facts |= {name: version for name in PACKAGES if (version := _version(name))}
    if kind == "cpu":
        return facts
    if not torch.cuda.is_available():
        raise PlumblineError("--device cuda: torch sees no CUDA device here; --device cpu --sizes tiny rehearses")
    properties = torch.cuda.get_device_properties(0)
    facts |= {
        "device": properties.name,
        "memory_gib": round(properties.total_memory / 2**30, 1),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "driver": _driver(),
    }
    return facts | find_stated_peak(properties.name)


def find_stated_peak(name: str) -> dict[str, Any]:
    """The peak of the entry of config/machines.yaml whose device this is; empty if none is."""
    from plumbline.plan.machines import load, names_device
    from plumbline.specs.yaml_files import ROOT, read_yaml

    for machine in map(load, read_yaml(ROOT / "config" / "machines.yaml")):
        if machine.device == "cuda" and names_device(machine.device_name, name):
            return {"machine": machine.name, "peak_tflops": machine.peak_tflops}
    return {}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _driver() -> str | None:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        versions = subprocess.run(query, capture_output=True, text=True, timeout=60).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return versions[0] if versions else None


def milliseconds(call: Callable[[], Any], device: str, *, repeats: int, warmup: int) -> float:
    """Median time of a call after `warmup` ones: between two events of a GPU, or by a processor's clock."""
    import torch

    for _ in range(warmup):
        call()
    timings = []
    for _ in range(repeats):
        if device == "cpu":
            began = time.perf_counter()
            call()
            timings.append(1e3 * (time.perf_counter() - began))
            continue
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        call()
        after.record()
        after.synchronize()
        timings.append(before.elapsed_time(after))
    return statistics.median(timings)


def forget_peak(device: str) -> None:
    """Count the most memory in use from here on."""
    if device != "cpu":
        import torch

        torch.cuda.reset_peak_memory_stats()


def peak_gib(device: str) -> float | None:
    """The most memory that tensors have had; None on a processor, where nobody counts."""
    if device == "cpu":
        return None
    import torch

    return round(torch.cuda.max_memory_allocated() / 2**30, 2)


if __name__ == "__main__":
    from plumbline.core.command_line import run

    run(lambda: print(json.dumps(describe(sys.argv[1]))))
