"""Names this boot of this machine, and tells whether a process of it is there and when it began."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

#: Of a process that is there and does not say when it began.
UNSEEN = "running"


def machine() -> str:
    """Name this boot of this machine and this process namespace: only within it does a process id mean anything."""
    parts = [socket.gethostname()]
    if (booted := boot()) is not None:
        parts.append(booted)
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return "/".join(parts)


def boot() -> str | None:
    """The id that the running kernel drew when it started; None if the system does not tell it."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def read_start_time(pid: int) -> str | None:
    """When a process began, as the kernel writes it (clock ticks since boot).

    None if the process is gone (a zombie counts as gone), `UNSEEN` if the kernel hides the time.
    """
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
