"""What finished runs say about speed: operations a second of training, and seconds of everything around it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from plumbline.cli import PlumblineError
from plumbline.plan.evaluation import suite_size
from plumbline.plan.machines import Machine
from plumbline.plan.size import Sizes, training_tokens
from plumbline.project import Plan
from plumbline.specs.sheet import Run

#: Seconds that the evaluation harness spends on one item outside the model (counted on 300 items a task).
HARNESS_SECONDS_PER_ITEM = 0.002


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Medians over finished runs; None, or no entry, where there is none.

    `speed` by scale: operations a second of a baseline on one device. `pretrain_start`, `evaluate_start`: seconds of
    a job outside its steps (interpreter, imports, loading, saving). `runs`: how many runs the speed rests on.
    """

    speed: dict[str, float]
    pretrain_start: float | None
    evaluate_start: float | None
    runs: int


#: What of a manifest is read here.
_READ = {"wall_seconds", "tokens", "world_size", "attempts", "device", "device_name"}


def measure(plan: Plan, machine: Machine, sizes: Sizes, runs: Iterable[Run]) -> Calibration:
    """Read manifests and Snakemake's benchmark files of those of `runs` that `machine` has finished."""
    work = Path(plan.work)
    speeds: dict[str, list[float]] = {}
    starts, evaluations = [], []
    for run in runs:
        manifest, size = finished(run, work), sizes(run.spec.model)
        if manifest is None or size is None or not machine.made(manifest):
            continue
        seconds = manifest["wall_seconds"]
        if manifest["tokens"] == run.spec.train.steps * run.spec.train.batch_tokens and seconds > 0:
            effort = training_tokens(run) * size.training * machine.relative(run)
            speeds.setdefault(run.spec.scale, []).append(effort / (seconds * manifest["world_size"]))
        job = job_seconds(work, "pretrain", run)
        if job is not None and manifest["attempts"] == 1:
            starts.append(max(0.0, job - seconds))
        evaluation = job_seconds(work, "evaluate", run)
        if evaluation is not None and (work / "scores" / run.key / "scores.parquet").exists():
            evaluations.append((run, size.forward, evaluation))
    speed = {scale: median(values) for scale, values in speeds.items()}
    evaluate_starts = []
    for run, forward, seconds in evaluations:
        amount = suite_of(plan, run)
        if amount is not None and run.spec.scale in speed:
            inside = inside_evaluation(amount, forward, speed[run.spec.scale] * machine.evaluation_speed)
            evaluate_starts.append(max(0.0, seconds - inside))
    return Calibration(
        speed=speed,
        pretrain_start=median(starts) if starts else None,
        evaluate_start=median(evaluate_starts) if evaluate_starts else None,
        runs=sum(len(values) for values in speeds.values()),
    )


def suite_of(plan: Plan, run: Run) -> tuple[int, float] | None:
    """Items and tokens of a run's evaluation; None where a task's size is not known."""
    model = run.spec.model
    suite, limit = plan.studies[run.spec.study].sheet["suite"], plan.preset["evaluation"]["limit"]
    return suite_size(suite, limit, Path(plan.work) / "items", model.context, model.vocabulary)


def inside_evaluation(amount: tuple[int, float], forward: float, flops_per_second: float) -> float:
    """Seconds of an evaluation after its start-up: the harness's own for each item, and the forward passes."""
    items, tokens = amount
    return items * HARNESS_SECONDS_PER_ITEM + tokens * forward / flops_per_second


def finished(run: Run, work: Path) -> dict[str, Any] | None:
    """The manifest of a run that was carried out under this very spec, or None.

    Raises:
        PlumblineError: the manifest cannot be read, or lacks what a manifest has.
    """
    folder = work / "runs" / run.key
    if not ((folder / "outcome.json").exists() and (folder / "manifest.json").exists()):
        return None
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if manifest["run_id"] != run.spec.run_id:
            return None
        missing = sorted(_READ - set(manifest))
    except (ValueError, TypeError, KeyError) as error:
        raise PlumblineError(
            f"{path} is no manifest of a run ({error!r}); delete its folder to repeat the run"
        ) from error
    if missing:
        raise PlumblineError(f"{path} has no {missing[0]!r}; delete its folder to repeat the run")
    return manifest


def job_seconds(work: Path, rule: str, run: Run) -> float | None:
    """Wall seconds of a run's job, from the file that Snakemake's `benchmark:` left; None if there is none."""
    path = work / "benchmarks" / rule / f"{run.key.replace('/', '.')}.jsonl"
    if not path.exists():
        return None
    lines = path.read_text(encoding="utf-8").strip().splitlines()
    return float(json.loads(lines[-1])["s"]) if lines else None
