"""Reads what the measurement `basis_transfer` says at its end, by width. Empty if it was not made.

Source: query_free study, appendix 8.4 and Figure 2; what is measured: `theory.basis_transfer`.
"""

from __future__ import annotations

import pandas as pd

from plumbline.results.runs.finished_runs import RunFrames

#: The measurement, and its two arms: the fitted MLP and the linear map of ridge regression.
NAME, MLP, LINEAR = "basis_transfer", "mlp", "linear"

#: The same of a target from which X is not subtracted (interpretation `transfer_target`).
MLP_EQ_13, LINEAR_EQ_13 = "mlp_eq_13", "linear_eq_13"

#: What the paper prints (interpretation `transfer_error`): an error, a cosine, its distance from 1, an angle.
ERROR, COSINE, DISTANCE, ANGLE = "relative_l2", "cosine", "cosine_distance", "angle_degrees"


def finals(frames: RunFrames) -> pd.DataFrame | None:
    """One row for each width, one column for each (arm, quantity) after the last step, the mean over seeds."""
    read = frames.read_measurement(NAME)
    if read is None:
        return None
    steps = read.groupby("arm")["step"].transform("max")
    last = read[read["step"].isna() | (read["step"] == steps)]
    table = last.pivot_table(index="h", columns=["arm", "quantity"], values="value", aggfunc="mean")
    return table.astype(float).sort_index()
