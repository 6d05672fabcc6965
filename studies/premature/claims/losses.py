"""Checks claims about losses, perplexities and tokens of the GPT pair: Tables 1 and 11.

One function for each claim, named as the claim; what it says is in studies/premature/published/claims.yaml.
"""

from __future__ import annotations

import math

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues, in_turn, number_with, signs, statements
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import near
from plumbline.stats.sample_spread import sample_deviation

from ..paired_runs import PairedRuns
from ..run_values import CONTROL, EARLY, INTERVENTION, LARGE
from .claim_evidence import (
    ENTROPY,
    GAIN,
    LEVEL,
    LOGIT,
    LOSS_GAIN,
    LOSS_LEVEL,
    MEAN_GAIN,
    MEAN_LOSS_GAIN,
    SAVED,
    SPREAD,
    Evidence,
    above,
)

CHECKS = ClaimChecks()

#: Two of the paper's standard deviations: of tokens in billions, at 270M and at 0.7B, and in millions at 270M; of
#: perplexity and loss at 0.7B.
TOKENS, TOKENS_0P7B, SAVED_M = near(2 * 0.035), near(2 * 0.017), near(70)
GAIN_0P7B, LOSS_GAIN_0P7B = near(2 * 0.0073), near(2 * 0.0004)

#: Two standard errors of the mean of three pairs at 0.7B.
MEAN_GAIN_0P7B, MEAN_LOSS_GAIN_0P7B = GAIN_0P7B.limit / math.sqrt(3), LOSS_GAIN_0P7B.limit / math.sqrt(3)

#: A lower-copy score is comparable to another within this factor.
COMPARABLE = 1.25


@CHECKS.of(effect=signs("delta_ppl_mean", beyond=MEAN_GAIN), near={"delta_ppl_mean": GAIN, "delta_ppl_std": SPREAD})
def ppl_gain_270m(e: Evidence, claim: PaperClaim) -> Values:
    """Compute mean and standard deviation of the paired difference in final perplexity at 270M."""
    mean, sigma = e.moments(e.base, "ppl", "difference")
    return {"delta_ppl_mean": mean, "delta_ppl_std": sigma}


@CHECKS.of(
    effect=signs("delta_loss_mean", beyond=MEAN_LOSS_GAIN),
    near={"delta_loss_mean": LOSS_GAIN, "delta_loss_std": SPREAD},
)
def loss_gain_270m(e: Evidence, claim: PaperClaim) -> Values:
    """Compute mean and standard deviation of the paired difference in final loss at 270M."""
    mean, sigma = e.moments(e.base, "loss", "difference")
    return {"delta_loss_mean": mean, "delta_loss_std": sigma}


@CHECKS.of("control_270m", "intervention_270m", compare=number_with("loss_mean", "ppl_mean"))
def levels_270m(e: Evidence, claim: PaperClaim) -> Values:
    """Compute mean and standard deviation over seeds of the claim's side, control or intervention: loss and
    perplexity."""
    setting = claim.id.removesuffix("_270m")
    (loss, loss_sd), (ppl, ppl_sd) = (e.moments(e.base, name, setting) for name in ("loss", "ppl"))
    values = {"loss_mean": loss, "loss_std": loss_sd, "ppl_mean": ppl, "ppl_std": ppl_sd}
    close = {"loss_mean": LOSS_LEVEL, "loss_std": SPREAD, "ppl_mean": LEVEL, "ppl_std": SPREAD}
    return ComputedValues(values=values, near=close)


@CHECKS.of(effect=in_turn(signs("saved_pct", "saved_m"), statements("gains")))
def tokens_saved_270m(e: Evidence, claim: PaperClaim) -> Values:
    """Compute after how many tokens the intervention reaches its control's final loss at 270M, and what that saves,
    where it ends below it by more than noise."""
    tokens, tokens_sd = e.moments(e.base, "tokens_to_control_loss_b", "intervention")
    saved = e.base.saved
    # No mean of those pairs alone whose intervention gets there.
    percent, spread = (-math.inf, math.nan) if e.base.no_mean else (float(saved.mean()), sample_deviation(saved))
    values = {"tokens_b": tokens, "tokens_b_std": tokens_sd, "saved_pct": percent}
    values |= {"saved_m": percent / 100 * e.base.budget / 1e6, "saved_pct_std": spread}
    gains = {"gains": -e.moments(e.base, "loss", "difference")[0] > MEAN_LOSS_GAIN}
    close = {
        "tokens_b": TOKENS,
        "tokens_b_std": SPREAD,
        "saved_pct": SAVED,
        "saved_m": SAVED_M,
        "saved_pct_std": SPREAD,
    }
    return ComputedValues(values=values | gains, near=close)


