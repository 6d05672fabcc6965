"""One work folder, several users: who is of its group goes on with what another one left; who is not is informed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from plumbline.core import provenance
from tests.forget_caches import forget
from tests.model_specs import run_spec
from tests.train.child_processes import of_user
from tests.train.small_runs import PROCESSES, products, settings

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")

LAB, STRANGERS = 64000, 64009
ANN, BOB, EVE = 64001, 64002, 64003


@pytest.fixture
def work(packs: Path) -> Iterator[Path]:
    """A folder that the group may write and hands down (chmod 2770), with packs that Ann made."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # pytest's own are closed to other users
        os.chmod(folder, 0o755)
        work = Path(folder) / "work"
        shutil.copytree(packs, work / "packs", ignore=shutil.ignore_patterns(".verified"))
        for path in [work, *work.rglob("*")]:
            os.chown(path, ANN, LAB)
            path.chmod(0o2770 if path.is_dir() else 0o660)
        yield work


def test_the_commit_is_found_in_a_tree_of_another_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for args in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "first"]):
        who = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *args], check=True)
    os.chown(tmp_path, ANN, LAB)
    monkeypatch.setattr(provenance.package_data, "source_tree", lambda: tmp_path)
    forget(provenance)
    facts = provenance.describe_code()
    forget(provenance)
    assert facts["code_from"] == "a git repository" and len(facts["git_commit"]) == 40 and facts["git_dirty"] is False


def train_as(
    user: int, group: int, work: Path, packs: Path, scratch: Path, die_before: int | None = None, mask: int = 0o002
) -> tuple[int, str]:
    """Exit code, and standard error."""
    warm, chosen = settings(packs, scratch / str(user)), settings(work / "packs", work, checkpoint_steps=2)
    output = scratch / f"{user}.said"
    output.parent.mkdir(exist_ok=True)
    args = (user, group, mask, warm, run_spec().to_json(), chosen, die_before, str(output))
    process = PROCESSES.Process(target=of_user, args=args)
    process.start()
    process.join(120)
    assert process.exitcode is not None
    return process.exitcode, output.read_text()


def test_another_of_the_group_goes_on(work: Path, packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    code, _ = train_as(ANN, LAB, work, packs, tmp_path / "ann", die_before=120)
    assert code == -signal.SIGKILL
    files = {path for path in (work / "state").iterdir() if path.stat().st_uid == ANN}
    assert {"run_lock.json", "starts.json"} <= {path.name for path in files}
    assert any(path.name.startswith("step-") for path in files)
    code, stderr = train_as(EVE, STRANGERS, work, packs, tmp_path / "eve")
    assert code == 1
    assert f"user {EVE}: {work} belongs to user {ANN}" in stderr
    assert f"group {LAB}, mode rwxrws---" in stderr and "Traceback" not in stderr
    code, stderr = train_as(BOB, LAB, work, packs, tmp_path / "bob")
    assert code == 0 and f"took over {work}/state from process" in stderr and "resumed at step" in stderr
    assert products(work) == products(undisturbed)
    code, _ = train_as(ANN, LAB, work, packs, tmp_path / "again")
    assert code == 0, "and gives Bob's outputs once more"
    for path in work.rglob("*"):
        status = path.stat()
        assert status.st_gid == LAB, path
        bits = stat.S_IRWXG if path.is_dir() else stat.S_IRGRP | stat.S_IWGRP
        assert status.st_mode & bits == bits, path


def test_what_a_private_umask_closed(work: Path, packs: Path, tmp_path: Path, undisturbed: Path) -> None:
    """Ann made packs and a run with umask 077, Bob has 022: neither is what a shared folder asks for."""
    for path in (work / "packs").iterdir():
        path.chmod(0o600)
    code, _ = train_as(ANN, LAB, work, packs, tmp_path / "ann", die_before=120, mask=0o077)
    assert code == -signal.SIGKILL
    whole = any((work / "state").glob("step-*"))  # what was written by then hangs on the saving thread
    opened = set[Path]()
    sentence = r"(\S+) cannot be read or changed by user 64002: (\S+) belongs to user 64001, .* \(.*chmod -R g\+rwX"
    while (tried := train_as(BOB, LAB, work, packs, tmp_path / "bob", mask=0o022))[0] != 0:
        code, stderr = tried
        assert code == 1 and "Traceback" not in stderr
        match = re.search(sentence, stderr.splitlines()[-1])
        assert match is not None, stderr
        closed = Path(match[1] if match[2] == "it" else match[2])
        assert closed not in opened
        closed.chmod(closed.stat().st_mode | (0o070 if closed.is_dir() else 0o060))  # as its owner does
        opened.add(closed)
    assert {work / "state", work / "state/run_lock.json", work / "packs/train.bin"} <= opened
    assert ("resumed at step" in tried[1]) == whole and products(work) == products(undisturbed)
    code, stderr = train_as(ANN, LAB, work, packs, tmp_path / "again", mask=0o077)
    assert code == 1 and f"{work}/out belongs to user 64002, group 64000" in stderr
