"""Claims about the base scale: Table 2, the noise floor, sections 4 and 6.

One function for each claim, named as the claim; what it says is in config/studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from plumbline.results.checkers import Measured, factor, near, order, signs, statistic
from plumbline.results.measures import Absent, Measures, Values
from plumbline.results.published import Claim
from plumbline.stats import bootstrap_interval, probability_not_above, welch
from plumbline.studies.transfer.claims.evidence import SIGNIFICANT_Z, Evidence
from plumbline.studies.transfer.tables.noise_floor import noise_floor as noise_floor_table

MEASURES = Measures()

#: Two of the document's baseline sigmas: as near as a second training may be expected.
CLIMB = near(0.0042)


def _z(e: Evidence) -> dict[str, float]:
    return {method: e.z(method) for method in e.methods}


@MEASURES.of("counts_by_z")
def counts_by_z(e: Evidence, claim: Claim) -> Values:
    z = _z(e)
    up, down = (sum(s * value >= SIGNIFICANT_Z for value in z.values()) for s in (1, -1))
    return {"total": len(z), "inside": len(z) - up - down, "improvers": up, "degraders": down}


@MEASURES.of("bonferroni_survivors")
def bonferroni_survivors(e: Evidence, claim: Claim) -> Values:
    left = e.survivors("bonferroni")
    return {"m": e.study.m, "improvers": int((left > 0).sum()), "degraders": int((left < 0).sum())}


@MEASURES.of("bonferroni_names")
def bonferroni_names(e: Evidence, claim: Claim) -> Values:
    left = e.survivors("bonferroni")
    return {"ids": list(left.index[left > 0])}


@MEASURES.of("holm_same_as_bonferroni")
def holm_same_as_bonferroni(e: Evidence, claim: Claim) -> Values:
    holm, bonferroni = e.survivors("holm"), e.survivors("bonferroni")
    same = set(holm.index) == set(bonferroni.index)
    return Measured(values={"n": len(holm) if same else -1}, shown={"holm": list(holm.index)})


@MEASURES.of("bh_adds_four")
def bh_adds_four(e: Evidence, claim: Claim) -> Values:
    more = e.survivors("bh").index.difference(e.survivors("bonferroni").index, sort=False)
    return {"fdr": 0.05, "added": list(more)}


@MEASURES.of("one_survivor_after_3b")
def one_survivor_after_3b(e: Evidence, claim: Claim) -> Values:
    left = e.survivors("bonferroni")
    kept, lost = [], []
    for method in left.index[left > 0]:
        completed = method in e.large_methods() and e.large_outcome(method) == "completed"
        (kept if completed and e.delta(method, "large") > 0 else lost).append(method)
    return {"survivor": " ".join(kept) or "none", "lost": " ".join(lost) or "none"}


def _table2(e: Evidence, claim: Claim) -> Values:
    method = claim.id.removeprefix("t2_")
    return {"climb_avg": e.climb(method), "delta": e.delta(method), "z": e.z(method), "p_bonf": e.p_bonferroni(method)}


TABLE_2 = ["softpick", "hybrid_norm", "qknorm", "sandwich_norm", "relu_squared", "selective_attn", "qknorm_geglu"]
TABLE_2 += ["gated_attn_qknorm", "softmax_cap", "selective_qknorm", "value_residual", "geglu_ffn", "denseformer"]
TABLE_2 += ["diff_attn", "layerscale", "hyper", "attnres", "ssmax", "sigmoid_attn"]
MEASURES.of(*(f"t2_{method}" for method in TABLE_2), compare=signs("z", beyond=SIGNIFICANT_Z))(_table2)


@MEASURES.of("t2_order", compare=order("order"))
def t2_order(e: Evidence, claim: Claim) -> Values:
    values = {method: e.climb(method) for method in e.methods}
    return {"order": sorted(values, key=values.__getitem__, reverse=True)}


@MEASURES.of("baseline_mean_sigma", near={"mean": CLIMB, "std": factor(2)})
def baseline_mean_sigma(e: Evidence, claim: Claim) -> Values:
    return {"mean": e.floor.mean, "std": e.floor.sigma}


@MEASURES.of("baseline_seeds", near=CLIMB)
def baseline_seeds(e: Evidence, claim: Claim) -> Values:
    return {"values": _in_the_order_of(claim.values["values"], e.seeds(e.reference))}


@MEASURES.of("softpick_seeds", near={"values": CLIMB, "mean": CLIMB, "std": factor(2)})
def softpick_seeds(e: Evidence, claim: Claim) -> Values:
    seeds = e.seeds("softpick")
    values = _in_the_order_of(claim.values["values"], seeds)
    return {"values": values, "mean": float(np.mean(seeds)), "std": float(np.std(seeds, ddof=1))}


def _in_the_order_of(printed: list[float], measured: list[float]) -> list[float]:
    """Which seed printed which value is not told: compare by size."""
    if len(printed) != len(measured):
        return measured
    ranks = np.argsort(np.argsort(printed))
    return [sorted(measured)[rank] for rank in ranks]


def _sigmas(e: Evidence) -> dict[str, float]:
    names = e.study.sheet["noise_floor"]
    return {m: float(np.std(e.seeds(m), ddof=1)) for m in (names["reference"], *names["others"])}


@MEASURES.of("sigma_three_refs", near=factor(2))
def sigma_three_refs(e: Evidence, claim: Claim) -> Values:
    return _sigmas(e)


@MEASURES.of("sigma_baseline_largest", compare=order("order"))
def sigma_baseline_largest(e: Evidence, claim: Claim) -> Values:
    sigmas = _sigmas(e)
    return {"order": sorted(sigmas, key=sigmas.__getitem__, reverse=True)}


@MEASURES.of("welch_qknorm", "welch_softpick", compare=statistic("t", p="p"))
def welch_of(e: Evidence, claim: Claim) -> Values:
    found = welch(e.seeds(claim.id.removeprefix("welch_")), e.seeds(e.reference))
    return {"t": found.t, "p": found.p}


@MEASURES.of("bootstrap_disjoint")
def bootstrap_disjoint(e: Evidence, claim: Claim) -> Values:
    base = e.seeds(e.reference)
    chances = {m: probability_not_above(e.seeds(m), base) for m in e.study.sheet["noise_floor"]["others"]}
    return Measured(values={"n_resamples": 10_000, "prob": max(chances.values())}, shown=chances)


@MEASURES.of("stouffer_qknorm", "stouffer_softpick", compare=statistic("Z", p="p_one"))
def stouffer_of(e: Evidence, claim: Claim) -> Values:
    method = claim.id.removeprefix("stouffer_")
    for name in (method, e.reference):
        e.seeds(name)
    table = noise_floor_table(e.frames, e.study, e.published)
    names = {"Z": "stouffer_z", "p_one": "stouffer_p_one_sided", "p_two": "stouffer_p_two_sided"}
    names |= {"tasks_higher": "tasks_above", "tasks": "tasks_total", "exceptions": "tasks_not_above"}
    cells = {name: table.cell(method, column) for name, column in names.items()}
    if cells["Z"].value is None:
        raise Absent(cells["Z"].word, f"Stouffer's Z of {method}")
    return {name: cell.value for name, cell in cells.items()}


@MEASURES.of("gain_floor", near={"sigma": factor(2)})
def gain_floor(e: Evidence, claim: Claim) -> Values:
    return {"sigma": e.floor.sigma, "n_inside": counts_by_z(e, claim)["inside"]}


@MEASURES.of("extra_runs_needed", scope="arithmetic")
def extra_runs_needed(e: Evidence, claim: Claim) -> Values:
    z = e.published.table("table2")["z"].astype(float)
    nominal = [m for m in z.index[z > SIGNIFICANT_Z] if m not in e.study.sheet["noise_floor"]["others"]]
    return Measured(values={"runs": 2 * len(nominal)}, shown={"from": "printed z, two seeds more for each"})


def _attention(e: Evidence) -> list[str]:
    return [m for m, entry in e.study.methods.items() if entry.get("category") == "attention"]


def _single_attention(e: Evidence) -> list[str]:
    """Attention methods that are no combination: they change one slot of the model."""
    return [m for m in _attention(e) if len(e.study.methods[m].get("model", {})) == 1]


@MEASURES.of("attention_span", near=CLIMB)
def attention_span(e: Evidence, claim: Claim) -> Values:
    deltas = [e.delta(method) for method in _attention(e)]
    return {"hi": max(deltas), "lo": min(deltas)}


@MEASURES.of("attention_span_ratio")
def attention_span_ratio(e: Evidence, claim: Claim) -> Values:
    span = attention_span(e, claim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        interval = bootstrap_interval(e.seeds(e.reference))
    width = interval.high - interval.low
    return {"ratio": (span["hi"] - span["lo"]) / width if width else math.inf}


@MEASURES.of("attention_six_of_eight")
def attention_six_of_eight(e: Evidence, claim: Claim) -> Values:
    z = [e.z(method) for method in _single_attention(e)]
    up, down = (sum(s * value > SIGNIFICANT_Z for value in z) for s in (1, -1))
    return {"distinguishable": up + down, "of": len(z), "up": up, "down": down}


@MEASURES.of("attention_noise_band")
def attention_noise_band(e: Evidence, claim: Claim) -> Values:
    return {"ids": [m for m in _single_attention(e) if abs(e.z(m)) < SIGNIFICANT_Z]}


@MEASURES.of("overshoot", near=near(0.3))
def overshoot(e: Evidence, claim: Claim) -> Values:
    worst = min(e.z("sigmoid_attn"), e.z("ssmax"))
    return {"orders": math.log10(-worst) if worst < 0 else 0.0}


@MEASURES.of("soft_hard_no_predictor")
def soft_hard_no_predictor(e: Evidence, claim: Claim) -> Values:
    deltas = {method: e.delta(method) for method in _attention(e)}
    return {"best": max(deltas, key=deltas.__getitem__), "worst": min(deltas, key=deltas.__getitem__)}


@MEASURES.of("removing_softmax_normalization")
def removing_softmax_normalization(e: Evidence, claim: Claim) -> Values:
    return {"ids": [m for m in claim.values["ids"] if e.z(m) < -SIGNIFICANT_Z]}


@MEASURES.of("residual_none_improves", compare=signs("z", "z_denseformer", beyond=SIGNIFICANT_Z))
def residual_none_improves(e: Evidence, claim: Claim) -> Values:
    z = [e.z(method) for method in ("layerscale", "hyper", "attnres")]
    return {"z": z, "z_denseformer": e.z("denseformer")}


SINGLE_Z = {"geglu_equals_swiglu": "geglu_ffn", "relu2_nominal": "relu_squared", "diff_attn_nominal": "diff_attn"}
SINGLE_Z |= {"hyper_finite_1p2b": "hyper"}


@MEASURES.of(*SINGLE_Z, compare=statistic("z", beyond=SIGNIFICANT_Z))
def single_z(e: Evidence, claim: Claim) -> Values:
    return {"z": e.z(SINGLE_Z[claim.id])}


@MEASURES.of("qknorm_geglu_top_3b")
def qknorm_geglu_top_3b(e: Evidence, claim: Claim) -> Values:
    values = {}
    for method in e.large_methods():
        try:
            values[method] = e.climb(method, "large")
        except Absent as absent:
            if absent.word != "diverged":
                raise
    best = max(values, key=values.__getitem__)
    return Measured(holds=best == "qknorm_geglu", shown={"best_3b": best, "z_1p2b": e.z("qknorm_geglu")})


@MEASURES.of("failure_taxonomy")
def failure_taxonomy(e: Evidence, claim: Claim) -> Values:
    down = [method for method in e.methods if e.z(method) < -SIGNIFICANT_Z]
    return {
        "replacement": sum(method in ("sigmoid_attn", "ssmax") for method in down),
        "subtraction": sum(method == "diff_attn" for method in down),
        "residual": sum(e.study.methods[method].get("category") == "residual" for method in down),
    }


@MEASURES.of("range_three_points")
def range_three_points(e: Evidence, claim: Claim) -> Values:
    values = [e.climb(method) for method in e.methods]
    return {"points": 100 * (max(values) - min(values))}


MEASURES.untested(
    {
        "narang_improvers": "about the literature, not about these runs",
        "softpick_original_scale": "about the literature, not about these runs",
        "improvers_keep_concentration": "needs a probe of attention weights, which this study has not",
        "hours": "needs the document's machines",
    }
)
