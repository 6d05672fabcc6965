"""Says in one sentence what an experiment decided: improves by, ruled out above, or not decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plumbline.experiment.formatting import counted, fixed
from plumbline.experiment.outcome import BASELINE, ArmRun, ExperimentTerms

if TYPE_CHECKING:
    from plumbline.stats.after_stopping import Estimate
    from plumbline.stats.sequential import Look


def kept(terms: ExperimentTerms, look: Look, estimate: Estimate | None, runs: Sequence[ArmRun]) -> str:
    """Say by how much the candidate improves, and with which certainty."""
    if estimate is None:
        return f"{terms.candidate} improves {_metric(terms)} over {terms.baseline}, {_runs(terms, runs)}."
    low = "no limit" if estimate.low == float("-inf") else _size(estimate.low, look)
    return (
        f"{terms.candidate} improves {_metric(terms)} over {terms.baseline} by {_size(estimate.median, look)}"
        f"{_unit(terms)} ({low} to {_size(estimate.high, look)}), {_runs(terms, runs)}."
    )


def discarded(terms: ExperimentTerms, look: Look, estimate: Estimate | None, runs: Sequence[ArmRun]) -> str:
    """Say above what a gain is ruled out."""
    if estimate is None:
        return f"{terms.candidate}: no gain in {_metric(terms)} worth more runs was seen, {_runs(terms, runs)}."
    return (
        f"{terms.candidate}: a gain in {_metric(terms)} over {terms.baseline} is ruled out above "
        f"{_size(estimate.high, look)}{_unit(terms)}, {_runs(terms, runs)}."
    )


def undecided(
    terms: ExperimentTerms, look: Look, estimate: Estimate | None, runs: Sequence[ArmRun], more: int | None
) -> str:
    """Say that the budget did not decide, what the runs leave open, and how many more would probably decide."""
    open_ = (
        ""
        if estimate is None
        else f": the gain is between {_size(estimate.low, look)} and {_size(estimate.high, look)}{_unit(terms)}"
    )
    further = "" if more is None else f"; {counted(more, 'more run')} of it would probably decide"
    return (
        f"{terms.candidate} is not decided against {terms.baseline} in {_metric(terms)}, {_runs(terms, runs)}"
        f"{open_}{further}."
    )


def lost(run: ArmRun) -> str:
    """Say that a run of the candidate has no value, where every run of the baseline has one."""
    return f"{run.arm} {_failed(run)} with seed {run.seed}, where no seed of the baseline did{_why(run)}."


def not_judged(terms: ExperimentTerms, why: str) -> str:
    """Say why nothing can be judged, and what to do."""
    return f"{terms.candidate} cannot be judged against {terms.baseline}: {why}."


def baseline_lost(run: ArmRun) -> str:
    """Say that the baseline itself has a run without a value."""
    return f"the baseline {_failed(run)} with seed {run.seed}{_why(run)}; choose a baseline that trains"


def _failed(run: ArmRun) -> str:
    return {"crashed": "crashed", "diverged": "diverged", "timeout": "ran out of time"}.get(run.outcome, run.outcome)


def _why(run: ArmRun) -> str:
    return f" ({run.why})" if run.why else ""


def _metric(terms: ExperimentTerms) -> str:
    return terms.metric.replace("_", " ")


def _unit(terms: ExperimentTerms) -> str:
    return f" {terms.unit}" if terms.unit else ""


def _size(gain: float, look: Look) -> str:
    return fixed(gain, look.sigma)


def _runs(terms: ExperimentTerms, runs: Sequence[ArmRun]) -> str:
    theirs = sum(run.arm == BASELINE for run in runs)
    return f"after {counted(theirs, 'run')} of the baseline and {len(runs) - theirs} of it"
