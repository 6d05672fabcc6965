"""Checks claims about kinds of modifications at the base scale: sections 4.2 and 4.3, and what appendix E says of all.

One function for each claim, named as the claim; what it says is in studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import math

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import (
    ComputedValues,
    at_most_partly,
    in_turn,
    number,
    parts,
    signs,
    statements,
    statistic,
)
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values
from plumbline.results.claims.claim_tolerances import near

from .base_scale import CHANCE_COUNT, CLIMB, count_beyond_noise, interval, side
from .claim_evidence import LEVEL, SIGNIFICANT_Z, Evidence
from .large_scale import ONE_RUN_EACH

CHECKS = ClaimChecks()

#: Orders of magnitude that are made of one sigma share the factor of two to which it is known.
ORDERS = near(math.log10(2))
#: How far from the baseline the ends of ten methods come in noise: three printed sigmas.
ENDS = 0.0063


def _attention(e: Evidence) -> list[str]:
    return [m for m, entry in e.study.methods.items() if entry.get("category") == "attention"]


def _single_attention(e: Evidence) -> list[str]:
    """Attention methods that are not combinations: they change one slot of the model."""
    return [m for m in _attention(e) if len(e.study.methods[m].get("model", {})) == 1]


@CHECKS.of(effect=signs("hi", "lo", beyond=ENDS), near=CLIMB)
def attention_span(e: Evidence, claim: PaperClaim) -> Values:
    """Find the largest and smallest delta of the attention methods at the base scale."""
    deltas = [e.delta(method) for method in _attention(e)]
    return {"hi": max(deltas), "lo": min(deltas)}


@CHECKS.of()
def attention_span_ratio(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the span of the attention methods' deltas over the width of the baseline's bootstrap interval."""
    deltas = [e.delta(method) for method in _attention(e)]
    low, high = interval(e.seeds(e.reference))
    return {"ratio": (max(deltas) - min(deltas)) / (high - low) if high > low else math.inf}


@CHECKS.of(effect=signs("up", "down", beyond=CHANCE_COUNT))
def attention_six_of_eight(e: Evidence, claim: PaperClaim) -> Values:
    """As printed it cannot be: three up and five down are eight."""
    methods = _single_attention(e)
    up, down = count_beyond_noise(e, methods)
    values = {"distinguishable": up + down, "up": up, "down": down}
    return ComputedValues(values=values, shown={"out_of": len(methods)}, limits=e.nearest_to_the_noise(methods))


@CHECKS.of()
def attention_noise_band(e: Evidence, claim: PaperClaim) -> Values:
    """List the attention methods, combinations left out, that lie within two sigmas of the baseline."""
    methods = _single_attention(e)
    inside = [m for m in methods if abs(e.z(m)) < SIGNIFICANT_Z]
    return ComputedValues(values={"ids": inside}, limits=e.nearest_to_the_noise(methods))


@CHECKS.of(compare=parts("sigmoid_attn", "ssmax"))
def overshoot(e: Evidence, claim: PaperClaim) -> Values:
    """For each of the two replacements: the orders of magnitude of its distance below, in sigmas."""
    z = {method: e.z(method) for method in ("sigmoid_attn", "ssmax")}
    orders = {method: math.log10(-value) if value < 0 else -math.inf for method, value in z.items()}
    there = {method: ORDERS(claim.values["orders"], value) for method, value in orders.items()}
    limits = {
        f"orders apart of {m}": (abs(value - claim.values["orders"]), ORDERS.limit) for m, value in orders.items()
    }
    return ComputedValues(values=there, shown={f"orders_{m}": value for m, value in orders.items()}, limits=limits)


@CHECKS.of(compare=in_turn(statements("best", "worst"), at_most_partly("other_improvers_soft")))
def soft_hard_no_predictor(e: Evidence, claim: PaperClaim) -> Values:
    """Best and worst are the printed ones, beyond noise, and both hard; what else improves is soft, combinations left
    out."""
    deltas = {method: e.delta(method) for method in _attention(e)}
    ends = {"best": max(deltas, key=deltas.__getitem__), "worst": min(deltas, key=deltas.__getitem__)}
    mixing = {method: e.study.methods[method].get("soft_hard") for method in deltas}
    others = [m for m in _single_attention(e) if m != ends["best"] and e.z(m) > SIGNIFICANT_Z]
    sides = {"best": 1, "worst": -1}
    same = {
        end: name == claim.values[end] and mixing[name] == "hard" and side(e, name) == sides[end]
        for end, name in ends.items()
    }
    soft = bool(others) and all(mixing[method] == "soft" for method in others)
    numbers = {f"{end}_is": name for end, name in ends.items()} | {"other_improvers": others}
    limits = e.nearest_to_the_noise(_single_attention(e))
    return ComputedValues(values=same | {"other_improvers_soft": soft}, shown=numbers, limits=limits)


