"""Patches and branches become arms in memory: alone, in pairs that do not merge, and together; nothing is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer.merged_changes import ChangeMerger
from plumbline.verdict.own_trainer.snapshot import Arm, Repository
from tests.operate.experiments.trainer_folder import git

LINES = [f"line {number}\n" for number in range(12)]


@pytest.fixture
def merger(tmp_path: Path) -> ChangeMerger:
    """A repository whose trainer lies in a folder below the top, with a tree that is dirty."""
    top, folder = tmp_path / "top", tmp_path / "top" / "sub"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("".join(LINES))
    (top / "text.bin").write_bytes(b"a\r\nb\0\xff\n")
    git(top, "init", "-q", "-b", "main")
    for key, value in (("user.name", "a"), ("user.email", "a@b"), ("rerere.enabled", "true")):
        git(top, "config", key, value)
    git(top, "add", "--all")
    git(top, "commit", "-qm", "start")
    (tmp_path / "kept").mkdir()
    repository = Repository(folder)
    return ChangeMerger(repository, repository.arm("HEAD", label="baseline"), tmp_path / "kept")


def edit(merger: ChangeMerger, number: int, text: str, *, below: str = "") -> Path:
    """Write a patch of one line, as git does from the top or from a folder, and leave the tree as it was."""
    folder = merger.repository.folder
    path = merger.folder.parent / f"{text}.patch"
    (folder / "train.py").write_text("".join([*LINES[:number], f"{text}\n", *LINES[number + 1 :]]))
    path.write_text(git(folder, "diff", *([f"--relative={below}"] if below else [])))
    git(folder, "checkout", "-q", ".")
    return path


def list_state(top: Path) -> dict[Path, bytes]:
    """What git keeps of merges, branches and the index, but for what it refers to."""
    paths = sorted(path for path in (top / ".git").rglob("*") if path.is_file())
    apart = [top / ".git" / name for name in ("objects", "refs/plumbline")]
    return {path: path.read_bytes() for path in paths if not any(map(path.is_relative_to, apart))}


def content(merger: ChangeMerger, arm: Arm, name: str = "sub/train.py") -> str:
    return git(merger.repository.top, "show", f"{arm.commit}:{name}")


def test_changes_merge_and_the_tree_stays(merger: ChangeMerger) -> None:
    top = merger.repository.top
    patches = edit(merger, 2, "two"), edit(merger, 8, "eight", below="sub"), edit(merger, 3, "three")
    (top / "sub/train.py").write_text("the user's own work\n")
    (top / "new.txt").write_text("untracked")
    before = git(top, "status", "--porcelain"), git(top, "diff"), list_state(top)
    two, eight, three = map(merger.read_patch, patches)
    assert two.files == {"sub/train.py"}
    (first, second, reason), *others = merger.list_conflicts({"two": two, "eight": eight, "three": three})
    assert (first, second, others) == ("two", "three", []) and "sub/train.py" in reason

    arm = merger.make_arm((two, eight), ("--x", "1"), "two + eight")
    lines = content(merger, arm).splitlines()
    assert (lines[2], lines[8], len(lines), arm.flags) == ("two", "eight", 12, ("--x", "1"))
    assert arm == merger.make_arm((two, eight), ("--x", "1"), "two + eight")
    assert merger.make_arm((eight, two), (), "").tree == arm.tree
    assert merger.repository.recall(arm.record).tree == arm.tree, "a ref holds it"
    flags_alone = merger.make_arm((), ("--x",), "flags")
    assert (flags_alone.tree, flags_alone.flags) == (merger.baseline.tree, ("--x",))
    with pytest.raises(PlumblineError, match=r"two \+ three cannot be merged.+never_together"):
        merger.make_arm((two, three), (), "two + three")
    assert (git(top, "status", "--porcelain"), git(top, "diff"), list_state(top)) == before


def test_a_branch_is_what_it_changed_since_it_left(merger: ChangeMerger, tmp_path: Path) -> None:
    top = merger.repository.top
    git(top, "checkout", "-qb", "muon")
    (top / "sub/muon.py").write_text("new\n")
    (top / "text.bin").write_bytes(b"c\r\nb\0\xfe\n")
    git(top, "add", "--all")
    git(top, "commit", "-qm", "muon")
    git(top, "checkout", "-q", "main")
    (top / "sub/train.py").write_text("".join([*LINES, "later\n"]))
    git(top, "commit", "-qam", "later")
    later = ChangeMerger(merger.repository, merger.repository.arm("HEAD"), merger.folder)
    change = later.read_branch("muon")
    assert change.files == {"sub/muon.py", "text.bin"}
    arm = later.make_arm((change,), (), "muon")
    assert content(later, arm).endswith("later\n") and content(later, arm, "sub/muon.py") == "new\n"
    assert git(top, "rev-parse", f"{arm.commit}:text.bin") == git(top, "rev-parse", "muon:text.bin")
    with pytest.raises(PlumblineError, match=r"'muno' names no branch.+did you mean 'muon'"):
        later.read_branch("muno")
    with pytest.raises(PlumblineError, match="changes nothing"):
        later.read_branch("main")
    git(top, "checkout", "-q", "--orphan", "apart")
    git(top, "commit", "-qm", "apart")
    with pytest.raises(PlumblineError, match="no commit in common"):
        later.read_branch("apart")


def test_a_patch_that_does_not_apply(merger: ChangeMerger) -> None:
    path = edit(merger, 2, "two")
    path.write_text(path.read_text().replace("line 1", "line one"))
    with pytest.raises(PlumblineError, match=rf"does not apply.+{merger.baseline.commit[:7]}.+git diff"):
        merger.read_patch(path)
    path.write_text("no patch")
    with pytest.raises(PlumblineError, match="does not apply"):
        merger.read_patch(path)
    with pytest.raises(PlumblineError, match=r"there is no file .+none\.patch"):
        merger.read_patch(path.with_name("none.patch"))


def test_a_file_where_another_change_has_a_folder(merger: ChangeMerger) -> None:
    top, patches = merger.repository.top, []
    for name in ("place", "place/file"):
        path = top / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("new\n")
        git(top, "add", "--all")
        patches.append(merger.folder.parent / f"{len(patches)}.patch")
        patches[-1].write_text(git(top, "diff", "--cached"))
        git(top, "rm", "-rqf", name)
    changes = dict(zip("ab", map(merger.read_patch, patches)))
    ((first, second, _),) = merger.list_conflicts(changes)
    assert (first, second) == ("a", "b")
