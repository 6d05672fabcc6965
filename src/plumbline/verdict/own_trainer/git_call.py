"""Calls git as a reader of somebody else's repository: nothing of the user's settings runs on the way.

Submodules are put into the copies of arms from here, and refused where no commit has what they are.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from plumbline.core.errors import PlumblineError

#: Bytes; a disk with less is full.
LEAST_FREE = 2**20
#: Settings of the user that would run something, or change what is checked out, while Plumbline works.
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
#: Whoever makes a commit, and when: the same change is the same commit.
_AUTHOR = {
    f"GIT_{who}_{key}": text
    for who in ("AUTHOR", "COMMITTER")
    for key, text in (("NAME", "plumbline"), ("EMAIL", "plumbline@localhost"), ("DATE", "1700000000 +0000"))
}


def git(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, check: bool = True, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder; `stdin` is what it reads.

    Raises:
        PlumblineError: it failed, and `check` is requested.
    """
    # Git of a hook or an alias names its own repository to its children.
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    done = subprocess.run(
        ["git", *_QUIET, *arguments],
        cwd=folder,
        env={**inherited, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(environment or {})},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        input=stdin,
    )
    if check and done.returncode:
        errors = done.stderr.strip().splitlines() or ["no word"]
        full = _is_full(folder, errors)
        remedy = "; free some of that disk, and repeat the command: what is finished is used" if full else ""
        raise PlumblineError(f"git {arguments[0]} in {folder} ended with {done.returncode}: {errors[-1]}{remedy}")
    return done


def commit_tree(folder: Path, tree: str, parent: str, message: str) -> str:
    """Make a commit of a tree after another commit, on no branch, and return its name."""
    arguments = ("commit-tree", "--no-gpg-sign", tree, "-p", parent, "-m", message)
    return git(folder, *arguments, environment=_AUTHOR).stdout.strip()


def free_bytes(folder: Path) -> int:
    """Count the bytes that are free for this user where a folder lies."""
    free = os.statvfs(folder)
    return free.f_bavail * free.f_frsize


def _is_full(folder: Path, errors: list[str]) -> bool:
    """Whether the disk is full, by git's message, or by what is left: not every line of git's has the reason."""
    reasons = ("No space left on device", "Disk quota exceeded")
    return free_bytes(folder) < LEAST_FREE or any(reason in line for line in errors for reason in reasons)


def require_clean_submodules(top: Path, environment: Mapping[str, str]) -> None:
    """Refuse submodules of an index that have changes.

    Raises:
        PlumblineError: one has some.
    """
    for path, _ in _list_submodules(top, "ls-files", "--stage", "-z", environment=environment):
        there = top / path
        if not (there / ".git").exists():
            continue  # never checked out here: the baseline has none either
        state = git(there, "status", "--porcelain", check=False)
        if state.returncode or state.stdout.strip():
            raise PlumblineError(
                f"{path} is a repository of its own with changes that are in no commit, which an arm cannot hold; "
                "commit them there, or put the folder into .gitignore and run.share"
            )


def fill_submodules(top: Path, commit: str, copy: Path) -> None:
    """Put the files of submodules into a copy, from the repositories that are checked out here.

    Raises:
        PlumblineError: one has not the commit that is wanted.
    """
    for path, pinned in _list_submodules_of(top, commit):
        there = top / path
        if not (there / ".git").exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            environment = {"GIT_INDEX_FILE": f"{folder}/index"}
            read = git(there, "read-tree", pinned, environment=environment, check=False)
            if read.returncode:
                raise PlumblineError(
                    f"the submodule {path} has no commit {pinned[:7]}, which {commit[:7]} needs: "
                    f"git submodule update {path}"
                )
            prefix = f"--prefix={copy / path}{os.sep}"
            git(there, "checkout-index", "--all", "--force", prefix, environment=environment)


@cache
def _list_submodules_of(top: Path, commit: str) -> list[tuple[str, str]]:
    """The submodules of a commit, which never change."""
    return _list_submodules(top, "ls-tree", "-r", "-z", "--full-tree", commit)


def _list_submodules(top: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """The submodules, path and commit, of an index or a tree."""
    submodules = []
    for line in git(top, *arguments, environment=environment).stdout.split("\0"):
        about, _, path = line.partition("\t")
        if about.startswith("160000 "):
            parts = about.split()
            submodules.append((path, parts[2] if parts[1] == "commit" else parts[1]))
    return submodules
