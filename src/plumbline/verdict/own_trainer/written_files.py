"""Keeps which files the runs of a folder write into their copies, by `.plumbline/written.json`: no part of an arm.

Only what git neither tracks nor ignores is asked for: a run's log, a checkpoint that the next run would go on from.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from plumbline.core.files import atomic_write_json, read_json
from plumbline.verdict.formatting import name_some
from plumbline.verdict.outcome import CannotBeJudgedError
from plumbline.verdict.own_trainer.git_call import git

#: The most names that are kept; a run that writes more of them writes what git should ignore.
MOST = 10_000


def read(folder: Path) -> set[str]:
    """Read the names, as the top of the working tree has them; `folder` is the one that Plumbline keeps."""
    content = read_json(_place(folder))
    return set(content["files"]) if isinstance(content, dict) and isinstance(content.get("files"), list) else set()


def is_known(folder: Path) -> bool:
    """Whether a run has been made since which it is known what runs write."""
    return _place(folder).exists()


def note(folder: Path, copy: Path) -> None:
    """Add what a run wrote into its copy; links are what all runs share."""
    listed = git(copy, "ls-files", "-z", "--others", "--exclude-standard", "--full-name", "--", ":/", check=False)
    new = {name for name in listed.stdout.split("\0") if name and not (copy / name).is_symlink()}
    names = read(folder)
    if new - names or not is_known(folder):
        atomic_write_json(_place(folder), {"files": sorted(names | new)[:MOST]})


def refuse_state(folder: Path, copy: Path, untracked: Iterable[str], arm: str) -> None:
    """Refuse an arm whose run changed an untracked file that the arm was made with, and leave it out from then on.

    Raises:
        CannotBeJudgedError: there is one.
    """
    listed = git(copy, "ls-files", "-z", "--modified", "--full-name", "--", ":/", check=False)
    if state := sorted(set(filter(None, listed.stdout.split("\0"))) & set(untracked)):
        atomic_write_json(_place(folder), {"files": sorted(read(folder) | set(state))[:MOST]})
        raise CannotBeJudgedError(
            f"{arm} was made with {name_some(state)}, which git does not track and its run writes: a run by hand has "
            "left it, and it is no source. It is left out from now on: repeat the command (if it is source, git add it)"
        )


def _place(folder: Path) -> Path:
    return folder / "written.json"
