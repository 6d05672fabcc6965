"""Checks claims about the base scale: Table 2, the noise floor, sections 4 and 6.

One function for each claim, named as the claim; what it says is in studies/transfer/published/claims.yaml.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import (
    ComputedValues,
    Verdict,
    at_most_partly,
    first,
    in_turn,
    number,
    number_with,
    order,
    ranking,
    signs,
    statements,
    statistic,
)
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values
from plumbline.results.claims.claim_tolerances import factor, near
from plumbline.stats.bootstrap import bootstrap_interval, probability_not_above
from plumbline.stats.sample_spread import sample_deviation
from plumbline.stats.welch_and_stouffer import welch

from .claim_evidence import LEVEL, SIGNIFICANT_Z, Evidence

CHECKS = ClaimChecks()

#: Two of the paper's baseline sigmas: as near as a second training may be expected, and a difference that counts.
CLIMB = near(0.0042)
#: A standard deviation of three seeds is itself known no better: 95 % of such estimates are between 0.16 and 1.9 of it.
SIGMA = factor(2)


def count_beyond_noise(e: Evidence, methods: list[str]) -> tuple[int, int]:
    """How many methods are above and below the noise."""
    z = [e.z(method) for method in methods]
    return sum(value > SIGNIFICANT_Z for value in z), sum(value < -SIGNIFICANT_Z for value in z)


def side(e: Evidence, method: str) -> int:
    """On which side of the baseline a method is beyond noise: two sigmas as measured, and as printed, else 0.

    Three seeds give a sigma within a factor of two: of methods that are the baseline one in nine is more than two of
    them above it.
    """
    z, delta = e.z(method), e.delta(method)
    return int(math.copysign(1, z)) if abs(z) > SIGNIFICANT_Z and abs(delta) > CLIMB.limit else 0


#: On one side of the baseline, counts of methods beyond its noise: one is there by chance.
CHANCE_COUNT = 1


@CHECKS.of(effect=signs("improvers", "degraders", beyond=CHANCE_COUNT))
def counts_by_z(e: Evidence, claim: PaperClaim) -> Values:
    """Count the methods above, below and inside two sigmas of the baseline's noise floor; the baseline is inside."""
    up, down = count_beyond_noise(e, e.methods)
    values = {"inside": len(e.methods) - up - down, "improvers": up, "degraders": down}
    limits = e.nearest_to_the_noise(e.methods)
    return ComputedValues(values=values, shown={"total": len(e.methods)}, limits=limits)


@CHECKS.of(effect=signs("improvers", "degraders"))
def bonferroni_survivors(e: Evidence, claim: PaperClaim) -> Values:
    """Count the methods above and below the baseline whose Bonferroni-corrected p is at most 0.05."""
    survivors = e.survivors("bonferroni")
    values = {"improvers": int((survivors > 0).sum()), "degraders": int((survivors < 0).sum())}
    limits = e.nearest_to_the_level("bonferroni")
    return ComputedValues(values=values, shown={"m": e.study.m}, limits=limits)


@CHECKS.of()
def bonferroni_names(e: Evidence, claim: PaperClaim) -> Values:
    """List the methods above the baseline whose Bonferroni-corrected p is at most 0.05."""
    survivors = e.survivors("bonferroni")
    return ComputedValues(
        values={"ids": list(survivors.index[survivors > 0])}, limits=e.nearest_to_the_level("bonferroni")
    )


@CHECKS.of()
def holm_same_as_bonferroni(e: Evidence, claim: PaperClaim) -> Values:
    """Count the methods that Holm's correction keeps, if they are those that Bonferroni's keeps; -1 if they are not."""
    holm, bonferroni = e.survivors("holm"), e.survivors("bonferroni")
    same = set(holm.index) == set(bonferroni.index)
    values, limits = {"n": len(holm) if same else -1}, e.nearest_to_the_level("holm")
    return ComputedValues(values=values, shown={"holm": list(holm.index)}, limits=limits)


@CHECKS.of()
def bh_adds_four(e: Evidence, claim: PaperClaim) -> Values:
    """List the methods that Benjamini-Hochberg keeps and Bonferroni does not."""
    more = e.survivors("bh").index.difference(e.survivors("bonferroni").index, sort=False)
    return ComputedValues(values={"added": list(more)}, limits=e.nearest_to_the_level("bh"))


@CHECKS.of(effect=statements("survives"))
def one_survivor_after_3b(e: Evidence, claim: PaperClaim) -> Values:
    """Sort the improvers that Bonferroni keeps by whether they complete the large scale above its baseline."""
    survivors = e.survivors("bonferroni")
    still_better, lost = [], []
    for method in survivors.index[survivors > 0]:
        completed = method in e.large_methods() and e.large_outcome(method) == "completed"
        (still_better if completed and e.delta(method, "large") > 0 else lost).append(method)
    names = {"survivor": " ".join(still_better) or "none", "lost": " ".join(lost) or "none"}
    return names | {"survives": still_better == [claim.values["survivor"]]}


