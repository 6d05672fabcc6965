"""`plumbline screen` in a folder: ideas that gain are chosen and confirmed, crashes leave the design, a stop makes no
run twice, and nothing of the user's is touched.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict import ledger
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.own_trainer.merged_changes import Change, ChangeMerger
from plumbline.verdict.own_trainer.snapshot import Arm
from plumbline.verdict.screen import screen_page
from tests.operate.experiments.trainer_folder import Done, banked, git, plumbline, repository_of, write_bank

#: Its noise is 0.01; `--longer` makes more steps, and `--broken` ends before any value.
TRAINER = """\
import random, sys
flags = {"--seed": 0} | dict(zip(sys.argv[1::2], sys.argv[2::2]))
gain = {"--warmup": 0.05, "--clip": 0.04, "--longer": 0.05, "--worse": -0.05, "--leak": 2}
steps = 40 if "--longer" in flags else 10
if "--broken" in flags:
    raise SystemExit(3)
FROM_PATCH = 0.0


FROM_BRANCH = 0.0


NOTHING = 0.0
value = 3 - FROM_PATCH - FROM_BRANCH - sum(gain.get(flag, 0) for flag in flags)
value += random.Random(int(flags["--seed"])).gauss(0, 0.01)
print(f"step 1: val_loss: {value + 1:.12f}")
print(f"step {steps}: val_loss: {value:.6f}")
"""
SETTINGS = """\
[run]
command = "python train.py {flags}"
[metric]
pattern = 'val_loss: (\\S+)'
[decide]
baseline_runs = 3
"""
FLAGS = {name: f'{{ flags = "--{name} 1" }}' for name in ("warmup", "clip", "none", "worse", "longer", "broken")}
PATCH, BRANCH = '{ patch = "ideas/patched.patch" }', '{ branch = "branched" }'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a trainer of milliseconds, a patch, a branch, and work of the user's that is not committed."""
    folder = repository_of(tmp_path / "own", TRAINER)
    script = folder / "train.py"
    script.write_text(TRAINER.replace("FROM_PATCH = 0.0", "FROM_PATCH = 0.06"))
    (folder / "ideas").mkdir()
    (folder / "ideas/patched.patch").write_text(git(folder, "diff"))
    script.write_text(TRAINER.replace("FROM_BRANCH = 0.0", "FROM_BRANCH = 0.05"))
    git(folder, "checkout", "-qb", "branched")
    git(folder, "commit", "-qam", "branched")
    git(folder, "checkout", "-q", "-")
    (folder / "plumbline.toml").write_text(SETTINGS)
    return folder


def write_ideas(folder: Path, *names: str, head: str = "", **others: str) -> None:
    ideas = [f"{name} = {FLAGS[name]}" for name in names] + [f"{name} = {text}" for name, text in others.items()]
    (folder / "ideas.toml").write_text("\n".join([head, "[ideas]", *ideas]) + "\n")


def screen(folder: Path, *options: str) -> Done:
    return plumbline(folder, "screen", "ideas.toml", "--trust", *options)


def report_of(done: Done) -> dict[str, Any]:
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == report["exit_code"], done.stderr
    return report


