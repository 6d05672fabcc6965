"""The smoke preset for real, and what a second run does after which change. One project, taken through its life."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.workflow.project import Project, jobs_by_rule

SMOKE = ("--config", "preset=smoke")
TARGET = "results/table2.csv"
ONE_CHAIN = {"pretrain": 1, "evaluate": 1, "table": 1, "main_table": 1}
pytestmark = [pytest.mark.slow, pytest.mark.workflow]


@pytest.fixture(scope="module")
def finished(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose table 2 was built at the smoke preset."""
    project = Project.copy(repository, tmp_path_factory.mktemp("life") / "project")
    done = project.snakemake(TARGET, *SMOKE)
    assert done.returncode == 0, done.stdout[-6000:]
    return project


def rows(project: Project) -> dict[str, dict[str, str]]:
    """The table, by method."""
    with open(project.root / TARGET) as lines:
        return {row["method"]: row for row in csv.DictReader(lines)}


def test_the_table_has_every_method_and_says_its_preset(finished: Project) -> None:
    table = rows(finished)
    assert len(table) == 20
    assert {row["preset"] for row in table.values()} == {"smoke"}
    assert {row["outcome"] for row in table.values()} == {"completed"}
    assert {name for name, row in table.items() if row["n_seeds"] == "3"} == {"baseline", "qknorm", "softpick"}
    for name in ("table2.csv", "table2.md", "table2.tex", "table2.provenance.json"):
        main, own = finished.root / "results" / name, finished.root / "results/transfer" / name
        assert main.read_bytes() == own.read_bytes() != b""


def test_nothing_to_do_afterwards_nor_after_an_edited_comment(finished: Project) -> None:
    assert "Nothing to be done" in finished.snakemake(TARGET, *SMOKE).stdout
    for file in ("src/plumbline/train/loop.py", "workflow/rules/pretrain.smk", "src/plumbline/data/pack.py"):
        finished.edit(file, '"""', '"""Edited. ')
        with open(finished.root / file, "a") as source:
            source.write("\n# A comment.\n")
    finished.edit("config/studies/transfer/study.yaml", "study:", "# A comment.\nstudy:")
    assert finished.planned(TARGET, *SMOKE) == {}


def test_another_baseline_seed_is_one_run_more(finished: Project) -> None:
    seed = {"scale": "base", "methods": ["baseline"], "seeds": [45]}
    with finished.changed(lambda study: study["runs"]["noise_floor"].append(seed)):
        done = finished.snakemake("--dry-run", TARGET, *SMOKE)
    assert jobs_by_rule(done.stdout) == ONE_CHAIN
    assert "logs/smoke/pretrain/transfer.base.baseline.s45.log" in done.stdout


def test_a_changed_overlay_reruns_its_method_and_a_divergence_is_a_result(finished: Project) -> None:
    """A learning rate beyond reason: only that method's chain runs, to the end, and the table shows its outcome."""
    absurd = {"learning_rate": 1e6, "gradient_clip": 1e9}
    with finished.changed(lambda study: study["methods"]["softmax_cap"].update(optimizer=absurd)):
        done = finished.snakemake(TARGET, *SMOKE)
    assert done.returncode == 0, done.stdout[-4000:]
    assert jobs_by_rule(done.stdout) == ONE_CHAIN
    outcome = finished.read("work/smoke/runs/transfer/base/softmax_cap/s42/outcome.json")
    assert outcome["outcome"] == "diverged" and outcome["validation_loss"] is None
    assert outcome["last_finite_step"] < outcome["steps"]
    table = rows(finished)
    assert table["softmax_cap"]["outcome"] == "diverged"
    assert {row["outcome"] for name, row in table.items() if name != "softmax_cap"} == {"completed"}
