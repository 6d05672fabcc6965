"""Calls git as a reader of somebody else's repository: nothing of the user's settings runs on the way."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from plumbline.core.errors import PlumblineError

#: Bytes; a disk with less is full.
LEAST_FREE = 2**20
#: Settings of the user that would run something, or change what is checked out, while Plumbline works.
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")


def git(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None, check: bool = True, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder; `given` is what it reads.

    Raises:
        PlumblineError: it failed, and `check` is asked for.
    """
    # Git of a hook or an alias names its own repository to its children.
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(
        ["git", *_QUIET, *words],
        cwd=folder,
        env={**inherited, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(environment or {})},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        input=given,
    )
    if check and done.returncode:
        said = done.stderr.strip().splitlines() or ["no word"]
        remedy = (
            "; free some of that disk, and repeat the command: what is finished is used" if _full(folder, said) else ""
        )
        raise PlumblineError(f"git {words[0]} in {folder} ended with {done.returncode}: {said[-1]}{remedy}")
    return done


def _full(folder: Path, said: list[str]) -> bool:
    """Whether the disk is full, by what git says, or by what is left: not every line of git's has the reason."""
    free = os.statvfs(folder)
    words = ("No space left on device", "Disk quota exceeded")
    return free.f_bavail * free.f_frsize < LEAST_FREE or any(word in line for line in said for word in words)
