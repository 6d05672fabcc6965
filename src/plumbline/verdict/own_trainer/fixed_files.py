"""Finds the files that measure: those that `metric.fixed` of a `plumbline.toml` names.

A pattern is a path below the trainer's folder. In it `*` stands for any text, slashes too, `?` for a letter and
`[abc]` for one of these; the name of a folder stands for all that is in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from plumbline.core.errors import PlumblineError, nearest
from plumbline.verdict.own_trainer.snapshot import Arm, Repository
from plumbline.verdict.own_trainer.trainer_file import TrainerFile


def select(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Choose the names that a pattern matches, or a folder that they lie in."""
    patterns = [str(PurePosixPath(pattern)) for pattern in patterns]
    return [name for name in names if any(_matches(name, pattern) for pattern in patterns)]


def list_fixed(
    file: TrainerFile, repository: Repository, baseline: Arm, changed: Iterable[str] = ()
) -> tuple[str, ...] | None:
    """List the files that measure, as the top of the working tree has them: those of the baseline's commit, and those
    that all runs share; None where none are named.

    Args:
        file: the `plumbline.toml`.
        repository: of its folder.
        baseline: whose files they are.
        changed: files in which a candidate differs from it, new ones among them.

    Raises:
        PlumblineError: a pattern matches nothing.
    """
    if not (patterns := file.metric.fixed):
        return None
    prefix = f"{repository.prefix}/" if repository.prefix else ""
    tracked, new = (
        [name.removeprefix(prefix) for name in each if name.startswith(prefix)]
        for each in (repository.list_files_of(baseline.commit), changed)
    )
    names = [*tracked, *_list_shared(file)]
    for pattern in patterns:
        if not select(names, [pattern]):
            raise PlumblineError(
                f"{file.path}: metric.fixed: {pattern!r} matches no file of the baseline ({baseline.words}, "
                f"{baseline.commit[:7]}), and none of run.share{nearest(pattern, names)}; write the path of a "
                "file that measures as git ls-files has it, or take the pattern out"
            )
    return tuple(prefix + name for name in dict.fromkeys(select([*names, *new], patterns)))


def _matches(name: str, pattern: str) -> bool:
    return any(fnmatchcase(str(path), pattern) for path in (PurePosixPath(name), *PurePosixPath(name).parents[:-1]))


def _list_shared(file: TrainerFile) -> Iterator[str]:
    """The files that all runs share, by their names below the trainer's folder."""
    for entry in file.run.share:
        path = file.folder / entry
        if not path.is_dir():
            yield str(PurePosixPath(entry))
        for where, _, names in os.walk(path):
            for name in names:
                yield PurePosixPath(Path(where, name).relative_to(file.folder)).as_posix()
