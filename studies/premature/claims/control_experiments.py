"""Checks claims about controls: entropy floor, half rate, fixed releases, multipliers (appendices D, E, F and G)."""

from __future__ import annotations

from itertools import pairwise

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues, in_turn, number_with, order, signs, statements
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import factor

from ..run_values import CONTROL, FIFTH, INTERVENTION
from ..tables import table9, table10
from .claim_evidence import COPY, ENTROPY, GAIN, LEVEL, LOGIT, LOSS_GAIN, SAVED, Evidence, above, rank

CHECKS = ClaimChecks()

HALF = "global_half_lr"

#: "Much smaller" is less than half; "most" is more than that.
MUCH = 0.5


@CHECKS.of(near={"entropy": ENTROPY, "logit": LOGIT})
def entropy_floor_readout(e: Evidence, claim: PaperClaim) -> Values:
    """Read the upper entropy and logit of the entropy-floor run at 3 % of training."""
    return {"entropy": e.entropy("entropy_floor"), "logit": e.logit("entropy_floor")}


@CHECKS.of(effect=in_turn(signs("floor"), signs("slowing", beyond=GAIN.limit)), near=GAIN)
def entropy_floor_gain(e: Evidence, claim: PaperClaim) -> Values:
    """Read the perplexity that the entropy floor and the slowing each gain on the same control."""
    return {"floor": e.gain("entropy_floor"), "slowing": e.gain(INTERVENTION)}


