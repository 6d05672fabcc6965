"""Checks claims about what the intervention does to upper attention: section 5.3 and 5.4, Figure 3, Table 12."""

from __future__ import annotations

import math

import pandas as pd

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues, statements
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import factor, near

from ..release_rule_replay import find_maturity
from ..run_values import CONTROL, EARLY, END, FIFTH, INTERVENTION
from .claim_evidence import ENTROPY, LOGIT, Evidence, above

CHECKS = ClaimChecks()

SIDES = {"control": CONTROL, "intervention": INTERVENTION}

#: "Much smaller": by a third or more.
MUCH = 2 / 3

#: What grows gradually has no step between two points of more than this share of its whole growth.
GRADUAL = 0.5

#: Perplexity that an ablation costs; a fraction of training read at probe points, in percent; ratios of locality; a
#: share of energy.
COST, AT, RATIOS, ENERGY = factor(1.5), near(0.5), near(0.1), near(0.05)

#: Perplexities of one model under the three ablations are one number within this share of it.
SAME = 0.01


def _curve(e: Evidence, method: str, probe: str) -> pd.Series:
    """A readout of the first seed over training, from 3 % on."""
    key = e.key(method)
    return _take_late_points(e, key, e.run_values.curve(key, probe))


def _read_ablation_cost(e: Evidence, method: str) -> pd.Series:
    """Perplexity lost by the ablation, from 3 % on."""
    key = e.key(method)
    return _take_late_points(e, key, e.run_values.ablation(key, "loss_neither"))


def _take_late_points(e: Evidence, key: str, curve: pd.Series) -> pd.Series:
    late_points = curve[curve.index >= EARLY]
    for fraction in (EARLY, END):
        e.require_number(float(late_points.get(fraction, math.nan)), key)
    return late_points


@CHECKS.of("ablation_control", "ablation_intervention", near=COST)
def ablation(e: Evidence, claim: PaperClaim) -> Values:
    """Read the perplexity that the claim's side loses without upper queries and keys, at 3 % and at the end."""
    lost = _read_ablation_cost(e, SIDES[claim.id.removeprefix("ablation_")])
    return {"at_3pct": float(lost[EARLY]), "at_end": float(lost[END])}


