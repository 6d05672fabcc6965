"""What a run leaves behind: weights, metrics, probe points, manifest, and last of all the outcome."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch

from plumbline.files import atomic_write_json
from plumbline.specs.spec import RunSpec
from plumbline.train.checkpoint import guarded
from plumbline.train.metrics import Metrics
from plumbline.train.online import FILE, Online, leaves_frame
from plumbline.train.points import FOLDER, Points
from plumbline.train.snapshot import MODEL, write_weights

#: The files beside the folder of probe points.
OURS = ("metrics.parquet", MODEL, "manifest.json", "outcome.json")

#: Steps of gradient norms that a divergence is classified by.
TAIL = 200


def outcome(spec: RunSpec, metrics: Metrics, divergence: dict[str, Any] | None, step: int) -> dict[str, Any]:
    """The content of ``outcome.json``.

    `step` is the last step (of a diverged run, the one that diverged); `last_finite_step` the last one whose loss
    and gradient norm were numbers; `weights_step` the updates that the weights have seen.
    """
    step = step if divergence is None else divergence["step"]
    last = metrics.last_train(step if divergence is not None else step + 1)
    return {
        "run_id": spec.run_id,
        "study": spec.study,
        "preset": spec.preset,
        "scale": spec.scale,
        "method": spec.method,
        "init_seed": spec.init_seed,
        "outcome": "completed" if divergence is None else "diverged",
        "steps": spec.train.steps,
        "step": step,
        "last_finite_step": None if last is None else last[0],
        "last_finite_loss": None if last is None else last[2],
        "validation_loss": _final_validation(metrics, step) if divergence is None else None,
        "reason": None if divergence is None else divergence["reason"],
        "weights_step": step if divergence is None else divergence["weights_step"],
        "grad_norm_tail": metrics.grad_norm_tail(TAIL),
    }


def write(
    directory: Path,
    *,
    weights: dict[str, torch.Tensor],
    metrics: Metrics,
    points: Points,
    online: Online,
    last: int,
    manifest: dict[str, Any],
    result: dict[str, Any],
) -> None:
    """Write all outputs into `directory`, each atomically, ``outcome.json`` last; `last` is the last step made.

    Raises:
        PlumblineError: the disk is full, or a probe point is damaged.
    """

    def write_all() -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "outcome.json").unlink(missing_ok=True)
        for name in OURS:  # what a trainer that was killed here was about to rename
            for leftover in directory.glob(f".{name}.*"):
                leftover.unlink()
        metrics.write(directory / "metrics.parquet", result["run_id"])
        write_weights(directory / MODEL, weights)
        points.leave(directory / FOLDER, last, result["outcome"] == "completed")
        if leaves_frame(online.spec):
            online.write(directory / FOLDER / FILE)
        atomic_write_json(directory / "manifest.json", manifest)
        atomic_write_json(directory / "outcome.json", result)

    guarded(directory, write_all)


def _final_validation(metrics: Metrics, step: int) -> float | None:
    """The held-out loss after the last step; null if it is no number, which JSON does not have."""
    loss = metrics.validated(step)
    assert loss is not None
    return loss if math.isfinite(loss) else None
