"""Reads what a study's run, as Plumbline's own trainer left it, says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plumbline.verdict.evidence import CRASH, FINISHED, RunEvidence


def run_evidence(
    folder: Path, outcome: Mapping[str, Any], manifest: Mapping[str, Any], value: float | None
) -> RunEvidence:
    """Collect what a run's `outcome.json` and `manifest.json` say; `value`: its metric, None if it has none."""
    completed = outcome["outcome"] == "completed"
    return RunEvidence(
        value=value if completed else None,
        file=folder / "outcome.json",
        status=FINISHED if completed else CRASH,
        word="" if completed else str(outcome["outcome"]),
        step=outcome.get("step"),
        started=manifest.get("started"),
        seconds=manifest.get("wall_seconds"),
        tokens=manifest.get("tokens"),
        parameters=manifest.get("parameters"),
        memory_bytes=manifest.get("peak_memory_bytes"),
    )
