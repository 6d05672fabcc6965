"""Checks claims about learning rates (sections 5.1 and 6): which was best, and what schedules are.

Source: the interpretations `rate_search` and `learning_rates`. The best rate of an architecture is that of its run with
the lowest final loss; one that diverged is not a candidate."""

from __future__ import annotations

import math

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values

from ..run_values import BASELINE, CONFIGURATIONS, IDENTITY, LARGE_MLP
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

ARITHMETIC = {"scope": "arithmetic"}

#: Architecture -> its runs at one peak rate each.
SEARCHED = {
    BASELINE: (BASELINE, "baseline_reduced_schedule", "baseline_large_schedule"),
    IDENTITY: ("wq_identity_baseline_schedule", IDENTITY, "wq_identity_large_schedule"),
    LARGE_MLP: ("wq_identity_large_mlp_reduced_schedule", LARGE_MLP, "wq_identity_large_mlp_rate_3e3"),
}


def find_best_relative_rate(e: Evidence, architecture: str) -> float:
    """The best peak rate of an architecture's runs over the standard one.

    Raises:
        MissingRun: a run is missing, or all of them diverged.
    """
    losses = {method: _loss(e, method) for method in SEARCHED[architecture]}
    lowest = min(losses, key=losses.__getitem__)
    if math.isinf(losses[lowest]):
        raise MissingRun("diverged", e.values.key(lowest) or lowest)
    return e.spec(lowest).optimizer.learning_rate / e.spec(BASELINE).optimizer.learning_rate


def _loss(e: Evidence, method: str) -> float:
    try:
        return e.loss(method)
    except MissingRun as absent:
        if absent.word != "diverged":
            raise
        return math.inf


@CHECKS.of()
def lr_ratio(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the best peak rate over the standard one: of the reduced model, and of that with the large MLP."""
    return {"lo": find_best_relative_rate(e, IDENTITY), "hi": find_best_relative_rate(e, LARGE_MLP)}


@CHECKS.of()
def higher_lr_admitted(e: Evidence, claim: PaperClaim) -> Values:
    """Of the same three rates, a higher one is best for the reduced model than for the baseline."""
    reduced, baseline = find_best_relative_rate(e, IDENTITY), find_best_relative_rate(e, BASELINE)
    return ComputedValues(holds=reduced > baseline, shown={"best reduced": reduced, "best baseline": baseline})


@CHECKS.of(**ARITHMETIC)
def peak_min_ratio(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the peak rate over the last one from the schedules of the reduced model, of that with the large MLP and
    of the baseline."""
    floors = {"lo": IDENTITY, "hi": LARGE_MLP, "standard": BASELINE}
    return {name: 1 / float(e.spec(method).schedule.options["floor"]) for name, method in floors.items()}


@CHECKS.of(**ARITHMETIC)
def same_weight_decay(e: Evidence, claim: PaperClaim) -> Values:
    """The weight decay of the five that is farthest from the printed one."""
    decays = [e.spec(method).optimizer.weight_decay for method in CONFIGURATIONS]
    return {"wd": max(decays, key=lambda decay: abs(decay - claim.values["wd"]))}
