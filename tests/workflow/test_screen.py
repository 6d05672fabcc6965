"""The methods of a study in one design, at smoke size: planned, run by Snakemake, confirmed, and not run twice."""

from __future__ import annotations

import json

import pytest

from tests.workflow.project_copy import Project

pytestmark = pytest.mark.workflow

#: A level at which something is chosen of runs so short; what was chosen then has fresh runs, confirmed or not.
SCREEN = ("-m", "plumbline", "screen", "--study", "transfer", "--preset", "smoke", "--methods", "qknorm,relu_squared")
ASKED = (*SCREEN, "--runs", "6", "--fresh-runs", "2", "--level", "0.49", "--json")


def test_methods_of_a_study_are_screened_by_its_own_runs(finished_copy: Project) -> None:
    project = finished_copy
    runs = project.root / "work/smoke/runs/transfer/base"
    there = {path.parent for path in runs.glob("*/s*/outcome.json")}
    plan = json.loads(project.python(*ASKED, "-n").stdout)
    assert plan["dry_run"] and len(plan["design"]["rows"]) == 6 and "to be trained" in plan["plan"]
    assert {path.parent for path in runs.glob("*/s*/outcome.json")} == there, "a dry run makes nothing"
    process = project.python(*ASKED)
    decision = json.loads(next(line for line in process.stdout.splitlines() if line.startswith("{")))
    assert process.returncode == decision["exit_code"] and process.returncode in (0, 10), process.stdout[-3000:]
    seeds = [each["run"]["seed"] for each in decision["runs"]]
    assert len(seeds) == len(set(seeds)) and seeds[:6] == list(range(seeds[0], seeds[0] + 6))
    made = {path.parent for path in runs.glob("*/s*/outcome.json")} - there
    assert {int(folder.name[1:]) for folder in made} | {int(folder.name[1:]) for folder in there} >= set(seeds)
    assert any(folder.parent.name == "qknorm+relu_squared" for folder in made)
    if decision["chosen"]:
        assert decision["fresh_comparability"]["trained weights"]["answer"] == "holds"
    assert (project.root / decision["page"]).is_file()
    again = project.python(*ASKED)
    assert again.returncode == process.returncode
    assert "decided already" in again.stdout and " train " not in again.stdout
    log = project.python("-m", "plumbline", "log", "--preset", "smoke").stdout
    assert "qknorm" in log and "relu_squared" in log
