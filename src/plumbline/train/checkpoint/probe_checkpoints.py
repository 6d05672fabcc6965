"""Keeps the weights at stated fractions of training for good: probe points.

A point of fraction f is at step round(f x steps), 0 being before the first step. While a run trains, its points lie in
its state directory, written and named like rolling checkpoints; with the outcome they come into ``points/`` of the
outputs, by a hard link where both are on one file system. The state keeps them, so that outputs that were deleted can
be given again. The last step's point is the run's own ``model.safetensors``.

``points/index.json`` names every point that was asked for; of a run that diverged, also those that it never reached.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic, atomic_write_json, free_name, fsync_directory, parse_json, sha256_file
from plumbline.runtime.probe_checkpoints import FOLDER, INDEX
from plumbline.specs.spec import RunSpec
from plumbline.train.checkpoint.rolling_checkpoints import METADATA, RollingCheckpoints, damage
from plumbline.train.checkpoint.state_records import how_to_restart
from plumbline.train.checkpoint.weight_files import MODEL, write_weights


class ProbeCheckpoints:
    """Keeps the probe points of one run. All methods but `due` are for rank 0 only."""

    def __init__(self, state: Path, spec: RunSpec) -> None:
        self.spec = spec
        self.kept = RollingCheckpoints(state / FOLDER, keep=None)
        fractions = sorted({fraction for probe in spec.probes for fraction in probe.at})
        #: Fraction -> step.
        self.steps = {fraction: round(fraction * spec.train.steps) for fraction in fractions}

    def due(self, step: int) -> bool:
        """Whether the weights after `step` are a probe point to be kept.

        Those of the last step are not: they are an output of every run.
        """
        return step in self.steps.values() and step < self.spec.train.steps

    def has(self, step: int, made_with: dict[str, str]) -> bool:
        """Whether the point of `step` is there, whole, and made with this code; one that is not is set aside."""
        path = self.kept.name(step)
        if not path.exists():
            return False
        fault = damage(path)
        if fault is None:
            metadata = parse_json((path / METADATA).read_text(encoding="utf-8"))
            others = [key for key, value in made_with.items() if metadata.get(key) != value]
            if not others:
                return True
            fault = f"made with another {', '.join(others)}"
        self._set_aside(path, fault)
        return False

    def keep(
        self, step: int, weights: dict[str, torch.Tensor], metadata: dict[str, Any], check: Callable[[], None]
    ) -> None:
        """Write the probe point of `step`, whole or not at all; `check` is called before it gets its name."""
        self.kept.directory.mkdir(exist_ok=True)
        fsync_directory(self.kept.directory.parent)
        temporary = self.kept.begin(step)
        write_weights(temporary / MODEL, weights)
        self.kept.finish(temporary, step, metadata, check=check)

    def lost(self, step: int, diverged: bool) -> list[int]:
        """List the steps of points that are missing and that a run which continues after `step` cannot make any
        more.

        Sizes are compared here, not checksums: it costs nothing at a start.
        """
        passed = {point for point in self.steps.values() if self.due(point) and point < step + diverged}
        return sorted(point for point in passed if damage(self.kept.name(point), checksums=False) is not None)

    def leave(self, directory: Path, step: int, completed: bool) -> None:
        """Put all points up to `step`, the last one made, into `directory` of the outputs, and an index of all asked
        for.

        Raises:
            PlumblineError: a point is not as it was written.
        """
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        found: dict[int, dict[str, Any]] = {}
        for point in sorted({point for point in self.steps.values() if point <= step}):
            if completed and point == self.spec.train.steps:
                weights = directory.parent / MODEL
                note = "the run's final weights, not stored twice"
                found[point] = {"file": f"../{MODEL}", "sha256": sha256_file(weights), "note": note}
            elif self.due(point):
                found[point] = self._leave_one(directory, point)
        unreached = {"file": None, "sha256": None}
        entries = [
            {"fraction": fraction, "step": point, "reached": point in found, **found.get(point, unreached)}
            for fraction, point in self.steps.items()
        ]
        index = {"run_id": self.spec.run_id, "steps": self.spec.train.steps, "points": entries}
        atomic_write_json(directory / INDEX, index)

    def _leave_one(self, directory: Path, step: int) -> dict[str, Any]:
        """Link or copy one point; returns where it is, and its checksum."""
        kept = self.kept.name(step)
        fault = damage(kept)
        if fault is not None:
            raise PlumblineError(
                f"{kept}: the weights of a probe point are damaged ({fault}), and only training can make them: "
                f"restore a copy, or {how_to_restart(self.kept.directory.parent)}"
            )
        target = directory / f"{kept.name}.safetensors"
        try:
            os.link(kept / MODEL, target)
        except OSError:  # another file system, or one without links
            with open(kept / MODEL, "rb") as original, atomic(target) as copy:
                shutil.copyfileobj(original, copy, 1 << 20)
        fsync_directory(directory)
        metadata = parse_json((kept / METADATA).read_text(encoding="utf-8"))
        return {"file": target.name, "sha256": metadata["files"][MODEL]["sha256"]}

    def _set_aside(self, path: Path, why: str) -> None:
        aside = free_name(path, "set-aside")
        os.rename(path, aside)
        print(f"probe point {path}: {why}; set aside as {aside.name}", file=sys.stderr)
