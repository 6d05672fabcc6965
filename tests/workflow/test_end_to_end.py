"""The smoke preset for real, and what a second run does after which change. One project, taken through its life."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.workflow.project import Project, jobs_by_rule

SMOKE = ("--config", "preset=smoke")
TARGET = "results/table2.csv"
DIVERGED = "transfer/base/provoked_divergence/s42"
ONE_CHAIN = {"pretrain": 1, "evaluate": 1, "table": 1, "main_table": 1}
pytestmark = [pytest.mark.slow, pytest.mark.workflow]


@pytest.fixture(scope="module")
def finished(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose table 2 was built at the smoke preset, with a provoked divergence beside it."""
    project = Project.copy(repository, tmp_path_factory.mktemp("life") / "project")
    done = project.snakemake(TARGET, f"work/smoke/scores/{DIVERGED}/scores.parquet", *SMOKE)
    assert done.returncode == 0, done.stdout[-6000:]
    return project


def test_the_table_has_every_method_and_says_its_preset(finished: Project) -> None:
    rows = list(csv.DictReader((finished.root / TARGET).open()))
    assert len(rows) == 20
    assert {row["preset"] for row in rows} == {"smoke"}
    assert {row["outcome"] for row in rows} == {"completed"}
    for name in ("table2.csv", "table2.md", "table2.tex", "table2.provenance.json"):
        main, own = finished.root / "results" / name, finished.root / "results/transfer" / name
        assert main.read_bytes() == own.read_bytes() != b""


def test_a_divergence_is_an_outcome_and_not_a_failure(finished: Project) -> None:
    outcome = finished.read(f"work/smoke/runs/{DIVERGED}/outcome.json")
    assert outcome["outcome"] == "diverged"
    assert outcome["validation_loss"] is None
    assert outcome["last_finite_step"] < outcome["steps"]


def test_nothing_to_do_afterwards_nor_after_an_edited_comment(finished: Project) -> None:
    assert "Nothing to be done" in finished.snakemake(TARGET, *SMOKE).stdout
    for file in ("src/plumbline/train/loop.py", "workflow/rules/pretrain.smk", "src/plumbline/data/pack.py"):
        finished.edit(file, '"""', '"""Edited. ')
        with open(finished.root / file, "a") as source:
            source.write("\n# A comment.\n")
    finished.edit("config/studies/transfer.yaml", "study:", "# A comment.\nstudy:")
    assert finished.planned(TARGET, *SMOKE) == {}


def test_a_changed_overlay_reruns_that_method_and_what_aggregates_it(finished: Project) -> None:
    with finished.changed(lambda study: study["methods"]["softmax_cap"]["model"]["mixer"].update(cap=30.0)):
        done = finished.snakemake("--dry-run", TARGET, *SMOKE)
    assert jobs_by_rule(done.stdout) == ONE_CHAIN
    assert "logs/smoke/pretrain/transfer.base.softmax_cap.s42.log" in done.stdout


def test_another_baseline_seed_is_one_run_more(finished: Project) -> None:
    seed = {"scale": "base", "methods": ["baseline"], "seeds": [45]}
    with finished.changed(lambda study: study["runs"]["noise_floor"].append(seed)):
        done = finished.snakemake(TARGET, *SMOKE)
    assert done.returncode == 0, done.stdout[-4000:]
    assert jobs_by_rule(done.stdout) == ONE_CHAIN
    rows = {row["method"]: row for row in csv.DictReader((finished.root / TARGET).open())}
    assert rows["baseline"]["seeds"] == "4"
