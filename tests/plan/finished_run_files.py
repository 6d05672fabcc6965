"""Files that finished runs leave, and rows of a plan by target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from plumbline.plan.run_estimate import RunEstimator
from plumbline.plan.target_costs import make_table
from plumbline.project import Project
from plumbline.specs.study_config import Run

BASELINE = "transfer/base/baseline/s42"


def finish(whole: Project, run: Run, *, seconds: float, evaluation: float | None = None, **changes: Any) -> None:
    """Leave the files of a run that took `seconds` inside and ten more outside."""
    work = Path(whole.paths.work)
    folder = work / "runs" / run.key
    folder.mkdir(parents=True)
    manifest = {
        "run_id": run.spec.run_id,
        "wall_seconds": seconds,
        "tokens": run.spec.train.steps * run.spec.train.batch_tokens,
        "world_size": 1,
        "attempts": 1,
        "device": "cpu",
        "device_name": "any processor",
    }
    (folder / "manifest.json").write_text(json.dumps(manifest | changes))
    (folder / "outcome.json").write_text("{}")
    benchmark(work, "pretrain", run, seconds + 10)
    if evaluation is not None:
        scores = work / "scores" / run.key
        scores.mkdir(parents=True)
        (scores / "scores.parquet").touch()
        benchmark(work, "evaluate", run, evaluation)


def benchmark(work: Path, rule: str, run: Run, seconds: float) -> None:
    path = work / "benchmarks" / rule / f"{run.key.replace('/', '.')}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"s": seconds}) + "\n")


def by_target(priced: RunEstimator) -> pd.DataFrame:
    return make_table(priced).set_index("target")
