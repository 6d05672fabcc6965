"""Compares what a record has of a run with the same run trained again.

A run is *equal* where weights, outcome and all logged values are bit for bit the record's. Where the record was made on
another kind of processor, or with other code, packages or settings, or does not say on which, it is *near* if no loss
lies further from the record's than `FINAL` and `LOGGED` allow, and else *different*; on the same kind whatever is not
equal is different.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from plumbline.core import fingerprint_file, frames, run_files
from plumbline.core.errors import PlumblineError
from plumbline.core.files import parse_json
from plumbline.results.runs.finished_runs import METRICS

Status = Literal["equal", "near", "different"]
EQUAL: Status = "equal"
NEAR: Status = "near"
DIFFERENT: Status = "different"
STATUSES = (EQUAL, NEAR, DIFFERENT)

#: Nats that losses may lie from the record's on another kind of processor. The final held-out loss: the most that
#: processors of two makers were measured to differ by in demo runs (benchmarks/precisions.md: baseline 0.0001, softpick
#: 0.005, HybridNorm 0.016). But two seeds of one method end as near in over half of all pairs of the kept records.
#: Any logged loss: less than any such pair differs by at its furthest step (0.041 and more, mostly 0.15).
FINAL, LOGGED = 0.016, 0.04

#: What of two manifests has to be alike for a run to come out bit for bit.
_KIND = (
    *("device", "device_name", "processor", "torch_threads", "deterministic_algorithms", "tf32"),
    *("compiled", "micro_batch", "accumulation", "recompute", "strategy", "world_size"),
)
_PACKAGES = ("torch", "numpy")
_ENDING = ("outcome", "step", "last_finite_step", "weights_step")
#: Losses that an outcome names, and how far each may lie from the record's.
_LOSSES = {"last_finite_loss": LOGGED, "validation_loss": FINAL}
#: What a manifest counts, and tables print.
_COUNTS = ("parameters", "tokens")
_WEIGHTS = (run_files.MODEL, f"{run_files.POINTS}/{run_files.POINTS_INDEX}")


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """What is kept of a run: its manifest, outcome and metrics over steps."""

    manifest: dict[str, Any]
    outcome: dict[str, Any]
    metrics: pd.DataFrame

    @property
    def key(self) -> str:
        """The run's place among the runs: ``study/scale/method/sSEED``."""
        spec = self.manifest["spec"]
        return f"{spec['study']}/{spec['scale']}/{spec['method']}/s{spec['init_seed']}"

    @classmethod
    def read(cls, folder: Path) -> RecordedRun:
        """Read a run's folder, whose files must be those that its manifest names.

        Raises:
            PlumblineError: naming the file that is missing, or is not as it was written.
        """
        path = folder / "manifest.json"
        manifest = fingerprint_file.read(path)
        if manifest is None:
            raise PlumblineError(f"{path} is not there, or is no manifest of a run")
        run_files.require_manifest(path, manifest)
        for name in (METRICS, "outcome.json"):
            if not (folder / name).is_file():
                raise PlumblineError(
                    f"there is no {folder / name}, which every run has; make or restore the record again"
                )
            run_files.require(folder, manifest, name)
        outcome = parse_json((folder / "outcome.json").read_bytes())
        return cls(manifest=manifest, outcome=outcome, metrics=frames.read(folder / METRICS, "metrics"))


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrainedRun:
    """A run that was trained again, and how it compares with the record's.

    `distance`: nats between the logged losses that lie furthest apart; None where the two did not log the same steps.
    """

    key: str
    status: Status
    distance: float | None
    why: str


