"""Records where a number comes from: code, packages, machine and data of a run, for its manifest."""

from __future__ import annotations

import functools
import os
import platform
import socket
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from plumbline import __version__
from plumbline.core import numeric_environment, package_data, processor
from plumbline.core.files import sha256_file, sha256_text
from plumbline.core.package_version import version

PACKAGES = ("plumbline-lm", "torch", "numpy", "safetensors", "pandas", "pyarrow", "tokenizers")

#: The lines of /proc/cpuinfo that name a kind of processor, on x86 and on ARM.
_PROCESSOR = ("vendor_id", "cpu family", "model", "model name", "CPU implementer", "CPU part")


@functools.cache
def describe_code() -> dict[str, Any]:
    """Where the code is from, its commit, and whether it was changed since; determined once per process.

    For an installed wheel that is the commit that it was built from; None if nothing records it (`code_sha256`
    identifies the code in any case).
    """
    tree = package_data.source_tree()
    if tree is None:
        return {"code_from": f"plumbline-lm {__version__}, a wheel", **package_data.read_built_commit()}
    commit = _git(tree, "rev-parse", "HEAD")
    status = None if commit is None else _git(tree, "status", "--porcelain", "--untracked-files=no")
    origin = "a git repository" if commit else f"plumbline-lm {__version__}, a source tree without git"
    return {"code_from": origin, "git_commit": commit, "git_dirty": None if status is None else bool(status)}


def list_packages() -> dict[str, str]:
    """Versions of Python and of the packages that decide the numbers, as this process has loaded them."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def lock_sha256() -> str | None:
    """SHA-256 of the package lock, where the source tree or the wheel has one."""
    path = package_data.folder() / "requirements.lock"
    return sha256_file(path) if path.is_file() else None


def code_sha256() -> str:
    """SHA-256 over the sources that training runs through, in order of their paths."""
    package = Path(__file__).resolve().parents[1]
    folders = ("data", "evaluate/probes", "model", "specs", "train")
    files = sorted(path for folder in folders for path in (package / folder).rglob("*.py"))
    files = [path for path in files if not path.is_relative_to(package / "model/export")]
    return sha256_text("".join(f"{path.relative_to(package)}:{sha256_file(path)}\n" for path in files))


def identify_code() -> dict[str, str]:
    """The code and the version of torch: with others, the same spec and data can give other numbers."""
    import torch

    return {"code_sha256": code_sha256(), "torch": str(torch.__version__)}


def list_code_versions(starts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The versions of code and torch that made a run's steps, each with the steps at which starts with them began.

    A start counts only if the run continued from what it made: a later start may resume from an earlier step.

    Args:
        starts: the entries `starts` of a run's manifest.
    """
    counted: list[dict[str, Any]] = []
    for start in reversed(starts):
        if not counted or start["step"] < counted[-1]["step"]:
            counted.append(start)
    steps_of_version: dict[tuple[str, str], list[int]] = {}
    for start in reversed(counted):
        steps_of_version.setdefault((start["code_sha256"], start["torch"]), []).append(start["step"])
    return [{"code_sha256": code, "torch": torch, "steps": steps} for (code, torch), steps in steps_of_version.items()]


def find_code_hash(starts: list[dict[str, Any]]) -> str:
    """The hash of the code that made all of a run's steps, or "mixed"."""
    hashes = {entry["code_sha256"] for entry in list_code_versions(starts)}
    return hashes.pop() if len(hashes) == 1 else "mixed"


def describe_machine(device: Any, float32_error: float) -> dict[str, Any]:
    """Host, device and the numerical settings in force.

    `float32_error`: of a product that was probed on the device (`plumbline.model.numerics`).
    """
    import torch

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or platform.machine()
    return {
        "host": socket.gethostname(),
        "device": device.type,
        "device_name": name,
        "processor": f"{_describe_processor()} {torch.backends.cpu.get_cpu_capability()}",
        "torch_threads": torch.get_num_threads(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "tf32": torch.backends.cuda.matmul.allow_tf32,
        "float32_error": float32_error,
        "environment": numeric_environment.list_recorded(),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
    }


def _describe_processor() -> str:
    """Maker, family, model and name of the processor, as Linux has them: what rounds alike is the same in all."""
    facts = processor.read_facts()
    parts = [facts[key] for key in _PROCESSOR if key in facts]
    return " ".join(parts) or platform.processor() or platform.machine()


def _git(tree: Path, *arguments: str) -> str | None:
    if not (tree / ".git").exists():
        return None
    # Of a tree that several users share, git tells those who do not own it nothing unless it is called safe.
    command = ["git", "-c", f"safe.directory={tree}", "-C", str(tree), *arguments]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
