"""Checks claims about the large scale: Table 3, the divergences of Table 6 and Figure 1.

One function for each claim, named as the claim; what it says is in studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import (
    ComputedValues,
    at_most_partly,
    in_turn,
    number,
    order,
    ranking,
    signs,
    statements,
    statistic,
)
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values
from plumbline.results.claims.claim_tolerances import factor, near
from plumbline.stats.rank_correlation import spearman

from ..divergence_pattern import Divergence, chain, read_norms
from ..two_scales import improvers
from .base_scale import CLIMB
from .claim_evidence import LEVEL, Evidence

CHECKS = ClaimChecks()

IMPROVERS = ["qknorm_geglu", "qknorm", "selective_qknorm", "selective_attn", "sandwich_norm", "softpick"]
IMPROVERS += ["relu_squared"]
FAILURES = ["attnres", "sigmoid_attn"]
HYBRID_SEEDS = (42, 43, 44)

#: How far two runs of one model are apart, of one seed each: two printed sigmas of a difference.
ONE_RUN_EACH = CLIMB.limit * math.sqrt(2)
#: Steps of a divergence: as far apart as those of the paper's own three seeds (2,800 to 3,500).
STEPS = factor(3500 / 2800)
#: Gradient norms in a stable range: as far apart as the ends of the range in which the paper's baseline stays.
STABLE = factor(0.20 / 0.15)
#: Gradient norms of a divergence, which grow several times over within one logging interval: a stated choice.
PEAK = factor(2)
#: Deltas of the two failures, many sigmas wide: a quarter, a stated choice.
FAILURE = factor(1.25)
#: "Shortly after" the peak: at most so many times the warm-up's steps from the start on.
SHORTLY = 2
#: Where a run's gradient norms are: between these quantiles.
BAND = (0.05, 0.95)
#: The standard error of a rank correlation of n pairs is 1 / sqrt(n - 1): here of the printed seven.
RANK = near(1 / math.sqrt(6))


@CHECKS.of()
def runs_3b(e: Evidence, claim: PaperClaim) -> Values:
    """Count the methods whose first seed at the large scale completed, and those whose did not."""
    outcomes = [e.large_outcome(method) for method in e.large_methods()]
    done = outcomes.count("completed")
    return ComputedValues(values={"completed": done, "diverged": len(outcomes) - done}, shown={"tried": len(outcomes)})


def _ranks(e: Evidence, method: str) -> tuple[float, float]:
    """Among all methods at the base scale, and among those that completed the large one."""
    for name in e.methods:
        e.climb(name)
    e.list_runs_behind(method, "large")  # where a preset has it at one scale alone, it is missing
    return float(e.two_scales.loc[method, "rank_base"]), float(e.two_scales.loc[method, "rank_large"])


#: Ranks are whole numbers and must be the printed ones.
TABLE_3 = {"climb_avg_1p2b": CLIMB, "climb_avg_3b": CLIMB, "delta_3b": CLIMB}


@CHECKS.of(
    *(f"t3_{method}" for method in IMPROVERS + FAILURES),
    near=TABLE_3,
    compare=in_turn(signs("delta_3b", beyond=ONE_RUN_EACH), number),
)
def table3_row(e: Evidence, claim: PaperClaim) -> Values:
    """Read the claim's row of Table 3: CLIMB-avg and rank at both scales, and delta at the large one."""
    method = claim.id.removeprefix("t3_")
    values = {"climb_avg_1p2b": e.climb(method), "climb_avg_3b": e.climb(method, "large")}
    ranks = dict(zip(("rank_1p2b", "rank_3b"), _ranks(e, method), strict=True))
    return values | {"delta_3b": e.delta(method, "large")} | ranks


@CHECKS.of(near=CLIMB)
def t3_baseline(e: Evidence, claim: PaperClaim) -> Values:
    """Read the baseline's CLIMB-avg at the large scale, of its first seed."""
    return {"climb_avg_3b": e.climb(e.reference, "large")}


@CHECKS.of(compare=order("order"))
def t3_order(e: Evidence, claim: PaperClaim) -> Values:
    """Order the methods that completed the large scale by CLIMB-avg, best first."""
    values = e.averages_at_large_scale()
    return {"order": ranking(values, highest_first=True)}


@CHECKS.of(effect=statements("kept"))
def sign_preserved(e: Evidence, claim: PaperClaim) -> Values:
    """Above the baseline at both scales, and below it at both; at the large one beyond noise, as the limitations say:
    more than half of the improvers, and each failure."""
    counts, far = {}, {}
    for name, methods, sign in (("improvers", IMPROVERS, 1), ("failures", FAILURES, -1)):
        at_large = [sign * e.delta(m, "large") for m in methods if sign * e.delta(m) > 0]
        counts[name] = sum(delta > 0 for delta in at_large)
        far[name] = sum(delta > ONE_RUN_EACH for delta in at_large)
    return counts | {"kept": 2 * far["improvers"] > len(IMPROVERS) and far["failures"] == len(FAILURES)}