def compare(recorded: RecordedRun, trained: RecordedRun) -> RetrainedRun:
    """Compare a run that was trained again with what a record has of it."""
    same_weights = _hash_weights(recorded) == _hash_weights(trained)
    names = [name for name in (*_ENDING, *_LOSSES) if recorded.outcome.get(name) != trained.outcome.get(name)]
    ending, losses = [name for name in names if name in _ENDING], [name for name in names if name in _LOSSES]
    # Keys that only one version writes are no difference.
    other_names = sorted(
        name
        for name in recorded.outcome.keys() & trained.outcome.keys() - {*_ENDING, *_LOSSES}
        if recorded.outcome[name] != trained.outcome[name]
    )
    counts = [
        f"{name} {recorded.manifest[name]}, here {trained.manifest[name]}"
        for name in _COUNTS
        if name in recorded.manifest and recorded.manifest[name] != trained.manifest[name]
    ]
    same_log = recorded.metrics.equals(trained.metrics)
    distance = _find_distance(recorded, trained)
    differences = list_differences(recorded.manifest, trained.manifest)
    if same_weights and same_log and not (names or other_names or counts):
        why = f"weights bit for bit, and all {len(trained.metrics)} logged losses"
        return RetrainedRun(key=recorded.key, status=EQUAL, distance=0.0, why=why)
    reasons = [f"{name} is {recorded.outcome.get(name)}, here {trained.outcome.get(name)}" for name in names]
    reasons += [f"its outcome has another {name}" for name in other_names] + counts
    if same_weights:
        reasons.insert(0, "weights are bit for bit the record's, and what it says of them is not")
        reasons += [] if same_log else [f"{METRICS} has other values"]
        status = DIFFERENT
    else:
        gap = "the logs cannot be compared" if distance is None else f"logged losses up to {distance:.2g} nats apart"
        reasons.insert(0, f"other weights; {gap}")
        is_far = bool(ending or counts) or distance is None or distance > LOGGED
        is_far |= any(_find_gap(name, recorded, trained) > limit for name, limit in _LOSSES.items())
        is_far |= same_log and not losses  # as no rounding leaves them
        status = DIFFERENT if is_far or not differences else NEAR
        reasons.append(
            "made with " + "; ".join(differences)
            if differences
            else "on the same kind of processor, with the same packages"
        )
    return RetrainedRun(key=recorded.key, status=status, distance=distance, why="; ".join(reasons))


def list_differences(recorded: Mapping[str, Any], trained: Mapping[str, Any]) -> list[str]:
    """List what a run was made with that was not the same, or of which the record says nothing."""
    on_gpu = recorded.get("device") == trained.get("device") == "cuda"
    before, now = (
        {name: facts.get(name) for name in _KIND if not (on_gpu and name == "processor")}
        | {name: (facts.get("packages") or {}).get(name) for name in _PACKAGES}
        | {
            "code": str(facts.get("code_sha256"))[:12],
            "attention": (facts.get("attention") or {}).get("kernel"),
            "environment": _select_environment(facts),
        }
        for facts in (recorded, trained)
    )
    return [
        f"{name} {'not recorded' if before[name] is None else before[name]}, here {now[name]}"
        for name in before
        if before[name] != now[name]
    ]


def _select_environment(manifest: Mapping[str, Any]) -> dict[str, str] | None:
    """Variables that change numbers, but for numbers of threads, of which `torch_threads` has what came out."""
    environment = manifest.get("environment")
    if environment is None:
        return None
    return {name: value for name, value in environment.items() if not name.endswith("_NUM_THREADS")}


def _hash_weights(run: RecordedRun) -> list[str | None]:
    """The SHA-256 of the weights and of the index of probe points, which has theirs; None where there is none."""
    return [run.manifest.get("files", {}).get(name, {}).get("sha256") for name in _WEIGHTS]


def _find_distance(recorded: RecordedRun, trained: RecordedRun) -> float | None:
    """Nats between the logged losses of two runs that lie furthest apart; None where they log other steps, or one of
    them a loss that is no number."""
    before, now = recorded.metrics, trained.metrics
    steps = ["step", "split"]
    if not before[steps].equals(now[steps]) or not before["loss"].isna().equals(now["loss"].isna()):
        return None
    distance = float((before["loss"] - now["loss"]).abs().max())
    return distance if math.isfinite(distance) else None


def _find_gap(name: str, recorded: RecordedRun, trained: RecordedRun) -> float:
    """Nats between two losses of outcomes; 0 where neither has one (both diverged), infinite where one is no number."""
    before, now = (run.outcome.get(name) for run in (recorded, trained))
    if before is None and now is None:
        return 0.0
    are_numbers = isinstance(before, float) and isinstance(now, float) and math.isfinite(before - now)
    return abs(before - now) if are_numbers else math.inf


def read_runs(folder: Path) -> list[RecordedRun]:
    """Read all runs below a folder, in order of their keys.

    Raises:
        PlumblineError: naming a file that is not as it was written, or a run that lies in another one's place, where
            tables would take it for that one.
    """
    runs = []
    for manifest in sorted(folder.rglob("manifest.json")):
        run = RecordedRun.read(manifest.parent)
        if (place := manifest.parent.relative_to(folder).as_posix()) != run.key:
            raise PlumblineError(f"{manifest} is that of run {run.key}, and lies in the place of {place}")
        runs.append(run)
    return runs