def test_ideas_that_gain_are_chosen_and_confirmed(folder: Path) -> None:
    write_ideas(folder, "warmup", "none", "worse", patched=PATCH, branched=BRANCH)
    (folder / "train.py").write_text("the user's own work")
    (folder / "notes.txt").write_text("untracked")
    git(folder, "add", "notes.txt")
    state = [git(folder, *command.split()) for command in ("status --porcelain", "diff HEAD", "branch -v")]

    planned = json.loads(screen(folder, "-n", "--json").stdout)
    assert planned["runs_at_most"] == 12 + 10 and planned["seconds_at_most"] is None
    names = ["warmup", "none", "worse", "patched", "branched"]
    assert [name for name, _, error in planned["standard_errors"] if 0.5 < error < 0.8] == names
    assert "12 runs of 5 factors" in planned["plan"] and planned["aliases"]
    assert not (folder / ".plumbline").exists()

    report = report_of(done := screen(folder, "--json", "--leave-one-out"))
    assert report["verdict"] == "keep" and "working tree" in done.stderr
    assert {name for name, _ in report["chosen"]} == {"warmup", "patched", "branched"}
    assert report["confirmation"]["gain"] == pytest.approx(0.16, abs=0.03)
    assert {left["level"][0] for left in report["left_out"]} == {"warmup", "patched", "branched"}
    assert [git(folder, *command.split()) for command in ("status --porcelain", "diff HEAD", "branch -v")] == state
    runs = banked(folder)
    assert len(runs) == len({run["run"]["seed"] for run in runs}) == 3 + 12 + 10 + 15
    for answers in (report["comparability"], report["fresh_comparability"]):
        assert {answers[name]["answer"] for name in ("finished", "nothing is carried")} == {"holds"}
        # Chance, and the time of a machine that is busy with other things during one side, may be told; steps may not.
        assert {answers[name]["answer"] for name in ("equal budget", "runs are independent")} <= {"holds", "told"}
        assert "times the steps" not in answers["equal budget"]["text"]
    assert report["changed_files"] == {"train.py": "+2 -2"}

    again = report_of(screen(folder, "--json", "--leave-one-out"))
    assert again == report and len(banked(folder)) == len(runs), "decided already"
    page = Path(report["page"])
    assert report["sentence"] in page.read_text() and page.with_suffix(".svg").exists()
    html = page.with_suffix(".html").read_text()
    assert html.count("<svg") == html.count("</svg>") == 1 and "<code>patched</code></td>" in html
    assert "<img" not in html and "confirmed" in html
    entries = ledger.read(folder / ".plumbline/decisions.jsonl").entries
    assert [entry.name.partition(" in ")[0] for entry in entries if entry.is_try] == names
    log = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    verdicts = ["keep", "discard", "discard", "keep", "keep"]
    assert [(row["tried"], row["verdict"]) for row in log] == list(zip(names, verdicts))
    for name in ("2", page.stem):
        assert report["sentence"] in plumbline(folder, "page", name).stdout.replace("\n", " ")
    assert json.loads(plumbline(folder, "page", "--json").stdout)["sentence"] == report["sentence"]

    git(folder, "reset", "-q", "--hard")
    command = report["to_keep"]
    picked, _, tried = command.partition(" && plumbline ")
    subprocess.run(shlex.split(picked), cwd=folder, check=True)
    assert "FROM_PATCH = 0.06" in (folder / "train.py").read_text() and picked in page.read_text()
    kept = plumbline(folder, *shlex.split(tried))
    assert kept.returncode == 0 and "It is the baseline now" in kept.stderr, kept.stderr


def test_a_screen_that_was_begun_with_other_ideas_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_ideas(folder, "none", "worse", "warmup")
    with monkeypatch.context() as patch:
        patch.setattr(Bank, "append", stop_at(6))
        assert screen(folder).returncode == 1
    (begun,) = (folder / ".plumbline/pages").glob("screen-ideas-*.md")
    assert begun.name not in screen(folder, "-n").stderr
    write_ideas(folder, "none", "worse")
    assert begun.name in screen(folder, "-n").stderr
    write_ideas(folder, "none", "worse", "warmup")
    assert report_of(screen(folder, "--json"))["page"].endswith(begun.name)
    write_ideas(folder, "none", "worse")
    assert begun.name not in screen(folder, "-n").stderr, "it is decided"


def test_what_must_be_gained_is_that_of_a_try(folder: Path) -> None:
    """The set gains .11."""
    write_ideas(folder, "warmup", "none", patched=PATCH)
    results = dict[str, str]()
    for least in ("0", "0.15"):
        settings = SETTINGS.replace("[decide]", f"[decide]\nminimum_gain = {least}")
        (folder / "plumbline.toml").write_text(settings)
        results[least] = report_of(screen(folder, "--json"))["verdict"]
    assert results == {"0": "keep", "0.15": "discard"}


def test_values_that_drift_are_said_to_the_right_way(folder: Path) -> None:
    """After the baseline's runs each run is better than the last one, though none reads what another left."""
    write_ideas(folder, "none", "worse", "warmup")
    assert report_of(screen(folder, "--json", "--runs", "24", "--fresh-runs", "2"))["exit_code"] in (0, 10)
    rows = banked(folder)
    for place, row in enumerate(rows):
        row["run"]["value"] -= 0.02 * max(0, place - 3)
    write_bank(folder, rows)
    for page in (folder / ".plumbline/pages").glob("screen-*"):
        page.unlink()
    report = report_of(screen(folder, "--json", "--runs", "24", "--fresh-runs", "2"))
    assert report["exit_code"] == 13 and "better than earlier" in report["sentence"], report["sentence"]


def test_nothing_that_helps_is_chosen(folder: Path) -> None:
    write_ideas(folder, "none", "worse", more='{ flags = "--more 1" }')
    report = report_of(screen(folder, "--json"))
    assert (report["exit_code"], report["verdict"], report["chosen"]) == (10, "discard", [])
    assert len(banked(folder)) == 3 + 8, "no fresh run is made of nothing"
    assert not report["to_keep"]