@CHECKS.of(
    effect=signs("lo", "hi", beyond=ONE_RUN_EACH),
    near=CLIMB,
    compare=in_turn(number, at_most_partly("the_same_methods")),
)
def delta_3b_range(e: Evidence, claim: PaperClaim) -> Values:
    """Find the smallest and largest delta at the large scale among the seven improvers, and whose they are."""
    deltas = {method: e.delta(method, "large") for method in IMPROVERS}
    ends = [min(deltas, key=deltas.__getitem__), max(deltas, key=deltas.__getitem__)]
    values = {
        "lo": deltas[ends[0]],
        "hi": deltas[ends[1]],
        "the_same_methods": ends == ["relu_squared", "qknorm_geglu"],
    }
    return ComputedValues(values=values, shown={"from_to": ends})


@CHECKS.of(effect=signs("sigmoid_3b", "sigmoid_1p2b", "attnres_3b", "attnres_1p2b"), near=FAILURE)
def failures_3b(e: Evidence, claim: PaperClaim) -> Values:
    """Read the deltas of sigmoid attention and of attention residuals at both scales."""
    return {
        "sigmoid_3b": e.delta("sigmoid_attn", "large"),
        "sigmoid_1p2b": e.delta("sigmoid_attn"),
        "attnres_3b": e.delta("attnres", "large"),
        "attnres_1p2b": e.delta("attnres"),
    }


