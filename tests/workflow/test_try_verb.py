"""One experiment from its command to its page, at smoke size: decided, entered, not run twice; and the same again."""

from __future__ import annotations

import json
import re

import pytest

from plumbline.experiment import ledger
from tests.workflow.project_copy import Project

pytestmark = [pytest.mark.slow, pytest.mark.workflow]


def test_a_try_trains_decides_and_is_not_run_twice(finished_copy: Project) -> None:
    project = finished_copy
    words = (
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
    done = project.python(*words)
    assert done.returncode in (0, 10, 11), done.stdout[-3000:]
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert found["exit_code"] == done.returncode and found["sentence"] and len(found["runs"]) <= 4
    seeds = [run["seed"] for run in found["runs"]]
    assert seeds == [42, 43, 1042, 1043][: len(seeds)]
    held = ledger.read(project.root / "results/smoke/verdict/ledger.jsonl")
    assert [entry.verdict for entry in held.entries] == ["", found["verdict"]]
    assert re.search(r"-softpick-against-baseline-[0-9a-f]{8}\.md$", found["page"])
    assert (project.root / found["page"]).read_text().startswith("# `softpick` against `baseline`")
    again = project.python(*words)
    assert again.returncode == done.returncode
    assert "decided already" in again.stdout and "train transfer/" not in again.stdout
    assert "softpick" in project.python("-m", "plumbline", "log", "--preset", "smoke").stdout
    refused = project.python("-m", "plumbline", "try", "softpik", "--preset", "smoke")
    assert refused.returncode == 1 and "did you mean 'softpick'" in refused.stdout
