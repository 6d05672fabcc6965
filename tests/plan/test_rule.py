"""`snakemake plan`: made anew when what it depends on changes, and no part of `all`."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from plumbline.plan.estimate import estimator
from plumbline.project import plan
from plumbline.specs.config import load_config
from tests.workflow.project import Project, jobs_by_rule

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def project(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.copy(repository, tmp_path_factory.mktemp("plan") / "project")


def test_the_plan_is_made_anew_when_it_would_change(project: Project) -> None:
    paper = ("--config", "preset=paper", "machine=h100")
    done = project.snakemake("plan", "--cores", "1", *paper)
    assert done.returncode == 0, done.stdout[-3000:]
    rows = {row["target"]: row for row in csv.DictReader((project.root / "results" / "plan.csv").open())}
    assert rows["table2"]["runs_to_do"] == "26"
    assert "## Beside the document's own figures" in (project.root / "results" / "plan.md").read_text()
    assert project.planned("plan", *paper) == {}
    assert project.planned("plan") == {"plan": 1}


def test_jobs_ask_for_the_time_that_the_plan_says_and_a_profile_may_say_otherwise(project: Project) -> None:
    paper = ("--config", "preset=paper", "machine=h100")
    priced = estimator(plan(load_config() | {"preset": "paper", "machine": "h100", "work": str(project.root / "work")}))
    evaluations = {run.spec.scale: priced.evaluate_minutes(run) for run in priced.plan.runs.values()}
    trainings = {priced.pretrain_minutes(run) for run in priced.plan.runs.values()}
    done = project.snakemake("-n", "all", *paper)
    assert set(minutes(done.stdout)) == trainings | set(evaluations.values())
    assert "plan" not in jobs_by_rule(done.stdout)
    done = project.snakemake("-n", "results/table2.csv", *paper, "--set-resources", "pretrain:runtime=7")
    assert set(minutes(done.stdout)) == {7, evaluations["base"]}


def minutes(output: str) -> list[int]:
    """Time limits in a dry run."""
    return [int(found) for found in re.findall(r"runtime=(\d+)", output)]


def test_an_unknown_machine_is_named(project: Project) -> None:
    done = project.snakemake("-n", "results/table2.csv", "--config", "machine=h10")
    assert done.returncode != 0
    assert "there is no machine 'h10'; did you mean 'h100'?" in done.stdout