@CHECKS.of(compare=in_turn(statistic("rho", p="p", close=RANK), at_most_partly("of_the_printed_number")))
def spearman_7(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the rank correlation between the scales over the methods above the baseline at the base scale that
    complete the large one."""
    for method in e.methods:
        e.climb(method)
    e.averages_at_large_scale()
    part = improvers(e.two_scales, e.reference)
    if len(part) < 3:
        raise MissingRun("fewer than three improvers", "large")
    correlation = spearman(part["base"], part["large"])
    return ComputedValues(
        values={
            "rho": correlation.rho,
            "p": correlation.p_t,
            "n": correlation.n,
            "of_the_printed_number": correlation.n == claim.values["n"],
        },
        shown={"p_exact_permutation": correlation.p_permutation},
        limits={"rho apart": (abs(correlation.rho - claim.values["rho"]), RANK.limit), "p": (correlation.p_t, LEVEL)},
    )


@CHECKS.of(near=near(0.0), effect=statements("moves"))
def rank_moves(e: Evidence, claim: PaperClaim) -> Values:
    """Read the ranks at both scales of the two methods that rise, and Softpick's at the large one, where it falls. A
    rank of 20 is above one of 10 in any case: who moves is told among those that completed the large scale."""
    large = e.averages_at_large_scale()
    base = {method: e.climb(method) for method in large}
    moves = {name: list(_ranks(e, name)) for name in ("qknorm_geglu", "selective_qknorm")}
    passed = {name: _rank(base, name) - _rank(large, name) for name in (*moves, "softpick")}
    fall = passed.pop("softpick") < 0
    return moves | {"softpick_3b": _ranks(e, "softpick")[1], "moves": min(passed.values()) > 0 and fall}


def _rank(averages: dict[str, float], method: str) -> int:
    return 1 + sum(average > averages[method] for average in averages.values())


def _report_completed() -> ComputedValues:
    return ComputedValues(holds=False, shown={"completed": 1})


def _list_hybrid_divergences(e: Evidence) -> list[tuple[float, Divergence]] | None:
    """HybridNorm's divergences; None if a seed completed, which speaks against every claim about them."""
    divergences = [e.divergence("hybrid_norm", seed) for seed in HYBRID_SEEDS]
    return None if None in divergences else [divergence for divergence in divergences if divergence is not None]


@CHECKS.of(near=STEPS)
def hybrid_nan_steps(e: Evidence, claim: PaperClaim) -> Values:
    """Read the steps at which HybridNorm's three seeds diverged, on the paper's length of training."""
    divergences = _list_hybrid_divergences(e)
    return {"nan_step": [step for step, _ in divergences]} if divergences else _report_completed()


@CHECKS.of(near=STEPS, compare=in_turn(statements("after_the_peak"), number))
def hybrid_window(e: Evidence, claim: PaperClaim) -> Values:
    """Shortly after the peak: after it, and at most as long after it as the warm-up took."""
    divergences = _list_hybrid_divergences(e)
    if not divergences:
        return _report_completed()
    steps = [step for step, _ in divergences]
    key = e.key("hybrid_norm", "large")
    peak = e.on_paper(e.study.runs[key].spec.schedule.warmup_steps, key)
    after = peak < min(steps) and max(steps) <= SHORTLY * peak
    window = {"window": [min(steps), max(steps)], "after_the_peak": after}
    limits = {"last step over the peak's": (max(steps) / peak, SHORTLY)}
    return ComputedValues(values=window, shown={"peak_step": peak}, limits=limits)


def _band(e: Evidence, method: str) -> tuple[float, float]:
    """Where a run's gradient norms are after warm-up: its quantiles of `BAND`, for "about" a range is read off a
    curve of tens of thousands of steps, whose smallest and largest are those of single batches."""
    key = e.key(method, "large")
    norms = read_norms(e.frames, key).dropna()
    if norms.empty:
        raise MissingRun("without a step after warm-up", key)
    low, high = np.quantile(norms, BAND)
    return float(low), float(high)


@CHECKS.of(near=STABLE, compare=in_turn(statements("sudden"), number, statements("as_the_baseline")))
def hybrid_pre_nan_grad(e: Evidence, claim: PaperClaim) -> Values:
    """The last norm before the divergence, or before the spike that is its last step; and where the baseline's are."""
    divergences = _list_hybrid_divergences(e)
    if not divergences:
        return _report_completed()
    before = [history.before for _, history in divergences]
    low, high = _band(e, e.reference)
    return ComputedValues(
        values={
            "range": [min(before), max(before)],
            "sudden": all(history.signature == "sudden" for _, history in divergences),
            "as_the_baseline": all(STABLE(low, norm) or STABLE(high, norm) or low <= norm <= high for norm in before),
        },
        shown={"baseline": [low, high]},
    )


@CHECKS.of(near={"spike": PEAK, "step": STEPS, "nan": STEPS, "factor": PEAK})
def hybrid_spike(e: Evidence, claim: PaperClaim) -> Values:
    """A norm well above those before it, at the end."""
    divergence = e.divergence("hybrid_norm", 42)
    if divergence is None:
        return _report_completed()
    step, history = divergence
    if history.signature != "sudden" or math.isnan(history.first):
        return ComputedValues(holds=False, shown={"peak": history.peak, "signature": history.signature, "nan": step})
    at = e.on_paper(history.elevated_from, e.key("hybrid_norm", "large"))
    return {"spike": history.first, "step": at, "nan": step, "factor": history.first / history.before}


@CHECKS.of(near=STABLE)
def baseline_3b_grad(e: Evidence, claim: PaperClaim) -> Values:
    """In that range to the end, single batches aside: see `_band`."""
    if e.large_outcome(e.reference) == "diverged":
        return ComputedValues(holds=False, shown={"outcome": "diverged"})
    return {"range": list(_band(e, e.reference))}


@CHECKS.of(compare=in_turn(statements("rise"), number))
def ssmax_3b_divergence(e: Evidence, claim: PaperClaim) -> Values:
    """The norms at the printed steps, and whether they rise between them."""
    divergence = e.divergence("ssmax")
    if divergence is None:
        return _report_completed()
    step, history = divergence
    norms = read_norms(e.frames, e.key("ssmax", "large")).dropna()
    norms.index = [e.on_paper(at, e.key("ssmax", "large")) for at in norms.index]
    values = {name: _at(norms, claim.values[place]) for name, place in (("g0", "step0"), ("g1", "step1"))}
    return ComputedValues(
        values=values | {"nan": step, "rise": history.signature == "rise"},
        near={"g0": PEAK, "g1": PEAK, "nan": STEPS},
        shown={"signature": history.signature},
    )


def _at(norms: pd.Series, step: float) -> float:
    """The norm logged last at or before a step; NaN if the run did not get there."""
    there = norms[norms.index <= step]
    return float(there.iloc[-1]) if len(there) and norms.index[-1] >= step else math.nan


@CHECKS.of(near=STEPS)
def ssmax_rise_length(e: Evidence, claim: PaperClaim) -> Values:
    """Read for how many steps SSMax's gradient norm was elevated before it diverged, if it rose, on the paper's length
    of training."""
    divergence = e.divergence("ssmax")
    if divergence is None:
        return _report_completed()
    steps = e.on_paper(divergence[1].elevated_steps, e.key("ssmax", "large"))
    if divergence[1].signature != "rise":
        return ComputedValues(holds=False, shown={"signature": divergence[1].signature, "steps": steps})
    return {"steps": steps}


@CHECKS.of(near=STEPS)
def hyper_3b_divergence(e: Evidence, claim: PaperClaim) -> Values:
    """Sustained: the last chain of norms above the printed one, which ends with the divergence; peaks may be spaced."""
    divergence = e.divergence("hyper")
    if divergence is None:
        return _report_completed()
    key = e.key("hyper", "large")
    norms = read_norms(e.frames, key).dropna()
    steps, high = norms.index.to_numpy(dtype=float), norms.to_numpy() > claim.values["above"]
    begin = chain(steps, high, float(e.frames.runs.loc[key, "step"]))
    if begin == len(steps):
        return ComputedValues(holds=False, shown={"largest": float(norms.max()), "nan": divergence[0]})
    start = e.on_paper(steps[begin], key)
    return ComputedValues(
        values={"from_step": start, "nan": divergence[0]}, shown={"signature": divergence[1].signature}
    )


CHECKS.mark_untested({"hybrid_seed44_after": "training stops at the first norm that is no number; nothing follows it"})
