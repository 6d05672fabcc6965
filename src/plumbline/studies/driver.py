"""Which Snakemake holds this directory, and whether a lock that it left behind is stale.

After a kill -9 or a power cut Snakemake's own lock stays, and the next start is refused until it is removed by
hand. It is removed here when, and only when, no process can be holding the directory: the holder wrote down host
and process when it started, so a holder on another host, or one that still lives, is never overruled.

`python -m plumbline.studies.driver` does this before a start; the Makefile calls it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from plumbline.cli import PlumblineError, run
from plumbline.files import atomic_write_json

HOLDER = "plumbline-holder.json"


def hold(persistence: str | Path) -> None:
    """Write down that this process holds the directory (`persistence` is its .snakemake folder)."""
    process = psutil.Process()
    atomic_write_json(
        Path(persistence) / HOLDER,
        {"host": socket.gethostname(), "pid": process.pid, "started": process.create_time()},
    )


def release(persistence: str | Path) -> None:
    """Forget the holder."""
    (Path(persistence) / HOLDER).unlink(missing_ok=True)


def holders(directory: Path) -> list[str]:
    """Who holds `directory`, in words; empty when nobody can."""
    found = [f"process {process.pid} ({' '.join(process.info['cmdline'])[:80]})" for process in _drivers(directory)]
    path = directory / ".snakemake" / HOLDER
    if path.exists():
        holder: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if holder["host"] != socket.gethostname():
            found.append(f"process {holder['pid']} on the host {holder['host']}")
    return found


def _drivers(directory: Path) -> list[psutil.Process]:
    """Snakemake processes of this host that work in `directory`, other than this process and its ancestors."""
    mine = {process.pid for process in (psutil.Process(), *psutil.Process().parents())}
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = process.info["cmdline"] or []
        if process.pid in mine or not any(Path(word).name == "snakemake" for word in words[:4]):
            continue
        try:
            if Path(process.cwd()) == directory:
                found.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def clear_stale_lock(directory: Path) -> bool:
    """Remove Snakemake's lock if it is stale; True if there was one.

    Raises:
        PlumblineError: somebody holds the directory.
    """
    locks = directory / ".snakemake" / "locks"
    if not locks.is_dir() or not any(locks.iterdir()):
        return False
    found = holders(directory)
    if found:
        raise PlumblineError(
            f"{directory} is held by {', '.join(found)}; wait for it or stop it. "
            f"If that process is gone for certain, remove the lock with: snakemake --unlock"
        )
    command = [sys.executable, "-m", "snakemake", "--unlock", "--quiet", "all"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise PlumblineError(f"snakemake --unlock failed in {directory}: {done.stderr.strip()[-500:]}")
    release(directory / ".snakemake")
    return True


def main() -> None:
    """Clear a stale lock of the working directory, and say so."""
    if clear_stale_lock(Path(os.getcwd())):
        print("removed the lock of a Snakemake that no longer runs")


if __name__ == "__main__":
    run(main)
