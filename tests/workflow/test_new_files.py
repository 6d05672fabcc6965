"""What `plumbline new` writes into a clone, at smoke size: a study up to its table, a method up to a decision."""

from __future__ import annotations

import csv
import json
import re

import pytest

from plumbline.verdict import ledger
from tests.workflow.conftest import SMOKE
from tests.workflow.project_copy import Project

#: Exit codes of keep, discard and undecided.
DECIDED = (0, 10, 11)

pytestmark = pytest.mark.workflow


def test_a_new_study_gets_its_table_figure_and_claims(finished_copy: Project) -> None:
    project = finished_copy
    process = project.python("-m", "plumbline", "new", "study", "normed_heads")
    assert process.returncode == 0, process.stdout
    folder = project.root / "results/smoke/normed_heads"
    product_files = [f"results/smoke/normed_heads/{name}" for name in ("table1.csv", "fig1.png", "claims.csv")]
    process = project.snakemake(*product_files, *SMOKE)
    assert process.returncode == 0, process.stdout[-4000:]
    with open(folder / "table1.csv") as lines:
        losses = {row["method"]: float(row["loss"]) for row in csv.DictReader(lines)}
    assert losses.keys() == {"plain", "normed"}
    with open(folder / "claims.csv") as lines:
        verdicts = {row["id"]: row["verdict"] for row in csv.DictReader(lines)}
    assert verdicts == {"normed_is_lower": "not judged (smoke size)", "shared_keys": "reproduced"}
    assert project.planned(*product_files, *SMOKE) == {}


def test_a_new_built_in_method_is_tried_decided(finished_copy: Project) -> None:
    project = finished_copy
    process = project.python("-m", "plumbline", "new", "method", "quite_new", "--slot", "ffn", "--built-in")
    assert process.returncode == 0 and "wrote src/plumbline/model/ffn/quite_new.py" in process.stdout, process.stdout
    process = project.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/model/test_quite_new.py")
    assert process.returncode == 0, process.stdout[-3000:]
    tried = ("-m", "plumbline", "try", "quite_new", "--study", "quite_new", "--preset", "smoke")
    arguments = (*tried, "--baseline-runs", "2", "--max-runs", "2", "--json")
    process = project.python(*arguments)
    assert process.returncode in DECIDED and "`quite_new`" in process.stdout, process.stdout[-3000:]
    summary = json.loads(next(line for line in process.stdout.splitlines() if line.startswith("{")))
    assert summary["exit_code"] == process.returncode and summary["sentence"]
    seeds = [run["seed"] for run in summary["runs"]]
    assert seeds == [42, 43, 1042, 1043][: len(seeds)]
    ledger_lines = ledger.read(project.root / "results/smoke/verdict/ledger.jsonl")
    assert [entry.verdict for entry in ledger_lines.entries] == ["", summary["verdict"]]
    assert re.search(r"-quite_new-against-baseline-[0-9a-f]{8}\.md$", summary["page"])
    assert (project.root / summary["page"]).read_text().startswith("# `quite_new` against `baseline`")
    again = project.python(*arguments)
    assert again.returncode == process.returncode
    assert "decided already" in again.stdout and " train " not in again.stdout
    assert "quite_new" in project.python("-m", "plumbline", "log", "--preset", "smoke").stdout
    for mistake, remedy in (("quite_new", "add --study quite_new"), ("softpik", "did you mean 'softpick'")):
        refused = project.python("-m", "plumbline", "try", mistake, "--preset", "smoke")
        assert refused.returncode == 1 and remedy in refused.stdout
    again = project.python("-m", "plumbline", "new", "method", "quite_new", "--built-in")
    assert again.returncode == 1 and "'quite_new' is the name" in again.stdout
