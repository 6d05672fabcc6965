"""Names the frame of probes that were read while a run trained, and tells which runs have one."""

from __future__ import annotations

from plumbline.specs.spec import RunSpec

#: Its name among a run's outputs.
FILE = "online.parquet"


def leaves_frame(spec: RunSpec) -> bool:
    """Whether a run of `spec` writes a frame of what was read during training, even if it has no rows."""
    return any(probe.every for probe in spec.probes) or bool(spec.interventions)
