"""Describes on what a run was made: means do not cross what is in it. The host stands beside it, not in it."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, sha256_text

#: Larger files are known by their size and by so many bytes of their begin and their end.
_SAMPLE = 2**25


def machine(devices: str = "") -> dict[str, str]:
    """Name the processor and the GPUs with their driver; `devices` as CUDA_VISIBLE_DEVICES has it."""
    said = {"cpu": _cpu()}
    command = ["nvidia-smi", "--query-gpu=index,uuid,name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return said
    rows = [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines() if line.count(",") >= 3]
    visible = devices or os.environ.get("CUDA_VISIBLE_DEVICES", "")
    chosen = [one.strip() for one in visible.split(",") if one.strip()]
    if chosen:
        rows = [row for row in rows if row[0] in chosen or any(row[1].startswith(one) for one in chosen)] or rows
    if rows and not done.returncode:
        names = sorted(row[2] for row in rows)
        said["gpu"] = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
        said["driver"] = rows[0][3]
    return said


def data(folder: Path, told: Sequence[str]) -> str:
    """Hash the content of the data that a `plumbline.toml` tells of; of large files, size, begin and end."""
    if not told:
        return ""
    parts = []
    for one in told:
        path = folder / one
        files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        parts += [[one, str(each.relative_to(path)), _content(each)] for each in files]
    return sha256_text(canonical_json(parts))[:16]


def of_parts(parts: Mapping[str, Any]) -> str:
    """The hash that a run keeps in the bank."""
    return sha256_text(canonical_json(dict(parts)))[:16]


def _content(path: Path) -> str:
    """The content's hash.

    Raises:
        PlumblineError: it is a pipe or a device, which has none, or whose reading never ends.
    """
    if path.exists() and not path.is_file():
        raise PlumblineError(f"plumbline.toml: run.data: {path} is neither a file nor a folder; take it out")
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.sha256(str(size).encode())
            digest.update(file.read(_SAMPLE))
            if size > _SAMPLE:
                file.seek(max(_SAMPLE, size - _SAMPLE))
                digest.update(file.read(_SAMPLE))
    except FileNotFoundError:
        return "missing"
    return digest.hexdigest()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()