@CHECKS.of()
def removing_softmax_normalization(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether each of the claim's methods lies below the baseline, beyond noise."""
    methods = claim.values["ids"]
    below = [method for method in methods if side(e, method) < 0]
    limits = e.nearest_to_the_noise(methods)
    return ComputedValues(holds=below == methods, shown={"ids": below}, limits=limits)


#: The methods of the residual stream that fail (section 4.3, appendix E).
RESIDUAL_FAILURES = ("layerscale", "hyper", "attnres")


@CHECKS.of(compare=in_turn(statements("none_improves", "worse"), at_most_partly("denseformer_inside")))
def residual_none_improves(e: Evidence, claim: PaperClaim) -> Values:
    """The printed z are those of Table 2, whose rows are claims of their own."""
    z, dense = [e.z(method) for method in RESIDUAL_FAILURES], e.z("denseformer")
    worse = all(side(e, method) < 0 for method in RESIDUAL_FAILURES)
    values = {"none_improves": max(*z, dense) < SIGNIFICANT_Z, "worse": worse}
    values |= {"denseformer_inside": abs(dense) < SIGNIFICANT_Z}
    limits = e.nearest_to_the_noise((*RESIDUAL_FAILURES, "denseformer"))
    return ComputedValues(values=values, shown={"z": z, "z_denseformer": dense}, limits=limits)


@CHECKS.of()
def geglu_equals_swiglu(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether GeGLU lies within two sigmas of the baseline, whose FFN is SwiGLU."""
    z = e.z("geglu_ffn")
    return ComputedValues(holds=abs(z) < SIGNIFICANT_Z, shown={"z": z}, limits={"|z|": (abs(z), SIGNIFICANT_Z)})


NOMINAL = {"relu2_nominal": "relu_squared", "diff_attn_nominal": "diff_attn"}


@CHECKS.of(*NOMINAL)
def nominal(e: Evidence, claim: PaperClaim) -> Values:
    """Beyond 2 sigma on the printed side, and not after correction: both, or it is not nominal."""
    method = NOMINAL[claim.id]
    z, p = e.z(method), e.p_bonferroni(method)
    there = side(e, method) == math.copysign(1, claim.values["z"])
    limits = {"|z|": (abs(z), SIGNIFICANT_Z), "p_bonf": (p, LEVEL)}
    return ComputedValues(holds=there and p > LEVEL, shown={"z": z, "p_bonf": p}, limits=limits)


@CHECKS.of(effect=statements("apart"), compare=statistic("z", beyond=SIGNIFICANT_Z))
def hyper_finite_1p2b(e: Evidence, claim: PaperClaim) -> Values:
    """Stable is what the claim says first: a divergence speaks against it."""
    try:
        z = e.z("hyper")
        values = {"z": z, "apart": side(e, "hyper") != 0}
        return ComputedValues(values=values, limits={"|z|": (abs(z), SIGNIFICANT_Z)})
    except MissingRun as absent:
        if absent.word != "diverged" or "hyper" not in absent.key:
            raise
        return ComputedValues(holds=False, shown={"outcome": absent.word})


@CHECKS.of(compare=in_turn(statements("tops"), at_most_partly("uninformative_before")))
def qknorm_geglu_top_3b(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether QK-Norm with GeGLU is best at the large scale, above the baseline by more than noise, and was
    within two sigmas at the base scale."""
    values, name = e.averages_at_large_scale(), "qknorm_geglu"
    best, z, delta = max(values, key=values.__getitem__), e.z(name), e.delta(name, "large")
    said_so = {"tops": best == name and delta > ONE_RUN_EACH, "uninformative_before": abs(z) < SIGNIFICANT_Z}
    limits = {"|z|": (abs(z), SIGNIFICANT_Z), "delta at 3B": (delta, ONE_RUN_EACH)}
    return ComputedValues(values=said_so, shown={"best_3b": best, "z_1p2b": z}, limits=limits)


@CHECKS.of(
    effect=signs("replacement", "residual", beyond=CHANCE_COUNT),
    compare=in_turn(number, at_most_partly("no_other")),
)
def failure_taxonomy(e: Evidence, claim: PaperClaim) -> Values:
    """By what the methods change: the two replacements of softmax, its subtraction, the three of the residual stream
    that are named."""
    down = [method for method in e.methods if e.z(method) < -SIGNIFICANT_Z]
    counts = {
        "replacement": sum(method in ("sigmoid_attn", "ssmax") for method in down),
        "subtraction": sum(method == "diff_attn" for method in down),
        "residual": sum(method in RESIDUAL_FAILURES for method in down),
    }
    values = counts | {"no_other": sum(counts.values()) == len(down)}
    return ComputedValues(values=values, shown={"below": down}, limits=e.nearest_to_the_noise(e.methods))


@CHECKS.of()
def range_three_points(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the points of CLIMB-avg between the best and the worst method at the base scale."""
    values = [e.climb(method) for method in e.methods]
    return {"points": 100 * (max(values) - min(values))}
