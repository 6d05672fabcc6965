"""Makes arms of a working tree: commits that git holds, and copies of them to run in.

A candidate is what is tracked and what is untracked but not ignored, as a commit object: it is made through an index of
its own, so that the user's index, HEAD, branches, files, hooks and settings stay as they are. `refs/plumbline` keeps
the commits. Each run gets a copy (a detached worktree below `.plumbline/worktrees`), into which what git ignores and a
run needs is linked; what the run writes stays in there, and goes with it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from plumbline.core.errors import PlumblineError
from plumbline.core.files import make_folder, name_in_errors, sha256_text
from plumbline.verdict.own_trainer import git_call, written_files
from plumbline.verdict.own_trainer.git_call import git
from plumbline.verdict.own_trainer.trainer_file import NAME

#: What Plumbline writes in a folder, and what pi-autoresearch keeps its session in; with `NAME` no part of an arm.
FOLDER, ROWS, AUTO = ".plumbline", "results.tsv", ".auto"
NOT_OF_AN_ARM = (FOLDER, ROWS, AUTO, NAME)
#: Untracked files of more bytes than this are taken for data that should be ignored and shared.
MOST_UNTRACKED = 256 * 2**20
#: What git's letter for a change adds to its lines.
_KINDS = {"A": " (new)", "D": " (removed)"}
#: Top, folder below it and commit -> the tree of its code.
_TREES: dict[tuple[str, str, str], str] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """One arm: a commit, and the flags that its command is given.

    Attributes:
        tree: a hash of the code alone: equal ones are one arm, whatever the commit.
        words: what a reader calls it.
    """

    commit: str
    tree: str
    flags: tuple[str, ...] = ()
    words: str = ""

    @property
    def method(self) -> str:
        """The arm's name in the bank: its code and its flags."""
        return f"{self.tree[:12]}{'-' + sha256_text(repr(self.flags))[:8] if self.flags else ''}"

    @property
    def record(self) -> dict[str, Any]:
        """What a file keeps of the arm; `Repository.recall` makes it again."""
        return {"commit": self.commit, "flags": list(self.flags), "words": self.words}


