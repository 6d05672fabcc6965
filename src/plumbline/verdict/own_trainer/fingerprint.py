"""Describes on what a run was made, across which means do not go: machine, data, versions."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plumbline.core import processor
from plumbline.core.errors import PlumblineError
from plumbline.core.files import canonical_json, read_json, sha256_text

#: Larger files are known by their size and by so many bytes of their begin and their end.
_SAMPLE = 2**25
#: What reports list.
LISTED = ("borrowed", "seeded", "left_alone", "opened", "written")


def read_machine(devices: str = "") -> dict[str, str]:
    """Name the processor and the GPUs with their driver; `devices` as CUDA_VISIBLE_DEVICES has it."""
    versions = {"cpu": processor.read_facts().get("model name", platform.machine())}
    command = ["nvidia-smi", "--query-gpu=index,uuid,name,driver_version", "--format=csv,noheader"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return versions
    rows = [[word.strip() for word in line.split(",")] for line in process.stdout.splitlines() if line.count(",") >= 3]
    visible = devices or os.environ.get("CUDA_VISIBLE_DEVICES", "")
    ids = [device.strip() for device in visible.split(",") if device.strip()]
    if ids:
        rows = [row for row in rows if row[0] in ids or any(row[1].startswith(device) for device in ids)] or rows
    if rows and not process.returncode:
        names = sorted(row[2] for row in rows)
        versions["gpu"] = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
        versions["driver"] = rows[0][3]
    return versions


def hash_data(folder: Path, names: Sequence[str], fallback: Path | None = None) -> str:
    """Hash the content of the data that a `plumbline.toml` names; of large files, size, begin and end.

    `fallback`: the folder that has what the first has not.
    """
    if not names:
        return ""
    parts = []
    for name in names:
        path = folder / name if fallback is None or os.path.lexists(folder / name) else fallback / name
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        parts += [[name, str(file.relative_to(path)), _hash_content(file)] for file in files]
    return sha256_text(canonical_json(parts))[:16]


def of_parts(parts: Mapping[str, Any]) -> str:
    """The hash that a run keeps in the bank."""
    return sha256_text(canonical_json(dict(parts)))[:16]


def _hash_content(path: Path) -> str:
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
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise PlumblineError(f"plumbline.toml: run.data: {path} is a link to itself; take it out") from None
    return digest.hexdigest()


def read_reports(folder: Path) -> dict[str, Any]:
    """Read the reports in a folder; the names of `LISTED` are always there."""
    versions: dict[str, str] = {}
    shifted: dict[str, int] = {}
    listed = {name: set[str]() for name in LISTED}
    memory: list[float] = []
    for path in sorted(folder.glob("*.json")):
        report = read_json(path)
        if not isinstance(report, Mapping):
            continue
        versions.update(report.get("versions", {}))
        for name, count in report.get("shifted", {}).items():
            shifted[name] = shifted.get(name, 0) + count
        for name, names in listed.items():
            names.update(report.get(name, ()))
        memory += [report["memory_gb"]] if "memory_gb" in report else []
    return {
        "versions": versions,
        "shifted": shifted,
        **{name: sorted(names) for name, names in listed.items()},
        "memory_gb": max(memory, default=None),
    }
