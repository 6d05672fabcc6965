"""Merges changes of a baseline's code in memory: patches and branches become arms, each alone or several together.

Everything is done in an index of its own (`Repository.own_index`), so that the user's working tree, index and branches
stay as they are, and what is not committed there is part of no arm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path, PurePosixPath

from plumbline.core.errors import PlumblineError, nearest
from plumbline.verdict.formatting import name_some
from plumbline.verdict.own_trainer.git_call import git
from plumbline.verdict.own_trainer.snapshot import Arm, Repository

#: What of the user's settings would touch files, or refuse white space.
_QUIET = ("-c", "rerere.enabled=false", "apply", "--cached", "--whitespace=nowarn")


@dataclass(frozen=True, slots=True)
class Change:
    """What a change makes of the baseline.

    Attributes:
        patch: its difference from the baseline, as git wrote it.
        files: those that it touches, as the top has them.
    """

    patch: Path
    files: frozenset[str]

    def may_meet(self, other: Change) -> bool:
        """Whether both touch one file, or one has a folder where the other has a file."""
        return bool(self.files & other.files or self.files & _list_parents(other) or other.files & _list_parents(self))


@dataclass(frozen=True)
class ChangeMerger:
    """Merges changes onto a baseline; `folder` is a temporary one, in which their differences are kept."""

    repository: Repository
    baseline: Arm
    folder: Path

    def read_patch(self, path: Path) -> Change:
        """Read a patch as git or diff writes them, from the top of the repository or from the trainer's folder.

        Raises:
            PlumblineError: it cannot be read, does not apply to the baseline, or changes nothing; without its name.
        """
        if not path.is_file():
            raise PlumblineError(f"there is no file {path}; write it (git diff > {path.name}), or correct its name")
        prefix = self.repository.prefix
        places = ((), (f"--directory={prefix}",)) if prefix else ((),)
        with self.repository.own_index() as environment:
            for options in places:
                self._read_tree(environment)
                error = self._apply(environment, path.absolute(), *options)
                if not error:
                    return self._make_change(self._write_tree(environment))
        commit = self.baseline.commit[:7]
        raise PlumblineError(
            f"it does not apply to the baseline, which is the commit {commit} ({error}); make it anew from that "
            f"(git diff {commit} > {path.name})"
        )

    def read_branch(self, name: str) -> Change:
        """Read what a branch, tag or commit has changed since it left the baseline's history.

        Raises:
            PlumblineError: there is none, it does not merge with the baseline, or it changes nothing.
        """
        if not self.repository.has(name):
            names = self.repository.names()
            raise PlumblineError(f"{name!r} names no branch or commit{nearest(name, names)} (git branch lists them)")
        base = self._run("merge-base", self.baseline.commit, name, check=False).strip()
        if not base:
            raise PlumblineError(f"{name!r} has no commit in common with the baseline {self.baseline.commit[:7]}")
        change = self._make_change(f"{name}^{{commit}}", base)
        with self.repository.own_index() as environment:
            self._read_tree(environment)
            if error := self._apply(environment, change.patch):
                raise PlumblineError(
                    f"{name!r} does not merge with the baseline {self.baseline.commit[:7]} ({error}); bring it up to "
                    f"date (git rebase {self.baseline.commit[:7]} {name})"
                )
            return self._make_change(self._write_tree(environment))

    def list_conflicts(self, changes: Mapping[str, Change]) -> list[tuple[str, str, str]]:
        """List the pairs of changes that do not merge, each with the reason."""
        conflicts = []
        for (first, first_change), (second, second_change) in combinations(changes.items(), 2):
            if first_change.may_meet(second_change):
                with self.repository.own_index() as environment:
                    if error := self._apply_all(environment, (first_change, second_change)):
                        files = sorted(first_change.files & second_change.files)
                        reason = f"git cannot merge what they change in {name_some(files)}" if files else error
                        conflicts.append((first, second, reason))
        return conflicts

    def make_arm(self, changes: Sequence[Change], flags: Sequence[str], words: str) -> Arm:
        """Make an arm of the baseline with changes and flags.

        Raises:
            PlumblineError: the changes do not merge, though any two of them do.
        """
        if not changes:
            return Arm(commit=self.baseline.commit, tree=self.baseline.tree, flags=tuple(flags), words=words)
        with self.repository.own_index() as environment:
            if error := self._apply_all(environment, changes):
                raise PlumblineError(
                    f"{words} cannot be merged, though any two of them can ({error}); name two of them in "
                    "never_together"
                )
            full_tree = self._write_tree(environment)
            tree = self.repository.write_code_tree(environment)
        return self.repository.commit_arm(full_tree, tree, self.baseline, flags, words)

    def _make_change(self, tree: str, base_tree: str = "") -> Change:
        """Keep the difference of two trees, of what is part of an arm; `base_tree` is the baseline if empty."""
        base_tree = base_tree or self.baseline.commit
        files = frozenset(self.repository.list_changed_files(base_tree, tree))
        if not files:
            raise PlumblineError("it changes nothing of the baseline; take it out")
        patch = self.folder / f"{len(list(self.folder.iterdir()))}.patch"
        options = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", f"--output={patch}")
        self._run("diff", *options, base_tree, tree, "--", *(f":(top,literal){name}" for name in sorted(files)))
        return Change(patch, files)

    def _apply_all(self, environment: Mapping[str, str], changes: Sequence[Change]) -> str:
        """Apply changes to the baseline in an index, one after the other; return why one does not, empty if all do."""
        self._read_tree(environment)
        errors = (self._apply(environment, change.patch) for change in changes)
        return next(filter(None, errors), "")

    def _apply(self, environment: Mapping[str, str], patch: Path, *options: str) -> str:
        """Apply a patch in an index, merging it where lines have moved; return why it does not, empty if it does."""
        top, names = self.repository.top, (*options, str(patch))
        process = git(top, *_QUIET, "--3way", *names, environment=environment, check=False)
        if not process.returncode:
            return ""
        lines = [line.strip() for line in process.stderr.splitlines() if line.strip()]
        telling = [line for line in lines if line.startswith(("error:", "U ")) or "with conflicts" in line]
        return (telling or lines or ["git says nothing"])[0].removeprefix("error: ")

    def _read_tree(self, environment: Mapping[str, str]) -> None:
        self._run("read-tree", self.baseline.commit, environment=environment)

    def _write_tree(self, environment: Mapping[str, str]) -> str:
        return self._run("write-tree", environment=environment).strip()

    def _run(self, *arguments: str, environment: Mapping[str, str] | None = None, check: bool = True) -> str:
        return git(self.repository.top, *arguments, environment=environment, check=check).stdout


def _list_parents(change: Change) -> frozenset[str]:
    return frozenset(_walk_parents(change.files))


def _walk_parents(files: frozenset[str]) -> Iterator[str]:
    for name in files:
        yield from (str(parent) for parent in PurePosixPath(name).parents if parent.name)
