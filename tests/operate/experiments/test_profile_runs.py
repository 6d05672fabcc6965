"""Runs as jobs of a Snakemake profile: which profile is meant, how many jobs run concurrently, what is lost."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from plumbline.core.errors import PlumblineError
from tests.verdict.own_trainer.test_killed import TRAIN
from tests.verdict.own_trainer.trainers import git, make, trainer, write_toml

#: In place of a trainer's sleep: as long as there is a file; and its crash, which is requested.
WAIT = """\
while os.path.exists(os.environ["STARTS"] + ".hold"):
    time.sleep(0.1)
1 / ("--crash" not in sys.argv)"""


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, a minute at most."""
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise TimeoutError


def at_once(folder: Path, where: str) -> int:
    """How many runs go on concurrently."""
    write_toml(folder, more=f"[where]\n{where}")
    return trainer(folder, "--changed").at_once


def test_profiles_are_found_in_the_folder_and_with_plumbline(tmp_path: Path) -> None:
    folder = make(tmp_path / "mine")
    (folder / "site").mkdir()
    (folder / "site/profile.yaml").write_text("jobs: 6\n")
    assert at_once(folder, 'profile = "slurm"') == 64
    assert at_once(folder, 'profile = "slurm, site"') == 6
    assert at_once(folder, 'profile = "slurm, site"\nat_once = 4') == 4
    with pytest.raises(PlumblineError, match="profile 'slrum'; did you mean 'slurm'"):
        at_once(folder, 'profile = "slrum"')
    (folder / "site/profile.yaml").write_text("executor: slurm\n")
    with pytest.raises(PlumblineError, match=r"profile\.yaml: says no number of `jobs`"):
        at_once(folder, 'profile = "site"')


def test_without_snakemake_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snakemake", None)
    with pytest.raises(PlumblineError, match=r"where.profile needs snakemake, .*pip install '\.\[pipeline\]'"):
        at_once(make(tmp_path / "mine"), 'profile = "slurm"')


@pytest.mark.slow
def test_what_a_killed_try_left_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Snakemake goes on with what it was at; the same try, repeated, waits for it."""
    waiting = TRAIN.replace("time.sleep(0.05)", WAIT)
    assert waiting != TRAIN
    folder = make(tmp_path / "mine", waiting)
    (folder / "site").mkdir()
    (folder / "site/profile.yaml").write_text("cores: 3\njobs: 3\n")
    write_toml(folder, more='[where]\nprofile = "site"\n[decide]\nbaseline_runs = 2\nmax_runs = 2')
    git(folder, "add", "--all")  # else a run comes first, by which it is known what runs write
    git(folder, "commit", "-qm", "a site")
    monkeypatch.setenv("STARTS", f"{folder}.starts")
    starts, hold = Path(f"{folder}.starts"), Path(f"{folder}.starts.hold")
    hold.touch()

    def start(*flags: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "plumbline", "try", "--trust", "--baseline", "HEAD", "-m", "x", "--", *flags]
        return subprocess.Popen(command, cwd=folder, stderr=(tmp_path / "said").open("wb"))

    first = start("--better")
    until(lambda: starts.exists() and len(starts.read_text().split()) == 3)
    first.kill()
    first.wait()
    second = start("--better")
    until(lambda: "Snakemake still makes" in (tmp_path / "said").read_text())
    hold.unlink()
    assert second.wait() == 0
    assert sorted(Counter(starts.read_text().split()).values()) == [1] * 5
    starts.unlink()
    assert start("--crash").wait() == 12
    assert set(Counter(starts.read_text().split()).values()) == {1}
