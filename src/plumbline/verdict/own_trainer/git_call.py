"""Calls git as a reader of somebody else's repository: nothing of the user's settings runs on the way.

The user's working tree is read through a copy of its index, in which git looks at every file. Submodules are put into
the copies of arms from here, and refused where no commit has what they are.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
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


@contextlib.contextmanager
def index_of_tree(top: Path) -> Iterator[dict[str, str]]:
    """Name a copy of the user's index, as variables for git, during a ``with`` block.

    In it git looks at each file that is there, also at those that the user has it take for unchanged (`git update-index
    --assume-unchanged`, `--skip-worktree`): runs are made of them as they are. Those that are not there, as in a sparse
    checkout, stay what the commit has.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {"GIT_INDEX_FILE": f"{folder}/index"}
        index = top / git(top, "rev-parse", "--git-path", "index").stdout.rstrip("\n")
        with contextlib.suppress(FileNotFoundError):  # its times, and its own, tell git which files to read
            shutil.copy2(index, environment["GIT_INDEX_FILE"])
        listed = [line.partition(" ")[::2] for line in git(top, "ls-files", "-v", "-z").stdout.split("\0") if line]
        hidden = [name for tag, name in listed if (tag.islower() or tag == "S") and os.path.lexists(top / name)]
        for option in ("--no-assume-unchanged", "--no-skip-worktree") if hidden else ():
            git(top, "update-index", option, "-z", "--stdin", environment=environment, stdin="\0".join(hidden))
        yield environment


def require_merged(top: Path) -> None:
    """Refuse a working tree in the middle of a merge whose conflicts are in its files.

    Raises:
        PlumblineError: it has some.
    """
    lines = git(top, "ls-files", "--unmerged", "-z").stdout.split("\0")
    if names := sorted({line.partition("\t")[2] for line in lines if line}):
        raise PlumblineError(
            f"{top}: {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}: git has a conflict there, so that this "
            "is no code of anybody's; resolve it and git add the file, or give the merge up (git status says how)"
        )


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
    """Put the files of submodules into a copy, from the repositories that are here, wherever the working tree has them
    by now.

    Raises:
        PlumblineError: one has not the commit that is wanted.
    """
    for path, pinned in _list_submodules_of(top, commit):
        repository = _find_repository(top, commit, path)
        if repository is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            place = {"GIT_DIR": str(repository), "GIT_WORK_TREE": str(copy / path)}
            environment = {**place, "GIT_INDEX_FILE": f"{folder}/index"}
            read = git(top, "read-tree", pinned, environment=environment, check=False)
            if read.returncode:
                raise PlumblineError(
                    f"the submodule {path} has no commit {pinned[:7]}, which {commit[:7]} needs: "
                    f"git submodule update {path}"
                )
            git(top, "checkout-index", "--all", "--force", environment=environment)


def _find_repository(top: Path, commit: str, path: str) -> Path | None:
    """The repository of a commit's submodule: what is checked out at its path, or what git keeps under its name, where
    it was moved or removed since; None where it never was here.
    """
    if (top / path / ".git").exists():
        return Path(git(top / path, "rev-parse", "--absolute-git-dir").stdout.rstrip("\n"))
    options = ("--blob", f"{commit}:.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$")
    listed = git(top, "config", *options, check=False).stdout.split("\0")
    names = [
        key[len("submodule.") : -len(".path")] for key, _, at in (line.partition("\n") for line in listed) if at == path
    ]
    kept = git(top, "rev-parse", "--git-dir", "--git-common-dir").stdout.splitlines()
    places = [top / folder / "modules" / name for name in names for folder in kept]
    return next((place for place in places if place.is_dir()), None)


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
