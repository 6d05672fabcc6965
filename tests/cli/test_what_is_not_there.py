"""Verbs that are given what is not there, or is something else, report it in one line, with what to give instead."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from plumbline.cli import main
from tests import run_in_process

TABLE = ("table", "key_norms", "small", "--preset", "evening", "--out", "x.csv")
SAID = {
    ("show", "nope.csv"): "there is no table nope.csv; plumbline ls targets lists those that can be made",
    ("show", "results/demo/transfer/nope.csv"): "make it first: snakemake results/demo/transfer/nope.csv",
    ("show", "README.md"): "README.md is no table; name the csv of one, such as results/table2.csv",
    ("status", "--work", "nope"): "--work: there is no folder nope; name the folder with the work of each preset",
    (*TABLE, "--work", "nope"): "--work: there is no folder nope; name the one of the preset, such as work/demo",
    ("claims", "key_norms", "--work", "nope", "--out", "x.csv"): "--work: there is no folder nope",
    ("figure", "transfer", "fig2", "--work", "nope", "--out", "x.png"): "--work: there is no folder nope",
    (*TABLE[:-1], "x.md"): "--out x.md must end in .csv; .md, .tex and .provenance.json are written next to it",
    ("figure", "transfer", "fig2", "--out", "x.svg"): "--out x.svg must end in .png; .svg and .csv are written",
    ("plan", "--out", "x.md"): "--out x.md must end in .csv; the page next to it ends in .md",
    ("cleanup", "nope"): "there is no nope; name a folder in which runs left something, such as work",
    ("cleanup", "--work", "nope"): "--work: there is no nope; name a folder",
    ("probe", "--run", "nope"): "--run: there is no folder nope; name the one of a finished run, such as",
    ("sample", "nope"): "nope is no folder, and no run at preset demo (plumbline ls runs lists them)",
    ("score", "nope"): "nope is no folder, and no run at preset demo (plumbline ls runs lists them)",
    ("plan", "results/evening/nope/small.csv", "--preset", "evening"): "no study 'nope' is planned",
    ("plan", "results/evening/quack/small.csv", "--preset", "demo"): "add --preset evening",
    ("verdict", "nope.csv"): "nope.csv: there is no such file or folder; name the one with your numbers",
}


@pytest.mark.parametrize("args", SAID, ids=" ".join)
def test_it_is_said_in_one_line(args: tuple[str, ...], repository: Path) -> None:
    process = run_in_process.run(main, *args, cwd=repository)
    assert process.returncode == 1 and process.stderr.count("\n") == 1, process.stderr
    assert process.stderr.startswith("error: ") and SAID[args] in process.stderr


def test_small_models_are_targets_wherever_targets_are_named(repository: Path) -> None:
    listed = run_in_process.run(main, "ls", "targets", "--preset", "evening", "--json", cwd=repository)
    rows = [row for row in json.loads(listed.stdout) if row["target"] == "small"]
    targets = [f"results/evening/{row['study']}/small.csv" for row in rows]
    process = run_in_process.run(main, "plan", *targets, "--preset", "evening", cwd=repository)
    counts = re.findall(r"^(\w+)\ntarget .*\n[- ]+\nsmall +(\d+) +(\d+)", process.stdout, re.MULTILINE)
    stated = {row["study"]: int(row["runs"]) for row in rows}
    assert {study: int(to_do) + int(done) for study, to_do, done in counts} == stated
    assert set(stated) == {path.parent.name for path in repository.glob("studies/*/small.yaml")}
