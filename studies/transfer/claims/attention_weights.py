"""Checks claims about attention weights and logits, which a probe reads: appendices B.13 and E.3.

One function for each claim, named as the claim; what it says is in studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import math

from plumbline.core.run_files import DIVERGED
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues, in_turn, nearest_limit, number, statements
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values
from plumbline.stats.noise_floor import noise_floor

from ..attention_concentration import ConcentrationPoint
from ..headline_runs import BASE
from .claim_evidence import SIGNIFICANT_Z, Evidence

CHECKS = ClaimChecks()

#: "Almost never" is a stated choice: at most one logit in a thousand.
ALMOST_NEVER = 1e-3


def _read(e: Evidence, key: str) -> ConcentrationPoint:
    """What was read at the end of a run that completed."""
    if e.frames.runs.loc[key, "outcome"] == DIVERGED:
        raise MissingRun(DIVERGED, key)
    point = e.read_concentration(key)
    if point is None:
        raise MissingRun("missing", key, f"{key} has no weights of keys that a probe could read")
    if math.isnan(point.concentration):
        raise MissingRun("no number", key, f"attention of {key} is no number")
    return point


def _sigmas(e: Evidence, method: str) -> float:
    """How far a method's concentration is from the baseline's seeds, in their sigmas."""
    seeds = [int(seed) for seed in e.runs(e.reference)["seed"]]
    floor = noise_floor([_read(e, e.key(e.reference, BASE, seed)).concentration for seed in seeds])
    if not floor.usable:
        raise MissingRun("without a spread", f"{BASE}/{e.reference}")
    return float(floor.z(_read(e, e.key(method, BASE)).concentration))


@CHECKS.of()
def improvers_keep_concentration(e: Evidence, claim: PaperClaim) -> Values:
    """Not below the baseline by more than what counts as a difference of accuracies."""
    z = {method: _sigmas(e, method) for method in claim.values["ids"]}
    names = [method for method in z if z[method] >= -SIGNIFICANT_Z]
    return ComputedValues(values={"ids": names}, shown=_prefix_z(z), limits=nearest_limit(_prefix_z(z), -SIGNIFICANT_Z))


@CHECKS.of()
def failures_lose_concentration(e: Evidence, claim: PaperClaim) -> Values:
    """Below it by more than that."""
    z = {method: _sigmas(e, method) for method in claim.values["ids"]}
    lost = [method for method in z if z[method] < -SIGNIFICANT_Z]
    return ComputedValues(values={"ids": lost}, shown=_prefix_z(z), limits=nearest_limit(_prefix_z(z), -SIGNIFICANT_Z))


def _prefix_z(z: dict[str, float]) -> dict[str, float]:
    return {f"z_{method}": value for method, value in z.items()}


@CHECKS.of(compare=in_turn(statements("almost_never"), number))
def softmax_cap_inactive(e: Evidence, claim: PaperClaim) -> Values:
    """What the cap clips of the method that has it, where training ends."""
    key = e.key("softmax_cap", BASE)
    share, model = _read(e, key).logits_beyond, e.study.runs[key].spec.model
    return ComputedValues(
        values={
            "cap": float(model.slot("mixer").options["cap"]),
            "context": model.context,
            "almost_never": share <= ALMOST_NEVER,
        },
        shown={"share_beyond": share},
        limits={"share_beyond": (share, ALMOST_NEVER)},
    )
