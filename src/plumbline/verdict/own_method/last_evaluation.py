"""Asks whether a gain in losses that are averaged over a run's last part is there in its last evaluation too.

The last one is computed again of the weights that the run left (`finished_run_checks`); those before it cannot be,
for their weights are gone.
"""

from __future__ import annotations

from collections.abc import Mapping

from plumbline.core.errors import PlumblineError
from plumbline.verdict.judge import BaselineComparison
from plumbline.verdict.own_method.finished_run_reader import FinishedRunReader

#: The share of an averaged gain that the last evaluations have at least.
SHARE = 0.5


def require_gains(seen: FinishedRunReader, judged: Mapping[str, BaselineComparison]) -> None:
    """Refuse a gain that is not there at the end of the runs.

    Raises:
        PlumblineError: naming the method.
    """
    mine = seen.mine
    if seen.deciding.name != "validation_loss" or not mine.asked["last"]:
        return
    for method, one in judged.items():
        ours, theirs = (_mean(seen, side) for side in (method, mine.against[method]))
        if one.low > one.terms.minimum_gain and theirs - ours < SHARE * one.gain:
            raise PlumblineError(
                f"{mine.path}: {method}: its gain is {one.gain:.3g} in the evaluations of the last "
                f"{100 * mine.asked['last']:g} % of its steps and {theirs - ours:.3g} in the last one alone, which "
                "is the only one that its weights can be asked for again; it has no verdict: set `last: 0`, by which "
                "the last evaluation decides"
            )


def _mean(seen: FinishedRunReader, side: str) -> float:
    """The mean of the last evaluations of a method's completed runs at the scale that decides."""
    found = seen.frames.runs.loc[seen.completed(seen.mine.scale, side), "validation_loss"].astype(float)
    return float(found.mean())
