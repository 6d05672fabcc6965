"""Checks that runs are independent: none repeats another one's curve, and no trend in time explains their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plumbline.stats.order_trend import OrderTrend, measure_trend, spend_level
from plumbline.stats.repeated_curves import SHARE, find_nearest_curves
from plumbline.stats.sentinel import BaselineDrift, measure_drift
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import RunEvidence, read_places
from plumbline.verdict.formatting import format_p

#: A trend that is so rarely seen where runs are independent is told.
TOLD = 0.05
#: A line through the baseline's runs that is so rarely as steep where nothing moves is told: one run far from the
#: others in time and in value, which ranks cannot show.
DRIFT_TOLD = 0.01

_REMEDY = (
    "something moved meanwhile: files that runs leave behind and later ones read (a checkpoint, a cache), the data, or "
    "the machine and what else runs on it. Put that right, and make the runs of both arms anew (in a folder: plumbline "
    "setup-trainer --again)"
)


@dataclass(frozen=True, slots=True)
class _TimedValue:
    """A value and its place in time."""

    place: float
    value: float


def check(arms: ComparedArms) -> CheckAnswer:
    """Refuse runs that repeat another one, or a trend with the order of runs that is too clear to be chance."""
    numbers, repeat = _compare_curves(arms)
    if repeat:
        return refuse(repeat, **numbers)
    baseline = _order_runs(arms.runs_of(arms.baseline))
    candidate_runs = arms.runs_of(arms.candidate)
    groups = [_order_runs([run for run in candidate_runs if run.fresh == fresh]) for fresh in (False, True)]
    if baseline is None or any(group is None for group in groups):
        return not_known("in which order the runs were made", **numbers)
    values = [[each.value for each in group] for group in (baseline, *groups) if group is not None]
    if not any(len(group) > 1 for group in values):
        return not_known("whether values follow the order of the runs: each arm has one", **numbers)
    trend, level = measure_trend(values), spend_level(arms.tries, fresh=arms.confirmed is not None)
    drift = _measure_baseline_drift(baseline)
    numbers |= {"correlation": trend.correlation, "p": trend.p, "level": level, "runs": trend.runs}
    if trend.p <= level:
        return refuse(f"{_describe_trend(trend, arms)}: {_REMEDY}", **numbers)
    texts = [_describe_trend(trend, arms)] if trend.p < TOLD else []
    if drift is not None and drift.p < DRIFT_TOLD:
        numbers |= {"baseline_drift": drift.total, "baseline_drift_p": drift.p}
        texts.append(
            f"the baseline drifts: by {drift.total:+.3g} from its first run to its newest (p = {format_p(drift.p)}); "
            "the trainer, its data or its machine may have changed since the bank was made"
        )
    if texts:
        return tell("; ".join(texts), **numbers)
    return holds(f"no trend with the order of the {trend.runs} runs is seen (p = {format_p(trend.p)})", **numbers)


def _compare_curves(arms: ComparedArms) -> tuple[dict[str, Any], str]:
    """How near the two nearest curves are, where it can be measured, and which run repeats another one, if any."""
    runs = [
        (f"seed {run.seed} of {arms.label(arm)}" if run.seed else str(run.file), run.curve)
        for arm in (arms.baseline, arms.candidate)
        for run in arms.runs_of(arm)
        if run.curve
    ]
    nearest = find_nearest_curves([curve for _, curve in runs])
    if nearest is None:
        return {}, ""
    numbers = {"nearest_curves": nearest.share}
    if nearest.share >= SHARE:
        return numbers, ""
    first, second = (runs[place][0] for place in (nearest.earlier, nearest.later))
    return numbers, (
        f"{first} and {second} are one run: the mean distance of their curves is {nearest.share:.3f} of the median "
        f"distance, and that of runs of different seeds is not below {SHARE:g}; make runs of other seeds"
    )


def _describe_trend(trend: OrderTrend, arms: ComparedArms) -> str:
    is_gain = (trend.correlation > 0) == arms.higher
    return (
        f"within an arm later runs are {'better' if is_gain else 'worse'} than earlier ones (rank correlation with the "
        f"order in which they were made {trend.correlation:+.2f}, p = {format_p(trend.p)})"
    )


def _measure_baseline_drift(values: Sequence[_TimedValue]) -> BaselineDrift | None:
    places = [each.place for each in values]
    if len(values) < 3 or len(set(places)) < 2:
        return None
    return measure_drift([each.value for each in values], places)


def _order_runs(runs: Sequence[RunEvidence]) -> list[_TimedValue] | None:
    """The values of runs in the order in which they were made; None where the source does not say it."""
    values = [run.value for run in runs if run.value is not None]
    places = read_places([run for run in runs if run.value is not None])
    # Which of two runs of one moment came first is not known, and rows may be sorted by what they hold.
    if places is None or len(set(places)) < len(places):
        return None
    return sorted((_TimedValue(place, value) for place, value in zip(places, values)), key=lambda each: each.place)
