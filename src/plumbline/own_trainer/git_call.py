"""Calls git as a reader of somebody else's repository: nothing of the user's settings runs on the way."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from plumbline.core.errors import PlumblineError

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
        raise PlumblineError(f"git {words[0]} in {folder} ended with {done.returncode}: {said[-1]}")
    return done
