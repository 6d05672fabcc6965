"""A candidate is the working tree as a commit, and nothing of the user's is touched on the way."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict.own_trainer import fingerprint, git_call, snapshot
from plumbline.verdict.own_trainer.snapshot import Repository
from tests.verdict.own_trainer.trainers import TRAIN, decide, git, make, trainer, write_toml


def everything(folder: Path) -> dict[str, str]:
    """Every file of a repository with its hash, except for objects, our refs and our folder."""
    ours = (".git/objects/", ".git/refs/plumbline/", ".git/worktrees", ".git/info/exclude", ".plumbline/")
    names = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    paths = {name: path for name, path in names.items() if not name.startswith(ours)}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()}


def test_a_try_touches_nothing_of_the_users(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    (folder / ".gitignore").write_text("data\n")
    (folder / "data").mkdir()
    (folder / "data" / "tokens").write_text("1 2 3")
    write_toml(folder, 'share = ["data"]')
    text = (folder / "train.py").read_text()
    uses = "open('data/tokens').read(); open('out.pt', 'w').write(flags['--seed'])\n"
    (folder / "train.py").write_text(text.replace("SHIFT", uses + "SHIFT", 1))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "reads data")
    (folder / "staged.py").write_text("x = 1\n")
    git(folder, "add", "staged.py")
    (folder / "staged.py").write_text("x = 2\n")
    (folder / "gain.py").write_text("SHIFT = 1.0\n")  # untracked, and a part of the change
    (folder / "train.py").write_text((folder / "train.py").read_text().replace("SHIFT = 0.0", "from gain import SHIFT"))
    (folder / "results.tsv").write_text("mine\n")
    git(folder, "status")  # refreshes the index
    before = everything(folder)
    assert decide(folder).verdict == "keep"
    assert everything(folder) == before and not (tmp_path / "hooked").exists()
    assert list((folder / ".plumbline/worktrees").iterdir()) == [] and "\n" not in git(folder, "worktree", "list")
    commit = git(folder, "for-each-ref", "--format=%(objectname)", "refs/plumbline/arms")
    files = git(folder, "ls-tree", "--name-only", commit).split()
    assert "gain.py" in files and not {"results.tsv", ".plumbline", "data"} & set(files)
    assert ".plumbline" not in git(folder, "status", "--porcelain")


def test_edit_of_equal_length_in_second_of_commit_is_seen(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    time.sleep(1 - time.time() % 1)
    (folder / "train.py").write_text("SHIFT = 0.0\n")
    git(folder, "commit", "-qam", "at the begin of a second")
    (folder / "train.py").write_text("SHIFT = 1.0\n")
    time.sleep(1)
    assert git(folder, "show", f"{Repository(folder).candidate().commit}:train.py") == "SHIFT = 1.0"


def test_an_arm_is_its_code_and_its_flags(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / "results.tsv").write_text("tracked\n")
    git(folder, "add", "-Af")
    git(folder, "commit", "-qm", "results")
    repository = Repository(folder)
    first = repository.arm("HEAD~")
    write_toml(folder, more="[decide]\nalpha = 0.01")
    assert repository.candidate().method == repository.arm("HEAD").method == first.method
    assert repository.candidate(["--lr", "3"]).method != first.method
    with pytest.raises(PlumblineError, match=r"there to try"):
        trainer(folder)
    (folder / "train.py").write_text(f"{TRAIN}\n")
    git(folder, "commit", "-qam", "other code")
    assert Repository(folder).arm("HEAD").method != first.method == repository.arm(first.commit).method
    assert trainer(folder, "--gain", "1").run_id("candidate", 1) != trainer(folder, "--gain", "2").run_id(
        "candidate", 1
    )


def test_a_changed_file_is_named_with_its_lines_and_its_mode(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / "run.sh").write_text("a\n")
    (folder / "old.sh").write_text("a\n")
    git(folder, "add", "run.sh", "old.sh")
    git(folder, "commit", "-qm", "a script")
    repository, before = Repository(folder), git(folder, "rev-parse", "HEAD")
    (folder / "run.sh").chmod(0o755)
    (folder / "old.sh").chmod(0o755)
    (folder / "old.sh").write_text("b\n")
    changed = repository.list_changed_files(before, repository.candidate().commit)
    assert changed == {"run.sh": "mode 100644 to 100755", "old.sh": "+1 -1, mode 100644 to 100755"}


def test_an_arm_has_no_files_of_a_loops_session(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / ".auto").mkdir()
    (folder / ".auto/prompt.md").write_text("try something\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a session")
    repository = Repository(folder)
    (folder / ".auto/log.jsonl").write_text("{}\n")
    assert repository.candidate().method == repository.arm("HEAD~").method
    (folder / "gain.py").write_text("GAIN = 1\n")
    assert ".auto" not in git(folder, "ls-tree", "-r", "--name-only", repository.candidate().commit)
    assert repository.of_a_loop() == [".auto/log.jsonl"]


def test_a_copy_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    write_toml(folder, 'share = ["data"]')
    with pytest.raises(PlumblineError, match=r"there is no 'data'"):
        list(trainer(folder, "--gain", "1").run([("candidate", 1)]))
    assert "\n" not in git(folder, "worktree", "list") and list((folder / ".plumbline/worktrees").iterdir()) == []
    write_toml(folder, 'output = ["train.py"]')
    with pytest.raises(PlumblineError, match=r"run\.output: 'train\.py'"):
        list(trainer(folder, "--gain", "1").run([("candidate", 1)]))


def test_what_git_cannot_do_on_a_full_disk_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(make(tmp_path / "mine"))
    with pytest.raises(PlumblineError, match=r"git update-ref in .* ended with \d+: .*") as raised:
        repository.hold("..", "HEAD")
    assert "free some" not in str(raised.value)
    monkeypatch.setattr(git_call, "LEAST_FREE", 2**60)
    with pytest.raises(PlumblineError, match=r"repeat.*command"):
        repository.hold("..", "HEAD")


def test_folder_within_repository_is_run(tmp_path: Path) -> None:
    top = make(tmp_path / "mine")
    folder = top / "apps" / "small"
    folder.mkdir(parents=True)
    (top / "train.py").rename(folder / "train.py")
    (top / "plumbline.toml").rename(folder / "plumbline.toml")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "deeper")
    (arm_run,) = trainer(folder, "--gain", "1").run([("candidate", 1)])
    assert arm_run.value is not None and arm_run.value < 0.1
    assert git(top, "status", "--porcelain") == "" and (folder / ".plumbline" / "runs").exists()


def test_what_a_try_prints_to_is_no_part_of_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    theirs = tmp_path / "theirs" / "keep"
    theirs.mkdir(parents=True)
    (folder / ".plumbline").mkdir()
    (folder / ".plumbline/worktrees").symlink_to(theirs.parent)
    (folder / "gain.py").write_text("GAIN = 1\n")
    code = "from plumbline.verdict.own_trainer.snapshot import *; print(Repository(Path('.')).candidate().commit)"
    with open(folder / "try.log", "w") as log:
        subprocess.run([sys.executable, "-c", code], cwd=folder, stdout=log, check=True)
    commit = (folder / "try.log").read_text().strip()
    assert git(folder, "diff", "--name-only", "HEAD", commit) == "gain.py"
    list(trainer(folder).run([("candidate", 1)]))
    assert theirs.exists()


def test_submodules_are_filled(tmp_path: Path) -> None:
    library = make(tmp_path / "library", "SHIFT = 0.5\n")
    folder = make(tmp_path / "mine")
    git(folder, "submodule", "add", "-q", str(library), "library")
    text = (folder / "train.py").read_text()
    (folder / "train.py").write_text(text.replace("SHIFT = 0.0", "from library.train import SHIFT"))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "uses a library")
    (arm_run,) = trainer(folder, "--gain", "1").run([("candidate", 1)])
    assert arm_run.value is not None and arm_run.value < -0.4
    (folder / "library" / "train.py").write_text("SHIFT = 0.7\n")
    for options in (["--skip-worktree"], ["--assume-unchanged", "--no-skip-worktree"], ["--no-assume-unchanged"]):
        with pytest.raises(PlumblineError, match=r"library.*repository"):
            Repository(folder).candidate()
        git(folder / "library", "update-index", *options, "train.py")


@pytest.mark.parametrize("option", ["--assume-unchanged", "--skip-worktree"])
def test_changes_that_git_is_told_not_to_see_are_seen(tmp_path: Path, option: str) -> None:
    """Runs are made of files as they are; those of a sparse checkout that are not there are not removed."""
    folder = make(tmp_path / "mine")
    for name in ("absent.py", "small/gain.py", "equal.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("GAIN = 0\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "more files")
    git(folder, "update-index", option, "absent.py", "small/gain.py", "equal.py")
    (folder / "small/gain.py").write_text("GAIN = 1\n")
    (folder / "absent.py").unlink()
    before = everything(folder)
    for where in (folder, folder / "small"):
        candidate = Repository(where).candidate()
        assert git(folder, "diff", "--name-only", "HEAD", candidate.commit) == "small/gain.py"
    assert everything(folder) == before and git(folder, "status", "--porcelain") == ""


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
def test_changes_outside_of_a_sparse_checkout_are_refused(tmp_path: Path, cone: str) -> None:
    """Git neither adds them nor puts them into the copies that runs are made in."""
    folder = make(tmp_path / "mine")
    for name in ("library/gain.py", "other/gain.py"):
        (folder / name).parent.mkdir()
        (folder / name).write_text("GAIN = 0\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "more files")
    git(folder, "sparse-checkout", "set", cone, "library", *(["/train.py"] if cone == "--no-cone" else []))
    (folder / "library/gain.py").write_text("GAIN = 1\n")
    (folder / "results.tsv").write_text("mine\n")
    write_toml(folder)
    candidate = Repository(folder).candidate()
    assert git(folder, "diff", "--name-only", "HEAD", candidate.commit) == "library/gain.py"
    (folder / "other").mkdir()
    for name in ("gain.py", "new.py"):
        (folder / "other" / name).write_text("GAIN = 1\n")
        with pytest.raises(PlumblineError, match=rf"other/{name}: .*git sparse-checkout add other"):
            Repository(folder).candidate()
        (folder / "other" / name).unlink()


def test_what_git_commit_would_leave_out_is_not_committed(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    git(folder, "update-index", "--skip-worktree", "train.py")
    (folder / "train.py").write_text("SHIFT = 1.0\n")
    (folder / "gain.py").write_text("GAIN = 1\n")
    repository = Repository(folder)
    candidate = repository.candidate(label="a change")
    remedy = repository.to_commit("a change")
    with pytest.raises(PlumblineError, match=re.escape("nothing was committed: train.py: changes that were tried")):
        repository.require_committable(candidate)
    names = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    subprocess.run(remedy.replace("git commit", f"git {' '.join(names)} commit"), shell=True, cwd=folder, check=True)
    assert repository.arm("HEAD").tree == candidate.tree
    repository.require_committable(candidate)


@pytest.mark.parametrize("begun", ["merge", "rebase", "cherry-pick"])
def test_a_conflict_is_refused_and_a_rebase_without_one_is_none(tmp_path: Path, begun: str) -> None:
    folder = make(tmp_path / "mine")
    git(folder, "checkout", "-qb", "other")
    (folder / "train.py").write_text("SHIFT = 2.0\n")
    git(folder, "commit", "-qam", "theirs")
    git(folder, "checkout", "-q", "main")
    (folder / "train.py").write_text("SHIFT = 1.0\n")
    git(folder, "commit", "-qam", "ours")
    with pytest.raises(subprocess.CalledProcessError):
        git(folder, begun, "other")
    with pytest.raises(PlumblineError, match=r"train\.py.*git status"):
        Repository(folder).candidate()
    (folder / "train.py").write_text("SHIFT = 3.0\n")
    git(folder, "add", "train.py")
    assert git(folder, "show", f"{Repository(folder).candidate().commit}:train.py") == "SHIFT = 3.0"


def test_a_submodule_that_was_moved_is_in_both_arms(tmp_path: Path) -> None:
    library = make(tmp_path / "library", "SHIFT = 0.5\n")
    folder = make(tmp_path / "mine")
    git(folder, "submodule", "add", "-q", str(library), "library")
    (folder / "train.py").write_text(TRAIN.replace("SHIFT = 0.0", "from library.train import SHIFT"))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "uses a library")
    git(folder, "mv", "library", "deeper")
    (folder / "train.py").write_text(TRAIN.replace("SHIFT = 0.0", "from deeper.train import SHIFT"))
    runs = list(trainer(folder).run([("baseline", 1), ("candidate", 1)]))
    assert len(runs) == 2 and all(run.value is not None and run.value < 0.6 for run in runs)


def test_a_shallow_clone_names_how_it_gets_older_commits(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    git(folder, "commit", "-qm", "second", "--allow-empty")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{folder}", "clone")
    with pytest.raises(PlumblineError, match=r"HEAD~1.*git fetch --unshallow.*--deepen"):
        Repository(tmp_path / "clone").arm("HEAD~1")
    git(tmp_path / "clone", "fetch", "-q", "--unshallow")
    assert Repository(tmp_path / "clone").arm("HEAD~1").commit == git(folder, "rev-parse", "HEAD~1")
    with pytest.raises(PlumblineError, match=r"HEAD~2") as raised:
        Repository(folder).arm("HEAD~2")
    assert "clone is shallow" not in str(raised.value)


def test_a_worktree_whose_repository_was_moved_says_how_it_is_found_again(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    git(folder, "worktree", "add", "-q", str(tmp_path / "tree"))
    folder.rename(tmp_path / "moved")
    with pytest.raises(PlumblineError, match=rf"{folder}/.git.*git worktree repair {tmp_path}/tree") as raised:
        Repository(tmp_path / "tree")
    assert "git init" not in str(raised.value)
    git(tmp_path / "moved", "worktree", "repair", str(tmp_path / "tree"))
    Repository(tmp_path / "tree").candidate()


def test_a_repository_of_another_user_is_read_once_git_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "mine")
    monkeypatch.setattr(git_call, "_SETTINGS", re.compile("GIT_(CONFIG|TEST)_.*"))
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(PlumblineError, match=rf"{folder}.*another user.*git config .*safe\.directory") as raised:
        Repository(folder)
    assert "git init" not in str(raised.value)
    settings = tmp_path / "settings"
    settings.write_text(f"[safe]\n\tdirectory = {folder}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    assert Repository(folder).candidate()
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    for key, value in (("COUNT", "1"), ("KEY_0", "safe.directory"), ("VALUE_0", str(folder))):
        monkeypatch.setenv(f"GIT_CONFIG_{key}", value)
    assert Repository(folder).candidate()


def test_a_lock_that_git_left_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    lock = folder / ".git/refs/plumbline/arms.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(PlumblineError, match=rf"{lock}.*remove it"):
        Repository(folder).hold("arms", "HEAD")


def test_an_error_of_git_has_its_cause_and_not_only_its_last_line(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / ".gitattributes").write_text("train.py filter=lost\n")
    for key, value in (("clean", "no-such-filter"), ("required", "true")):
        git(folder, "config", f"filter.lost.{key}", value)
    with pytest.raises(PlumblineError, match=r"no-such-filter.*train\.py"):
        Repository(folder).candidate()


def test_an_arm_of_a_commit_writes_no_object(tmp_path: Path) -> None:
    """`plumbline log` shows the baseline where the folder may only be read."""
    folder = make(tmp_path / 'with "quotes": and colons')
    count = git(folder, "count-objects")
    arm = Repository(folder).arm("HEAD")
    assert git(folder, "count-objects") == count
    (folder / "plumbline.toml").unlink()
    git(folder, "commit", "-qam", "less what is no code")
    assert git(folder, "rev-parse", "HEAD^{tree}") == arm.tree


def test_a_link_to_itself_is_a_part_of_an_arm_and_no_data(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / "loop").symlink_to("loop")
    candidate = Repository(folder).candidate()
    assert git(folder, "diff", "--name-only", "HEAD", candidate.commit) == "loop"
    with pytest.raises(PlumblineError, match=r"run\.data.*loop"):
        fingerprint.hash_data(folder, ["loop"])


def test_no_git_no_commit_and_data_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlumblineError, match=r"no git.*init"):
        Repository(tmp_path)
    git(tmp_path, "init", "-q")
    with pytest.raises(PlumblineError, match=r"no commit yet"):
        Repository(tmp_path)
    folder = make(tmp_path / "mine")
    monkeypatch.setattr(snapshot, "MOST_UNTRACKED", 1000)
    (folder / "weights.bin").write_bytes(bytes(2000))
    with pytest.raises(PlumblineError, match=r"weights\.bin alone.*\.gitignore"):
        Repository(folder).candidate()
    (folder / "weights.bin").unlink()
    git(tmp_path, "init", "-q", "mine/empty")
    with pytest.raises(PlumblineError, match=r"mine/empty .*\.gitignore"):
        Repository(folder).candidate()


def test_installed_code_is_that_of_the_arms_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "mine")
    (folder / "src/lib").mkdir(parents=True)
    (folder / "src/lib/shifts.py").write_text("SHIFT = 0.0\n")
    text = (folder / "train.py").read_text()
    (folder / "train.py").write_text(text.replace("SHIFT = 0.0", "from shifts import SHIFT"))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a package")
    (folder / "src/lib/shifts.py").write_text("SHIFT = 1.0\n")
    monkeypatch.setenv("PYTHONPATH", str(folder / "src/lib"), prepend=os.pathsep)
    (arm_run,) = trainer(folder).run([("candidate", 1)])
    assert arm_run.value is not None and arm_run.value < 0.1
    for command in (f"python {folder}/train.py {{flags}}", f"cd {folder}; python train.py {{flags}}"):
        write_toml(folder, command=command)
        with pytest.raises(PlumblineError, match="__main__: came"):
            list(trainer(folder).run([("candidate", 1)]))
