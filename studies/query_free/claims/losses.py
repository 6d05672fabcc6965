"""Checks claims of Table 2 and section 5.1 about final losses, and of sections 5.1 and 6 about runs that no table
has."""

from __future__ import annotations

import math

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import (
    ComputedValues,
    Verdict,
    nearest_limit,
    number_with,
    order,
    ranking,
    signs,
)
from plumbline.results.claims.claim_registry import ClaimChecks, Values

from ..run_values import BASELINE, CONFIGURATIONS, IDENTITY, LARGE_MLP, SAME, SMALL_D, SMALL_MLP, smallest_rate
from .claim_evidence import LEVEL, PERCENT, Evidence

CHECKS = ClaimChecks()

#: Claim of a percentage -> its configuration.
PERCENTAGES = {
    "pct_small_mlp": SMALL_MLP,
    "pct_small_d": SMALL_D,
    "pct_wq_identity": IDENTITY,
    "pct_large_mlp": LARGE_MLP,
}


#: What of a column of Table 2 a run gave; the rest is of the configuration, which has it from the paper.
FROM_RUNS = ("val_loss", "loss_vs_baseline_pct")


def worse_or_better(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """Rule: the loss is on the printed side of the baseline's by more than what counts as the same; where no difference
    is printed, by no more."""
    name = "loss_vs_baseline_pct"
    printed, percent = claim.values[name], measured.values.get(name)
    if printed is None or percent is None:
        return "reproduced", "it is the baseline"
    if printed == 0:
        verdict: Verdict = "reproduced" if abs(percent) <= SAME else "not reproduced"
        return verdict, f"{percent:+.2f} % apart"
    return signs(name, beyond=SAME)(claim, measured)


@CHECKS.of(*(f"t2_{method}" for method in CONFIGURATIONS), compare=number_with(*FROM_RUNS), effect=worse_or_better)
def t2(e: Evidence, claim: PaperClaim) -> Values:
    """A column of Table 2: sizes and rates at the paper's size, and what the run gave."""
    method = claim.id.removeprefix("t2_")
    spec, sizes = e.spec(method), e.counts(method)
    values = {
        "params_m": sizes.total / 1e6,
        "non_embedding_params_m": sizes.body / 1e6,
        "ffn_multiple": spec.model.ffn_width / spec.model.width,
        "peak_lr": spec.optimizer.learning_rate,
        "min_lr": smallest_rate(spec),
        "val_loss": e.loss(method),
    }
    if method != BASELINE:
        values["loss_vs_baseline_pct"] = e.percent(method)
    return ComputedValues(values=values, near={"val_loss": LEVEL, "loss_vs_baseline_pct": PERCENT})


@CHECKS.of()
def match_baseline(e: Evidence, claim: PaperClaim) -> Values:
    """The same loss within what counts as the same, of fewer parameters."""
    percent, mine, theirs = e.percent(IDENTITY), e.counts(IDENTITY).body, e.counts(BASELINE).body
    numbers = {"reduced": e.loss(IDENTITY), "baseline": e.loss(BASELINE), "percent": percent}
    limits = {"% apart": (abs(percent), SAME)}
    return ComputedValues(holds=abs(percent) <= SAME and mine < theirs, shown=numbers, limits=limits)


@CHECKS.of()
def best_large_mlp(e: Evidence, claim: PaperClaim) -> Values:
    """Below the baseline, which has as many parameters, and lowest of the five."""
    losses = {method: e.loss(method) for method in CONFIGURATIONS}
    percent = e.percent(LARGE_MLP)
    equal = e.counts(LARGE_MLP).body == e.counts(BASELINE).body
    lowest = min(losses, key=losses.__getitem__) == LARGE_MLP
    numbers = {"reduced_large": losses[LARGE_MLP], "baseline": losses[BASELINE], "percent": percent}
    limits = {"% above": (percent, -SAME)}
    return ComputedValues(holds=lowest and percent < -SAME and equal, shown=numbers, limits=limits)


@CHECKS.of()
def small_baselines_worse(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the baselines with a small MLP and a small width both end above the baseline, by more than counts
    as the same loss."""
    excess = {method: e.percent(method) for method in (SMALL_MLP, SMALL_D)}
    losses = {method: e.loss(method) for method in (BASELINE, SMALL_MLP, SMALL_D)}
    limits = nearest_limit({f"% above of {method}": percent for method, percent in excess.items()}, SAME)
    return ComputedValues(holds=min(excess.values()) > SAME, shown=losses, limits=limits)


@CHECKS.of(compare=order("order"))
def val_order(e: Evidence, claim: PaperClaim) -> Values:
    """From the lowest loss; two that are printed with one loss keep the printed order if they match here."""
    losses = {method: e.loss(method) for method in CONFIGURATIONS}
    listed = sorted(losses, key=losses.__getitem__)
    at = sorted((listed.index(IDENTITY), listed.index(BASELINE)))
    if abs(e.percent(IDENTITY)) <= SAME and at[1] == at[0] + 1:
        listed[at[0]], listed[at[1]] = IDENTITY, BASELINE
        losses[BASELINE] = math.nextafter(losses[IDENTITY], math.inf)  # next to it as before, and no tie
    return ComputedValues(
        values={"order": ranking(losses, highest_first=False)}, shown={"loss": [losses[method] for method in listed]}
    )


@CHECKS.of(*PERCENTAGES, near=PERCENT)
def percentage(e: Evidence, claim: PaperClaim) -> Values:
    """Compute by how many percent the claim's configuration ends above the baseline's final loss."""
    return {"pct": e.percent(PERCENTAGES[claim.id])}


def higher(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """A loss that is said to be worse: by more than counts as the same."""
    percent = measured.shown["percent"]
    if percent > SAME:
        return "reproduced", f"worse by {percent:.2f} %"
    return "not reproduced", f"worse by {percent:.2f} %, which counts as the same" if percent > 0 else "no worse"


@CHECKS.of(compare=higher)
def deep_decay_helps(e: Evidence, claim: PaperClaim) -> Values:
    """The reduced model with a floor of a tenth against itself with the printed one."""
    percent = e.percent("wq_identity_floor_tenth", IDENTITY)
    return ComputedValues(shown={"percent": percent}, limits={"% above": (percent, SAME)})


@CHECKS.of()
def weight_decay_range(e: Evidence, claim: PaperClaim) -> Values:
    """The higher end of the range against the lower one; "slightly" asks for no more than the side."""
    percent = e.percent("wq_identity_decay_0p025", IDENTITY)
    ends = {"lo": "wq_identity_decay_0p025", "hi": IDENTITY}
    tried = all(e.spec(method).optimizer.weight_decay == claim.values[end] for end, method in ends.items())
    return ComputedValues(holds=tried and percent > 0, shown={"percent": percent})
