"""Calls git as a reader of somebody else's repository: nothing of the user's settings runs on the way.

The user's working tree is read through a copy of its index, in which git looks at every file. Submodules are put into
the copies of arms from here, and refused where no commit has what they are.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_bytes

#: Bytes; a disk with less is full.
LEAST_FREE = 2**20
#: Settings of the user that would run something, or change what is checked out, while Plumbline works.
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
#: What has git look at a file again whose changes it was told not to see.
_SHOW = ("--no-assume-unchanged", "--no-skip-worktree")
#: Lets git see what lies outside of a sparse checkout.
_WHOLE = ("-c", "core.sparseCheckout=false")
#: Variables by which a user's settings come (`safe.directory`, say); the others of git name a repository.
_SETTINGS = re.compile(r"GIT_CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_\d+|VALUE_\d+)")
#: Whoever makes a commit, and when: the same change is the same commit.
_AUTHOR = {
    f"GIT_{who}_{key}": text
    for who in ("AUTHOR", "COMMITTER")
    for key, text in (("NAME", "plumbline"), ("EMAIL", "plumbline@localhost"), ("DATE", "1700000000 +0000"))
}


def git(
    folder: Path,
    *arguments: str,
    settings: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    check: bool = True,
    stdin: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder; `settings` are options before its verb, `stdin` is what it reads.

    Raises:
        PlumblineError: it failed, and `check` is requested.
    """
    # Git of a hook or an alias names its own repository to its children.
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_") or _SETTINGS.fullmatch(key)
    }
    process = subprocess.run(
        ["git", *_QUIET, *settings, *arguments],
        cwd=folder,
        env={**inherited, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(environment or {})},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        input=stdin,
    )
    if check and process.returncode:
        errors = process.stderr.strip().splitlines() or ["no word"]
        full = _is_full(folder, errors)
        remedy = "; free some of that disk, and repeat the command: what is finished is used" if full else ""
        failures = [line for line in errors if line.startswith(("fatal: ", "error: "))] or errors[-1:]
        why = "; ".join(dict.fromkeys((failures[0], failures[-1])))  # the cause, and what it came to
        remedy = "; where no git is at work, remove it" if ".lock': File exists" in why else remedy
        raise PlumblineError(f"git {arguments[0]} in {folder} ended with {process.returncode}: {why}{remedy}")
    return process


def require_repository(folder: Path) -> None:
    """Refuse a folder that is in no git repository, or in one that git does not read or that has no commit.

    Raises:
        PlumblineError: it is; what to do about it is named.
    """
    process = git(folder, "rev-parse", "--show-toplevel", check=False)
    if process.returncode:
        raise PlumblineError(_explain_no_repository(folder, process.stderr.strip()))
    if git(folder, "rev-parse", "--verify", "HEAD^{commit}", check=False).returncode:
        raise PlumblineError(f"{folder} has no commit yet: git add -A && git commit -m start")


def _explain_no_repository(folder: Path, message: str) -> str:
    begin = "fatal: not a git repository"
    if message.startswith(f"{begin} (or any"):
        remedy = "git init && git add -A && git commit -m start"
        return f"{folder} is in no git repository, and arms are commits: {remedy}"
    if message.startswith(f"{begin}: "):
        return (
            f"{folder}: its git repository is gone: {message.removeprefix(f'{begin}: ')} is not there; put it back, "
            f"or, where it was moved, run there: git worktree repair {shlex.quote(str(folder))}"
        )
    if "dubious ownership" in message:
        remedy = message.splitlines()[-1].strip()
        return f"{folder}: its git repository belongs to another user; if you trust it: {remedy}"
    return f"{folder}: git does not read its repository: {' '.join(message.split()) or 'it says nothing'}"


def explain_shallow(top: Path) -> str:
    """How a clone gets the commits that it was made without, as the end of a sentence; empty where it has all."""
    is_shallow = git(top, "rev-parse", "--is-shallow-repository").stdout.strip() == "true"
    text = "; this clone is shallow: git fetch --unshallow gets all commits, git fetch --deepen=N the next N"
    return text if is_shallow else ""


def commit_tree(folder: Path, tree: str, parent: str, message: str) -> str:
    """Make a commit of a tree after another commit, on no branch, and return its name."""
    arguments = ("commit-tree", "--no-gpg-sign", tree, "-p", parent, "-m", message)
    return git(folder, *arguments, environment=_AUTHOR).stdout.strip()


def free_bytes(folder: Path) -> int:
    """Count the bytes that are free for this user where a folder lies."""
    file_system = os.statvfs(folder)
    return file_system.f_bavail * file_system.f_frsize


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
        hidden = _list_hidden(top)
        for option in _SHOW if hidden else ():
            git(top, "update-index", option, "-z", "--stdin", environment=environment, stdin="\0".join(hidden))
        yield environment