@dataclass(frozen=True)
class Repository:
    """The git repository that a trainer's folder lies in; `output`: folders and files of it that runs write."""

    folder: Path
    output: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if shutil.which("git") is None:
            raise PlumblineError("git is not installed, and arms are commits; install git")
        git_call.require_repository(self.folder)

    @cached_property
    def top(self) -> Path:
        """The top of the working tree."""
        return Path(self._out("rev-parse", "--show-toplevel"))

    @cached_property
    def prefix(self) -> str:
        """Where the folder lies below the top; empty at the top."""
        return self._out("rev-parse", "--show-prefix").rstrip("/")

    @cached_property
    def refs(self) -> str:
        """What this folder's refs begin with."""
        is_main_worktree = self._out("rev-parse", "--git-dir") == self._out("rev-parse", "--git-common-dir")
        suffix = "" if is_main_worktree and not self.prefix else f"/{sha256_text(str(self.folder.absolute()))[:8]}"
        return f"refs/plumbline{suffix}"

    def arm(self, reference: str, flags: Sequence[str] = (), label: str = "") -> Arm:
        """Make an arm of a commit.

        Raises:
            PlumblineError: there is no such commit.
        """
        # What a commit has never changes, and an arm is asked for before and after each run.
        place = str(self.top), self.prefix, reference
        commit = reference if place in _TREES else self._commit(reference)
        if not commit:
            hint = git_call.explain_shallow(self.top)
            raise PlumblineError(f"{reference!r} names no commit of {self.top}; git log lists them{hint}")
        place = *place[:2], commit
        if place not in _TREES:
            with self.own_index() as environment, git_call.objects_elsewhere(self.top) as objects:
                environment |= objects  # the tree is only a name: `plumbline log` reads where nothing can be written
                self._run("read-tree", commit, environment=environment)
                _TREES[place] = self.write_code_tree(environment)
        return Arm(commit=commit, tree=_TREES[place], flags=tuple(flags), words=label or commit[:7])

    def has(self, reference: str) -> bool:
        """Whether something names a commit."""
        return bool(self._commit(reference))

    def names(self) -> list[str]:
        """List the branches and tags."""
        return self._out("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes").split()

    def lines_with(self, texts: Sequence[str], commit: str) -> Iterator[tuple[str, str]]:
        """Give the lines of a commit's text files, but for what people read, that have one of some texts, each behind
        its file's name.
        """
        patterns = [word for text in texts for word in ("-e", text)]
        prose = [f":(top,exclude,icase)*.{ending}" for ending in ("md", "rst")]
        grep = self._run("grep", "-I", "--fixed-strings", "--null", *patterns, commit, "--", ":/", *prose, check=False)
        for line in grep.stdout.splitlines():
            name, _, text = line.removeprefix(f"{commit}:").partition("\0")
            yield name, text

    def list_changed_lines(self, old_commit: str, new_commit: str) -> tuple[list[str], list[str]]:
        """List the lines that two commits do not share, of what is part of an arm: those that go, and those that come.

        What is no line (a file's mode, a file that is new, or no text) is in both, as git writes it.
        """
        exclusions = [self._below_top(name).replace(":(top", ":(top,exclude", 1) for name in NOT_OF_AN_ARM]
        arguments = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--unified=0"]
        removed_lines, added_lines, in_head = list[str](), list[str](), True
        for line in self._out(*arguments, old_commit, new_commit, "--", ":/", *exclusions).splitlines():
            in_head = line.startswith("diff --git ") or (in_head and not line.startswith("@@ "))
            if line.startswith(("diff --git ", "@@ ")) or (in_head and line.startswith(("index ", "--- ", "+++ "))):
                continue
            removed_lines += [line] if in_head or not line.startswith("+") else []
            added_lines += [line] if in_head or not line.startswith("-") else []
        return removed_lines, added_lines

    def list_files_of(self, commit: str) -> list[str]:
        """List the files of a commit, as the top has them."""
        return [
            name
            for name in self._run("ls-tree", "-rz", "--name-only", "--full-tree", commit).stdout.split("\0")
            if name
        ]

    def list_changed_files(self, old_commit: str, new_commit: str) -> dict[str, str]:
        """List the files that differ between two commits, of what is part of an arm, as the top has them: file -> lines
        that come and go (``+3 -1``; ``binary`` where there are none), whether it is new or removed, and its modes where
        they differ (``mode 100644 to 100755``: it may be executed now).
        """
        exclusions = [self._below_top(name).replace(":(top", ":(top,exclude", 1) for name in NOT_OF_AN_ARM]
        options = ["diff", "-z", "--no-ext-diff", "--no-textconv", "--no-renames"]
        counts = self._run(*options, "--numstat", old_commit, new_commit, "--", ":/", *exclusions).stdout.split("\0")
        listed = iter(self._run(*options, "--raw", old_commit, new_commit, "--", ":/", *exclusions).stdout.split("\0"))
        heads = {name: head.lstrip(":").split() for head, name in zip(listed, listed)}
        changed = {}
        for line in filter(None, counts):
            lines_added, lines_removed, name = line.split("\t", 2)
            mode_before, mode_after, _, _, kind = heads[name]
            parts = ["binary" if lines_added == "-" else f"+{lines_added} -{lines_removed}"]
            if not (kind_text := _KINDS.get(kind, "")) and mode_before != mode_after:
                mode = f"mode {mode_before} to {mode_after}"
                parts = [mode] if lines_added == lines_removed == "0" else [*parts, mode]
            changed[name] = f"{', '.join(parts)}{kind_text}"
        return changed

    def _commit(self, reference: str) -> str:
        return self._run(
            "rev-parse", "--verify", "--end-of-options", f"{reference}^{{commit}}", check=False
        ).stdout.strip()

    def recall(self, record: Mapping[str, Any]) -> Arm:
        """Make an arm again of its record.

        Raises:
            PlumblineError: its commit is gone.
        """
        return self.arm(record["commit"], record["flags"], label=record["words"])

    def candidate(self, flags: Sequence[str] = (), label: str = "") -> Arm:
        """Make an arm of the working tree as it is, and hold its commit by a ref.

        Raises:
            PlumblineError: the tree has what no commit can hold: a conflict, a submodule with changes, changes outside
                of a sparse checkout, or files so large that they are data.
        """
        git_call.require_merged(self.top)
        self._require_addable()
        head = self.arm("HEAD")
        full_tree, tree = self._write_trees()
        if git_call.is_sparse(self.top):
            git_call.require_in_sparse_checkout(self.top, self._write_trees(as_sparse=True)[1], tree)
        if tree == head.tree:
            return Arm(commit=head.commit, tree=tree, flags=tuple(flags), words=label or head.words)
        return self.commit_arm(full_tree, tree, head, flags, label)

    def _write_trees(self, *, as_sparse: bool = False) -> tuple[str, str]:
        with git_call.index_of_tree(self.top) as environment:
            git_call.add_all(self.top, environment, as_sparse=as_sparse)
            git_call.require_clean_submodules(self.top, environment)
            pathspecs = [self._below_top(name) for name in (FOLDER, ROWS, AUTO)]
            pathspecs += [f":(top,literal){name}" for name in self.list_left_out()]
            git_call.take_out(self.folder, pathspecs, environment)
            return self._out("write-tree", environment=environment), self.write_code_tree(environment)

    def commit_arm(self, full_tree: str, tree: str, parent: Arm, flags: Sequence[str], label: str) -> Arm:
        """Make an arm of a tree as a commit after its parent's, and hold it by a ref; `tree`: that of its code."""
        commit = git_call.commit_tree(self.folder, full_tree, parent.commit, f"plumbline: {label or 'a candidate'}")
        self.hold(f"arms/{tree[:12]}", commit)
        return Arm(commit=commit, tree=tree, flags=tuple(flags), words=label or commit[:7])

    def hold(self, name: str, commit: str) -> None:
        """Keep a commit by a ref of Plumbline's own, so that nothing prunes it."""
        self._run("update-ref", f"{self.refs}/{name}", commit)

    def list_tracked(self, *names: str) -> list[str]:
        """List the files that git tracks of what the folder has of these names, each as the top has it."""
        return self._list_files("--", *map(self._below_top, names))

    def of_a_loop(self) -> list[str]:
        """List the untracked files of a loop's session, as the top has them."""
        begin = f"{self.prefix}/{AUTO}/" if self.prefix else f"{AUTO}/"
        return [name for name in self.list_untracked() if name.startswith(begin)]

    def to_commit(self, message: str) -> str:
        """The command that commits the working tree as it was tried: `git commit -a` leaves out new files."""
        left_out_names = [*self.list_left_out(), *self.of_a_loop(), f"{self.prefix}/{NAME}".lstrip("/")]
        new = [name for name in self.list_untracked() if name not in left_out_names]
        begin = f"git add {shlex.join(f':/{name}' for name in new)} && " if new else ""
        begin = "git add -A :/ && " if len(begin) > 200 else begin
        return f"{git_call.to_show_changes(self.top)}{begin}git commit -am {shlex.quote(message)}"

    def require_committable(self, arm: Arm) -> None:
        """Refuse to commit what was tried where `git commit` would not commit just that.

        Raises:
            PlumblineError: the working tree has changed since, or git is told not to see changes that were tried.
        """
        if self.candidate().tree != arm.tree:
            raise PlumblineError(
                "nothing was committed: the working tree has changed since the try began; commit it by hand"
            )
        git_call.require_seen_changes(self.top, self.to_commit(arm.words))

    def list_left_out(self) -> list[str]:
        """List the untracked files that are no part of an arm, as the top has them: those that this process prints to,
        and those that runs write.
        """
        return [*self.list_printed_to(), *self.list_of_runs()]

    def list_of_runs(self) -> list[str]:
        """List the untracked files that have the name of one that a run wrote, or lie where runs write."""
        written_names = written_files.read(self.folder / FOLDER)
        outputs = [f"{self.prefix}/{name}".lstrip("/") for name in self.output]
        written_names |= set(outputs)
        folders = tuple(f"{name}/" for name in outputs)
        return [name for name in self.list_untracked() if name in written_names or name.startswith(folders)]

    def list_printed_to(self) -> list[str]:
        """List the untracked files that this process prints to (`plumbline try > try.log`), as the top has them."""
        mine = {(status.st_dev, status.st_ino) for status in map(os.fstat, filter(_is_open, (0, 1, 2)))}
        files = []
        for name in self.list_untracked():
            with contextlib.suppress(OSError):  # a link to itself, or it was there a moment ago
                file_status = (self.top / name).stat()
                files += [name] if (file_status.st_dev, file_status.st_ino) in mine else []
        return files

    def list_untracked(self) -> list[str]:
        """List the files that git neither tracks nor ignores, as the top has them."""
        return self._list_files("--others", "--exclude-standard", "--", ":/")

    def _list_files(self, *options: str) -> list[str]:
        return [name for name in self._run("ls-files", "-z", "--full-name", *options).stdout.split("\0") if name]

    def leave_out(self, *names: str) -> None:
        """Have git ignore names of the folder by its own `info/exclude`, which no commit has."""
        path = self.folder / self._out("rev-parse", "--git-path", "info/exclude")
        prefix = re.sub(r"([\\*?\[ ])", r"\\\1", f"/{self.prefix}/" if self.prefix else "/")
        make_folder(path.parent)
        with name_in_errors(path), open(path, "a+", encoding="utf-8", errors="surrogateescape") as file:
            file.seek(0)
            content = file.read()
            missing_lines = [line for name in names if (line := prefix + name) not in content.splitlines()]
            begin = "\n" if missing_lines and content and not content.endswith("\n") else ""
            file.write(begin + "".join(f"{line}\n" for line in missing_lines))

    def check_out(self, commit: str, copy: Path, share: Sequence[str] = (), output: Sequence[str] = ()) -> Path:
        """Make a copy of a commit to run in, and return the trainer's folder in it; `output` are empty folders of it.

        Raises:
            PlumblineError: what is to be shared is not there.
        """
        if os.path.lexists(copy):
            self.remove(copy)
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:  # forced twice, as git may still know a copy that is gone, and hold it as one that is begun
            self._run("worktree", "add", "--detach", "--force", "--force", str(copy), commit)
            return self._fill_copy(commit, copy, share, output)
        except BaseException:
            self.remove(copy)
            raise

    def _fill_copy(self, commit: str, copy: Path, share: Sequence[str], output: Sequence[str]) -> Path:
        """Put into a copy what its commit has not: submodules, what is shared, empty folders."""
        git_call.fill_submodules(self.top, commit, copy)
        folder = copy / self.prefix
        for name in share:
            if not os.path.lexists(self.folder / name):
                raise PlumblineError(
                    f"{self.folder / NAME}: run.share: there is no {name!r} in {self.folder}; make it, or take it out"
                )
            _link(self.folder / name, folder / name)
        for name in output:
            if os.path.lexists(folder / name) and not (folder / name).is_dir():
                raise PlumblineError(
                    f"{self.folder / NAME}: run.output: {name!r} is a file that git has, and no folder; take it out"
                )
            make_folder(folder / name)
        return folder

    def remove(self, copy: Path) -> None:
        """Take a copy away with what its run wrote."""
        self._run("worktree", "remove", "--force", "--force", str(copy), check=False)
        shutil.rmtree(copy, ignore_errors=True)

    def _below_top(self, name: str) -> str:
        return f":(top,literal){self.prefix}/{name}" if self.prefix else f":(top,literal){name}"

    def write_code_tree(self, environment: Mapping[str, str]) -> str:
        """The tree of an index less what is no part of an arm."""
        pathspecs = [self._below_top(name) for name in NOT_OF_AN_ARM]
        git_call.take_out(self.folder, pathspecs, environment)
        return self._out("write-tree", "--missing-ok", environment=environment)  # a partial clone fetches nothing

    def _require_addable(self) -> None:
        of_runs = set(self.list_of_runs())
        sizes, names = {}, [name for name in self.list_untracked() if name not in of_runs]
        for name in names:
            if name.endswith("/") and git(self.top / name, "rev-parse", "--verify", "HEAD", check=False).returncode:
                raise PlumblineError(
                    f"{self.top / name} is a git repository of its own without a commit, which an arm cannot hold; "
                    f"commit there, put it into .gitignore, or remove {name}.git"
                )
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # it was there a moment ago
                sizes[name] = 0 if name.endswith("/") else (self.top / name).lstat().st_size
        if (total := sum(sizes.values())) <= MOST_UNTRACKED:
            return
        largest = max(sizes, key=lambda name: sizes[name])
        raise PlumblineError(
            f"{self.top}: the files that git neither tracks nor ignores take {total / 2**20:.0f} MiB, {largest} alone "
            f"{sizes[largest] / 2**20:.0f}; add what is no code to .gitignore, and what a run needs of it to run.share"
        )

    @contextlib.contextmanager
    def own_index(self) -> Iterator[dict[str, str]]:
        """Name an index that is not the user's, as variables for git, during a ``with`` block."""
        with tempfile.TemporaryDirectory() as folder:
            yield {"GIT_INDEX_FILE": f"{folder}/index"}

    def _out(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        return self._run(*arguments, environment=environment).stdout.rstrip("\n")

    def _run(
        self, *arguments: str, environment: Mapping[str, str] | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        return git(self.folder, *arguments, environment=environment, check=check)


def _is_open(descriptor: int) -> bool:
    with contextlib.suppress(OSError):
        return bool(os.fstat(descriptor))
    return False


def _link(source: Path, target: Path) -> None:
    """Link what is not there; of a folder that the commit has too, what is missing in it."""
    if not os.path.lexists(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source.absolute())
    elif source.is_dir() and target.is_dir() and not target.is_symlink():
        for child in source.iterdir():
            _link(child, target / child.name)
