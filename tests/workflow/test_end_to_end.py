"""The smoke preset for real, and what a second run does after which change. One project, taken through its life."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.workflow.project import Project

SMOKE = ("--config", "preset=smoke")
TARGET = "results/table2.csv"
pytestmark = [pytest.mark.slow, pytest.mark.workflow]


@pytest.fixture(scope="module")
def finished(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose table 2 was built at the smoke preset, a provoked divergence included."""
    project = Project.copy(repository, tmp_path_factory.mktemp("life") / "project")
    done = project.snakemake("results/table2.csv", DIVERGED, *SMOKE)
    assert done.returncode == 0, done.stdout[-6000:]
    return project


DIVERGED = "work/smoke/scores/transfer/base/provoked_divergence/s42/scores.parquet"


def test_the_table_has_every_method_and_says_its_preset(finished: Project) -> None:
    rows = list(csv.DictReader((finished.root / TARGET).open()))
    assert len(rows) == 20
    assert {row["preset"] for row in rows} == {"smoke"}
    assert {row["outcome"] for row in rows} == {"completed"}
    for name in ("table2.md", "table2.tex", "table2.provenance.json"):
        assert (finished.root / "results" / name).stat().st_size > 0


def test_a_divergence_is_an_outcome_and_not_a_failure(finished: Project) -> None:
    run = finished.root / "work/smoke/runs/transfer/base/provoked_divergence/s42"
    outcome = json.loads((run / "outcome.json").read_text())
    assert outcome["outcome"] == "diverged"
    assert outcome["validation_loss"] is None
    assert (finished.root / DIVERGED).exists()


def test_a_second_run_finds_nothing_to_do(finished: Project) -> None:
    assert finished.planned(TARGET, *SMOKE) == {}


def test_an_edited_comment_reruns_nothing(finished: Project) -> None:
    finished.edit("src/plumbline/train/loop.py", '"""', '"""Edited. ')
    finished.edit("workflow/rules/pretrain.smk", '"""', '"""Edited. ')
    assert finished.planned(TARGET, *SMOKE) == {}


def test_a_changed_overlay_reruns_that_method_and_what_aggregates_it(finished: Project) -> None:
    study = "config/studies/transfer.yaml"
    original = (finished.root / study).read_text()
    finished.edit(study, "model: {mixer: {name: softmax_cap}}", "model: {mixer: {name: softmax_cap, cap: 30.0}}")
    planned = finished.planned(TARGET, *SMOKE)
    (finished.root / study).write_text(original)
    assert planned == {"pretrain": 1, "evaluate": 1, "table": 1, "main_table": 1}


def test_another_baseline_seed_is_one_run_more(finished: Project) -> None:
    study = "config/studies/transfer.yaml"
    original = (finished.root / study).read_text()
    finished.edit(
        study,
        "methods: [baseline, qknorm, softpick], seeds: [43, 44]}",
        "methods: [baseline, qknorm, softpick], seeds: [43, 44]}\n    - {scale: base, methods: [baseline], seeds: [45]}",
    )
    planned = finished.planned(TARGET, *SMOKE)
    (finished.root / study).write_text(original)
    assert planned == {"pretrain": 1, "evaluate": 1, "table": 1, "main_table": 1}


def test_two_snakemakes_in_one_directory(finished: Project) -> None:
    """The second is refused by Snakemake's own lock, and the stale-lock helper does not overrule a live holder."""
    import subprocess
    import sys
    import time

    first = subprocess.Popen(
        finished.command(TARGET, "--forcerun", "table", *SMOKE),
        cwd=finished.root,
        env=finished.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    locks = finished.root / ".snakemake" / "locks"
    try:
        while first.poll() is None and not (locks.is_dir() and any(locks.iterdir())):
            time.sleep(0.02)
        assert first.poll() is None, "the first Snakemake ended before it locked"
        cleared = subprocess.run(
            [sys.executable, "-m", "plumbline.studies.driver"],
            cwd=finished.root,
            env=finished.environment,
            capture_output=True,
            text=True,
        )
        second = finished.snakemake(TARGET, "--forcerun", "table", *SMOKE)
    finally:
        first.wait(timeout=300)
    assert cleared.returncode == 1
    assert "is held by process" in cleared.stderr
    assert second.returncode != 0
    assert "lock" in second.stdout.lower()
    assert first.returncode == 0
