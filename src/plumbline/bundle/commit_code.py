"""Gives the code that rebuilds a bundle: this package, or that of the bundle's commit, from the history of a clone."""

from __future__ import annotations

import os
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from plumbline.bundle import description
from plumbline.core.errors import PlumblineError
from plumbline.specs import code_hash, study_folders
from plumbline.specs.yaml_files import ROOT

#: The name of this package in the `pyproject.toml` of a clone.
DISTRIBUTION = "plumbline-lm"


@contextmanager
def open_code(summary: description.BundleDescription, bundle: Path, at_commit: bool) -> Iterator[tuple[Path, Path]]:
    """Give the package that makes the products and the folder of the studies with their code: those here, or within
    the block those of the bundle's commit."""
    if not at_commit:
        yield code_hash.PACKAGE, ROOT / study_folders.STUDIES
        return
    if summary.commit is None:
        raise PlumblineError(f"--at-commit: {bundle} was made where there was no repository, and names no commit")
    repository = _find_repository(summary.commit)
    if description.run_git(repository, "cat-file", "-e", f"{summary.commit}^{{commit}}") is None:
        raise PlumblineError(
            f"--at-commit: {repository} is no repository that has commit {summary.commit}; clone one that has it, or "
            f"fetch it there (git fetch --unshallow, or git fetch origin {summary.commit})"
        )
    with tempfile.TemporaryDirectory() as scratch:
        _check_out(repository, summary.commit, Path(scratch))
        yield Path(scratch) / "src" / "plumbline", Path(scratch) / study_folders.STUDIES


def _find_repository(commit: str) -> Path:
    """Find the repository whose history has the code to run: that of this package, or for an installed package the
    clone that the command runs in.

    Raises:
        PlumblineError: it runs in no clone; in another repository a commit would be other code, and is not run.
    """
    source_root = code_hash.PACKAGE.parents[1]
    if (source_root / ".git").exists():
        return source_root
    current_folder = Path.cwd()
    top = next((folder for folder in (current_folder, *current_folder.parents) if (folder / ".git").exists()), None)
    if top is not None and _is_clone(top):
        return top
    problem = f"{current_folder} is in no repository" if top is None else f"the repository {top} is none of Plumbline's"
    raise PlumblineError(
        f"--at-commit: the code of commit {commit} is taken from Plumbline's history, which an installed package does "
        f"not have, and {problem}; repeat the command in a clone of Plumbline that has that commit"
    )


def _is_clone(top: Path) -> bool:
    try:
        content = tomllib.loads((top / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    project = content.get("project")
    return isinstance(project, dict) and project.get("name") == DISTRIBUTION


def _check_out(repository: Path, commit: str, folder: Path) -> None:
    """Write `src` and `studies` of a commit into a folder, by a separate index. git writes nothing outside of the
    folder, a link as a plain file, and lines as they are in the commit. (Once the code of studies was in `src`.)

    Raises:
        PlumblineError: it has no `src`, or git refuses to write one of them.
    """
    environment = os.environ | {"GIT_INDEX_FILE": str(folder / "index")}
    # A shared index would stay behind in the repository.
    settings = ("core.symlinks=false", "core.splitIndex=false", "core.autocrlf=false", "core.eol=lf")
    git = ["git", "-C", str(repository), *(word for setting in settings for word in ("-c", setting))]
    studies = description.run_git(repository, "ls-tree", "--name-only", commit, study_folders.STUDIES)
    trees = [("read-tree", f"--prefix={name}/", f"{commit}:{name}") for name in ("src", *[studies] * bool(studies))]
    for arguments in (*trees, ("checkout-index", "--all", f"--prefix={folder}/")):
        process = subprocess.run([*git, *arguments], env=environment, capture_output=True, text=True, errors="replace")
        if process.returncode:
            raise PlumblineError(
                f"--at-commit: git cannot write src of commit {commit} of {repository} ({process.stderr.strip()}); is "
                "it a commit of Plumbline, and the repository whole (git fsck)?"
            )
