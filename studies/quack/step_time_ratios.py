"""Compares times of training steps, from the measurement `step_time`: ratios are taken pair by pair.

Source: quack study, "Key Results" and "Design tradeoffs" (about 10 % faster than QK norm).
"""

from __future__ import annotations

import pandas as pd

from plumbline.results.measurements import measurement_file
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.stats.paired_runs import PairedRatio, compute_paired_ratio

STEP_TIME = "step_time"


def seconds(frames: RunFrames) -> dict[str, pd.Series]:
    """Method -> seconds by repeat, of the runs that were timed; empty if nothing was."""
    frame = frames.read_measurement(STEP_TIME)
    if frame is None:
        return {}
    return {
        str(method).partition(".")[0]: rows.set_index("repeat")["seconds"]
        for method, rows in frame.groupby("method", sort=False)
    }


def ratio(frames: RunFrames, method: str, other: str) -> PairedRatio | None:
    """A method's time over another one's; None if one of them was not timed."""
    timed = seconds(frames)
    return compute_paired_ratio(timed[method], timed[other]) if {method, other} <= set(timed) else None


def device(frames: RunFrames) -> str:
    """What it was measured on."""
    facts = measurement_file.read_facts(
        measurement_file.frame_path(frames.work, frames.find_measurement_key(STEP_TIME))
    )
    return str(facts.get("device_name") or facts["device"])


def time_saved_percent(ratio: PairedRatio) -> float:
    """The share of the other method's time that is saved."""
    return 100 * (1 - ratio.median)
