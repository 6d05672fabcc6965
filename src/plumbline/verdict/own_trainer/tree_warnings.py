"""Says what may make runs of a user's working tree something else than is meant: paths that lead into the tree itself,
and files whose content git LFS has not fetched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from plumbline.core.permissions import find_home
from plumbline.verdict.own_trainer.git_call import git
from plumbline.verdict.own_trainer.snapshot import FOLDER, Repository

#: What ends a path in a text.
_END = r"[^\s\"'`,;:)}\]>|&]*"
#: What a file begins with whose content is elsewhere.
_POINTER = b"version https://git-lfs.github.com/spec/"


def list_tree_warnings(repository: Repository, commit: str, command: str, data: Iterable[str] = ()) -> list[str]:
    """List what may make runs of a working tree something else than is meant, each as a sentence; `data`: what
    `plumbline.toml` names as such, in git or not.
    """
    warnings = (_warn_of_own_tree(repository, commit, command), _warn_of_pointers(repository, data))
    return [warning for warning in warnings if warning]


def _warn_of_pointers(repository: Repository, data: Iterable[str]) -> str:
    """State which files of the working tree, and of the data, are what git LFS keeps in their place; empty if none
    is.
    """
    tracked = git(repository.top, "ls-files", "-z", "--", ":(top,attr:filter=lfs)").stdout.split("\0")
    files = [repository.top / name for name in filter(None, tracked)]
    for place in (repository.folder / name for name in data):
        files += [place, *sorted(place.rglob("*"))]
    pointers = [os.path.relpath(file, repository.folder) for file in dict.fromkeys(files) if _is_pointer(file)]
    if not pointers:
        return ""
    return (
        f"mind: {', '.join(pointers[:3])}{' ...' if len(pointers) > 3 else ''}: git LFS has not fetched the content, "
        "and what runs read there is a pointer of three lines: git lfs pull"
    )


def _is_pointer(path: Path) -> bool:
    with suppress(OSError):
        if path.is_file():  # a pipe would never end
            with open(path, "rb") as file:
                return file.read(len(_POINTER)) == _POINTER
    return False


def _warn_of_own_tree(repository: Repository, commit: str, command: str) -> str:
    """State in a sentence which texts, the command or tracked files, name a path of the user's own tree; empty if none
    does. Both arms would read the working copy there; what git ignores is shared by all arms anyway, and is left out.
    """
    texts = [("the command", command), *repository.lines_with(_list_forms(repository.top), commit)]
    places = dict.fromkeys((where, path) for where, text in texts for path in _find_paths(text, repository.top))
    if not places:
        return ""
    paths = "\0".join(str(path) for _, path in places)
    process = git(repository.top, "check-ignore", "-z", "--stdin", check=False, stdin=paths)
    tracked = [(where, path) for where, path in places if str(path) not in process.stdout.split("\0")]
    if not tracked:
        return ""
    listed = ", ".join(f"{where} names {path}" for where, path in tracked[:3])
    return (
        f"mind: {listed}: there every run reads your own tree, as it is then, and not its arm's copy; write a path "
        "below the folder"
    )


def _list_forms(top: Path) -> list[str]:
    """How a text may write a path: as it is, or from the home folder."""
    forms, home = [str(top)], find_home()
    if home is not None and top != home and top.is_relative_to(home):
        forms += [f"{begin}/{top.relative_to(home)}" for begin in ("~", "$HOME")]
    return forms


def _find_paths(text: str, top: Path) -> Iterable[Path]:
    for form in _list_forms(top):
        for match in re.finditer(rf"(?<![\w./-]){re.escape(form)}((?:/{_END})?)(?![\w.-])", text):
            path = Path(str(top) + match[1].rstrip("."))
            if not path.is_relative_to(top / FOLDER):
                yield path
