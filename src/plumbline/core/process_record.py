"""Records which process holds a run or a folder, and tells whether that process can still be alive.

A record says on which machine, under which boot of it and in which process namespace its writer runs: only there does a
process id mean anything. A process of any other machine is never declared gone because of its number.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn

from plumbline.core import fingerprint_file
from plumbline.core.files import free_name, name_in_errors
from plumbline.core.live_processes import UNSEEN as UNSEEN
from plumbline.core.live_processes import boot as boot
from plumbline.core.live_processes import machine as machine
from plumbline.core.live_processes import read_start_time as read_start_time

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


def identity() -> dict[str, Any]:
    """Describe this process (host, boot, id, start, SLURM job), so that its machine can tell whether it still runs."""
    return {
        "host": socket.gethostname(),
        "machine": machine(),
        "pid": os.getpid(),
        "process_started": read_start_time(os.getpid()),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
    }


def now() -> str:
    """The present time in UTC, to the second, as text."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def strip_local_facts(manifest: dict[str, Any]) -> dict[str, Any]:
    """A run's manifest for publication: each start without what means something only on the machine it was on.

    A manifest that has its own SHA-256 gets that of what it says now; who publishes it has compared it before.
    """
    if not isinstance(starts := manifest.get("starts"), list):
        return manifest
    published = [{key: value for key, value in start.items() if key not in _LOCAL} for start in starts]
    changed = manifest | {"starts": published}
    return fingerprint_file.seal(changed) if fingerprint_file.OF_THE_REST in manifest else changed


def is_here(holder: dict[str, Any]) -> bool:
    """Whether the process id in a holder's record is one of this machine, boot and process namespace."""
    return holder.get("machine") == machine()


def has_ended(holder: dict[str, Any]) -> bool:
    """Whether the process of a record ran on this very machine and has certainly ended, even if its number is used
    again.

    Where the kernel hides other users' processes, a process id that is in use counts as that of the record.
    """
    return is_here(holder) and read_start_time(holder["pid"]) not in (UNSEEN, holder.get("process_started"))


def describe(holder: dict[str, Any]) -> str:
    """A record's process as text for a message: id, host, SLURM job, command, start; "unknown" for an empty record."""
    if not holder:
        return "an unknown process"
    job = f", SLURM job {holder['slurm_job_id']}" if holder.get("slurm_job_id") else ""
    command = f" ({holder['command']})" if "command" in holder else ""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.get("since", 0)))
    return f"process {holder['pid']} on {holder['host']}{job}{command}, since {since}"


def read(path: Path) -> dict[str, Any] | None:
    """Read a record; None if there is no file, empty if the file is not a record (see `explain_fault`)."""
    try:
        return _parse(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError):
        return {}


def explain_fault(path: Path) -> str:
    """Why the file at `path` is no record, as the end of a sentence that begins with the path."""
    try:
        _parse(path)
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
    """Write a record if the file does not exist yet; False if it does. A failed write leaves no file behind."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        return False
    try:
        with name_in_errors(path), os.fdopen(descriptor, "w") as handle:
            json.dump(record, handle)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return True


def remove(path: Path, stale: dict[str, Any]) -> bool:
    """Remove a record that was found to be stale; True if it was removed.

    If another process has put a new record there in the meantime, that one is put back and False is returned. A file
    that is no record is kept next to it as ``<name>.damaged``.
    """
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return False
    removed = read(aside)
    if removed != stale:
        try:
            os.link(aside, path)
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            create(path, removed or {})
        aside.unlink(missing_ok=True)
        return False
    if removed:
        aside.unlink(missing_ok=True)
    else:
        os.rename(aside, free_name(path, "damaged"))
    return True


def _parse(path: Path) -> dict[str, Any]:
    record = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
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


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"holds {word}, which is no number")
