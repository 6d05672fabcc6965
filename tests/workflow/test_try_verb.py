"""One experiment from its command to its page, at smoke size: decided, entered, not run twice; and the same again."""

from __future__ import annotations

import json
import re

import pytest

from plumbline.verdict import ledger
from tests.workflow.project_copy import Project

pytestmark = pytest.mark.workflow


def test_a_try_trains_decides_and_is_not_run_twice(finished_copy: Project) -> None:
    project = finished_copy
    arguments = (
        "-m",
        "plumbline",
        "try",
        "softpick",
        "--preset",
        "smoke",
        "--baseline-runs",
        "2",
        "--max-runs",
        "2",
        "--json",
    )
    done = project.python(*arguments)
    assert done.returncode in (0, 10, 11), done.stdout[-3000:]
    summary = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert summary["exit_code"] == done.returncode and summary["sentence"] and len(summary["runs"]) <= 4
    seeds = [run["seed"] for run in summary["runs"]]
    assert seeds == [42, 43, 1042, 1043][: len(seeds)]
    ledger_lines = ledger.read(project.root / "results/smoke/verdict/ledger.jsonl")
    assert [entry.verdict for entry in ledger_lines.entries] == ["", summary["verdict"]]
    assert re.search(r"-softpick-against-baseline-[0-9a-f]{8}\.md$", summary["page"])
    assert (project.root / summary["page"]).read_text().startswith("# `softpick` against `baseline`")
    again = project.python(*arguments)
    assert again.returncode == done.returncode
    assert "decided already" in again.stdout and "train transfer/" not in again.stdout
    assert "softpick" in project.python("-m", "plumbline", "log", "--preset", "smoke").stdout
    refused = project.python("-m", "plumbline", "try", "softpik", "--preset", "smoke")
    assert refused.returncode == 1 and "did you mean 'softpick'" in refused.stdout
