"""The verbs of a folder with a `plumbline.toml`, on a trainer of milliseconds: what a user and a loop are told."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from plumbline.core import process_record
from plumbline.experiment.decision.outcome import BASELINE
from plumbline.experiment.own_method import implausible_gain
from plumbline.operate.experiments import setup_guesses, setup_trainer
from plumbline.operate.experiments.__main__ import arguments, main
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.own_trainer import seed as seeds
from plumbline.own_trainer.folder import Folder
from plumbline.own_trainer.snapshot import Repository
from plumbline.own_trainer.trainer_file import DecidePart, load
from tests import run_in_process
from tests.operate import fake_terminal

TRAINER = """\
import argparse, random
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--worse", type=float, default=0.0)
given = parser.parse_args()
open("data/input.txt").read()
GAIN = 0.0
print(f"step 10: train loss {3.5 - GAIN}")
print(f"val_loss: {3 + given.worse - GAIN + random.Random(given.seed).gauss(0, 0.01):.6f}")
"""
Done = subprocess.CompletedProcess[str]


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def repository_of(folder: Path, script: str) -> Path:
    """A repository with a script, and with data that git ignores."""
    (folder / "data").mkdir(parents=True)
    (folder / "data/input.txt").write_text("text")
    (folder / ".gitignore").write_text("data/\n")
    (folder / "train.py").write_text(script)
    git(folder, "init", "-q")
    for key, value in (("user.name", "a"), ("user.email", "a@b")):
        git(folder, "config", key, value)
    git(folder, "add", "--all")
    git(folder, "commit", "-qm", "start")
    return folder


@pytest.fixture(autouse=True)
def agreed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    folder = repository_of(tmp_path_factory.mktemp("trainer") / "there", TRAINER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
        return folder, run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)


@pytest.fixture
def folder(made: tuple[Path, Done], tmp_path: Path) -> Path:
    """A folder that is set up, of the test's own."""
    copy = shutil.copytree(made[0], tmp_path / "own")
    assert plumbline(copy, "try", "-n", "-m", "x", "--trust", "--", "--worse", "1").returncode == 0
    return copy


def plumbline(folder: Path, *words: object) -> Done:
    return run_in_process.run(main, *words, cwd=folder)


def change(folder: Path, what: str = "GAIN = 0.2", was: str = "GAIN = 0.0") -> None:
    text = (folder / "train.py").read_text()
    assert was in text
    (folder / "train.py").write_text(text.replace(was, what))


def banked(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / ".plumbline/runs.jsonl").read_text().splitlines()]


def test_a_first_run_says_the_metric_the_seed_and_what_git_ignores(made: tuple[Path, Done]) -> None:
    folder, done = made
    assert done.returncode == 0, done.stderr
    said = load(folder)
    assert (said.run.seed, said.run.share) == ("--seed {seed}", ("data",))
    assert (said.metric.called, said.metric.direction) == ("val_loss", "lower")
    assert "metric: val_loss, 2.99" in done.stderr and "is better: the last in 'val_loss: 2.99" in done.stderr
    assert "also seen: --metric train_loss, 3.5: the last in 'step 10: train loss 3.5'" in done.stderr
    assert [line["run"]["seed"] for line in banked(folder)] == [42, 43, 44, 45, 46]
    assert "sigma 0.0" in done.stdout and "from 5 runs of 1 arm." in done.stdout
    assert git(folder, "status", "--short") == "?? plumbline.toml\n" and not (folder / ".plumbline/.gitignore").exists()
    before = (folder / "plumbline.toml").read_text()
    again = run_in_process.run(setup_trainer.main, "python other.py", cwd=folder)
    assert again.returncode == 1 and "is never written over" in again.stderr
    assert (folder / "plumbline.toml").read_text() == before


