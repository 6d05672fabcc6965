"""Writes the outputs of a run: weights, metrics, probe points, manifest, and last of all the outcome."""

from __future__ import annotations

import math
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import torch

from plumbline.core import fingerprint_file, process_record, provenance
from plumbline.core.files import atomic_write_json, fsync_directory, sha256_file
from plumbline.core.run_files import MODEL, POINTS, POINTS_INDEX
from plumbline.evaluate.probes._frame import ONLINE_FRAME, leaves_frame
from plumbline.model.cpu_matmul import describe_rounding
from plumbline.model.numerics import float32_error
from plumbline.specs.spec import RunSpec
from plumbline.train.checkpoint.checkpoint_saver import CheckpointSaver
from plumbline.train.disk_faults import guard_write
from plumbline.train.loop import TrainingLoop
from plumbline.train.monitoring import peak_memory
from plumbline.train.monitoring.run_metrics import OnlineProbes, RunMetrics

#: The outputs in the order in which they come to their place.
OUTPUTS = ("metrics.parquet", MODEL, POINTS, "manifest.json", "outcome.json")

#: Where they are written first, with a name of this trainer's own.
_STAGING = ".leaving-"

#: Steps of gradient norms that a divergence is classified by.
TAIL = 200


def outcome(spec: RunSpec, metrics: RunMetrics, divergence: dict[str, Any] | None, step: int) -> dict[str, Any]:
    """Compose the content of ``outcome.json``.

    `step` is the last step (of a diverged run, the one that diverged); `last_finite_step` the last one whose loss and
    gradient norm were numbers (that of a run whose last update was no numbers is the step that diverged);
    `weights_step` the updates that the weights have seen.
    """
    step = step if divergence is None else divergence["step"]
    last = metrics.last_finite_train()
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


def compose_manifest(loop: TrainingLoop, starts: list[dict[str, Any]], settings_used: dict[str, Any]) -> dict[str, Any]:
    """Compose the content of ``manifest.json``.

    Args:
        starts: the entries of ``starts.json``.
        settings_used: as they came out (micro-batch, compilation and so on).
    """
    parts = loop.parts
    facts = {
        **provenance.describe_code(),
        **provenance.describe_machine(parts.ranks.device, float32_error(parts.ranks.device)),
        "packages": provenance.list_packages(),
        "lock_sha256": provenance.lock_sha256(),
        **settings_used,
    }
    if parts.spec.train.precision == "bfloat16_inputs":
        facts["inputs_rounded_by"] = describe_rounding()
    # A finished run's outputs may be given again elsewhere, under other code and settings: its start knows.
    start_facts = facts | {key: value for key, value in starts[-1].items() if key in facts}
    return {
        "run_id": parts.spec.run_id,
        "spec": parts.spec.to_dict(),
        **start_facts,
        "code": provenance.list_code_versions(starts),
        "code_sha256": provenance.find_code_hash(starts),
        "data_fingerprint": parts.pack.fingerprint,
        "validation_fingerprint": parts.validation.fingerprint,
        "tokenizer_sha256": parts.pack.tokenizer_sha256,
        "precision": parts.spec.train.precision,
        "started": starts[0]["time"],
        "finished": process_record.now(),
        "wall_seconds": round(loop.state.seconds, 3),
        **peak_memory.find_largest_peak(starts),
        "attempts": len(starts),
        "resumed_from": [entry["step"] for entry in starts if entry["resumed"]],
        "starts": starts,
        "parameters": sum(value.numel() for value in parts.model.parameters()),
        "tokens": loop.tokens,
    }


def write(
    directory: Path,
    *,
    weights: dict[str, torch.Tensor],
    metrics: RunMetrics,
    saver: CheckpointSaver,
    online: OnlineProbes,
    last: int,
    manifest: dict[str, Any],
    result: dict[str, Any],
) -> None:
    """Write all outputs into `directory`, ``outcome.json`` last; `last` is the last step made.

    They are written beside their places and then renamed one by one, each after `saver.check`: where the run is not
    this trainer's any more, the outputs of the other one are left alone. The manifest gets
    the size and SHA-256 of every other file that readers open.

    Raises:
        PlumblineError: the disk is full, or a probe point is damaged.
    """

    def write_all() -> None:
        saver.check()
        directory.mkdir(parents=True, exist_ok=True)
        for leftover in directory.glob(f"{_STAGING}*"):  # of a trainer that was killed here
            shutil.rmtree(leftover, ignore_errors=True)
        staging = directory / f"{_STAGING}{secrets.token_hex(4)}"
        try:
            staging.mkdir()
            metrics.write(staging / "metrics.parquet", result["run_id"])
            saver.leave(staging, weights, last, result["outcome"] == "completed")
            if leaves_frame(online.spec):
                online.write(staging / POINTS / ONLINE_FRAME)
            atomic_write_json(staging / "outcome.json", result)
            names = ("metrics.parquet", MODEL, f"{POINTS}/{POINTS_INDEX}", f"{POINTS}/{ONLINE_FRAME}", "outcome.json")
            files = {name: _file_facts(staging / name) for name in names if (staging / name).exists()}
            fingerprint_file.write_facts(staging / "manifest.json", manifest | {"files": files})
            saver.check()
            (directory / "outcome.json").unlink(missing_ok=True)
            for name in OUTPUTS:
                saver.check()
                if (directory / name).is_dir():
                    os.rename(directory / name, staging / f"old-{name}")
                os.replace(staging / name, directory / name)
                fsync_directory(directory)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    guard_write(directory, write_all)


def _file_facts(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256_file(path)}


def _final_validation(metrics: RunMetrics, step: int) -> float | None:
    """The held-out loss after the last step; null if it is no number, which JSON does not have."""
    loss = metrics.find_validation_loss(step)
    assert loss is not None
    return loss if math.isfinite(loss) else None
