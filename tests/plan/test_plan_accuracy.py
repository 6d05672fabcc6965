"""The comparison of the plan with benchmark files: one calibration run, and nothing else that is measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from plumbline.plan.run_estimate import estimator
from plumbline.project import load
from plumbline.specs.yaml_files import load_config
from tests.plan.finished_run_files import BASELINE, finish


def test_runs_twice_as_slow_as_predicted_are_found_so(repository: Path, tmp_path: Path) -> None:
    whole = load(load_config() | {"preset": "demo", "work": str(tmp_path)})
    finish(whole, whole.runs[BASELINE], seconds=30.0, evaluation=9.0)
    priced = estimator(whole)
    for method in ("softpick", "hyper"):
        run = whole.runs[f"transfer/base/{method}/s42"]
        inside = 2 * priced.pretrain_seconds(run) - 10
        finish(whole, run, seconds=inside, evaluation=2 * priced.evaluate_seconds(run))
    script, out = repository / "benchmarks" / "plan_accuracy.py", tmp_path / "accuracy.md"
    process = subprocess.run(
        [sys.executable, script, "--work", tmp_path, "--out", out], cwd=repository, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    text = out.read_text()
    assert "2 of the target's 28" in text
    assert "Within a factor of 1.5: **no** (0.50)" in text


def test_without_the_calibration_run_it_says_what_to_do(repository: Path, tmp_path: Path) -> None:
    script = repository / "benchmarks" / "plan_accuracy.py"
    process = subprocess.run(
        [sys.executable, script, "--work", tmp_path], cwd=repository, capture_output=True, text=True
    )
    assert process.returncode == 1
    assert process.stderr.startswith(f"error: {BASELINE} is not trained")