@pytest.mark.slow
def test_what_is_kept_becomes_the_baseline_by_fresh_runs_alone(folder: Path) -> None:
    change(folder)
    before = git(folder, "status", "--short"), git(folder, "rev-parse", "HEAD"), (folder / ".git/index").read_bytes()
    done = plumbline(folder / "data", "try", "-m", "halve the batch")
    assert done.returncode == 0 and "`halve the batch` improves `val_loss` by 0." in done.stdout, done.stderr
    assert re.search(
        r"seed 1042: 2\.8\d+ \([^)]+\); gain \+0\.2\d+ \(\d+\.\d sigma\); after 1 run .*: one more run, seed 1043",
        done.stderr,
    )
    assert re.search(
        r"seed 1043: 2\.\d+ \([^)]+\); mean gain of 2 runs \+0\.\d+ \(\d+\.\d sigma\); after 2 runs T", done.stderr
    )
    assert "deciding with a number of runs fixed beforehand would take 6" in " ".join(done.stdout.split())
    assert done.stderr.count("T: the mean gain over its standard error.") == 1
    assert "It is the baseline now: the mean of its 5 fresh runs is 2.8" in done.stderr
    assert "Next: git commit -am 'halve the batch' (nothing was committed)" in done.stderr
    after = git(folder, "status", "--short"), git(folder, "rev-parse", "HEAD"), (folder / ".git/index").read_bytes()
    assert after == before
    mine = [line["run"]["seed"] for line in banked(folder) if line["method"] != banked(folder)[0]["method"]]
    assert mine == [1042, 1043, *range(1044, 1049)]
    rows = [line.split("\t") for line in (folder / "results.tsv").read_text().splitlines()]
    assert rows[0] == ["commit", "val_loss", "memory_gb", "status", "description", "seeds", "p"]
    assert rows[1][2:6] == ["0.0", "keep", "baseline", "5"] and rows[2][2:6] == ["0.0", "keep", "halve the batch", "2"]
    nothing = plumbline(folder, "try", "-m", "the same again")
    assert nothing.returncode == 1 and "the working tree is the baseline (halve the batch, " in nothing.stderr
    # What is next is compared with the fresh runs alone, and the claim is of all that was kept against the start.
    worse = plumbline(folder, "try", "-m", "worse", "--json", "--", "--worse", "0.3")
    said = json.loads(worse.stdout)
    assert worse.returncode == said["exit_code"] == 10
    assert [run["seed"] for run in said["runs"] if run["arm"] == BASELINE] == [*range(1044, 1049)]
    assert "; gain -0." in worse.stderr and " sigma); after 1 run T = -" in worse.stderr
    claim = plumbline(folder, "confirm", "--json")
    claimed = json.loads(claim.stdout)
    assert claim.returncode == 0 and claimed["terms"]["baseline"] == "baseline" and len(claimed["runs"]) == 10
    assert not {run["seed"] for run in claimed["runs"]} & {line["run"]["seed"] for line in banked(folder)[:-10]}
    log, page = plumbline(folder, "log", "--json"), plumbline(folder, "page")
    logged = json.loads(log.stdout)["log"]
    assert [(one["verdict"], one["exit_code"]) for one in logged] == [("keep", 0), ("discard", 10), ("keep", 0)]
    assert "GAIN = 0.2" in git(folder, "show", f"{logged[0]['commit']}:train.py")
    assert page.stdout.startswith("# `halve the batch` against `baseline`")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("GAIN = 0.2; assert given.seed != 1045", "seed 1045 of its fresh runs crashed"),
        ("print('val_loss: 2.8'); raise SystemExit", "it gives 2.8 whatever the seed"),
    ],
    ids=["a crash", "a constant"],
)
def test_what_breaks_in_its_fresh_runs_is_not_kept(folder: Path, what: str, why: str) -> None:
    change(folder, what)
    head = git(folder, "rev-parse", "HEAD")
    for _ in range(2):  # the same seeds again: luck gives no second chance
        done = plumbline(folder, "try", "-m", "broken", "--commit")
        assert done.returncode == 12 and why in " ".join(done.stdout.split()), done.stderr
    assert git(folder, "rev-parse", "HEAD") == head and "keep\tbroken" not in (folder / "results.tsv").read_text()
    change(folder, "GAIN = 0.1", what)
    done = plumbline(folder, "try", "-m", "sound")
    assert done.returncode == 0 and "sound against baseline" in done.stderr, done.stderr


@pytest.mark.slow
def test_a_try_that_was_stopped_before_its_fresh_runs_is_carried_on_by_the_next(folder: Path) -> None:
    change(folder)
    words = ("try", "-m", "better")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FolderBaseline, "settle_pending", lambda *_: "")
        assert plumbline(folder, *words).returncode == 0
    assert load(folder) and not (folder / ".git/refs/plumbline/start").exists()
    done = plumbline(folder, "try", "-m", "worse", "--", "--worse", "1")
    assert done.returncode == 10 and "It is the baseline now" in done.stderr
    assert "worse against better" in done.stderr


@pytest.mark.slow
def test_a_gain_like_that_of_a_leak_is_kept_when_somebody_has_looked(folder: Path) -> None:
    change(folder, "GAIN = 1.0")
    words = ("try", "-m", "too good", "--commit")
    done = plumbline(folder, *words, "--json")
    assert done.returncode == json.loads(done.stdout)["exit_code"] == 14
    runs = banked(folder)
    assert plumbline(folder, *words).returncode == 14 and "Flagged: `too good`" in plumbline(folder, "page").stdout
    log = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert log[-1]["verdict"] == "implausible" and "is not kept" in log[-1]["sentence"]
    assert git(folder, "log", "--format=%s").split("\n")[0] == "start"
    looked = plumbline(folder, *words, "--accept-implausible")
    assert looked.returncode == 0 and "Committed: too good" in looked.stderr
    assert banked(folder)[: len(runs)] == runs and len(banked(folder)) == len(runs) + 5  # the fresh runs of a keep
    rows = [line.split("\t")[3] for line in (folder / "results.tsv").read_text().splitlines()]
    assert rows == ["status", "keep", "implausible", "keep"]