@CHECKS.of()
def ablation_order(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether without upper queries and keys the control loses more than the intervention, at every point from
    3 % of training on, at 3 % and at the end by more than noise."""
    control, intervention = _read_ablation_cost(e, CONTROL), _read_ablation_cost(e, INTERVENTION)
    beyond = [above(COST, intervention[fraction], control[fraction]) for fraction in (EARLY, END)]
    return ComputedValues(holds=bool((control > intervention).all()) and all(beyond), shown={"points": len(control)})


@CHECKS.of()
def ablation_grows(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether what the intervention loses without upper queries and keys grows gradually: from each point to the
    next, and in no one step by more than half of the whole, that from nothing to 3 % among them."""
    lost = _read_ablation_cost(e, INTERVENTION)
    steps = lost.diff().dropna()
    largest, whole = max(float(lost.iloc[0]), float(steps.max())), float(lost.iloc[-1])
    gradual = bool((steps > 0).all()) and largest <= GRADUAL * whole
    limits = {"largest step's share": (largest / whole, GRADUAL)} if whole > 0 else {}
    return ComputedValues(holds=gradual, shown={"lost": list(lost)}, limits=limits)


@CHECKS.of(scope="arithmetic")
def ablation_equivalent(e: Evidence, claim: PaperClaim) -> Values:
    """A softmax of zero scores is uniform, however they came to be zero: so at every size."""
    worst = 0.0
    for method in SIDES.values():
        key = e.key(method)
        losses = [e.require_number(e.run_values.value(key, kind, END, "model"), key) for kind in ABLATIONS]
        perplexities = [math.exp(loss) for loss in losses]
        worst = max(worst, max(perplexities) / min(perplexities) - 1)
    numbers = {"largest difference (%)": 100 * worst}
    return ComputedValues(holds=worst <= SAME, shown=numbers, limits={"largest difference": (worst, SAME)})


ABLATIONS = ("loss_no_query", "loss_no_key", "loss_neither")


@CHECKS.of(effect=statements("same"))
def lower_routing_same(e: Evidence, claim: PaperClaim) -> Values:
    """Find the share of training from the window's start on at which the lower half first copies, in control and
    intervention, which is one point of training."""
    keys = {side: _read(e, method) for side, method in SIDES.items()}
    mature = {f"{side}_pct": 100 * find_maturity(e.run_values, key) for side, key in keys.items()}
    return ComputedValues(
        values=mature | {"same": AT(*mature.values())},
        near=AT,
        shown={
            f"{side}_of_all": 100 * find_maturity(e.run_values, key, from_window=False) for side, key in keys.items()
        },
    )


@CHECKS.of(effect=statements("later"), near=AT)
def sharp_crossing(e: Evidence, claim: PaperClaim) -> Values:
    """Find the share of training at which upper attention is first sharp, in control and, later, in intervention."""
    crossings = {f"{side}_pct": 100 * e.run_values.find_sharp_point(_read(e, method)) for side, method in SIDES.items()}
    return crossings | {"later": above(AT, *crossings.values())}


def _read(e: Evidence, method: str) -> str:
    """The first seed's run, if it was read."""
    e.entropy(method)
    return e.key(method)


@CHECKS.of(effect=statements("higher"), near=ENTROPY)
def entropy_3pct(e: Evidence, claim: PaperClaim) -> Values:
    """Read upper attention entropy at 3 % of training, of control and intervention, which has the higher one."""
    entropies = {side: e.entropy(method) for side, method in SIDES.items()}
    return entropies | {"higher": above(ENTROPY, *entropies.values())}


@CHECKS.of(effect=statements("lower"), near=LOGIT)
def logit_3pct(e: Evidence, claim: PaperClaim) -> Values:
    """Read the upper logit at 3 % of training, of control and intervention, which has the lower one."""
    logits = {side: e.logit(method) for side, method in SIDES.items()}
    return logits | {"lower": above(LOGIT, *reversed(logits.values()))}


@CHECKS.of()
def entropy_order(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the intervention has the higher upper entropy at every point from 3 % to 20 % of training, at 3 %
    by more than noise."""
    control, intervention = (_curve(e, method, "entropy") for method in SIDES.values())
    early = intervention[:FIFTH] > control[:FIFTH]
    holds = bool(early.all()) and above(ENTROPY, control[EARLY], intervention[EARLY])
    return ComputedValues(holds=holds, shown={"control": list(control), "intervention": list(intervention)})


@CHECKS.of()
def logit_growth_suppressed(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the intervention has the lower upper logit at every point from 3 % to 20 % of training, at 3 % by
    more than noise."""
    control, intervention = (_curve(e, method, "logit_mean_abs") for method in SIDES.values())
    early = intervention[:FIFTH] < control[:FIFTH]
    holds = bool(early.all()) and above(LOGIT, intervention[EARLY], control[EARLY])
    return ComputedValues(holds=holds, shown={"control": list(control), "intervention": list(intervention)})


@CHECKS.of()
def singular_value(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the intervention's top singular value of upper W_Q^T W_K at 3 % is below two thirds of the
    control's."""
    control, intervention = (e.read(method, "bilinear_top") for method in SIDES.values())
    values = {"control": control, "intervention": intervention}
    limits = {"share of the control's": (intervention / control, MUCH)}
    return ComputedValues(holds=intervention < MUCH * control, shown=values, limits=limits)


def _ratios(e: Evidence) -> dict[str, list[float]]:
    probes = ("locality_query", "locality_key")
    return {side: [e.read(method, probe) for probe in probes] for side, method in SIDES.items()}


@CHECKS.of(effect=statements("below_one"))
def locality(e: Evidence, claim: PaperClaim) -> Values:
    """Read the locality ratios of upper queries and keys at 3 %, of control and intervention, all below one, with their
    chance levels."""
    nulls = {}
    for side, method in SIDES.items():
        key = e.key(method)
        nulls[f"null {side}"] = [e.run_values.null(key, probe, EARLY) for probe in ("locality_query", "locality_key")]
    by_side = _ratios(e)
    below = max(max(ratios) for ratios in by_side.values()) < 1
    return ComputedValues(values=by_side | {"below_one": below}, near=RATIOS, shown=nulls)


@CHECKS.of()
def locality_order(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the control's locality ratios of queries and of keys both exceed the intervention's at 3 %, by
    more than counts as the same."""
    ratios = _ratios(e)
    both = [
        above(RATIOS, intervention, control)
        for control, intervention in zip(ratios["control"], ratios["intervention"], strict=True)
    ]
    return ComputedValues(holds=all(both), shown=ratios)


@CHECKS.of(effect=statements("higher_in_control"), near=ENERGY)
def immature_energy(e: Evidence, claim: PaperClaim) -> Values:
    """Read the immature directions' share of the input's energy at 3 % of training, of control and intervention, which
    has the smaller one."""
    shares = {side: e.read(method, "projector_share", EARLY, "model") for side, method in SIDES.items()}
    return shares | {"higher_in_control": shares["control"] > shares["intervention"]}
