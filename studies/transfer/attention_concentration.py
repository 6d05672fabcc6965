"""Reads what the probe of attention weights says of a run, over all of its heads and layers.

Source: transfer study, appendices B.13 and E.3; what is measured is in
`plumbline.evaluate.probes.attention_concentration`, and why in the interpretations `attention_concentration`,
`logits_probed` and `probed_at`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from plumbline.results.runs.finished_runs import RunFrames


@dataclass(frozen=True, kw_only=True, slots=True)
class ConcentrationPoint:
    """Means over heads and layers at one step; `null` is the concentration of uniform attention."""

    step: int
    fraction: float
    concentration: float
    null: float
    largest_weight: float
    weight_sum: float
    logits_beyond: float


def points(frames: RunFrames, key: str) -> list[ConcentrationPoint]:
    """What was read of a run, by rising step; of a mixer that weighs no keys nothing. A head without a number leaves
    its run without one."""
    return [point for step, rows in _steps(frames, key) if (point := _at(step, rows))]


def find_last_point(frames: RunFrames, key: str) -> ConcentrationPoint | None:
    """Where a run ended: its final weights, or the last finite ones."""
    return next((point for step, rows in reversed(_steps(frames, key)) if (point := _at(step, rows))), None)


def _steps(frames: RunFrames, key: str) -> list[tuple[Any, pd.DataFrame]]:
    probes = frames.probes
    return [] if probes.empty else list(probes[probes["key"] == key].groupby("step"))


def _at(step: Any, rows: pd.DataFrame) -> ConcentrationPoint | None:
    """What was read at one step; None of a mixer that weighs no keys."""
    values = {str(name): _mean(part["value"]) for name, part in rows.groupby("probe")}
    if "concentration" not in values:
        return None
    names = ("concentration", "largest_weight", "weight_sum", "logits_beyond")
    return ConcentrationPoint(
        step=int(step),
        fraction=float(rows["fraction"].iloc[0]),
        null=_mean(rows.loc[rows["probe"] == "concentration", "null"]),
        **{name: values[name] for name in names},
    )


def _mean(values: pd.Series) -> float:
    return float(values.astype(float).mean(skipna=False))


def latest_before(history: list[ConcentrationPoint], fraction: float) -> ConcentrationPoint | None:
    """The latest of some points at or before a share of training."""
    return next((point for point in reversed(history) if point.fraction <= fraction), None)
