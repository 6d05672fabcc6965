"""Checks claims about time. A share of a step that a norm takes depends on sizes and device, so that small models say
nothing.

One function for each claim, named as the claim; what it says is in studies/quack/published/claims.yaml.
"""

from __future__ import annotations

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values
from plumbline.results.claims.claim_tolerances import near
from plumbline.stats.paired_runs import PairedRatio

from .. import step_time_ratios
from ..run_grid import QK_NORM, QUACK
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

#: "About 10 %": within so many percent of the time, since hardware is not printed.
ABOUT = 3.0


@CHECKS.of("speed")
def faster(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the percent of a step's time that QuacK saves against QK norm, from the median ratio of timed steps."""
    ratio = _ratio(e)
    return ComputedValues(
        values={"pct": step_time_ratios.time_saved_percent(ratio)},
        near={"pct": near(ABOUT)},
        shown=_describe_ratio(e, ratio),
    )


@CHECKS.of()
def cheaper(e: Evidence, claim: PaperClaim) -> Values:
    """In three pairs of four and more."""
    ratio = _ratio(e)
    limits = {"upper quartile of the ratio": (ratio.high, 1)}
    return ComputedValues(holds=ratio.high < 1, shown=_describe_ratio(e, ratio), limits=limits)


def _ratio(e: Evidence) -> PairedRatio:
    key = e.frames.find_measurement_key(step_time_ratios.STEP_TIME)
    ratio = step_time_ratios.ratio(e.frames, QUACK, QK_NORM)
    if ratio is None:
        raise MissingRun(MISSING, key)
    e.used.add(key)
    return ratio


def _describe_ratio(e: Evidence, ratio: PairedRatio) -> dict[str, object]:
    return {"ratio": ratio.median, "quartiles": [ratio.low, ratio.high], "device": step_time_ratios.device(e.frames)}