def test_only_what_was_asked_for_is_committed_and_what_a_hook_refused_is_repeated(folder: Path) -> None:
    change(folder)
    hook = folder / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    done = plumbline(folder, "try", "-m", "better", "--commit")
    assert done.returncode == 1 and "git commit says: nothing; a hook may have refused it" in done.stderr
    assert git(folder, "diff", "--cached", "--name-only") == ""  # a loop's `git restore` takes plumbline.toml else
    hook.unlink()
    done = plumbline(folder, "try", "-m", "better", "--commit")
    assert done.returncode == 0 and "Committed: better (with plumbline.toml, which was new)" in done.stderr
    change(folder, "GAIN = 0.3", "GAIN = 0.2")
    done = plumbline(folder, "try", "-m", "better yet", "--commit")
    assert "Committed: better yet\n" in done.stderr
    for _ in range(2):
        last = (folder / "results.tsv").read_text().splitlines()[-1].split("\t")
        assert last[0] == git(folder, "rev-parse", "--short=7", "HEAD").strip() and last[4] == "better yet"
        assert plumbline(folder, "try", "-m", "better yet", "--commit").returncode == 0  # writes no row again
    assert (folder / "results.tsv").read_text().count("better yet") == 1
    git(folder, "reset", "-q", "--soft", "HEAD~1")
    git(folder, "commit", "-q", "--amend", "-m", "better")
    done = plumbline(folder, "try", "-m", "other flags", "--commit", "--", "--worse", "-0.1")
    assert done.returncode == 0 and "Next: plumbline confirm" in done.stderr, done.stderr  # nothing is there to commit
    assert git(folder, "show", "--format=%s", "--name-only").split() == ["better", "plumbline.toml", "train.py"]
    assert git(folder, "status", "--short") == ""


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("GAIN = float('nan')", 12, "1 diverged (seed 1042: `val_loss is nan`), while none of `baseline` did"),
        ("raise SystemExit('what is this')", 12, "1 crashed (seed 1042: `exit code 1: what is this`)"),
        ("print('No space left on device'); raise SystemExit(1)", 1, "the disk is full"),
        ("raise SystemExit(127)", 12, "1 crashed (seed 1042: `there is no such command: "),
        (
            "GAIN = 0.0; given.seed = 7",
            12,
            "has no effect: seeds 1042, 1043 all gave 2.997441; the trainer ignores its seed",
        ),
    ],
    ids=["nan", "a crash", "a full disk", "another command", "a seed without effect"],
)
def test_a_candidate_that_gives_no_numbers(folder: Path, what: str, code: int, said: str) -> None:
    change(folder, what)
    done = plumbline(folder, "try", "-m", "broken")
    assert done.returncode == code and said in " ".join((done.stdout + done.stderr).split()), done.stderr
    rows = (folder / "results.tsv").read_text() if (folder / "results.tsv").exists() else ""
    assert ("crash\tbroken" in rows) == (code == 12)


@pytest.mark.slow
def test_a_full_disk_is_no_discard_and_the_same_command_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(folder)
    real, left = os.fsync, [3]

    def full(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    done = plumbline(folder, "try", "-m", "better")
    assert done.returncode == 1 and "no disk space" in done.stderr and ".plumbline" in done.stderr
    monkeypatch.undo()
    again = plumbline(folder, "try", "-m", "better", "--trust")
    assert again.returncode == 0, again.stderr


FIRST = "print('begin'); print('nothing here'); "


@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        (TRAINER, ["pythn train.py"], "there is no such command: "),
        (TRAINER, ["python train.py", "--metric", "accuracy"], "did not say accuracy (seen: val_loss, train_loss)"),
        (FIRST, ["python train.py"], "said no metric that is known by its name: print a line METRIC name=value"),
        (
            "import random; print('METRIC q=2.12345')",
            ["python train.py", "--seed", "--seed {seed}"],
            'write seed = "inject"',
        ),
        ("import json; print('loss 1.5')", ["python train.py"], "no call that sets a seed was seen"),
    ],
    ids=["no such command", "another metric", "no metric", "a seed that is ignored", "a constant"],
)
def test_what_cannot_be_set_up_says_what_to_do(tmp_path: Path, script: str, words: list[str], said: str) -> None:
    folder = repository_of(tmp_path / "own", script)
    done = run_in_process.run(setup_trainer.main, *words, cwd=folder)
    assert done.returncode == 1 and said in done.stderr, done.stderr
    if script is FIRST:
        assert (
            done.stderr.endswith("ends with:\n  begin\n  nothing here\n") and not (folder / "plumbline.toml").exists()
        )


def test_the_last_value_is_told_from_the_best_and_from_what_a_file_has(tmp_path: Path) -> None:
    script = """\
        import json, random
        random.seed(1)
        last = 2 + random.random()
        print(f"step 500 train loss: {last + 1} test loss: {last}")
        print("test loss: 1.5 is the best so far, saving")
        json.dump({"eval": {"nll": last}}, open("out.json", "w"), indent=1)
        """
    folder = repository_of(tmp_path / "own", textwrap.dedent(script))
    done = run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "metric: test_loss, 2." in done.stderr and "the last in 'step 500 train loss: " in done.stderr
    assert "--metric best_test_loss, 1.5: the last in 'test loss: 1.5 is the best so far, saving'" in done.stderr
    assert "random.seed x 1. Every seed that random, numpy (seed, default_rng) and torch are given" in done.stderr
    for words in (["--metric", "best_test_loss"], ["--metric", "out.json:eval.nll", "--direction", "higher"]):
        (folder / "plumbline.toml").unlink()
        done = run_in_process.run(setup_trainer.main, "python train.py", *words, cwd=folder)
        assert f"metric: {words[1].rpartition(':')[2]}, " in done.stderr, done.stderr
        assert done.returncode == (0 if len(words) > 2 else 1)  # the best is a constant here
    assert load(folder).metric.direction == "higher"


@pytest.mark.parametrize("call", ["np.random.seed(42)", "random.seed(7)", "torch.cuda.manual_seed_all(1)"])
def test_a_seed_in_the_code_is_named_as_it_stands_there_and_said_to_be_shifted(tmp_path: Path, call: str) -> None:
    (tmp_path / "train.py").write_text(f"import x\n{call}\n")
    way, why = setup_guesses.seed(tmp_path / "train.py")
    assert way == "inject" and f"fixes its seed ({call}), which is shifted without an edit, so that no run" in why


def test_an_indented_file_of_metrics_is_found_by_itself(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps({"steps": 5, "val_loss": 2.5}, indent=2))
    (seen,) = setup_guesses.metrics(tmp_path / "no.log", tmp_path)
    assert (seen.said, seen.text) == ({"json": "metrics.json:val_loss"}, "2.5")


