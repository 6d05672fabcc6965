"""Puts submodules into the copies of arms, and refuses what no commit of theirs has."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer.git_call import git


def require_clean(top: Path, environment: Mapping[str, str]) -> None:
    """Refuse submodules with changes of their own, of an index.

    Raises:
        PlumblineError: one has some.
    """
    for path, _ in _listed(top, "ls-files", "--stage", "-z", environment=environment):
        there = top / path
        if not (there / ".git").exists():
            continue  # never checked out here: the baseline has none either
        state = git(there, "status", "--porcelain", check=False)
        if state.returncode or state.stdout.strip():
            raise PlumblineError(
                f"{path} is a repository of its own with changes that are in no commit, which an arm cannot hold; "
                "commit them there, or put the folder into .gitignore and run.share"
            )


def fill(top: Path, commit: str, copy: Path) -> None:
    """Put the files of submodules into a copy, from the repositories that are checked out here.

    Raises:
        PlumblineError: one has not the commit that is wanted.
    """
    for path, wanted in _listed(top, "ls-tree", "-r", "-z", "--full-tree", commit):
        there = top / path
        if not (there / ".git").exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            environment = {"GIT_INDEX_FILE": f"{folder}/index"}
            read = git(there, "read-tree", wanted, environment=environment, check=False)
            if read.returncode:
                raise PlumblineError(
                    f"the submodule {path} has no commit {wanted[:7]}, which {commit[:7]} needs: "
                    f"git submodule update {path}"
                )
            prefix = f"--prefix={copy / path}{os.sep}"
            git(there, "checkout-index", "--all", "--force", prefix, environment=environment)


def _listed(top: Path, *words: str, environment: Mapping[str, str] | None = None) -> list[tuple[str, str]]:
    """The submodules, path and commit, of an index or a tree."""
    found = []
    for line in git(top, *words, environment=environment).stdout.split("\0"):
        about, _, path = line.partition("\t")
        if about.startswith("160000 "):
            parts = about.split()
            found.append((path, parts[2] if parts[1] == "commit" else parts[1]))
    return found
