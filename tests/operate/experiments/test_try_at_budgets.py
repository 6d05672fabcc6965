"""`plumbline try --at` in a folder: a gain that shrinks by construction, a stop on the way, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plumbline.core.errors import PlumblineError
from plumbline.verdict.decision.bank import Bank
from tests.operate.experiments.trainer_folder import banked, plumbline, repository_of

#: A shell script, whose start costs less than Python's; its gain is of ten steps alone, in millionths.
TRAINER = """\
steps=10 seed=0 gain=0 step=0
while [ $# -gt 0 ]; do
case $1 in
--seed) seed=$2 ;; --steps) steps=$2 ;; --short-runs-alone) gain=$2 ;; *) echo "no flag $1" >&2; exit 2 ;;
esac
shift 2
done
[ $steps -eq 10 ] || gain=0
while [ $step -lt $steps ]; do
step=$(( step + 1 ))
echo "step $step: val_loss 2.$(( 900000 - gain - step * 1000 + (seed * seed * 37 + step * 17) % 101 * 200 ))"
done
"""
SETTINGS = """\
[run]
command = "sh train.py {flags}"
budget = "--steps {10}"
[metric]
pattern = 'val_loss (\\S+)'
"""
CHANGE = ("--", "--short-runs-alone", "200000")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a trainer whose change helps runs of ten steps alone."""
    folder = repository_of(tmp_path / "own", TRAINER)
    (folder / "plumbline.toml").write_text(SETTINGS)
    return folder


def try_at(folder: Path, *options: str, flags: tuple[str, ...] = CHANGE) -> Any:
    return plumbline(folder, "try", "--trust", "-m", "short", "--at", "1x,4x", *options, *flags)


@pytest.mark.slow
def test_a_gain_of_short_runs_alone_shrinks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = json.loads(try_at(folder, "--max-runs", "2", "-n", "--json").stdout)
    assert (planned["runs_at_most"], planned["units_of_1x"], planned["seconds_at_most"]) == (8, 20.0, None)
    assert "1x: --steps 10; 4x: --steps 40" in planned["plan"] and not (folder / ".plumbline/runs.jsonl").exists()

    append, calls = Bank.append, list[int]()

    def stop_at_the_fourth(*args: Any, **more: Any) -> None:
        calls.append(1)
        if len(calls) == 4:  # its result is on the disk, and not in the bank
            raise PlumblineError("stopped")
        append(*args, **more)

    monkeypatch.setattr(Bank, "append", stop_at_the_fourth)
    assert try_at(folder, "--max-runs", "2").returncode == 1
    monkeypatch.undo()
    results = {path: path.read_bytes() for path in (folder / ".plumbline/runs").glob("*.result.json")}
    assert len(results) == 4
    process = try_at(folder, "--max-runs", "2", "--json")
    report = json.loads(process.stdout)
    assert (process.returncode, report["exit_code"], report["verdict"]) == (10, 10, "shrinks"), process.stderr
    assert {path: path.read_bytes() for path in results} == results
    runs = banked(folder)
    assert len(runs) == len({(run["run"]["run_id"]) for run in runs}) == len({run["run"]["seed"] for run in runs}) == 8
    assert [run["run"]["arm"] for run in runs] == ["baseline", "short"] * 4
    gains = report["course"]["gains"]
    assert [(gain["at"], gain["budget"]) for gain in gains] == [("1x", "--steps 10"), ("4x", "--steps 40")]
    assert gains[0]["low"] > 0.1 and abs(gains[1]["value"]) < 0.1 and report["course"]["slope"]["high"] < 0
    for each in report["at_budgets"]:  # the checks hold at each budget, where both arms made equally many steps
        assert each["comparability"]["equal budget"]["answer"] in ("holds", "told")
        assert each["comparability"]["finished"]["answer"] == "holds"
    assert report["at_budgets"][1]["comparability"]["budget has an effect"]["numbers"]["step"] == 4

    again = plumbline(folder, "try", "-m", "other words", "--at", "1x,4x", "--max-runs", "2", *CHANGE)
    assert again.returncode == 10 and "decided already" in again.stderr and len(banked(folder)) == 8
    printed = " ".join(again.stdout.split())
    assert report["sentence"] in printed and report["sentence"] in Path(report["page"]).read_text()
    (row,) = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert (row["tried"], row["verdict"], row["exit_code"]) == ("short at 1x, 4x", "shrinks", 10)
    assert report["sentence"] in plumbline(folder, "page", "1").stdout.replace("\n", " ")
    assert json.loads(plumbline(folder, "page", "--json").stdout)["course"] == report["course"]
    assert not (folder / "results.tsv").exists()
    next_try = plumbline(folder, "try", "-n", "-m", "short", "--trust", *CHANGE)  # which looks for earlier ones
    assert next_try.returncode == 0 and "short against baseline" in next_try.stdout, next_try
    confirmed = plumbline(folder, "confirm", "--trust")
    assert confirmed.returncode == 1 and "nothing was kept yet" in confirmed.stderr


@pytest.mark.slow
def test_a_budget_without_effect_is_refused(folder: Path) -> None:
    (folder / "plumbline.toml").write_text(SETTINGS.replace('"--steps {10}"', '"env:STEPS={10}"'))
    process = try_at(folder, "--max-runs", "2", "--json")
    report = json.loads(process.stdout)
    assert (process.returncode, report["verdict"]) == (13, "cannot be judged") and report["course"] is None
    assert "10 at 1x and 10 at 4x" in report["sentence"] and "no effect" in report["sentence"]
    runs = len(banked(folder))
    broken = try_at(folder, "--json", flags=("--", "--no-such-flag", "1"))
    assert (broken.returncode, json.loads(broken.stdout)["verdict"]) == (12, "crashed"), broken.stderr
    assert len(banked(folder)) == runs + 2


def test_what_has_no_meaning_is_refused_with_its_remedy(folder: Path) -> None:
    for options, text in (
        (("--as-good-as", "1sigma"), "--as-good-as asks whether it is worse"),
        (("--paired",), "--paired orders the runs"),
        (("--baseline-runs", "3"), "--max-runs runs at each budget"),
        (("--commit",), "nothing is kept here"),
    ):
        process = try_at(folder, "-n", *options)
        assert process.returncode == 2 and text in process.stderr and "leave out one" in process.stderr, process
    for options in (("--max-runs", "1"), ("--alpha", "0.7"), ("--minimum-gain", "-1")):
        process = try_at(folder, "-n", *options)
        assert process.returncode == 2 and options[0] in process.stderr, process
    half = plumbline(folder, "try", "--trust", "-m", "short", "--at", "1x,0.25x", "-n", *CHANGE)
    assert half.returncode == 2 and "10, of which that is 2.5" in half.stderr
    (folder / "plumbline.toml").write_text(SETTINGS.replace("budget", "# budget"))
    none = try_at(folder, "-n")
    assert none.returncode == 1 and 'budget = "--max-steps {2000}"' in none.stderr, none
