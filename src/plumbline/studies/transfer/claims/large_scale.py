"""Claims about the large scale: Table 3, the divergences of Table 6 and Figure 1.

One function for each claim, named as the claim; what it says is in config/studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import numpy as np

from plumbline.results.checkers import Measured, factor, near, order, signs, statistic
from plumbline.results.measures import Absent, Measures, Values
from plumbline.results.published import Claim
from plumbline.stats import spearman
from plumbline.studies.transfer.claims.base_scale import CLIMB
from plumbline.studies.transfer.claims.evidence import Evidence
from plumbline.studies.transfer.two_scales import improvers, two_scales

MEASURES = Measures()

IMPROVERS = ["qknorm_geglu", "qknorm", "selective_qknorm", "selective_attn", "sandwich_norm", "softpick"]
IMPROVERS += ["relu_squared"]
FAILURES = ["attnres", "sigmoid_attn"]
HYBRID_SEEDS = (42, 43, 44)


@MEASURES.of("runs_3b")
def runs_3b(e: Evidence, claim: Claim) -> Values:
    outcomes = [e.large_outcome(method) for method in e.large_methods()]
    done = outcomes.count("completed")
    return {"tried": len(outcomes), "completed": done, "diverged": len(outcomes) - done}


def _ranks(e: Evidence, method: str) -> tuple[float, float]:
    values = two_scales(e.frames, e.study, e.reference)
    for name in e.methods:
        e.climb(name)
    return float(values.loc[method, "rank_base"]), float(values.loc[method, "rank_large"])


@MEASURES.of(*(f"t3_{method}" for method in IMPROVERS + FAILURES), compare=signs("delta_3b"))
def table3_row(e: Evidence, claim: Claim) -> Values:
    method = claim.id.removeprefix("t3_")
    values = {"climb_avg_1p2b": e.climb(method), "climb_avg_3b": e.climb(method, "large")}
    return values | {"delta_3b": e.delta(method, "large")}


@MEASURES.of("t3_baseline", near=CLIMB)
def t3_baseline(e: Evidence, claim: Claim) -> Values:
    return {"climb_avg_3b": e.climb(e.reference, "large")}


def _completed(e: Evidence) -> dict[str, float]:
    values = {}
    for method in e.large_methods():
        try:
            values[method] = e.climb(method, "large")
        except Absent as absent:
            if absent.word != "diverged":
                raise
    return values


@MEASURES.of("t3_order", compare=order("order"))
def t3_order(e: Evidence, claim: Claim) -> Values:
    values = _completed(e)
    return {"order": sorted(values, key=values.__getitem__, reverse=True)}


@MEASURES.of("sign_preserved")
def sign_preserved(e: Evidence, claim: Claim) -> Values:
    kept = [sum(e.delta(m) * e.delta(m, "large") > 0 for m in part) for part in (IMPROVERS, FAILURES)]
    return {"improvers": kept[0], "failures": kept[1]}


@MEASURES.of("delta_3b_range", near=CLIMB)
def delta_3b_range(e: Evidence, claim: Claim) -> Values:
    deltas = [e.delta(method, "large") for method in IMPROVERS]
    return {"lo": min(deltas), "hi": max(deltas)}


@MEASURES.of("failures_3b", near=factor(1.25))
def failures_3b(e: Evidence, claim: Claim) -> Values:
    return {
        "sigmoid_3b": e.delta("sigmoid_attn", "large"),
        "sigmoid_1p2b": e.delta("sigmoid_attn"),
        "attnres_3b": e.delta("attnres", "large"),
        "attnres_1p2b": e.delta("attnres"),
    }


@MEASURES.of("spearman_7", compare=statistic("rho", p="p"))
def spearman_7(e: Evidence, claim: Claim) -> Values:
    for method in e.methods:
        e.climb(method)
    _completed(e)
    part = improvers(two_scales(e.frames, e.study, e.reference), e.reference)
    if len(part) < 3:
        raise Absent("fewer than three improvers", "large")
    found = spearman(part["base"], part["large"])
    return Measured(
        values={"rho": found.rho, "p": found.p_t, "n": found.n}, shown={"p_exact_permutation": found.p_permutation}
    )


@MEASURES.of("rank_moves", near=near(0.0))
def rank_moves(e: Evidence, claim: Claim) -> Values:
    _completed(e)
    moves = {name: list(_ranks(e, name)) for name in ("qknorm_geglu", "selective_qknorm")}
    return moves | {"softpick_3b": _ranks(e, "softpick")[1]}


def _hybrid(e: Evidence) -> list:
    """HybridNorm's divergences; a seed that completed speaks against the claim."""
    return [e.divergence("hybrid_norm", seed) for seed in HYBRID_SEEDS]


