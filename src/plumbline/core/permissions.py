"""Explains why a file or folder that several users share may not be read or changed, and what its owner can do.

What is made takes the group of a folder that hands it down (setgid) and the mode that the umask leaves; nothing here
changes either.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

#: What makes a folder one that a group works in, and what was made there before.
REMEDY = "chgrp -R <group>, chmod -R g+rwX, chmod g+s on its folders, and umask 002 for whoever works there"


def find_nearest(path: str | Path) -> Path:
    """`path` itself, or the nearest folder above it that exists and that this user may see."""
    path = Path(path).absolute()
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


def describe_owner(path: Path) -> str:
    """Owner, group and mode of a path as text: ``belongs to ann, group lab, mode rwxr-x---``."""
    status = path.stat()
    return f"belongs to {_user(status.st_uid)}, group {_group(status.st_gid)}, mode {stat.filemode(status.st_mode)[1:]}"


def explain_denial(path: str | Path) -> str:
    """Explain why this user may not read or change `path`, with the remedy.

    Where `path` does not exist or cannot be seen, the explanation is about the nearest folder above it.
    """
    place = find_nearest(path)
    it = "it" if place == Path(path).absolute() else str(place)
    return (
        f"{path} cannot be read or changed by {_user(os.geteuid())}: {it} {describe_owner(place)}. Let its owner "
        f"share it ({REMEDY}; docs/on-your-cluster.md), or work elsewhere (--config work=...)"
    )


def explain_umask(folder: Path) -> str | None:
    """Warn that the umask of this process takes from a shared folder's group the access that the folder grants it.

    None if `folder` is not shared by its group, or the umask takes nothing.
    """
    status, umask = folder.stat(), _umask()
    shared = stat.S_ISGID | stat.S_IWGRP
    if status.st_mode & shared != shared or not umask & 0o070:
        return None
    if "system.posix_acl_default" in os.listxattr(folder):  # in whose place no umask counts
        return None
    return (
        f"{folder} is shared by the group {_group(status.st_gid)}, but your umask {umask:03o} keeps it from continuing "
        "with what you make there; first: umask 002"
    )


def _umask() -> int:
    """This process's umask: asking the kernel itself would change it for all threads meanwhile."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1], 8) for line in lines if line.startswith("Umask:")), 0)


def find_home() -> Path | None:
    """This user's home folder; None if HOME is not set and the system knows no user of this number."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
