"""Keeps what is read while a run trains: values of online probes, and the scores that interventions decide from.

Online probes read every so many steps, before the first step, and after the last one. They change nothing: the model is
in evaluation mode, no gradient is kept, and random states are put back. What was read is part of every checkpoint, so
that a run that was interrupted ends with the same frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from plumbline.probes import ProbeValue, rows, write
from plumbline.specs.spec import ProbeSpec, RunSpec


class OnlineProbes:
    """The online probes of one run and the values that they read, in the order of the steps."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.probes = [probe for probe in spec.probes if probe.every]
        self.probe_values: list[tuple[int, ProbeValue]] = []
        self.measured: list[tuple[int, ProbeValue]] = []

    def due(self, step: int) -> list[ProbeSpec]:
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

    def add_measured(self, measured: Iterable[tuple[int, str, float, float | None]]) -> None:
        """Add the values that interventions read (they keep them themselves meanwhile): step, name, value and null."""
        self.measured += [
            (step, ProbeValue(probe=name, value=value, null=null)) for step, name, value, null in measured
        ]

    def so_far(self) -> OnlineProbes:
        """Copy the values so far, for a checkpoint to which none is added any more."""
        same = OnlineProbes(self.spec)
        same.probe_values = list(self.probe_values)
        return same

    def write(self, path: Path) -> None:
        """Write all values as the run's frame of online probes."""
        steps = self.spec.train.steps
        found = [(step, step / steps, probe_value) for step, probe_value in self.probe_values + self.measured]
        write(path, rows(self.spec.run_id, "online", found), {"run_id": self.spec.run_id})
