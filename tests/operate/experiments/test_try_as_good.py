"""`plumbline try --as-good-as` in a folder: a refactor by equal values, too few runs, and flags that ask for a gain."""

from __future__ import annotations

import json
from pathlib import Path

from plumbline.verdict.decision.experiment import BASELINE
from tests.operate.experiments.trainer_folder import banked, change, plumbline


def test_a_refactor_with_equal_values_is_as_good(folder: Path) -> None:
    change(folder, "GAIN = 0.0  # a refactor")
    process = plumbline(folder, "try", "-m", "refactor", "--as-good-as", "1sigma", "--json")
    report = json.loads(process.stdout)
    assert process.returncode == report["exit_code"] == 0 and report["verdict"] == "as good", process.stderr
    assert report["equal_seeds"] == [42, 43, 44, 45, 46] and report["terms"]["as_good_as"] == "1 sigma"
    assert len([run for run in report["runs"] if run["arm"] != BASELINE]) == 5 and not report["fresh"]
    assert "\tkeep\trefactor\t5" in (folder / "results.tsv").read_text()
    logged = json.loads(plumbline(folder, "log", "--json").stdout)["log"]
    assert [(entry["verdict"], entry["exit_code"], entry["is_baseline"]) for entry in logged] == [("as good", 0, True)]
    again = plumbline(folder, "try", "-m", "refactor", "--as-good-as", "1sigma", "--json")
    assert json.loads(again.stdout)["sentence"] == report["sentence"]
    runs = len(banked(folder))
    next_one = plumbline(folder, "try", "-n", "-m", "worse", "--", "--worse", "0.3")
    assert "worse against refactor" in next_one.stdout and "5 runs 5 are there" in next_one.stdout, next_one
    assert len(banked(folder)) == runs


def test_too_few_runs_are_refused_with_their_number(folder: Path) -> None:
    change(folder, "GAIN = seed * 1e-9", "GAIN = 0.0")
    planned = plumbline(folder, "try", "-n", "-m", "other", "--as-good-as", "1sigma")
    assert planned.returncode == 0 and "--baseline-runs 36 --max-runs 36" in " ".join(planned.stdout.split()), planned
    change(folder, "GAIN = seed * 1e-4", "GAIN = seed * 1e-9")
    process = plumbline(folder, "try", "-m", "other", "--as-good-as", "1sigma", "--json")
    report = json.loads(process.stdout)
    assert process.returncode == report["exit_code"] == 13, process.stderr
    assert "--baseline-runs 36 --max-runs 36" in report["sentence"] and len(banked(folder)) == 6
    with_gain = plumbline(folder, "try", "-m", "other", "--as-good-as", "1sigma", "--minimum-gain", "1")
    assert with_gain.returncode == 2 and "leave out one" in with_gain.stderr
    pairs = plumbline(folder, "try", "-m", "other", "--as-good-as", "1sigma", "--paired")
    assert pairs.returncode == 2 and "--paired" in pairs.stderr