@CHECKS.of(
    compare=in_turn(
        signs("loss", beyond=MEAN_LOSS_GAIN), signs("ppl", beyond=MEAN_GAIN), signs("tokens_to_control_loss_b")
    )
)
def gain_every_paired_difference(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the mean paired differences in loss, perplexity and tokens to the control's loss at 270M."""
    means = {name: e.moments(e.base, name, "difference")[0] for name in ("loss", "ppl", "tokens_to_control_loss_b")}
    return ComputedValues(values=means, shown={"pairs": len(e.base.pairs)})


def _pair_large_runs(e: Evidence) -> PairedRuns:
    return PairedRuns(e.run_values, LARGE)


@CHECKS.of(
    effect=signs("delta_ppl_mean", beyond=MEAN_GAIN_0P7B), near={"delta_ppl_mean": GAIN_0P7B, "delta_ppl_std": SPREAD}
)
def ppl_gain_0p7b(e: Evidence, claim: PaperClaim) -> Values:
    """Compute mean and standard deviation of the paired difference in final perplexity at 0.7B."""
    mean, sigma = e.moments(_pair_large_runs(e), "ppl", "difference")
    return {"delta_ppl_mean": mean, "delta_ppl_std": sigma}


@CHECKS.of(
    effect=signs("delta_loss_mean", beyond=MEAN_LOSS_GAIN_0P7B),
    near={"delta_loss_mean": LOSS_GAIN_0P7B, "delta_loss_std": SPREAD},
)
def loss_gain_0p7b(e: Evidence, claim: PaperClaim) -> Values:
    """Compute mean and standard deviation of the paired difference in final loss at 0.7B."""
    mean, sigma = e.moments(_pair_large_runs(e), "loss", "difference")
    return {"delta_loss_mean": mean, "delta_loss_std": sigma}


@CHECKS.of(effect=statements("intervention_lower"))
def levels_0p7b(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the means over seeds of final loss and perplexity at 0.7B, of control and intervention, which is lower
    by more than noise: either is as near to the other's level as a level is reproduced to."""
    values, close = {}, {}
    for side in ("control", "intervention"):
        for name, level in (("loss", LOSS_LEVEL), ("ppl", LEVEL)):
            values[f"{side}_{name}"] = e.moments(_pair_large_runs(e), name, side)[0]
            close[f"{side}_{name}"] = level
    lower = values["control_loss"] - values["intervention_loss"] > MEAN_LOSS_GAIN_0P7B
    return ComputedValues(values=values | {"intervention_lower": lower}, near=close)


@CHECKS.of(
    effect=in_turn(signs("saved_b"), statements("gains")),
    near={"tokens_b": TOKENS_0P7B, "std_b": SPREAD, "saved_b": TOKENS_0P7B},
)
def tokens_saved_0p7b(e: Evidence, claim: PaperClaim) -> Values:
    """Compute after how many billions of tokens the intervention reaches its control's final loss at 0.7B, and the
    billions saved, where it ends below it by more than noise."""
    tokens, sigma = e.moments(_pair_large_runs(e), "tokens_to_control_loss_b", "intervention")
    saved = -e.moments(_pair_large_runs(e), "tokens_to_control_loss_b", "difference")[0]
    gains = {"gains": -e.moments(_pair_large_runs(e), "loss", "difference")[0] > MEAN_LOSS_GAIN_0P7B}
    return {"tokens_b": tokens, "std_b": sigma, "saved_b": saved} | gains


@CHECKS.of()
def mechanism_0p7b(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether at 3 % of the 0.7B runs the control has the lower upper entropy and the larger upper logit, while
    lower-copy scores are within a quarter of each other."""
    sides = (CONTROL, INTERVENTION)
    entropy, logit = ([e.read(side, name, scale=LARGE) for side in sides] for name in ("entropy", "logit_mean_abs"))
    copy = [e.read(side, "lower_copy", EARLY, "model", LARGE) for side in sides]
    alike = max(copy) <= COMPARABLE * min(copy)
    readouts = {"entropy": entropy, "logit": logit, "lower_copy": copy}
    holds = above(ENTROPY, *entropy) and above(LOGIT, *reversed(logit)) and alike
    limits = {"larger copy score over the smaller": (max(copy) / min(copy), COMPARABLE)}
    return ComputedValues(holds=holds, shown=readouts, limits=limits)
