"""Who holds a run or a directory: the record of a process in a file, and whether that process can still be alive.

A record says on which machine, under which boot of it and in which process namespace its writer runs: only there does
a process id mean anything. Whoever it names elsewhere is never said to be gone by its number.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
import uuid
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn

from plumbline.core.files import free_name

#: What a record may hold of itself, and what it must.
_KINDS: dict[str, tuple[type, ...]] = {
    "host": (str,),
    "machine": (str,),
    "boot": (str, NoneType),
    "pid": (int,),
    "process_started": (str, NoneType),
    "slurm_job_id": (str, NoneType),
    "token": (str,),
    "since": (int, float),
    "limit": (int, float),
    "command": (str,),
    "locked": (bool,),
}
_NEEDED = ("host", "machine", "pid")
#: What of it means nothing on any other machine: it names a boot, a process namespace, a process.
_LOCAL = ("machine", "boot", "pid", "process_started")
#: Of a process that is there and does not say when it began.
UNSEEN = "running"


def identity() -> dict[str, Any]:
    """Who this process is, so that the same machine can tell whether it still runs."""
    return {
        "host": socket.gethostname(),
        "machine": machine(),
        "pid": os.getpid(),
        "process_started": started(os.getpid()),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
    }


def now() -> str:
    """The time, in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def travelling(manifest: dict[str, Any]) -> dict[str, Any]:
    """A run's manifest as it is passed on: of each start without what only the machine that it was on can use."""
    if not isinstance(starts := manifest.get("starts"), list):
        return manifest
    kept = [{key: value for key, value in start.items() if key not in _LOCAL} for start in starts]
    return manifest | {"starts": kept}


def machine() -> str:
    """This boot of this machine and this process namespace: only within it does a process id mean anything."""
    parts = [socket.gethostname()]
    if (booted := boot()) is not None:
        parts.append(booted)
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return "/".join(parts)


def boot() -> str | None:
    """The running kernel, by the id that it drew when it started; None where it does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def started(pid: int) -> str | None:
    """When a process began, in the kernel's own words; None if it is gone (a zombie is), `UNSEEN` if it is not told."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # gone, or hidden: /proc may be mounted so that it shows the processes of other users to nobody
        try:
            os.kill(pid, 0)
        except PermissionError:  # another user's
            return UNSEEN
        except OSError:
            return None
        return UNSEEN
    return None if fields[0] in "ZX" else fields[19]


def here(holder: dict[str, Any]) -> bool:
    """Whether a holder's process id means anything to this process."""
    return holder.get("machine") == machine()


def gone(holder: dict[str, Any]) -> bool:
    """Whether a holder ran on this very machine and is gone for certain; its number may be another process's by now.

    Whose process that is does not matter, but where the kernel hides other users' processes a number that is taken is
    taken for its own.
    """
    return here(holder) and started(holder["pid"]) not in (UNSEEN, holder.get("process_started"))


def describe(holder: dict[str, Any]) -> str:
    """A holder in words; one that did not say who it is, in as many as there are."""
    if not holder:
        return "an unknown process"
    job = f", SLURM job {holder['slurm_job_id']}" if holder.get("slurm_job_id") else ""
    command = f" ({holder['command']})" if "command" in holder else ""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.get("since", 0)))
    return f"process {holder['pid']} on {holder['host']}{job}{command}, since {since}"


def read(path: Path) -> dict[str, Any] | None:
    """A record; None if there is none, empty if it is none (`fault` says why: broken, or just being written)."""
    try:
        return _parsed(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError):
        return {}


def fault(path: Path) -> str:
    """Why `path` is no record, as the end of a sentence that begins with it."""
    try:
        _parsed(path)
    except IsADirectoryError:
        return "is a folder"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except RecursionError:
        return "is nested too deeply to be read"
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        return "is not JSON" if getattr(error, "doc", "not text") else "is empty"
    except ValueError as error:
        return str(error)
    return "was changed while it was read"


def create(path: Path, record: dict[str, Any]) -> bool:
    """Write a record where there is none; False where there is one. Half a record is never left, as by a full disk."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "w") as handle:
            json.dump(record, handle)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return True


def remove(path: Path, judged: dict[str, Any]) -> bool:
    """Take away the record that was judged, and put back what in truth was another one, just made; whether it went.

    What is broken is kept beside it as ``<name>.damaged``.
    """
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return False
    found = read(aside)
    if found != judged:
        with contextlib.suppress(FileExistsError):
            os.link(aside, path)
        aside.unlink(missing_ok=True)
        return False
    if found:
        aside.unlink(missing_ok=True)
    else:
        os.rename(aside, free_name(path, "damaged"))
    return True


def _parsed(path: Path) -> dict[str, Any]:
    record = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refused)
    if not isinstance(record, dict):
        raise ValueError(f"holds one {type(record).__name__} instead of a record")
    for key in _NEEDED:
        if key not in record:
            raise ValueError(f"says no {key}")
    for key, kinds in _KINDS.items():
        if key in record and type(record[key]) not in kinds:
            raise ValueError(f"has a {key} of {record[key]!r:.40}")
    if not 0 < record["pid"] < 2**31:
        raise ValueError(f"has a pid of {record['pid']}")
    for key in ("since", "limit"):
        if not 0 <= record.get(key, 0) < 1e11:
            raise ValueError(f"has a {key} of {record[key]!r:.40}")
    return record


def _refused(word: str) -> NoReturn:
    raise ValueError(f"holds {word}, which is no number")
