"""Keeps what a run measures, step by step: its metrics, and what online probes read. There are no clock times in it:
one run gives the same bytes everywhere.

Steps count from 1. A training row holds the loss before that step's update; a validation row the loss after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from plumbline.evaluate.probes import ProbeValue, make_rows, write_frame
from plumbline.specs.spec import ProbeSpec, RunSpec

#: As the ``metrics`` frame; a checkpoint keeps the rows so far in this form, too.
ROW = np.dtype(
    [
        ("step", "<i8"),
        ("split", "<U10"),
        ("loss", "<f8"),
        ("grad_norm", "<f8"),
        ("learning_rate", "<f8"),
        ("tokens", "<i8"),
    ]
)


class RunMetrics:
    """The rows of a run's metrics, in the order they were measured."""

    def __init__(self, rows: list[tuple[Any, ...]] | None = None) -> None:
        self.rows: list[tuple[Any, ...]] = rows or []

    def add_training(self, step: int, loss: float, grad_norm: float, learning_rate: float, tokens: int) -> None:
        """Add a training step: its mean loss a token (nats), the gradient's norm before clipping, and the tokens read
        so far.
        """
        self.rows.append((step, "train", loss, grad_norm, learning_rate, tokens))

    def add_validation(self, step: int, loss: float, learning_rate: float, tokens: int) -> None:
        """Add the validation loss (nats a token) after a step."""
        self.rows.append((step, "validation", loss, float("nan"), learning_rate, tokens))

    def find_validation_loss(self, step: int) -> float | None:
        """Look up the validation loss after `step`; None if it was not read."""
        for row in reversed(self.rows):
            if row[0] < step:
                break
            if row[0] == step and row[1] == "validation":
                return row[2]
        return None

    def last_finite_train(self) -> tuple[Any, ...] | None:
        """Find the last training row whose loss and gradient norm are finite numbers; None if there is none."""
        return next(
            (row for row in reversed(self.rows) if row[1] == "train" and np.isfinite(row[2]) and np.isfinite(row[3])),
            None,
        )

    def grad_norm_tail(self, steps: int) -> list[list[float]]:
        """List [step, gradient norm] of the last `steps` training rows whose norm is a finite number."""
        pairs = [[row[0], row[3]] for row in self.rows if row[1] == "train" and np.isfinite(row[3])]
        return pairs[-steps:]

    def copy(self) -> RunMetrics:
        """Copy the rows, for a checkpoint to which none is added any more."""
        return RunMetrics(list(self.rows))

    def write(self, path: Path, run_id: str) -> None:
        """Write the rows as the frame ``metrics.parquet``."""
        import pandas as pd

        from plumbline.core import frames

        frame = pd.DataFrame.from_records(self.rows, columns=list(ROW.names or ()))
        frames.write(frame, "metrics", path, metadata={"run_id": run_id})


class OnlineProbes:
    """The online probes of one run and the values that they read, in the order of the steps, and the scores that
    interventions decide from.

    Online probes read every so many steps, before the first step, and after the last one. They change nothing: the
    model is in evaluation mode, no gradient is kept, and random states are put back. What was read is part of every
    checkpoint, so that a run that was interrupted ends with the same frame.
    """

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.probes = [probe for probe in spec.probes if probe.every]
        self.probe_values: list[tuple[int, ProbeValue]] = []
        self.measurements: list[tuple[int, ProbeValue]] = []

    def list_due(self, step: int) -> list[ProbeSpec]:
        """List the probes that are still to be read after `step`."""
        if self.probe_values and self.probe_values[-1][0] >= step:
            return []
        return [probe for probe in self.probes if step % probe.every == 0 or step == self.spec.train.steps]

    def add(self, step: int, probe_values: list[ProbeValue]) -> None:
        """Add the values that probes read after `step`."""
        assert all(len(probe_value.probe) <= 64 for probe_value in probe_values), (
            "a checkpoint keeps 64 letters of a probe's name"
        )
        self.probe_values += [(step, probe_value) for probe_value in probe_values]

    def add_measurements(self, measurements: Iterable[tuple[int, str, float, float | None]]) -> None:
        """Add the values that interventions read (they keep them themselves meanwhile): step, name, value and null."""
        self.measurements += [
            (step, ProbeValue(probe=name, value=value, null=null)) for step, name, value, null in measurements
        ]

    def copy(self) -> OnlineProbes:
        """Copy the values so far, for a checkpoint to which none is added any more."""
        online = OnlineProbes(self.spec)
        online.probe_values = list(self.probe_values)
        return online

    def write(self, path: Path) -> None:
        """Write all values as the run's frame of online probes."""
        steps = self.spec.train.steps
        values = [(step, step / steps, probe_value) for step, probe_value in self.probe_values + self.measurements]
        write_frame(path, make_rows(self.spec.run_id, "online", values), {"run_id": self.spec.run_id})