@contextlib.contextmanager
def index_kept(top: Path) -> Iterator[Callable[[], None]]:
    """Put the user's index back as it was after the block, unless what this yields was called."""
    index = top / git(top, "rev-parse", "--git-path", "index").stdout.rstrip("\n")
    content, calls = index.read_bytes() if index.exists() else None, list[bool]()
    try:
        yield lambda: calls.append(True)
    finally:
        if not calls and content is not None:
            atomic_write_bytes(index, content)


def add_all(top: Path, environment: Mapping[str, str], *, as_sparse: bool) -> None:
    """Put all that the working tree has and git does not ignore into an index; `as_sparse`: less what lies outside of a
    sparse checkout.
    """
    settings = () if as_sparse else _WHOLE
    git(top, "add", "--all", "--", ":/", settings=settings, environment=environment, check=not as_sparse)


def take_out(folder: Path, patterns: Sequence[str], environment: Mapping[str, str]) -> None:
    """Take files out of an index that is not the user's, also those outside of a sparse checkout."""
    options = ("-rfq", "--cached", "--ignore-unmatch", "--", *patterns)
    git(folder, "rm", *options, settings=_WHOLE, environment=environment)


def is_sparse(top: Path) -> bool:
    """Whether the working tree has only a part of the commit (`git sparse-checkout`)."""
    value = git(top, "config", "--type=bool", "core.sparseCheckout", check=False).stdout
    return value.strip() == "true"


def require_in_sparse_checkout(top: Path, sparse_tree: str, full_tree: str) -> None:
    """Refuse changes outside of a sparse checkout: no copy of the commit has those files.

    Args:
        top: of the working tree.
        sparse_tree: of what the sparse checkout has.
        full_tree: of what is there.

    Raises:
        PlumblineError: the two differ.
    """
    changed = git(top, "diff", "--name-only", "--no-ext-diff", "-z", sparse_tree, full_tree).stdout.split("\0")
    if names := [name for name in changed if name]:
        folders = shlex.join(sorted({os.path.dirname(name) or "." for name in names}))
        raise PlumblineError(
            f"{top}: {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}: a change outside of the sparse "
            f"checkout, which the copies that runs are made in do not have: git sparse-checkout add {folders}"
        )


@contextlib.contextmanager
def objects_elsewhere(top: Path) -> Iterator[dict[str, str]]:
    """Name a place for new objects that is not the user's and goes with the block, as variables for git."""
    objects = str(top / git(top, "rev-parse", "--git-path", "objects").stdout.rstrip("\n"))
    quoted = objects.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    with tempfile.TemporaryDirectory() as folder:
        yield {"GIT_OBJECT_DIRECTORY": folder, "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"'}


def _list_hidden(top: Path) -> list[str]:
    """List the files that are there and whose changes git is told not to see."""
    lines = git(top, "ls-files", "-v", "-z", settings=_WHOLE).stdout.split("\0")
    listed = [line.partition(" ")[::2] for line in lines if line]
    return [name for tag, name in listed if (tag.islower() or tag == "S") and os.path.lexists(top / name)]


def list_hidden_changes(top: Path) -> list[str]:
    """List the files that differ from HEAD's and whose changes git is told not to see: `git commit` leaves them out."""
    if not (hidden := set(_list_hidden(top))):
        return []
    with index_of_tree(top) as environment:
        changed = git(top, "diff", "--name-only", "--no-ext-diff", "-z", "HEAD", environment=environment).stdout
    return [name for name in changed.split("\0") if name in hidden]


def to_show_changes(top: Path) -> str:
    """The command that lets git see all changes again, as the begin of one that commits them; empty where it does."""
    if not (names := list_hidden_changes(top)):
        return ""
    begin = ["git", "-C", str(top), "update-index"]  # takes one of the two at a time
    return "".join(f"{shlex.join([*begin, option, '--', *names])} && " for option in _SHOW)


def require_seen_changes(top: Path, remedy: str) -> None:
    """Refuse to commit a working tree of which git is told not to see all changes.

    Raises:
        PlumblineError: it is; `remedy` is the command that commits them too.
    """
    if names := list_hidden_changes(top):
        raise PlumblineError(
            f"nothing was committed: {', '.join(names[:3])}{' ...' if len(names) > 3 else ''}: changes that were tried "
            f"and that git is told not to see; to commit them too: {remedy}"
        )


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
        submodule = top / path
        if not (submodule / ".git").exists():
            continue  # never checked out here: the baseline has none either
        state = git(submodule, "status", "--porcelain", check=False)
        if state.returncode or state.stdout.strip() or list_hidden_changes(submodule):
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
            process = git(top, "read-tree", pinned, environment=environment, check=False)
            if process.returncode:
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
    git_folders = git(top, "rev-parse", "--git-dir", "--git-common-dir").stdout.splitlines()
    places = [top / folder / "modules" / name for name in names for folder in git_folders]
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
