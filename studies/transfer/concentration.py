"""Reads what the probe of attention weights says of a run, over all of its heads and layers.

Source: transfer study, appendices B.13 and E.3; what is measured is in `plumbline.probes.attention_concentration`, and
why in the interpretations `attention_concentration`, `logits_probed` and `probed_at`.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    probes = frames.probes
    if probes.empty:
        return []
    found = []
    for step, rows in probes[probes["key"] == key].groupby("step"):
        values = {str(name): _mean(part["value"]) for name, part in rows.groupby("probe")}
        if "concentration" in values:
            null = _mean(rows.loc[rows["probe"] == "concentration", "null"])
            fraction = float(rows["fraction"].iloc[0])
            names = ("concentration", "largest_weight", "weight_sum", "logits_beyond")
            found.append(
                ConcentrationPoint(
                    step=int(step), fraction=fraction, null=null, **{name: values[name] for name in names}
                )
            )
    return found


def _mean(values: pd.Series) -> float:
    return float(values.astype(float).mean(skipna=False))


def last(frames: RunFrames, key: str) -> ConcentrationPoint | None:
    """Where a run ended: its final weights, or the last finite ones."""
    return next(iter(reversed(points(frames, key))), None)


def before(found: list[ConcentrationPoint], fraction: float) -> ConcentrationPoint | None:
    """The latest of some points at or before a share of training."""
    return next((point for point in reversed(found) if point.fraction <= fraction), None)
