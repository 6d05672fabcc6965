"""`plumbline try` in a folder with a trainer of milliseconds: what is kept, refused, and committed."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from scipy import stats

from plumbline.core.errors import PlumblineError
from plumbline.operate.experiments import folder_baseline, setup_trainer
from plumbline.operate.experiments.folder_baseline import FolderBaseline
from plumbline.verdict.decision.experiment import BASELINE
from plumbline.verdict.own_trainer.folder import Folder
from plumbline.verdict.own_trainer.requests import only_a_seed
from plumbline.verdict.own_trainer.snapshot import Repository
from plumbline.verdict.own_trainer.trainer_file import load
from tests import run_in_process
from tests.operate.experiments.trainer_folder import TRAINER, banked, change, git, plumbline, repository_of, write_bank

#: The arms of fresh runs.
FRESH_ARMS = ("lucky", BASELINE)


def raise_stopped(*_: object) -> None:
    raise PlumblineError("stopped")


def test_what_is_kept_becomes_the_baseline_by_fresh_runs_alone(folder: Path) -> None:
    change(folder)
    before = git(folder, "status", "--short"), git(folder, "rev-parse", "HEAD"), (folder / ".git/index").read_bytes()
    process = plumbline(folder / "data", "try", "-m", "halve the batch")
    assert process.returncode == 0 and "`halve the batch` improves `val_loss` by 0." in process.stdout, process.stderr
    assert re.search(
        r"seed 1042: 2\.8\d+ \([^)]+\); gain \+0\.2\d+ \(\d+\.\d sigma\); after 1 run .*: one more run, seed 1043",
        process.stderr,
    )
    assert re.search(
        r"seed 1043: 2\.\d+ \([^)]+\); mean gain of 2 runs \+0\.\d+ \(\d+\.\d sigma\); after 2 runs T", process.stderr
    )
    assert "beforehand would take 6" in " ".join(process.stdout.split())
    assert process.stderr.count("T: the mean gain ") == 1
    assert "5 fresh runs is 2.8" in process.stderr
    assert "commit -am 'halve the batch' (nothing" in process.stderr
    after = git(folder, "status", "--short"), git(folder, "rev-parse", "HEAD"), (folder / ".git/index").read_bytes()
    assert after == before
    mine = [line["run"]["seed"] for line in banked(folder) if line["method"] != banked(folder)[0]["method"]]
    assert mine == [1042, 1043, *range(1044, 1049)]
    seeds = {line["run"]["run_id"]: line["run"]["seed"] for line in banked(folder)}
    results = sorted((folder / ".plumbline/runs").glob("*.result.json"), key=lambda path: path.stat().st_mtime_ns)
    in_turn = [seeds[path.name.removesuffix(".result.json")] for path in results[-10:]]
    assert in_turn == [seed for pair in zip(range(1049, 1054), range(1044, 1049)) for seed in pair]
    rows = [line.split("\t") for line in (folder / "results.tsv").read_text().splitlines()]
    assert rows[0] == ["commit", "val_loss", "memory_gb", "status", "description", "seeds", "p"]
    assert rows[1][2:6] == ["0.0", "keep", "baseline", "5"] and rows[2][2:6] == ["0.0", "keep", "halve the batch", "5"]
    mean = sum(line["run"]["value"] for line in banked(folder)[-5:]) / 5
    assert float(rows[2][1]) == pytest.approx(mean, abs=1e-6), "the fresh runs', not that of those that looked good"
    nothing = plumbline(folder, "try", "-m", "the same again")
    assert nothing.returncode == 1 and "baseline (halve the batch, " in nothing.stderr
    # What is next is compared with the fresh runs alone, and the claim is of all that was kept against the start.
    worse = plumbline(folder, "try", "-m", "worse", "--json", "--", "--worse", "0.3")
    report = json.loads(worse.stdout)
    assert worse.returncode == report["exit_code"] == 10
    assert [run["seed"] for run in report["runs"] if run["arm"] == BASELINE] == [*range(1044, 1049)]
    assert "; gain -0." in worse.stderr and " sigma); after 1 run T = -" in worse.stderr
    claim = plumbline(folder, "confirm", "--json")
    claimed = json.loads(claim.stdout)
    assert claim.returncode == 0 and claimed["terms"]["baseline"] == "baseline" and len(claimed["runs"]) == 10
    assert not {run["seed"] for run in claimed["runs"]} & {line["run"]["seed"] for line in banked(folder)[:-10]}
    log, page = plumbline(folder, "log", "--json"), plumbline(folder, "page")
    logged = json.loads(log.stdout)["log"]
    assert [(entry["verdict"], entry["exit_code"]) for entry in logged] == [("keep", 0), ("discard", 10), ("keep", 0)]
    assert "GAIN = 0.2" in git(folder, "show", f"{logged[0]['commit']}:train.py")
    assert page.stdout.startswith("# `halve the batch` against `baseline`")


def test_a_constant_is_no_gain(folder: Path) -> None:
    change(folder, "print('val_loss: 2.8'); raise SystemExit")
    process = plumbline(folder, "try", "-m", "broken", "--json")
    answer = json.loads(process.stdout)["comparability"]["seed has an effect"]
    assert process.returncode == 13 and answer["answer"] == "refuses", process.stderr


def test_what_breaks_in_its_fresh_runs_is_not_kept(folder: Path) -> None:
    edit, why = "GAIN = 0.2; assert seed != 1045", "seed 1045 of its fresh runs crashed"
    change(folder, edit)
    head = git(folder, "rev-parse", "HEAD")
    for _ in range(2):  # the same seeds again: luck gives no second chance
        process = plumbline(folder, "try", "-m", "broken", "--commit")
        assert process.returncode == 12 and why in " ".join(process.stdout.split()), process.stderr
    runs = banked(folder)
    for args in (["-m", "broken", "--first-seed", "1999"], ["-m", "another"], ["-m", "broken", "--max-runs", "16"]):
        process = plumbline(folder, "try", *args)
        assert process.returncode == 1 and "plumbline try -m broken --first-seed 42" in process.stderr
    assert banked(folder) == runs
    assert git(folder, "rev-parse", "HEAD") == head and "keep\tbroken" not in (folder / "results.tsv").read_text()
    change(folder, "GAIN = -1.0", edit)
    process = plumbline(folder, "try", "-m", "sound")
    assert process.returncode == 10 and "sound against baseline" in process.stderr, process.stderr


def test_a_keep_that_its_fresh_runs_do_not_confirm_is_undecided(folder: Path) -> None:
    change(folder, "GAIN = 0.2 * (seed in (1042, 1043))")
    process = plumbline(folder, "try", "-m", "lucky", "--commit", "--json")
    data = json.loads(process.stdout)
    assert process.returncode == data["exit_code"] == 11 and data["verdict"] == "undecided", process
    assert "2 runs against 5 of `baseline`" in data["sentence"]
    fresh, beside = ([run["value"] for run in data["fresh"] if run["arm"] == arm] for arm in FRESH_ARMS)
    test = stats.ttest_ind(beside, fresh, alternative="greater")
    gain = sum(beside) / 5 - sum(fresh) / 5
    assert len(fresh) == 5 and (data["estimate"]["median"], data["estimate"]["p"]) == pytest.approx((gain, test.pvalue))
    assert test.pvalue > 0.25 and data["estimate_after_stopping"]["median"] > 0.1
    baseline = FolderBaseline(load(folder), Folder(folder), Repository(folder), print).arm
    assert baseline.words == "baseline" and git(folder, "log", "--format=%s") == "start\n"
    log = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert [(entry["verdict"], entry["exit_code"]) for entry in log] == [("undecided", 11)]
    assert (folder / "results.tsv").read_text().splitlines()[-1].split("\t")[3:6] == ["undecided", "lucky", "5"]
    page, runs = next((folder / ".plumbline/pages").glob("lucky-*.md")).read_text(), banked(folder)
    assert page.count("`lucky (fresh)`") == 5 and "no second try" in page and " confirm` runs it again" not in page
    for args in (["-m", "lucky"], ["-m", "again", "--first-seed", "9000"], ["-m", "more", "--max-runs", "16"]):
        process = plumbline(folder, "try", *args)
        assert process.returncode == 11 and "no second try" in process.stderr, process
        assert "by its fresh runs" in " ".join(process.stdout.split())
    assert banked(folder) == runs and "was kept" in plumbline(folder, "confirm").stderr


def test_a_try_stopped_in_its_fresh_runs_continues(folder: Path) -> None:
    change(folder)
    args = ("try", "-m", "better")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_baseline, "decide_by_fresh_runs", raise_stopped)
        assert plumbline(folder, *args).returncode == 1
    log = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert [entry["verdict"] for entry in log] == ["no decision"] and not (folder / "results.tsv").exists()
    assert plumbline(folder, "try", "-m", "worse", "--", "--worse", "1").returncode == 10
    runs = banked(folder)
    for others in (["--first-seed", "1045"], ["--max-runs", "16"], ["--first-seed", "9000", "-n"]):
        process = plumbline(folder, *args, *others)
        assert process.returncode == 1 and "no second try" in process.stderr and banked(folder) == runs, process
    process = plumbline(folder, "try", "-m", "other words")
    assert process.returncode == 1 and "plumbline try -m better --first-seed 42" in process.stderr
    process = plumbline(folder, *args)
    assert process.returncode == 0 and "the baseline now" in process.stderr and banked(folder) == runs, process.stderr
    assert "worse against better" in plumbline(folder, "try", "-m", "worse", "--", "--worse", "1").stderr


def test_runs_that_were_looked_at_are_never_fresh_ones(folder: Path) -> None:
    change(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder_baseline, "decide_by_fresh_runs", raise_stopped)
        assert plumbline(folder, "try", "-m", "better").returncode == 1
    better = (folder / "train.py").read_text()
    change(folder, "GAIN = 0.1", "GAIN = 0.2")
    assert plumbline(folder, "try", "-m", "less").returncode == 0
    # Against another baseline it is another try: its looks take higher seeds than its first fresh runs had.
    (folder / "train.py").write_text(better)
    report = json.loads(plumbline(folder, "try", "-m", "better", "--json").stdout)
    looked_at, fresh = ({run["seed"] for run in report[key] if run["arm"] == "better"} for key in ("runs", "fresh"))
    assert report["verdict"] == "keep" and len(fresh) == 5 and min(fresh) > max(looked_at), report
    plan = json.loads(plumbline(folder, "try", "-m", "worse", "--json", "--", "--worse", "1").stdout)
    assert {run["seed"] for run in plan["runs"] if run["arm"] == BASELINE and not run["sentinel"]} == fresh


def test_gain_like_that_of_leak_is_kept_when_somebody_has_looked(folder: Path) -> None:
    change(folder, "GAIN = 1.0")
    args = ("try", "-m", "too good", "--commit")
    process = plumbline(folder, *args, "--json")
    assert process.returncode == json.loads(process.stdout)["exit_code"] == 14
    runs = banked(folder)
    assert plumbline(folder, *args).returncode == 14 and "Flagged: `too good`" in plumbline(folder, "page").stdout
    log = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert log[-1]["verdict"] == "implausible" and "is not kept" in log[-1]["sentence"]
    assert git(folder, "log", "--format=%s").split("\n")[0] == "start"
    looked = plumbline(folder, *args, "--accept-implausible")
    assert looked.returncode == 0 and "Committed: too good" in looked.stderr
    assert banked(folder)[: len(runs)] == runs and len(banked(folder)) == len(runs) + 10  # fresh runs of both arms
    rows = [line.split("\t")[3] for line in (folder / "results.tsv").read_text().splitlines()]
    assert rows == ["status", "keep", "implausible", "keep"]


def test_only_what_was_asked_for_is_committed(folder: Path) -> None:
    change(folder)
    hook = folder / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    process = plumbline(folder, "try", "-m", "better", "--commit")
    assert process.returncode == 1 and "git commit says: nothing" in process.stderr
    assert git(folder, "diff", "--cached", "--name-only") == ""  # a loop's `git restore` takes plumbline.toml else
    process = plumbline(folder, "try", "-m", "better", "--commit", "--json")
    assert process.returncode == 1 and "hook may have refused" in json.loads(process.stdout)["error"]
    hook.unlink()
    process = plumbline(folder, "try", "-m", "better", "--commit")
    assert process.returncode == 0 and "Committed: better (with plumbline.toml" in process.stderr
    change(folder, "GAIN = 0.3", "GAIN = 0.2")
    process = plumbline(folder, "try", "-m", "better yet", "--commit")
    assert "Committed: better yet\n" in process.stderr
    for _ in range(2):
        last = (folder / "results.tsv").read_text().splitlines()[-1].split("\t")
        assert last[0] == git(folder, "rev-parse", "--short=7", "HEAD").strip() and last[4] == "better yet"
        assert plumbline(folder, "try", "-m", "better yet", "--commit").returncode == 0  # writes no row again
    assert (folder / "results.tsv").read_text().count("better yet") == 1
    git(folder, "reset", "-q", "--soft", "HEAD~1")
    git(folder, "commit", "-q", "--amend", "-m", "better")
    process = plumbline(folder, "try", "-m", "other flags", "--commit", "--", "--worse", "-0.1")
    assert process.returncode == 0 and "Next: plumbline confirm" in process.stderr, (
        process.stderr
    )  # nothing is there to commit
    assert git(folder, "show", "--format=%s", "--name-only").split() == ["better", "plumbline.toml", "train.py"]
    assert git(folder, "status", "--short") == ""


@pytest.mark.parametrize(
    ("edit", "code", "message"),
    [
        ("GAIN = float('nan')", 12, "1 diverged (seed 1042: `val_loss is nan`), while none of `baseline` did"),
        ("raise SystemExit('what is this')", 12, "1 crashed (seed 1042: `exit code 1: what is this`)"),
        ("print('No space left on device'); raise SystemExit(1)", 1, "the disk is full"),
        ("raise SystemExit(127)", 12, "1 crashed (seed 1042: `there is no such"),
        ("GAIN = 0.2; import atexit; atexit.register(print, 'loss nan')", 12, "it printed 'loss nan'`), while none of"),
        ("GAIN = 0.0; seed = 7", 12, "seeds 1042, 1043 all gave 2.997441"),
    ],
    ids=["nan", "a crash", "a full disk", "another command", "a stop on nan", "a seed without effect"],
)
def test_a_candidate_that_gives_no_numbers(folder: Path, edit: str, code: int, message: str) -> None:
    change(folder, edit)
    process = plumbline(folder, "try", "-m", "broken")
    assert process.returncode == code and message in " ".join((process.stdout + process.stderr).split()), process.stderr
    rows = (folder / "results.tsv").read_text() if (folder / "results.tsv").exists() else ""
    assert ("crash\tbroken" in rows) == (code == 12)


def test_a_process_that_fails_beside_a_run_is_told(folder: Path) -> None:
    change(folder, "GAIN = 0.0; import os; os.system('python -c \"import none_such\"')")
    done = plumbline(folder, "try", "-m", "worse", "--json", "--", "--worse", "1")
    report, remark = json.loads(done.stdout), "1 process of it failed (-c import none_such: exit code 1 "
    assert done.returncode == 10 and report["runs"][-1]["remarks"][0].startswith(remark), done.stderr
    answer = report["comparability"]["processes"]
    assert answer["answer"] == "told" and f"of worse, seed 1042: {remark}" in answer["text"]
    assert f"of worse: {remark}" in done.stderr
    assert banked(folder)[-1]["run"]["remarks"] == report["runs"][-1]["remarks"]
    again = plumbline(folder, "try", "-m", "worse", "--", "--worse", "1")  # from the bank, and on the console
    assert remark[:40] in again.stdout and remark in " ".join(plumbline(folder, "page").stdout.split())


def test_a_full_disk_is_no_discard_and_the_same_command_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(folder, "GAIN = -1.0")
    real, budget = os.fsync, [4]

    def full(descriptor: int) -> None:
        budget[0] -= 1
        if budget[0] < 0:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    process = plumbline(folder, "try", "-m", "better")
    assert process.returncode == 1 and "no disk space" in process.stderr and ".plumbline" in process.stderr
    monkeypatch.undo()
    again = plumbline(folder, "try", "-m", "better", "--trust")
    assert again.returncode == 10, again.stderr


def test_without_git_or_with_a_dirty_submodule_nothing_is_run(folder: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    process = run_in_process.run(setup_trainer.main, "python train.py", cwd=bare)
    assert process.returncode == 1 and "git init && git add -A && git commit -m start" in process.stderr
    library = repository_of(tmp_path / "library", "x = 1\n")
    git(folder, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "library")
    git(folder, "commit", "-qm", "a library")
    (folder / "library/train.py").write_text("x = 2\n")
    process = plumbline(folder, "try", "-m", "the library")
    assert process.returncode == 1 and "library is a repository" in process.stderr
    assert len(banked(folder)) == 5


def test_means_cross_no_machine_and_no_torch(folder: Path) -> None:
    args = ("try", "-m", "worse", "--", "--worse", "1")
    results = sorted((folder / ".plumbline/runs").glob("*.result.json"))
    contents = {path: json.loads(path.read_text()) for path in results}

    def set_machine(**parts: str) -> None:
        for path, result in contents.items():
            path.write_text(json.dumps(result | {"fingerprint": result["fingerprint"] | parts}))

    set_machine(cpu="another one")
    process = plumbline(folder, *args)
    assert (
        process.returncode == 1 and "cpu: another one, " in process.stderr and "setup-trainer --again" in process.stderr
    )
    set_machine(torch="2.5.1")
    for entry in (rows := banked(folder)):
        entry["run"]["fingerprint"] = "of torch 2.5.1"
    write_bank(folder, rows)
    process = plumbline(folder, *args)
    assert process.returncode == 13 and "torch: 2.5.1, none" in " ".join(process.stdout.split()), process.stdout
    again = run_in_process.run(setup_trainer.main, "--again", "--trust", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert plumbline(folder, *args).returncode == 10
    plan = json.loads(plumbline(folder, "try", "-m", "again", "--dry-run", "--json", *args[3:]).stdout)
    assert plan["runs_at_most"] == 0 and plan["plan"].startswith("decided already as `worse`")


def test_the_session_of_a_file_is_that_of_its_tries(folder: Path) -> None:
    text = (folder / "plumbline.toml").read_text()
    (folder / "plumbline.toml").write_text(text.replace('"each"', '"fwer"\nplanned_tries = 5'))
    process = plumbline(folder, "try", "-m", "worse", "--json", "--", "--worse", "1")
    terms = json.loads(process.stdout)["terms"]
    assert (process.returncode, terms["session"], terms["alpha"]) == (10, "fwer", 0.01)
    process = plumbline(folder, "try", "-m", "worse yet", "--json", "--session", "each", "--", "--worse", "2")
    assert process.returncode == 10 and json.loads(process.stdout)["terms"]["alpha"] == 0.05, process.stderr


def test_what_is_next_after_a_keep_commits_new_files_too(folder: Path) -> None:
    change(folder, "from the_gain import GAIN")
    (folder / "the_gain.py").write_text("GAIN = 0.2")
    process = plumbline(folder, "try", "-m", "better")
    (command,) = re.findall(r"Next: (.*) \(nothing was committed\)", process.stderr)
    subprocess.run(command, shell=True, cwd=folder, check=True)
    assert git(folder, "show", "--format=%s", "--name-only").split() == ["better", "the_gain.py", "train.py"]


def test_a_metric_without_spread_is_told_again_by_every_try(tmp_path: Path) -> None:
    folder = repository_of(tmp_path / "own", TRAINER.replace("random.Random(seed).gauss(0, 0.01)", "0"))
    settings = "[run]\ncommand = 'python train.py'\nshare = ['data']\n[metric]\npattern = 'val_loss: (\\S+)'\n"
    (folder / "plumbline.toml").write_text(settings)
    for _ in range(2):
        process = plumbline(folder, "try", "--trust", "-m", "better", "--", "--worse", "-1")
        assert process.returncode == 13 and "seeds 42, 43, 44, 45, 46 all gave 3.000000" in process.stderr, (
            process.stderr
        )


def test_the_baseline_of_once_moves_nothing(folder: Path) -> None:
    change(folder, "GAIN = -0.2")
    git(folder, "commit", "-qam", "a step back")
    change(folder, "GAIN = 0.0", "GAIN = -0.2")
    change(folder, "GAIN = 0.00")
    process = plumbline(folder, "try", "-m", "no step back", "--baseline", "HEAD")
    assert process.returncode == 0 and "It is the baseline now" not in process.stderr, process.stderr
    file = load(folder)
    assert FolderBaseline(file, Folder(folder), Repository(folder), print).arm.words == "baseline"


@pytest.mark.parametrize(
    ("was", "edit", "only"),
    [
        ("random.seed(1)", "random.seed(3)", True),
        ("random.seed(1)", "random.seed(3); lr = 2", False),
        ("lr = 1", "lr = 3", False),
        ("-- a", "-- b", False),
        ("own.manual_seed(1)", "own.manual_seed(2)", False),  # inject leaves it alone
    ],
)
def test_a_change_of_a_seed_alone_is_known_for_what_it_is(tmp_path: Path, was: str, edit: str, only: bool) -> None:
    text = "import random\nrandom.seed(1)\nlr = 1\n-- a\nown.manual_seed(1)\n"
    repository = Repository(repository_of(tmp_path / "own", text))
    change(repository.folder, edit, was)
    change(repository.folder, "random.seed(7)  ", "random.seed(1)") if was == "-- a" else None
    (repository.folder / "plumbline.toml").write_text("no part of an arm")
    lines = repository.list_changed_lines(repository.arm("HEAD").commit, repository.candidate().commit)
    assert only_a_seed(*lines) == only, lines
    (repository.folder / "new.py").write_text("")
    lines = repository.list_changed_lines(repository.arm("HEAD").commit, repository.candidate().commit)
    assert not only_a_seed(*lines), lines


def test_a_try_of_another_seed_says_that_runs_have_others_anyway(tmp_path: Path) -> None:
    script = "import random\nrandom.seed(1)\nprint(f'METRIC q={2 + random.random()}')\n"
    folder = repository_of(tmp_path / "own", script)
    assert run_in_process.run(setup_trainer.main, "python train.py", cwd=folder).returncode == 0
    change(folder, "random.seed(3)", "random.seed(1)")
    process = plumbline(folder, "try", "-m", "seed 3")
    assert "changes only a seed" in process.stderr, process.stderr
    text = " ".join(process.stdout.split())
    assert process.returncode == 10 and "`. (this" not in text and "that it is worse)." in text, text


EVALUATES = """\
import json, random
random.seed(1)
file = open("log.jsonl", "w")
for step in range(1, 101):
    print(f"step {step} loss 3.1")
    for split in ("train", "val") * (step % 10 == 0):
        value = 3.3 - 0.001 * step + 0.002 * max(0, step - 70) + random.gauss(0, 0.003)
        print(f"step {step} {split}_loss {value:.5f}")
        file.write(json.dumps({"step": step, "split": split, "loss": value}) + "\\n")