@MEASURES.of("hybrid_nan_steps", near=factor(1.25))
def hybrid_nan_steps(e: Evidence, claim: Claim) -> Values:
    found = _hybrid(e)
    if None in found:
        return Measured(holds=False, shown={"diverged": sum(one is not None for one in found)})
    return {"seeds": list(HYBRID_SEEDS), "nan_step": [step for step, _ in found]}


@MEASURES.of("hybrid_window", near=factor(1.25))
def hybrid_window(e: Evidence, claim: Claim) -> Values:
    found = _hybrid(e)
    if None in found:
        return Measured(holds=False, shown={"diverged": sum(one is not None for one in found)})
    steps = [step for step, _ in found]
    key = e.key("hybrid_norm", "large")
    return {
        "window": [min(steps), max(steps)],
        "peak_step": e.on_paper(e.study.runs[key].spec.schedule.warmup_steps, key),
    }


@MEASURES.of("hybrid_pre_nan_grad", near=factor(1.5))
def hybrid_pre_nan_grad(e: Evidence, claim: Claim) -> Values:
    found = _hybrid(e)
    if None in found:
        return Measured(holds=False, shown={"diverged": sum(one is not None for one in found)})
    stable = [history.stable for _, history in found]
    return {"range": [min(stable), max(stable)]}


@MEASURES.of("hybrid_spike", near=factor(1.5))
def hybrid_spike(e: Evidence, claim: Claim) -> Values:
    found = e.divergence("hybrid_norm", 42)
    if found is None:
        return Measured(holds=False, shown={"diverged": 0})
    step, history = found
    return {"spike": history.peak, "nan": step, "factor": history.peak / history.stable}


@MEASURES.of("baseline_3b_grad", near=factor(1.5))
def baseline_3b_grad(e: Evidence, claim: Claim) -> Values:
    key = e.key(e.reference, "large")
    train = e.frames.metrics(key).query("split == 'train'")
    warmed = train[train["step"] > e.study.runs[key].spec.schedule.warmup_steps]["grad_norm"].dropna()
    if warmed.empty:
        raise Absent("without a step after warm-up", key)
    low, high = np.nanquantile(warmed, [0.05, 0.95])
    return {"range": [float(low), float(high)]}


@MEASURES.of("ssmax_3b_divergence", near=factor(1.5))
def ssmax_3b_divergence(e: Evidence, claim: Claim) -> Values:
    found = e.divergence("ssmax")
    if found is None:
        return Measured(holds=False, shown={"diverged": 0})
    step, history = found
    start = e.on_paper(history.elevated_from, e.key("ssmax", "large"))
    return Measured(
        values={"g0": history.first, "step0": start, "g1": history.last, "nan": step},
        near=factor(1.5),
        shown={"signature": history.signature},
    )


@MEASURES.of("ssmax_rise_length", near=factor(1.5))
def ssmax_rise_length(e: Evidence, claim: Claim) -> Values:
    found = e.divergence("ssmax")
    if found is None:
        return Measured(holds=False, shown={"diverged": 0})
    return {"steps": e.on_paper(found[1].elevated_steps, e.key("ssmax", "large"))}


@MEASURES.of("hyper_3b_divergence", near=factor(1.5))
def hyper_3b_divergence(e: Evidence, claim: Claim) -> Values:
    found = e.divergence("hyper")
    if found is None:
        return Measured(holds=False, shown={"diverged": 0})
    step, history = found
    start = e.on_paper(history.elevated_from, e.key("hyper", "large"))
    return Measured(
        values={"above": history.first, "from_step": start, "nan": step},
        near={"above": factor(2), "from_step": factor(1.25), "nan": factor(1.25)},
        shown={"signature": history.signature},
    )


MEASURES.untested({"hybrid_seed44_after": "training stops at the first norm that is no number; nothing follows it"})