@pytest.mark.parametrize(
    ("line", "chosen", "training"),
    [
        ("step 9 train_loss 1.1511 val 1.2877", "val", False),
        ("epoch 3: training 1.2, validation: 1.31; validation 10/100", "validation", False),
        ("train loss 1.5 | test 3/7 | valid 98.1 %", "train_loss", True),
        ("iter 10: loss 2.25, time 31ms", "loss", True),
        ("METRIC loss=2.25", "loss", False),
        ("train_loss: 1.1 score: 3", "score", False),
    ],
)
def test_a_held_out_name_comes_before_a_training_loss_which_alone_is_told(
    tmp_path: Path, line: str, chosen: str, training: bool
) -> None:
    (tmp_path / "run.log").write_text(f"{line}\n")
    seen = setup_guesses.metrics(tmp_path / "run.log", tmp_path)
    assert seen[0].name == chosen
    said = setup_guesses.only_of_training(seen)
    assert ("a change that overfits would be kept; name another with --metric" in said) == training
    if "pattern" in seen[0].said:
        assert re.search(seen[0].said["pattern"], line), seen[0]


def test_a_script_that_names_the_users_tree_is_told_before_the_first_run(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    script = f"open('{folder}/data/input.txt')\nopen('{folder}/words.txt')\nraise SystemExit(3)\n"
    repository_of(folder, script)
    (folder / "README.md").write_text(f"cd {folder}\n")
    git(folder, "add", "README.md")
    git(folder, "commit", "-qm", "words")
    done = run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)
    told = done.stderr.split("the first run, seed 42")[0]
    assert f"mind: train.py names {folder}/words.txt: there every run reads your own tree" in told, done.stderr
    assert "README" not in told
    assert "input.txt" not in told  # git ignores it: it is one for all arms
    assert done.returncode == 1 and "\n" not in git(folder, "worktree", "list").strip()


def test_a_folder_that_a_run_writes_into_is_its_own(tmp_path: Path) -> None:
    script = TRAINER.replace('print(f"val_loss: {', 'open("runs/loss.jsonl", "w").write(f"{{\\"val_loss\\": {')
    folder = repository_of(tmp_path / "own", script.replace(':.6f}")', ':.6f}}}")'))
    (folder / ".gitignore").write_text("data/\nruns/\n")
    git(folder, "commit", "-qam", "ignores")
    (folder / "runs").mkdir()
    (folder / "runs/loss.jsonl").write_text("mine")
    done = run_in_process.run(setup_trainer.main, "python train.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    file = load(folder)
    assert (file.run.share, file.run.output) == (("data",), ("runs",))
    assert file.metric.json == "runs/loss.jsonl:val_loss" and (folder / "runs/loss.jsonl").read_text() == "mine"


def test_without_git_or_with_a_dirty_submodule_nothing_is_run(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    done = run_in_process.run(setup_trainer.main, "python train.py", cwd=bare)
    assert done.returncode == 1 and "git init && git add -A && git commit -m start" in done.stderr
    library = repository_of(tmp_path / "library", "x = 1\n")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "library")
    git(folder, "commit", "-qm", "a library")
    (folder / "library/train.py").write_text("x = 2\n")
    done = plumbline(folder, "try", "-m", "the library")
    assert done.returncode == 1 and "library is a repository of its own with changes" in done.stderr
    assert len(banked(folder)) == 5


def test_a_command_from_elsewhere_is_run_when_it_was_agreed_to(made: tuple[Path, Done], tmp_path: Path) -> None:
    folder = shutil.copytree(made[0], tmp_path / "theirs")
    shutil.rmtree(folder / ".plumbline")
    (folder / "plumbline.toml").write_text(f"[run]\ncommand = 'touch {tmp_path}/run'\n[metric]\nname = 'q'\n")
    for words in (("try", "-m", "x"), ("confirm",)):
        done = plumbline(folder, *words)
        assert done.returncode == 1 and "would run 'touch " in done.stderr and "--trust" in done.stderr
    done = run_in_process.run(setup_trainer.main, cwd=folder)
    assert done.returncode == 1 and "--trust" in done.stderr and not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_person_is_asked_once_and_shown_all_that_would_run(made: tuple[Path, Done], tmp_path: Path) -> None:
    folder = shutil.copytree(made[0], tmp_path / "theirs")
    text = (folder / "plumbline.toml").read_text()
    hidden = r'command = "touch run; \u001b[2K\rpython train.py {flags}"'
    (folder / "plumbline.toml").write_text(re.sub("command = .*", hidden.replace("\\", r"\\"), text))
    command = [sys.executable, "-m", "plumbline", "try", "-n", "-m", "x", "--", "--worse", "1"]
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path / "state")}
    for typed, code in ((b"\n", 1), (b"\x04", 1), (b"y\n", 0)):
        said, ended = fake_terminal.run(command, folder, environment, typed)
        assert ended == code and r"toml runs: touch run; \x1b[2K python train.py" in " ".join(said.split()), said
        assert said.count("[y/N]") == 1
    assert "[y/N]" not in fake_terminal.run(command, folder, environment)[0]