@CHECKS.of()
def entropy_floor_much_smaller(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the slowing gains something beyond noise, and the entropy floor less than half of that."""
    gains = {"floor": e.gain("entropy_floor"), "slowing": e.gain(INTERVENTION)}
    holds = gains["slowing"] > GAIN.limit and gains["floor"] < MUCH * gains["slowing"]
    return ComputedValues(holds=holds, shown=gains, limits=_part("the floor's share", gains["floor"], gains["slowing"]))


def _part(name: str, part: float, whole: float) -> dict[str, tuple[float, float]]:
    return {name: (part / whole, MUCH)} if whole > 0 else {}


#: A loss at another rate, of one seed: a quarter either way.
HALF_RATE = factor(1.25)


@CHECKS.of(
    effect=signs("delta_ppl", "delta_loss"), near={"ppl": LEVEL, "delta_ppl": HALF_RATE, "delta_loss": HALF_RATE}
)
def global_half_lr(e: Evidence, claim: PaperClaim) -> Values:
    """Read the final perplexity at half the global rate, and its perplexity and loss above the control's."""
    return {"ppl": e.ppl(HALF), "delta_ppl": -e.gain(HALF), "delta_loss": e.loss(HALF) - e.loss(CONTROL)}


@CHECKS.of(
    effect=in_turn(signs("delta", beyond=GAIN.limit), signs("delta_loss", beyond=LOSS_GAIN.limit)),
    near={"control": LEVEL, "selective": LEVEL, "delta": GAIN, "delta_loss": LOSS_GAIN},
)
def selective_vs_global(e: Evidence, claim: PaperClaim) -> Values:
    """Read the final perplexities of control and intervention, and the differences of perplexity and loss."""
    control, selective = e.ppl(CONTROL), e.ppl(INTERVENTION)
    deltas = {"delta": selective - control, "delta_loss": e.loss(INTERVENTION) - e.loss(CONTROL)}
    return {"control": control, "selective": selective} | deltas


@CHECKS.of(effect=statements("distinct"))
def readout_20pct(e: Evidence, claim: PaperClaim) -> Values:
    """Read the lower-copy score and upper entropy at 20 % of training, of the intervention and at half the rate, where
    both are lower."""
    values, close = {}, {}
    for name, method in (("selective", INTERVENTION), ("half_lr", HALF)):
        values[f"{name}_lower_copy_score"] = e.read(method, "lower_copy", FIFTH, "model")
        values[f"{name}_upper_entropy"] = e.entropy(method, FIFTH)
        close |= {f"{name}_lower_copy_score": COPY, f"{name}_upper_entropy": ENTROPY}
    distinct = all(
        above(close[f"half_lr_{readout}"], values[f"half_lr_{readout}"], values[f"selective_{readout}"])
        for readout in ("lower_copy_score", "upper_entropy")
    )
    return ComputedValues(values=values | {"distinct": distinct}, near=close)


def _table9(e: Evidence, claim: PaperClaim) -> Values:
    method = table9.RUNS[claim.id.removeprefix("t9_")]
    values = {"final_ppl": e.ppl(method), "entropy": e.entropy(method), "logit": e.logit(method)}
    if method != CONTROL:
        values |= {"ppl_reduction": e.gain(method), "tokens_saved_pct": e.percent_saved(method)}
    return values


CLOSE = {"final_ppl": LEVEL, "entropy": ENTROPY, "logit": LOGIT, "ppl_reduction": GAIN}
CLOSE |= {"tokens_saved_pct": SAVED}
#: What a control's row rests on: its perplexity is as near the intervention's as a level is reproduced to.
READOUTS = number_with("entropy", "logit")
CHECKS.of("t9_control", near=CLOSE, compare=READOUTS)(_table9)
CHECKS.of(
    *(f"t9_{name}" for name, method in table9.RUNS.items() if method != CONTROL),
    near=CLOSE,
    effect=in_turn(signs("ppl_reduction", beyond=GAIN.limit), signs("tokens_saved_pct")),
)(_table9)


@CHECKS.of()
def fixed_releases_keep_most(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the releases at fixed shares of training keep more than half of what the adaptive one gains, in
    perplexity and in tokens, where that gains some of both, beyond noise in perplexity."""
    adaptive = {"ppl": e.gain(INTERVENTION), "tokens": e.percent_saved(INTERVENTION)}
    fixed = {name: {"ppl": e.gain(name), "tokens": e.percent_saved(name)} for name in ("fixed_3pct", "fixed_6pct")}
    most = all(own[quantity] > MUCH * whole > 0 for own in fixed.values() for quantity, whole in adaptive.items())
    most = most and adaptive["ppl"] > GAIN.limit
    gains = {
        f"{quantity}_gain": [whole, *(own[quantity] for own in fixed.values())] for quantity, whole in adaptive.items()
    }
    limits = {}
    for quantity, whole in adaptive.items():
        limits |= _part(f"least share of {quantity}", min(own[quantity] for own in fixed.values()), whole)
    return ComputedValues(holds=most, shown=gains, limits=limits)


@CHECKS.of(compare=order("order"), effect=statements("ends_apart"))
def release_order(e: Evidence, claim: PaperClaim) -> Values:
    """Order the control, the intervention and the two fixed releases of Table 9 by final perplexity, lowest first."""
    perplexities = {name: e.ppl(method) for name, method in table9.RUNS.items()}
    return rank(claim, perplexities, GAIN, highest_first=False)


#: The Frobenius norm of a displacement grows with the steps' number and size: a quarter either way.
DISPLACEMENT = factor(1.25)


def _table10(e: Evidence, claim: PaperClaim) -> Values:
    method = table10.RUNS[claim.id.removeprefix("t10_")]
    readouts = {"entropy": e.entropy(method), "logit": e.logit(method)}
    values = {"final_ppl": e.ppl(method), "displacement": e.read(method, "bilinear_displacement")}
    return values | readouts | ({} if method == CONTROL else {"suppresses": e.suppresses(method)})


for _name, _method in table10.RUNS.items():
    CHECKS.of(
        f"t10_{_name}",
        near=CLOSE | {"displacement": DISPLACEMENT},
        compare=READOUTS if _method == CONTROL else None,
        effect=None if _method == CONTROL else statements("suppresses"),
    )(_table10)


@CHECKS.of()
def dose_monotone(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether each smaller multiplier of Table 10 has a higher entropy, a lower logit and a smaller displacement
    at 3 % of training, the smallest an entropy and a logit beyond noise."""
    methods = list(table10.RUNS.values())
    entropy, logit = [e.entropy(method) for method in methods], [e.logit(method) for method in methods]
    displacement = [e.read(method, "bilinear_displacement") for method in methods]
    falling = [before > after for values in (logit, displacement) for before, after in pairwise(values)]
    rising = [before < after for before, after in pairwise(entropy)]
    readouts = {"entropy": entropy, "logit": logit, "displacement": displacement}
    noticeable = e.suppresses(methods[-1])
    return ComputedValues(holds=all(falling) and all(rising) and noticeable, shown=readouts)


@CHECKS.of()
def dose_ppl_saturates(e: Evidence, claim: PaperClaim) -> Values:
    """Every multiplier gains something beyond noise, and the last halving changes less than the first does: half of it
    or less."""
    ppl = [e.ppl(method) for method in table10.RUNS.values()]
    better = all(ppl[0] - value > GAIN.limit for value in ppl[1:])
    first, last = ppl[0] - ppl[1], abs(ppl[3] - ppl[2])
    limits = _part("the last halving's share of the first's", last, first)
    return ComputedValues(holds=better and last <= MUCH * first, shown={"ppl": ppl}, limits=limits)
