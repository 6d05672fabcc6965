"""Makes the frame of probes from their values, and tells which runs leave one of what was read during training."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from plumbline.evaluate.probes._base import ProbeValue
from plumbline.specs.spec import RunSpec

Row = dict[str, Any]

#: The name, among a run's outputs, of the frame of probes that were read while it trained.
ONLINE_FRAME = "online.parquet"


def make_rows(
    run_id: str,
    source: Literal["offline", "online"],
    values: Iterable[tuple[int | None, float | None, ProbeValue]],
) -> list[Row]:
    """Make rows of the frame from values, each given with its step and fraction of training (None if unknown)."""
    return [
        {
            "run_id": run_id,
            "step": step,
            "fraction": fraction,
            "layer": probe_value.layer,
            "head": probe_value.head,
            "probe": probe_value.probe,
            "value": probe_value.value,
            "null": probe_value.null,
            "source": source,
        }
        for step, fraction, probe_value in values
    ]


def write_frame(path: Path, rows: list[Row], metadata: dict[str, str]) -> None:
    """Write the frame of probes, which may have no rows."""
    import pandas as pd

    from plumbline.core import frames

    frame = pd.DataFrame(rows, columns=frames.SCHEMAS["probes"].names)
    frame = frame.astype({"step": "Int64", "layer": "Int64", "head": "Int64", "fraction": "float64"})
    frames.write(frame, "probes", path, metadata=metadata)


def leaves_frame(spec: RunSpec) -> bool:
    """Whether a run of `spec` writes a frame of what was read during training, even if it has no rows."""
    return any(probe.every for probe in spec.probes) or bool(spec.interventions)