@pytest.mark.slow
def test_means_cross_no_machine_and_no_torch(folder: Path) -> None:
    words = ("try", "-m", "worse", "--", "--worse", "1")
    results = sorted((folder / ".plumbline/runs").glob("*.result.json"))
    found = {path: json.loads(path.read_text()) for path in results}

    def made_on(**parts: str) -> None:
        for path, said in found.items():
            path.write_text(json.dumps(said | {"fingerprint": said["fingerprint"] | parts}))

    made_on(cpu="another one")
    done = plumbline(folder, *words)
    assert done.returncode == 1 and "cpu: another one, " in done.stderr and "setup-trainer --again" in done.stderr
    made_on(torch="2.5.1")
    runs = folder / ".plumbline/runs.jsonl"
    runs.write_text(re.sub(r'"fingerprint":"\w+"', '"fingerprint":"of torch 2.5.1"', runs.read_text()))
    done = plumbline(folder, *words)
    assert done.returncode == 13 and "torch: 2.5.1, none" in " ".join(done.stdout.split()), done.stdout
    again = run_in_process.run(setup_trainer.main, "--again", "--trust", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert plumbline(folder, *words).returncode == 10


def test_a_second_try_is_told_who_holds_the_folder(folder: Path) -> None:
    with Folder(folder).held("plumbline try -m first"):
        done = plumbline(folder, "try", "-m", "second", "--", "--worse", "1")
    assert done.returncode == 1 and f"process {os.getpid()} " in done.stderr
    assert "(plumbline try -m first)" in done.stderr and len(banked(folder)) == 5


@pytest.mark.slow
def test_a_stop_that_is_asked_for_at_any_instant_ends_with_75(folder: Path) -> None:
    change(folder)
    words = [sys.executable, "-m", "plumbline", "try", "-m", "better"]
    for line in ("runs of baseline are there", "seed 1042", "runs again with fresh seeds"):
        with subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            assert process.stderr is not None
            assert any(line in each.decode() for each in process.stderr)
            process.terminate()
        assert process.returncode == 75, line
    assert plumbline(folder, "try", "-m", "better").returncode == 0


@pytest.mark.slow
def test_the_session_of_the_file_is_that_of_its_tries_unless_another_is_asked_for(folder: Path) -> None:
    text = (folder / "plumbline.toml").read_text()
    (folder / "plumbline.toml").write_text(text.replace('"each"', '"fwer"\nplanned_candidates = 5'))
    done = plumbline(folder, "try", "-m", "worse", "--json", "--", "--worse", "1")
    terms = json.loads(done.stdout)["terms"]
    assert (done.returncode, terms["session"], terms["alpha"]) == (10, "fwer", 0.01)
    done = plumbline(folder, "try", "-m", "worse yet", "--json", "--session", "each", "--", "--worse", "2")
    assert done.returncode == 10 and json.loads(done.stdout)["terms"]["alpha"] == 0.05, done.stderr
    (folder / "plumbline.toml").write_text(text.replace('"each"', '"fdr"\nplanned_candidates = 5'))
    done = plumbline(folder, "try", "-m", "worst", "--json", "--", "--worse", "3")
    assert done.returncode == 10 and json.loads(done.stdout)["terms"]["session"] == "fdr", done.stderr


def test_a_clock_that_steps_back_changes_no_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plumbline(folder, "try", "-m", "first", "--", "--worse", "1").returncode == 10
    monkeypatch.setattr(process_record, "now", lambda: "2001-01-01T00:00:00Z")
    assert plumbline(folder, "try", "-m", "second", "--", "--worse", "2").returncode == 10
    (page,) = (folder / ".plumbline/pages").glob("second-*.json")
    os.utime(page, (1, 1))
    assert plumbline(folder, "page").stdout.startswith("# `second` against `baseline`")


def test_a_clock_that_steps_while_runs_are_made_changes_no_decision(folder: Path, tmp_path: Path) -> None:
    steps = """\
        import itertools, time
        real, gmtime, steps = time.time, time.gmtime, itertools.cycle((0, -4e7, 9e6, -3600))
        time.time = lambda: real() + next(steps)
        time.gmtime = lambda at=None: gmtime(time.time() if at is None else at)
    """
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock/sitecustomize.py").write_text(textwrap.dedent(steps))
    other, said = shutil.copytree(folder, tmp_path / "other"), {}
    for where, path in ((folder, []), (other, [str(tmp_path / "clock")])):
        paths = os.pathsep.join([*path, *filter(None, [os.environ.get("PYTHONPATH")])])
        for words, code in ((["better", "--", "--worse", "-0.05"], 0), (["worse", "--", "--worse", "0.05"], 10)):
            command = [sys.executable, "-m", "plumbline", "try", "--trust", "-m", *words]
            done = subprocess.run(command, cwd=where, env=os.environ | {"PYTHONPATH": paths}, capture_output=True)
            assert done.returncode == code, done.stderr
        values = [(line["run"]["seed"], line["run"]["value"]) for line in banked(where)]
        seconds = [line["run"]["seconds"] for line in banked(where)]
        said[where] = values, (where / "results.tsv").read_text()
        assert min(seconds) >= 0 and max(seconds) < 60
    assert said[folder] == said[other]
    years = {line["at"][:4] for line in banked(other)}
    assert len(years) > 1, years  # the clock did step


def test_a_try_without_a_method_or_a_trainer_names_both_remedies(tmp_path: Path, folder: Path) -> None:
    done = plumbline(tmp_path, "try")
    assert done.returncode == 2 and "plumbline try qknorm" in done.stderr and "plumbline setup-trainer" in done.stderr
    done = plumbline(tmp_path, "noise")
    assert done.returncode == 1 and "no plumbline.toml here or above; " in done.stderr
    done = plumbline(tmp_path, "try", "qknorm", "-m", "x")
    assert done.returncode == 2 and "--message is of a folder with plumbline.toml" in done.stderr
    done = plumbline(folder, "try", "-m", "x", "--quick")
    assert done.returncode == 2 and "--quick is of METHOD|FILE.yaml" in done.stderr
    done = plumbline(folder, "confirm")
    assert done.returncode == 1 and "nothing was kept yet" in done.stderr


def test_a_program_reads_an_error_as_it_reads_a_decision(folder: Path) -> None:
    git(folder, "branch", "no-such")
    done = plumbline(folder, "try", "-m", "x", "--json", "--baseline", "nosuch")
    said = json.loads(done.stdout)
    assert done.returncode == said["exit_code"] == 2 and "did you mean 'no-such'?" in said["error"], done
    session = folder / ".plumbline/session.json"
    for content, at in (
        ("[1]", "object"),
        ('{"first_seed": "a"}', "first_seed"),
        ('{"pending": {}}', "pending"),
        ("{", ""),
    ):
        session.write_text(content)
        done = plumbline(folder, "try", "-m", "x", "--json", "--", "--worse", "1")
        error = json.loads(done.stdout)["error"]
        assert done.returncode == 1 and str(session) in error and at in error and "delete it" in error, done
    assert "--json" not in plumbline(folder, "try", "-m", "x", "--", "--json").stdout  # the trainer's own flag


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["try", "-m", "x", "--json", "--baseline-runs", "0"],
            "argument --baseline-runs: '0' is not a whole number from 1 on",
        ),
        (["noise", "--json", "--nosuch"], "unrecognized arguments: --nosuch"),
        (["tryy", "--json"], "No such command 'tryy'. Did you mean 'try'?"),
    ],
)
def test_a_program_reads_a_wrong_word_as_it_reads_a_decision(tmp_path: Path, words: list[str], said: str) -> None:
    command = [sys.executable, "-m", "plumbline", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert done.returncode == found["exit_code"] == 2 and said in found["error"] and said in done.stderr, done


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)], ids=["stopped", "Ctrl-C"])
def test_a_program_reads_a_stop_as_it_reads_a_decision(folder: Path, number: signal.Signals, code: int) -> None:
    change(folder, "GAIN = 0.0; import time; time.sleep(60)")
    command = [sys.executable, "-m", "plumbline", "try", "-m", "slow", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "5 runs of baseline are there" not in process.stderr.readline():
            pass
        while not list((folder / ".plumbline/logs").glob("*/seed-1042.log")):
            time.sleep(0.05)
        process.send_signal(number)
        out, errors = process.communicate()
        said = json.loads(out)
    assert process.returncode in (code, -number) and said["exit_code"] == code and "same command" in said["error"]
    assert errors == "stopped; the same command goes on (finished runs are used)\n"


def test_a_decision_whose_commit_is_refused_is_one_object(folder: Path) -> None:
    change(folder)
    hook = folder / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    for _ in range(2):
        done = plumbline(folder, "try", "-m", "better", "--commit", "--json")
        assert done.returncode == 1 and "a hook may have refused it" in json.loads(done.stdout)["error"]
    hook.unlink()
    assert json.loads(plumbline(folder, "try", "-m", "better", "--commit", "--json").stdout)["verdict"] == "keep"


def test_what_is_next_after_a_keep_commits_new_files_too(folder: Path) -> None:
    change(folder, "from the_gain import GAIN")
    (folder / "the_gain.py").write_text("GAIN = 0.2")
    done = plumbline(folder, "try", "-m", "better")
    (command,) = re.findall(r"Next: (.*) \(nothing was committed\)", done.stderr)
    subprocess.run(command, shell=True, cwd=folder, check=True)
    assert git(folder, "show", "--format=%s", "--name-only").split() == ["better", "the_gain.py", "train.py"]


def test_a_baseline_that_breaks_costs_one_run_and_what_mends_it_becomes_the_baseline(tmp_path: Path) -> None:
    folder = repository_of(tmp_path / "own", "import no_such_module\n" + TRAINER)
    path = folder / "plumbline.toml"
    text = "[run]\ncommand = 'python train.py'\nshare = ['data']\n[metric]\npattern = '{}'\n"
    path.write_text(text.format(r"val_loss: (\S+)"))
    done = plumbline(folder, "try", "--trust", "-m", "better", "--json", "--", "--worse", "-1")
    log = Path(json.loads(done.stdout)["log"])
    assert done.returncode == 13 and [line["run"]["seed"] for line in banked(folder)] == [42]
    assert "baseline, seed 42: crashed: exit code 1: ModuleNotFoundError: No module" in done.stderr, done.stderr
    assert f"{log} ends with:\n  Traceback" in done.stderr and "commit that" in done.stderr and log.exists()
    (folder / "train.py").write_text(TRAINER)
    done = run_in_process.run(setup_trainer.main, cwd=folder)
    assert done.returncode == 1 and "put that right in plumbline.toml, or in the code, and commit that" in done.stderr
    git(folder, "commit", "-qam", "mended")
    path.write_text(text.format(r"val_los: (\S+)"))
    done = plumbline(folder, "try", "-m", "better", "--", "--worse", "-1")
    assert done.returncode == 13
    path.write_text(text.format(r"val_loss: (\S+)"))
    done = run_in_process.run(setup_trainer.main, cwd=folder)
    assert done.returncode == 0 and "the baseline is the commit" in done.stderr, done.stderr
    assert plumbline(folder, "try", "-m", "worse", "--", "--worse", "1").returncode == 10


def test_a_metric_without_spread_is_told_again_by_every_try(tmp_path: Path) -> None:
    folder = repository_of(tmp_path / "own", TRAINER.replace("random.Random(given.seed).gauss(0, 0.01)", "0"))
    words = "[run]\ncommand = 'python train.py'\nshare = ['data']\n[metric]\npattern = 'val_loss: (\\S+)'\n"
    (folder / "plumbline.toml").write_text(words)
    for _ in range(2):
        done = plumbline(folder, "try", "--trust", "-m", "better", "--", "--worse", "-1")
        assert done.returncode == 1 and "seeds 42, 43, 44, 45, 46 all gave 3.000000" in done.stderr, done.stderr


def test_a_reader_that_is_gone_ends_a_verb_without_a_word(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "plumbline", "noise"]
    done = subprocess.run(command, cwd=folder, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


@pytest.mark.slow
def test_the_wheel_alone_runs_a_folders_verbs(folder: Path, repository: Path) -> None:
    for words, code in ((["try", "-m", "worse", "--", "--worse", "1"], 10), (["noise"], 0), (["log"], 0)):
        command = [sys.executable, "-m", "tests.cli.without_pipeline_packages", "plumbline", *words]
        path = {"PYTHONPATH": f"{repository}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | path)
        assert done.returncode == code and done.stdout, done.stderr


def test_a_message_that_steers_a_terminal_is_shown_escaped(folder: Path) -> None:
    change(folder)
    asked = ("try", "-m", "wider\u202e\x1b[31m")
    for done in (plumbline(folder, *asked, "--dry-run"), plumbline(folder, *asked), plumbline(folder, "log")):
        assert "wider\\u202e\\x1b[31m" in done.stdout and not re.search("[\u202e\x1b]", done.stdout + done.stderr)


def test_another_rule_over_fresh_seeds_leaves_the_first_page(folder: Path) -> None:
    for seed in (42, 3000):
        said = plumbline(folder, "try", "-m", "worse", "--first-seed", seed, "--", "--worse", "0.5")
        assert said.returncode == 10, said.stderr
    rows = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert len({row["page"] for row in rows}) == 2
    for row, seed in zip(rows, (1042, 4000), strict=True):
        page = plumbline(folder, "page", row["number"])
        assert page.returncode == 0 and re.search(rf"`worse` +\| +{seed} ", page.stdout), page.stdout
    assert "The page of a row: plumbline page NUMBER" in plumbline(folder, "log").stdout


def test_the_baseline_of_once_moves_nothing(folder: Path) -> None:
    change(folder, "GAIN = -0.2")
    git(folder, "commit", "-qam", "a step back")
    change(folder, "GAIN = 0.0", "GAIN = -0.2")
    change(folder, "GAIN = 0.00")
    done = plumbline(folder, "try", "-m", "no step back", "--baseline", "HEAD")
    assert done.returncode == 0 and "It is the baseline now" not in done.stderr, done.stderr
    file = load(folder)
    assert FolderBaseline(file, Folder(folder), Repository(folder), print).arm.words == "baseline"


@pytest.mark.slow
def test_a_claim_of_two_keeps_names_both_and_the_present_baseline_is_that_of_noise(folder: Path) -> None:
    change(folder)
    assert plumbline(folder, "try", "-m", "momentum 0.5").returncode == 0
    assert plumbline(folder, "try", "-m", "decay 0.002", "--", "--worse", "-0.1").returncode == 0
    with pytest.MonkeyPatch.context() as patch:  # what one change cannot gain, many can
        for name in ("SIGMAS", "SHORT_SHARE"):
            patch.setattr(implausible_gain, name, 0.0)
        done = plumbline(folder, "confirm")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "`momentum 0.5` and `decay 0.002` together (both that were kept) improve `val_loss` by 0.3" in said, said
    assert "momentum 0.5 + decay 0.002 against baseline: " in done.stderr
    (page,) = (folder / ".plumbline/pages").glob("*.confirmed.md")
    assert "# `momentum 0.5 + decay 0.002` against `baseline`" in page.read_text()
    assert "momentum 0.5 + decay 0.002 against baseline: keep" in page.with_suffix(".svg").read_text()
    assert "`decay 0.002` improves" not in page.read_text() + plumbline(folder, "page").stdout
    assert "both that were kept" in plumbline(folder, "log", "--json").stdout
    assert "Beside 5 runs of the baseline" in plumbline(folder, "noise").stdout
    lines = plumbline(folder, "log").stdout.splitlines()
    assert max(map(len, lines)) <= 80 and not any("improve" in line for line in lines)
    said = " ".join(" ".join(lines).split())
    assert re.search(r"\d\d-\d\d \d\d:\d\d momentum 0.5 baseline 2 \+ 5 0\.[12]\d+ keep", said), said
    assert re.search(r"\* decay 0.002 momentum 0.5 2 \+ 5 0.1\d* keep", said), said
    assert "5 + 5" in said and "keep, claim" in said and "* the baseline now: decay 0.002 (" in said
    assert "both that were kept" in plumbline(folder, "log", "--long").stdout
    # not the 7 runs that the present baseline has with those that made it look good, but its fresh ones
    plain = plumbline(folder, "try", "-n", "-m", "worse", "--", "--worse", "1").stdout
    assert "Rule: 5 runs of the baseline, then" in plain and "Of the baseline's 5 runs 5 are there." in plain
    assert "{flags}" not in plain and "train.py --worse -0.1 --worse 1. Rule" in plain
    done = plumbline(folder, "try", "--json", "-m", "worse", "--", "--worse", "1")
    assert json.loads(done.stdout)["terms"]["design"]["bank"] == 5


@pytest.mark.slow
def test_a_keep_that_was_a_mistake_is_taken_back_and_the_baseline_has_its_runs_again(folder: Path) -> None:
    change(folder)
    assert plumbline(folder, "try", "-m", "first").returncode == 0
    assert plumbline(folder, "try", "-m", "a cheat", "--", "--worse", "-0.1").returncode == 0
    done = plumbline(folder, "log", "--forget", "first")
    assert done.returncode == 1 and "the newest first: the newest is a-cheat-" in done.stderr
    assert plumbline(folder, "confirm", next((folder / ".plumbline/pages").glob("a-cheat-*.md")).stem).returncode == 0
    for name, words in (("a cheat", "first"), ("first", "baseline")):
        done = plumbline(folder, "log", "--forget", name)
        assert done.returncode == 0, done.stderr
        assert f"The baseline is {words} (" in done.stdout and "again, with its 5 runs; " in done.stdout
    assert plumbline(folder, "page", "first").stdout.startswith("# `first` against `baseline`")
    rows = [line.split("\t")[3:5] for line in (folder / "results.tsv").read_text().splitlines()]
    assert rows[-2:] == [["discard", "a cheat"], ["discard", "first"]]
    assert "nothing was kept yet" in plumbline(folder, "confirm").stderr
    log = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert [one["verdict"] for one in log] == ["cannot be judged"] * 2 + ["keep"]  # the last is the claim
    runs = len(banked(folder))
    worse = json.loads(plumbline(folder, "try", "-m", "worse", "--json", "--", "--worse", "0.3").stdout)
    assert [run["seed"] for run in worse["runs"] if run["arm"] == BASELINE] == [*range(42, 47)]
    assert len(banked(folder)) == runs + sum(run["arm"] != BASELINE for run in worse["runs"])
    assert plumbline(folder, "log", "--forget", "worse").returncode == 1


@pytest.mark.parametrize(
    ("was", "what", "only"),
    [
        ("random.seed(1)", "random.seed(3)", True),
        ("random.seed(1)", "random.seed(3); lr = 2", False),
        ("lr = 1", "lr = 3", False),
        ("-- a", "-- b", False),
        ("own.manual_seed(1)", "own.manual_seed(2)", False),  # inject leaves it alone
    ],
)
def test_a_change_of_a_seed_alone_is_known_for_what_it_is(tmp_path: Path, was: str, what: str, only: bool) -> None:
    text = "import random\nrandom.seed(1)\nlr = 1\n-- a\nown.manual_seed(1)\n"
    repository = Repository(repository_of(tmp_path / "own", text))
    change(repository.folder, what, was)
    change(repository.folder, "random.seed(7)  ", "random.seed(1)") if was == "-- a" else None
    (repository.folder / "plumbline.toml").write_text("no part of an arm")
    lines = repository.changed_lines(repository.arm("HEAD").commit, repository.candidate().commit)
    assert seeds.only_a_seed(*lines) == only, lines
    (repository.folder / "new.py").write_text("")
    lines = repository.changed_lines(repository.arm("HEAD").commit, repository.candidate().commit)
    assert not seeds.only_a_seed(*lines), lines


def test_a_try_of_another_seed_says_that_runs_have_others_anyway(tmp_path: Path) -> None:
    script = "import random\nrandom.seed(1)\nprint(f'METRIC q={2 + random.random()}')\n"
    folder = repository_of(tmp_path / "own", script)
    assert run_in_process.run(setup_trainer.main, "python train.py", cwd=folder).returncode == 0
    change(folder, "random.seed(3)", "random.seed(1)")
    done = plumbline(folder, "try", "-m", "seed 3")
    assert "mind: this changes only a seed, which every run changes anyway" in done.stderr, done.stderr
    said = " ".join(done.stdout.split())
    assert done.returncode == 10 and "`. (this" not in said and " (this does not say that it is worse)." in said, said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["try", "--lr", "0.1"], "flags of your script go behind --: plumbline try -m WORDS -- --lr 0.1"),
        (
            ["try", "-m", "lr up", "--fast", "--lr", "0.1"],
            "no --fast; flags of your script go behind --: plumbline try -m 'lr up' -- --fast --lr 0.1",
        ),
        (["try", "lr up", "--", "--lr", "0.1"], "words go behind -m: plumbline try -m 'lr up' -- --lr 0.1"),
    ],
)
def test_a_guess_is_answered_with_the_command_that_was_meant(folder: Path, words: list[str], said: str) -> None:
    done = plumbline(folder, *words)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_command_without_quotes_is_shown_with_them(tmp_path: Path) -> None:
    words = ["python", "train.py", "--lr", "0.1", "--seed", "3"]
    done = run_in_process.run(setup_trainer.main, *words, cwd=tmp_path)
    assert done.returncode == 2
    assert 'quote the command: plumbline setup-trainer "python train.py --lr 0.1 --seed 3"' in done.stderr
    done = run_in_process.run(setup_trainer.main, "python train.py", "--nosuch", cwd=tmp_path)
    assert done.returncode == 2 and "unrecognized arguments: --nosuch" in done.stderr


def test_every_key_of_what_decides_is_an_option_of_try_and_is_explained_where_it_is_written(folder: Path) -> None:
    written = (folder / "plumbline.toml").read_text().partition("[decide]\n")[2].splitlines()
    assert len(written) == 5 and all(re.fullmatch(r"(\w+) = \S+ +# .+", line) for line in written), written
    with pytest.raises(SystemExit), contextlib.redirect_stdout(io.StringIO()) as shown:
        arguments().parse_args(["try", "--help"])
    for field in structs.fields(DecidePart):
        assert f"--{field.name.replace('_', '-')}" in shown.getvalue().split(), field.name