"""


@pytest.mark.parametrize(
    ("metric", "was", "edit", "code", "message"),
    [
        ("val_loss", "step % 10", "step % 70", 12, "its last val_loss is of step 70, and those of all runs"),
        ("log.jsonl:loss", "step % 10", "step % 70", 12, "its last loss is of step 70, and those of all runs"),
        ("log.jsonl:loss", '("train", "val")', '("val", "train")', 12, "a row of split 'train', and those of the"),
    ],
)
def test_a_value_of_another_place_is_no_gain(
    metric: str, was: str, edit: str, code: int, message: str, tmp_path: Path
) -> None:
    folder = repository_of(tmp_path / "own", EVALUATES)
    process = run_in_process.run(setup_trainer.main, "python train.py", "--metric", metric, cwd=folder)
    assert process.returncode == 0 and ("rows of split 'val' and of 'train'" in process.stderr) == (
        metric != "val_loss"
    )
    change(folder, edit, was)
    process = plumbline(folder, "try", "-m", "another", "--json")
    report = json.loads(process.stdout)
    assert process.returncode == code and message in report["runs"][-1].get("why", ""), report["sentence"]
    if metric == "val_loss":
        text = (folder / "plumbline.toml").read_text()
        (folder / "plumbline.toml").write_text(text.replace("[run]", "[run]\nfewer_steps = true"))
        answers = json.loads(plumbline(folder, "try", "-m", "fewer", "--json", "--max-runs", "1").stdout)[
            "comparability"
        ]
        assert "candidate at 70 and" in answers["finished"]["text"].replace("`fewer`", "candidate"), answers
        assert answers["equal budget"]["answer"] == "told", answers
