"""Measures speed on finished runs: operations a second of training, and seconds of everything around it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from plumbline.core import run_files
from plumbline.core.errors import PlumblineError, warn_once, warn_unread
from plumbline.core.permissions import explain_denial
from plumbline.plan.job_needs import amount, inside_evaluation
from plumbline.plan.machines import Machine
from plumbline.plan.model_counts import Sizes, training_operations
from plumbline.project import Project
from plumbline.specs.experiment_runs import own_scale
from plumbline.specs.study_config import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Speeds, start-up times and memory, as medians over finished runs; None, or no entry, where there is none.

    `speed` by study and scale: operations a second of a baseline on one device. `pretrain_start`, `evaluate_start`:
    seconds of a job outside its steps (interpreter, imports, loading, saving). `runs`: how many runs the speed rests
    on. `seconds`: what was read, by run: seconds of the training itself, of its job, and of the evaluation's job.
    `memory`: the most bytes that a run of a study and scale took on a device, where its trainer recorded them.
    """

    speed: dict[tuple[str, str], float]
    pretrain_start: float | None
    evaluate_start: float | None
    runs: int
    seconds: dict[str, tuple[float, float | None, float | None]]
    memory: dict[tuple[str, str], int]


#: What of a manifest is read here.
_READ = {
    "wall_seconds": (int, float),
    "tokens": (int,),
    "world_size": (int,),
    "attempts": (int,),
    "device": (str,),
    "device_name": (str,),
}
#: Those that no run has 0 of: one that diverged at its first step has no tokens.
_POSITIVE = ("wall_seconds", "world_size")
#: An upper limit that no real run reaches; infinity and not-a-number are not below it either.
_UNBELIEVABLE = 1e11
#: What no device holds.
_MOST_BYTES = 1e15


def calibrate(project: Project, machine: Machine, sizes: Sizes, runs: Iterable[Run]) -> Calibration:
    """Measure speed on those of `runs` that `machine` has finished, from their manifests and Snakemake's benchmark
    files.
    """
    work = Path(project.paths.work)
    speeds: dict[tuple[str, str], list[float]] = {}
    memory: dict[tuple[str, str], int] = {}
    starts, evaluations, read = [], [], {}
    for run in runs:
        manifest = read_finished(run, work)
        if manifest is None or not machine.is_named_in(manifest):
            continue
        seconds, size = manifest["wall_seconds"], sizes(run.spec.model)
        if manifest["tokens"] == run.spec.train.steps * run.spec.train.batch_tokens:
            effort = training_operations(run, size, machine.updating(manifest["world_size"])) * machine.relative(run)
            speeds.setdefault(group(run), []).append(effort / (seconds * manifest["world_size"]))
        job, evaluation = (job_seconds(work, rule, run) for rule in ("pretrain", "evaluate"))
        if job is not None and manifest["attempts"] == 1:
            starts.append(max(0.0, job - seconds))
        if (
            run.suite
            and run.scores_key == run.key
            and evaluation is not None
            and Path(project.paths.scores(run)).exists()
        ):
            evaluations.append((run, size.forward, evaluation))
        read[run.key] = (seconds, job, evaluation)
        if type(most := manifest.get("peak_memory_bytes")) is int and 0 < most < _MOST_BYTES:
            memory[group(run)] = max(most, memory.get(group(run), 0))
    speed = {key: median(values) for key, values in speeds.items()}
    evaluate_starts = []
    for run, forward, seconds in evaluations:
        there = amount(project, run)
        if there is not None and group(run) in speed:
            inside = inside_evaluation(there, forward, speed[group(run)] * machine.evaluation_speed)
            evaluate_starts.append(max(0.0, seconds - inside))
    return Calibration(
        speed=speed,
        pretrain_start=median(starts) if starts else None,
        evaluate_start=median(evaluate_starts) if evaluate_starts else None,
        runs=sum(len(values) for values in speeds.values()),
        seconds=read,
        memory=memory,
    )


def group(run: Run) -> tuple[str, str]:
    """Name the group of runs that share a run's speed: its study and scale, however many steps they make."""
    return run.spec.study, own_scale(run.spec.scale)


def read_finished(run: Run, work: Path) -> dict[str, Any] | None:
    """Read the manifest of a run that was trained under this very spec; None if it was not.

    A manifest that is damaged, or may not be read, is a warning, and the run counts as one that is to be done.
    """
    folder = work / "runs" / run.key
    path = folder / "manifest.json"
    try:
        if not ((folder / "outcome.json").exists() and path.exists()):
            return None
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if manifest["run_id"] != run.spec.run_id:
            return None
        run_files.require_manifest(path, manifest)
        wrong = [name for name, types in _READ.items() if type(manifest.get(name)) not in types]
        trouble = f"has no {wrong[0]!r} that can be read" if wrong else _describe_impossible(manifest)
    except PermissionError:
        warn_once(f"{explain_denial(folder)}; {run.key} counts as not done")
        return None
    except OSError as error:
        warn_once(
            f"{path} cannot be read ({error.strerror}), so {run.key} counts as not done here; nothing was changed"
        )
        return None
    except PlumblineError as error:
        warn_once(f"{error}; until then {run.key} counts as not done")
        return None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        trouble = f"is not the manifest of a run ({error!r})"
    if trouble:
        warn_once(f"{path} {trouble}, so {run.key} counts as not done; delete its folder to repeat the run")
        return None
    return manifest


def _describe_impossible(manifest: dict[str, Any]) -> str:
    """Describe the first number of a manifest that no run can have; empty if there is none."""
    for name in (name for name, types in _READ.items() if int in types):
        value = manifest[name]
        if not 0 <= value < _UNBELIEVABLE or (name in _POSITIVE and value == 0):
            return f"has a {name!r} of {value!r:.40}"
    return ""


def job_seconds(work: Path, rule: str, run: Run) -> float | None:
    """Read the wall seconds of a run's job from the file that Snakemake's `benchmark:` left; None if there is none.

    A damaged file is a warning, and gives None.
    """
    path = work / "benchmarks" / rule / f"{run.key.replace('/', '.')}.jsonl"
    if not path.exists():
        return None
    try:
        lines = path.read_text(encoding="utf-8").strip().splitlines()
        if not lines:
            return None
        seconds = float(json.loads(lines[-1])["s"])
        if not 0 < seconds < _UNBELIEVABLE:
            raise ValueError(f"{seconds} seconds")
        return seconds
    except OSError as error:
        warn_unread(path, error)
        return None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        warn_once(f"{path} is not a benchmark of a job ({error!r}) and is not used; delete it")
        return None
