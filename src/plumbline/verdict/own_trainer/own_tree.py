"""Finds paths of the user's own tree that are written out in a command or in tracked files.

Both arms would read the working copy there, whatever their commits are. What git ignores is shared by all arms anyway,
and is not told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from plumbline.core.permissions import home
from plumbline.verdict.own_trainer.git_call import git
from plumbline.verdict.own_trainer.snapshot import FOLDER, Repository

#: What ends a path in a text.
_END = r"[^\s\"'`,;:)}\]>|&]*"


def mind(repository: Repository, commit: str, command: str) -> str:
    """Say in a sentence which texts name a path of the user's own tree; empty where none does."""
    texts = [("the command", command), *_tracked(repository, commit)]
    named = [(where, path) for where, text in texts for path in _paths(text, repository.top)]
    ignored = _ignored(repository.top, [path for _, path in named])
    left = list(dict.fromkeys((where, path) for where, path in named if path not in ignored))
    if not left:
        return ""
    told = ", ".join(f"{where} names {path}" for where, path in left[:3])
    return (
        f"mind: {told}: there every run reads your own tree, as it is then, and not its arm's copy; write a path below "
        "the folder"
    )


def _tracked(repository: Repository, commit: str) -> Iterable[tuple[str, str]]:
    """The lines of a commit's text files that have the tree's path, each with its file's name."""
    words = [word for form in _forms(repository.top) for word in ("-e", form)]
    for line in repository.lines_with(words, commit):
        name, _, text = line.removeprefix(f"{commit}:").partition("\0")
        yield name, text


def _forms(top: Path) -> list[str]:
    """How a text may write a path: as it is, or from the home folder."""
    forms, own = [str(top)], home()
    if own is not None and top != own and top.is_relative_to(own):
        forms += [f"{begin}/{top.relative_to(own)}" for begin in ("~", "$HOME")]
    return forms


def _paths(text: str, top: Path) -> Iterable[Path]:
    for form in _forms(top):
        for match in re.finditer(rf"(?<![\w./-]){re.escape(form)}((?:/{_END})?)(?![\w.-])", text):
            path = Path(str(top) + match[1].rstrip("."))
            if not path.is_relative_to(top / FOLDER):
                yield path


def _ignored(top: Path, paths: list[Path]) -> set[Path]:
    if not paths:
        return set()
    done = git(top, "check-ignore", "-z", "--stdin", check=False, given="\0".join(map(str, paths)))
    return set(map(Path, filter(None, done.stdout.split("\0"))))
