"""What finished runs say about speed: operations a second of training, and seconds of everything around it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from plumbline.studies.cost import training_flops_per_token
from plumbline.studies.sheet import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Measured on finished runs; None where there is none.

    `flops_per_second` on one device, `pretrain_overhead` seconds of a training job outside its steps (start-up,
    imports, saving), `evaluate` and `other` seconds of one such job. `runs`: how many runs it rests on.
    """

    flops_per_second: float | None
    pretrain_overhead: float | None
    evaluate: float | None
    runs: int


def training_flops(run: Run) -> float:
    """Operations of a whole run, validation included at a third of the price of training."""
    train, context = run.spec.train, run.spec.model.context
    passes = train.steps // train.validate_every + (train.steps % train.validate_every > 0)
    tokens = train.steps * train.batch_tokens + passes * train.validation_sequences * context / 3
    return tokens * training_flops_per_token(run.spec.model)


def measure(runs: list[Run], work: Path) -> Calibration:
    """Read manifests and Snakemake's benchmark files of those of `runs` that are finished."""
    speeds, overheads, evaluations = [], [], []
    for run in runs:
        manifest = finished(run, work)
        if manifest is None:
            continue
        seconds = manifest["wall_seconds"]
        if manifest["tokens"] == run.spec.train.steps * run.spec.train.batch_tokens:
            speeds.append(training_flops(run) / (seconds * manifest["world_size"]))
        name = run.key.replace("/", ".")
        job = benchmark_seconds(work / "benchmarks" / "pretrain" / f"{name}.jsonl")
        if job is not None and manifest["attempts"] == 1:
            overheads.append(max(0.0, job - seconds))
        evaluation = benchmark_seconds(work / "benchmarks" / "evaluate" / f"{name}.jsonl")
        if evaluation is not None:
            evaluations.append(evaluation)
    return Calibration(
        flops_per_second=median(speeds) if speeds else None,
        pretrain_overhead=median(overheads) if overheads else None,
        evaluate=median(evaluations) if evaluations else None,
        runs=len(speeds),
    )


def finished(run: Run, work: Path) -> dict[str, Any] | None:
    """The manifest of a run that was carried out under this very spec, or None."""
    folder = work / "runs" / run.key
    if not (folder / "outcome.json").exists():
        return None
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest if manifest["run_id"] == run.spec.run_id else None


def benchmark_seconds(path: Path) -> float | None:
    """Wall seconds of a job, from the file that Snakemake's `benchmark:` left."""
    if not path.exists():
        return None
    lines = path.read_text(encoding="utf-8").strip().splitlines()
    return float(json.loads(lines[-1])["s"]) if lines else None
