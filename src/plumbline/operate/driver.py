"""Which Snakemake holds this directory, and whether a lock that it left behind is stale.

After a kill -9 or a power cut Snakemake's own lock stays, and the next start is refused until it is removed by
hand. It is removed here when, and only when, no process can be holding the directory: every holder wrote down its
host and process when it started, so a holder on another host, or one that still lives, is never overruled.

`python -m plumbline.operate.driver` does this before a start; the Makefile calls it.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import psutil

from plumbline.cli import PlumblineError, run
from plumbline.files import atomic_write_json

#: Folder in .snakemake with one file for each Snakemake that holds the directory.
HOLDERS = "plumbline-holders"


def hold(persistence: str | Path) -> None:
    """Write down that this process holds the directory (`persistence` is its .snakemake folder)."""
    process = psutil.Process()
    record = {"host": socket.gethostname(), "pid": process.pid, "started": process.create_time()}
    atomic_write_json(_record(Path(persistence)), record)


def release(persistence: str | Path) -> None:
    """Forget that this process is a holder."""
    _record(Path(persistence)).unlink(missing_ok=True)


def holders(directory: Path) -> list[str]:
    """Who holds `directory`, in words; empty when nobody can."""
    found = {process.pid: f"process {process.pid} (snakemake {words})" for process, words in _drivers(directory)}
    elsewhere = []
    for path in sorted((directory / ".snakemake" / HOLDERS).glob("*.json")):
        holder = json.loads(path.read_text(encoding="utf-8"))
        if holder["host"] != socket.gethostname():
            elsewhere.append(f"process {holder['pid']} on the host {holder['host']} (recorded in {path})")
        elif _lives(holder["pid"], holder["started"]):
            found.setdefault(holder["pid"], f"process {holder['pid']}")
    return [*found.values(), *elsewhere]


def _record(persistence: Path) -> Path:
    return persistence / HOLDERS / f"{socket.gethostname()}-{os.getpid()}.json"


def _lives(pid: int, started: float) -> bool:
    """Whether it is still that process, and not another one that was given its number."""
    try:
        return abs(psutil.Process(pid).create_time() - started) < 1
    except psutil.NoSuchProcess:
        return False


def _drivers(directory: Path) -> list[tuple[psutil.Process, str]]:
    """Snakemake processes of this host that work in `directory`, other than this process and its ancestors, each with
    what it was asked for."""
    mine = {process.pid for process in (psutil.Process(), *psutil.Process().parents())}
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = process.info["cmdline"] or []
        named = [index for index, word in enumerate(words[:4]) if Path(word).name == "snakemake"]
        if process.pid in mine or not named:
            continue
        if "--mode" in words and words[words.index("--mode") + 1 :][:1] != ["default"]:
            continue  # it carries out one job for a driver and holds no lock
        try:
            if Path(process.cwd()) == directory:
                found.append((process, " ".join(words[named[0] + 1 :])[:80]))
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def clear_stale_lock(directory: Path) -> bool:
    """Remove Snakemake's lock if it is stale; True if there was one.

    The files are removed here, right after looking who holds them: `snakemake --unlock` reads the whole workflow in
    between, long enough for somebody else to clear the same lock, start, and lose a lock that is not stale.

    Raises:
        PlumblineError: somebody holds the directory.
    """
    locks = sorted((directory / ".snakemake" / "locks").glob("*.lock"))
    if not locks:
        return False
    found = holders(directory)
    if found:
        raise PlumblineError(
            f"{directory} is held by {', '.join(found)}; wait for it or stop it. "
            f"If that process is gone for certain, remove the lock with: snakemake --unlock"
        )
    for path in [*locks, *(directory / ".snakemake" / HOLDERS).glob("*.json")]:
        path.unlink(missing_ok=True)
    return True


def main() -> None:
    """Clear a stale lock of the working directory, and say so."""
    if clear_stale_lock(Path.cwd()):
        print("removed the lock of a Snakemake that no longer runs")


if __name__ == "__main__":
    run(main)