def test_what_makes_its_runs_crash_leaves_the_design(folder: Path) -> None:
    names = ("warmup", "none", "worse", "broken")
    write_ideas(folder, *names, patched=PATCH)
    report = report_of(screen(folder, "--json", "--runs", "16"))
    assert report["verdict"] == "keep" and report["dropped"] == [["broken", "with"]]
    assert {"warmup", "patched"} <= {name for name, _ in report["chosen"]} <= {"warmup", "patched", "none"}
    crashed = [run for run in banked(folder) if run["run"]["outcome"] == "crashed"]
    assert crashed and all("broken" in run["run"]["arm"] for run in crashed)
    assert "broken" in Path(report["page"]).read_text()
    rows = {row["tried"]: row["verdict"] for row in json.loads(plumbline(folder, "log", "--json").stdout)["log"]}
    assert rows["broken"] == "crashed" and rows["warmup"] == "keep"


def stop_at(stop: int) -> Callable[..., None]:
    """A bank that fails where so many runs were appended, as if the process was killed there."""
    append, calls = Bank.append, count(1)

    def append_or_stop(*args: Any, **more: Any) -> None:
        if next(calls) == stop:
            raise PlumblineError("stopped")
        append(*args, **more)

    return append_or_stop


def test_a_stop_costs_no_run_twice(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the bank, in the design with its crashes, in the fresh runs; and last where the page is not yet there."""
    write_ideas(folder, "warmup", "none", "broken", patched=PATCH)
    results = dict[Path, bytes]()
    for stop in (2, 7, 12):
        with monkeypatch.context() as patch:
            patch.setattr(Bank, "append", stop_at(stop))
            assert screen(folder).returncode == 1
        for path, content in results.items():
            assert path.read_bytes() == content, "it was made twice"
        results = {path: path.read_bytes() for path in (folder / ".plumbline/runs").glob("*.result.json")}
        crashes = {path: content for path, content in results.items() if json.loads(content)["outcome"] != "finished"}
        known = {run["run"]["run_id"] for run in banked(folder)}
        for path in crashes:  # one that is not in the bank yet is made again, as its cause may be gone
            if path.name.partition(".")[0] not in known:
                results.pop(path)
    with monkeypatch.context() as patch:
        patch.setattr(screen_page, "write", lambda *_: (_ for _ in ()).throw(PlumblineError("stopped")))
        assert screen(folder).returncode == 1
    runs = banked(folder)
    report = report_of(screen(folder, "--json"))
    assert report["verdict"] == "keep" and report["dropped"] == [["broken", "with"]]
    assert banked(folder) == runs and len(runs) == len({run["run"]["run_id"] for run in runs})
    assert len({run["run"]["seed"] for run in runs}) == len(runs)


def test_what_a_chosen_idea_takes_is_told_or_refused(folder: Path) -> None:
    write_ideas(folder, "none", "worse", "longer")
    report = report_of(screen(folder, "--json"))
    assert report["verdict"] == "keep" and [name for name, _ in report["chosen"]] == ["longer"]
    answer = report["comparability"]["equal budget"]
    assert answer["answer"] == "told" and "4 times the steps" in answer["text"] and "longer" in answer["text"]
    refused = report_of(screen(folder, "--json", "--equal", "step"))
    assert (refused["exit_code"], refused["verdict"]) == (13, "cannot be judged")
    assert "had to be equal" in refused["sentence"]


def test_a_gain_that_no_change_had_is_to_be_looked_at(folder: Path) -> None:
    write_ideas(folder, "warmup", "none", leak='{ flags = "--leak 1" }')
    report = report_of(screen(folder, "--json", "--fresh-runs", "2"))
    assert (report["exit_code"], report["verdict"]) == (14, "implausible") and "`leak`" in report["sentence"]
    runs = banked(folder)
    accepted = report_of(screen(folder, "--json", "--fresh-runs", "2", "--accept-implausible"))
    assert accepted["exit_code"] == 0 and "--accept-implausible" in accepted["notes"][-1]
    assert banked(folder) == runs


def test_conflicts_are_told_before_any_run(folder: Path) -> None:
    other = folder / "ideas/other.patch"
    text = (folder / "ideas/patched.patch").read_text()
    other.write_text(text.replace("+FROM_PATCH = 0.06", "+FROM_PATCH = 0.07"))
    write_ideas(
        folder,
        "warmup",
        "none",
        patched=PATCH,
        other='{ patch = "ideas/other.patch" }',
        warmer='{ flags = "--warmup 2" }',
        head='never_together = [["none", "warmer"]]',
    )
    planned = screen(folder, "-n")
    assert planned.returncode == 0, planned.stderr
    conflicts = dict(re.findall(r"^never in one run: (\S+ with \S+) \((.+)\)$", planned.stderr, re.MULTILINE))
    assert set(conflicts) == {"patched with other", "warmup with warmer", "none with warmer"}
    assert "train.py" in conflicts["patched with other"] and "--warmup" in conflicts["warmup with warmer"]
    report = report_of(screen(folder, "--json"))
    forbidden = [{first, second} for first, second in (pair.split(" with ") for pair in conflicts)]
    runs = [set(run["run"]["arm"].split(" + ")) for run in banked(folder)]
    assert not [pair for pair in forbidden for run in runs if pair <= run]
    assert len({name for name, _ in report["chosen"]} & {"patched", "other"}) == 1


def test_pairs_of_one_reason_are_told_in_one_line(folder: Path) -> None:
    write_ideas(folder, "none", **{f"w{number}": f'{{ flags = "--warmup {number}" }}' for number in range(5)})
    told = [line for line in screen(folder, "-n").stderr.splitlines() if "--warmup" in line]
    assert len(told) == 1 and "w0 with w1" in told[0] and "5 more" in told[0]


def test_a_run_that_cannot_be_made_is_told_by_the_plan(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_arm = ChangeMerger.make_arm

    def refuse_two(merger: ChangeMerger, changes: Sequence[Change], *others: Any) -> Arm:
        if len(changes) > 1:
            raise PlumblineError("cannot be merged")
        return make_arm(merger, changes, *others)

    monkeypatch.setattr(ChangeMerger, "make_arm", refuse_two)
    write_ideas(folder, "warmup", patched=PATCH, branched=BRANCH)
    process = screen(folder, "-n")
    assert process.returncode == 1 and "cannot be merged" in process.stderr


def test_an_idea_may_be_what_two_others_are_together(folder: Path) -> None:
    write_ideas(folder, "warmup", "clip", both='{ flags = "--warmup 1 --clip 1" }', none=FLAGS["none"])
    process = screen(folder, "--json")
    assert report_of(process)["exit_code"] == 0, process.stderr
    runs = banked(folder)
    assert {"warmup + clip", "both"} <= {run["run"]["arm"].removesuffix(" + none") for run in runs}


def test_what_cannot_be_meant_is_refused_with_its_remedy(folder: Path, tmp_path: Path) -> None:
    for options, text in (
        (("--runs", "3"), "ask for more runs"),
        (("--level", "0.6"), "between 0 and 0.5"),
        (("--fresh-runs", "1"), "two or more"),
        (("--equal", "secnods"), "did you mean 'seconds'"),
    ):
        write_ideas(folder, "warmup", "none")
        process = screen(folder, *options)
        assert process.returncode in (1, 2) and text in process.stderr, process.stderr
    for others, key, text in (
        ({"p": '{ patch = "none.patch" }'}, "ideas.p.patch", "there is no file"),
        ({"b": '{ branch = "branch" }'}, "ideas.b.branch", "did you mean 'branched'"),
        ({"w": '{ flags = "--warmup 1" }'}, "ideas.w", "the same as ideas.warmup"),
        ({"p": PATCH, "q": '{ patch = "ideas/patched.patch" }'}, "ideas.q", "the same as ideas.p"),
        ({"w": "{ flag = 3 }"}, "ideas.w", "did you mean 'flags'"),
    ):
        write_ideas(folder, "warmup", **others)
        process = screen(folder)
        assert process.returncode == 1 and key in process.stderr and text in process.stderr, process.stderr
    assert not (folder / ".plumbline/runs.jsonl").exists()
    assert "setup-trainer" in plumbline(tmp_path, "screen", "ideas.toml").stderr
    assert plumbline(folder, "screen").returncode == 2


def test_an_idea_that_changes_what_measures_is_refused(folder: Path) -> None:
    (folder / "plumbline.toml").write_text(SETTINGS.replace("[decide]", 'fixed = ["train.py"]\n[decide]'))
    write_ideas(folder, "warmup", patched=PATCH)
    process = screen(folder)
    said = process.stderr + process.stdout
    assert process.returncode == 13 and "the idea" in said and "patched" in said and "train.py" in said
    assert not (folder / ".plumbline/runs.jsonl").exists()


def test_a_baseline_that_crashes_is_not_judged(folder: Path) -> None:
    settings = SETTINGS.replace("train.py {flags}", "train.py --broken 1 {flags}")
    (folder / "plumbline.toml").write_text(settings)
    write_ideas(folder, "warmup", "none")
    report = report_of(screen(folder, "--json"))
    assert (report["exit_code"], report["verdict"]) == (13, "cannot be judged")
    assert "baseline" in report["sentence"] and len(banked(folder)) == 1