def _table2(e: Evidence, claim: PaperClaim) -> Values:
    """Read a method's row of Table 2 and its p after Bonferroni's correction. Of a method that is printed inside two
    sigmas the claim is that it is not separated from the baseline, on whichever side it is."""
    method = claim.id.removeprefix("t2_")
    z, p = e.z(method), e.p_bonferroni(method)
    printed = claim.values.get("p_bonf", claim.values.get("p_bonf_upper_bound"))
    return ComputedValues(
        values={
            "climb_avg": e.climb(method),
            "delta": e.delta(method),
            "z": z,
            "same_after_correction": (p <= LEVEL) == (printed <= LEVEL),
            "not_separated": abs(z) <= SIGNIFICANT_Z,
        },
        near=CLIMB,
        shown={"p_bonf": p},
        limits={
            "|z|": (abs(z), SIGNIFICANT_Z),
            "|delta|": (abs(e.delta(method)), CLIMB.limit),
            "p_bonf": (p, LEVEL),
        },
    )


def _numbers(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """The row's numbers but z, whose side is judged."""
    values = {name: measured.values[name] for name in ("climb_avg", "delta")}
    return number(claim, ComputedValues(values=values, near=measured.near))


#: What a row says in words is the sign and the side of z, beyond noise (`side`); partly where its numbers or its
#: corrected p are others.
SEPARATED = in_turn(
    signs("z", beyond=SIGNIFICANT_Z),
    signs("delta", beyond=CLIMB.limit),
    _numbers,
    at_most_partly("same_after_correction"),
)


def _not_separated(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """Inside the noise no sign is claimed; the claim's text has the printed one, and the reason says what is judged."""
    apart = "inside" if measured.values["not_separated"] else "outside"
    verdict: Verdict = "reproduced" if measured.values["not_separated"] else "not reproduced"
    note = "on which side is not judged, by the interpretation signs_inside_the_noise"
    return verdict, f"{apart} 2 sigma of the baseline ({note})"


NOT_SEPARATED = in_turn(_not_separated, _numbers)


def table2_row(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """Rule: what Table 2 claims of a method, by the side of two sigmas on which it is printed."""
    rule = SEPARATED if abs(claim.values["z"]) > SIGNIFICANT_Z else NOT_SEPARATED
    return rule(claim, measured)


TABLE_2 = ["softpick", "hybrid_norm", "qknorm", "sandwich_norm", "relu_squared", "selective_attn", "qknorm_geglu"]
TABLE_2 += ["gated_attn_qknorm", "softmax_cap", "selective_qknorm", "value_residual", "geglu_ffn", "denseformer"]
TABLE_2 += ["diff_attn", "layerscale", "hyper", "attnres", "ssmax", "sigmoid_attn"]
CHECKS.of(*(f"t2_{method}" for method in TABLE_2), compare=table2_row)(_table2)


@CHECKS.of(compare=order("order"))
def t2_order(e: Evidence, claim: PaperClaim) -> Values:
    """Order all methods by CLIMB-avg at the base scale, best first."""
    values = {method: e.climb(method) for method in e.methods}
    return {"order": ranking(values, highest_first=True)}


@CHECKS.of(near={"mean": CLIMB, "std": SIGMA})
def baseline_mean_sigma(e: Evidence, claim: PaperClaim) -> Values:
    """Read mean and unbiased standard deviation of the baseline's CLIMB-avg over its seeds."""
    return {"mean": e.floor.mean, "std": e.floor.sigma}


@CHECKS.of(near=CLIMB)
def baseline_seeds(e: Evidence, claim: PaperClaim) -> Values:
    """Read the baseline's CLIMB-avg of each seed, in the order of size of the printed ones."""
    return {"values": _in_the_order_of(claim.values["values"], e.seeds(e.reference))}


@CHECKS.of(compare=number_with("values", "mean"), near={"values": CLIMB, "mean": CLIMB, "std": SIGMA})
def softpick_seeds(e: Evidence, claim: PaperClaim) -> Values:
    """Read Softpick's CLIMB-avg of each seed, in the order of size of the printed ones, with mean and deviation."""
    seeds = e.seeds("softpick")
    values = _in_the_order_of(claim.values["values"], seeds)
    return {"values": values, "mean": float(np.mean(seeds)), "std": sample_deviation(np.asarray(seeds))}


def _in_the_order_of(printed: list[float], measured: list[float]) -> list[float]:
    """Which seed printed which value is not told: compare by size."""
    if len(printed) != len(measured):
        return measured
    ranks = np.argsort(np.argsort(printed))
    return [sorted(measured)[rank] for rank in ranks]


def _sigmas(e: Evidence) -> dict[str, float]:
    names = e.study.definition["noise_floor"]
    return {m: sample_deviation(np.asarray(e.seeds(m))) for m in (names["reference"], *names["others"])}


@CHECKS.of(near=SIGMA)
def sigma_three_refs(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the standard deviation of CLIMB-avg over seeds of the three methods that have several."""
    return _sigmas(e)


@CHECKS.of(compare=first("order"))
def sigma_baseline_largest(e: Evidence, claim: PaperClaim) -> Values:
    """Order the three methods that have several seeds by the standard deviation of CLIMB-avg, largest first."""
    sigmas = _sigmas(e)
    return {"order": ranking(sigmas, highest_first=True)}


@CHECKS.of("welch_qknorm", "welch_softpick", compare=statistic("t", p="p"))
def welch_of(e: Evidence, claim: PaperClaim) -> Values:
    """Compute Welch's t and p of the claim's method against the baseline, over the seeds' CLIMB-avg."""
    method = claim.id.removeprefix("welch_")
    test = welch(e.seeds(method), e.seeds(e.reference))
    if math.isnan(test.t):
        raise MissingRun("of too few seeds", method)
    return ComputedValues(values={"t": test.t, "p": test.p}, limits={"p": (test.p, LEVEL)})


def interval(seeds: list[float]) -> tuple[float, float]:
    """The paper's bootstrap interval (section 3.3)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        bounds = bootstrap_interval(seeds)
    return bounds.low, bounds.high


@CHECKS.of(compare=statements("qknorm", "softpick"))
def bootstrap_disjoint(e: Evidence, claim: PaperClaim) -> Values:
    """For each method: its interval begins above the baseline's end, and no resample is at or below the baseline's."""
    base = e.seeds(e.reference)
    end = interval(base)[1]
    seeds = {method: e.seeds(method) for method in e.study.definition["noise_floor"]["others"]}
    begins = {method: interval(own)[0] for method, own in seeds.items()}
    chances = {method: probability_not_above(own, base) for method, own in seeds.items()}
    numbers = {"base_ends": end} | {f"{m}_begins": low for m, low in begins.items()}
    numbers |= {f"probability_{method}": chance for method, chance in chances.items()}
    return ComputedValues(values={m: begins[m] > end and chances[m] == 0 for m in seeds}, shown=numbers)


def _counts(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """How many tasks are higher, and which are not."""
    names = ("tasks", "tasks_higher", "exceptions")
    return number(claim, ComputedValues(values={name: measured.values[name] for name in names}))


@CHECKS.of("stouffer_qknorm", "stouffer_softpick", compare=in_turn(statistic("Z", p="p_one"), _counts))
def stouffer_of(e: Evidence, claim: PaperClaim) -> Values:
    """Read Stouffer's Z and p of the claim's method over tasks from the table noise_floor, and on how many it is
    above."""
    method = claim.id.removeprefix("stouffer_")
    for name in (method, e.reference):
        e.seeds(name)
    table = e.noise_floor
    names = {"Z": "stouffer_z", "p_one": "stouffer_p_one_sided", "p_two": "stouffer_p_two_sided"}
    names |= {
        "tasks_higher": "tasks_above_baseline",
        "tasks": "tasks_compared",
        "exceptions": "tasks_not_above_baseline",
    }
    cells = {name: table.cell(method, column) for name, column in names.items()}
    if cells["Z"].value is None:
        raise MissingRun(cells["Z"].word, f"Stouffer's Z of {method}")
    values = {name: cell.value for name, cell in cells.items()}
    values |= {"exceptions": [task for task in str(values["exceptions"]).split() if task != "none"]}
    return ComputedValues(values=values, limits={"p_one": (float(values["p_one"]), LEVEL)})


@CHECKS.of(effect=statements("divides"), near={"gain": SIGMA, "sigma": SIGMA})
def gain_floor(e: Evidence, claim: PaperClaim) -> Values:
    """The gain that counts begins at the line |z| = 2, beyond which are more methods than by chance, on either side."""
    up, down = count_beyond_noise(e, e.methods)
    values = {"gain": SIGNIFICANT_Z * e.floor.sigma, "sigma": e.floor.sigma, "divides": min(up, down) > CHANCE_COUNT}
    values |= {"n_inside": len(e.methods) - up - down}
    return ComputedValues(values=values, limits=e.nearest_to_the_noise(e.methods))


@CHECKS.of(scope="arithmetic")
def extra_runs_needed(e: Evidence, claim: PaperClaim) -> Values:
    """Count two more seeds for each method whose printed z is above 2 and that has one seed."""
    z = e.published.table("table2")["z"].astype(float)
    nominal = [m for m in z.index[z > SIGNIFICANT_Z] if m not in e.study.definition["noise_floor"]["others"]]
    return ComputedValues(values={"runs": 2 * len(nominal)}, shown={"from": "printed z, two seeds more for each"})


CHECKS.mark_untested(
    {
        "narang_improvers": "about the literature, not about these runs",
        "softpick_original_scale": "about the literature, not about these runs",
        "hours": "needs the paper's machines",
    }
)
