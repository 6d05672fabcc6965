"""Checks claims about sizes, budgets and the scores that models start with: without training, at the paper's size."""

from __future__ import annotations

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import near

from .. import theorem_checks
from ..run_values import ATTENTION, BASELINE, FEED_FORWARD, IDENTITY, LARGE_MLP, SMALL_D, SMALL_MLP
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

#: The models that are compared at equal count (section 5.1).
COMPARED = (SMALL_MLP, SMALL_D, IDENTITY)

ARITHMETIC = {"scope": "arithmetic"}

#: A percentage, or a count in millions, that is printed without decimals.
WHOLE = near(0.5)

#: Tokens a parameter that are taken for enough (Hoffmann et al., as the paper counts).
CHINCHILLA = 20


@CHECKS.of(near=WHOLE, **ARITHMETIC)
def fewer_params(e: Evidence, claim: PaperClaim) -> Values:
    """Compute how many percent of non-embedding parameters W_Q = I saves, and the millions in the baseline's W_Q."""
    reduced, baseline = e.counts(IDENTITY), e.counts(BASELINE)
    return {"pct": 100 * (1 - reduced.body / baseline.body), "wq_m": baseline.of("query") / 1e6}


@CHECKS.of(near=WHOLE, **ARITHMETIC)
def attention_25pct(e: Evidence, claim: PaperClaim) -> Values:
    """Compute how many percent of the baseline's attention parameters the reduced model lacks."""
    baseline = e.counts(BASELINE)
    return {"pct": 100 * (1 - e.counts(IDENTITY).of(*ATTENTION) / baseline.of(*ATTENTION))}


@CHECKS.of(near=WHOLE, **ARITHMETIC)
def block_8pct(e: Evidence, claim: PaperClaim) -> Values:
    """Compute how many percent of the parameters of attention and FFN together the reduced model lacks."""
    block = (*ATTENTION, *FEED_FORWARD)
    return {"pct": 100 * (1 - e.counts(IDENTITY).of(*block) / e.counts(BASELINE).of(*block))}


@CHECKS.of(**ARITHMETIC)
def equal_nonemb(e: Evidence, claim: PaperClaim) -> Values:
    """Of the three that are compared, the count that is farthest from the printed one."""
    counts = {method: e.counts(method).body / 1e6 for method in COMPARED}
    farthest = max(counts.values(), key=lambda count: abs(count - claim.values["m"]))
    return ComputedValues(values={"m": farthest}, shown=counts)


@CHECKS.of(near=WHOLE, **ARITHMETIC)
def equal_nonemb_apart(e: Evidence, claim: PaperClaim) -> Values:
    """Compute how many million parameters lie between the largest and the smallest of the three that are compared."""
    counts = {method: e.counts(method).body / 1e6 for method in COMPARED}
    return ComputedValues(values={"apart_m": max(counts.values()) - min(counts.values())}, shown=counts)


@CHECKS.of(**ARITHMETIC)
def tokens(e: Evidence, claim: PaperClaim) -> Values:
    """Compute steps, tokens a step and all tokens from the baseline's spec, and these over 20 a parameter: of baseline
    and reduced model, the multiple that is farther from the printed one."""
    train = e.spec(BASELINE).train
    total = train.steps * train.batch_tokens
    multiples = [total / (CHINCHILLA * e.counts(method).total) for method in (BASELINE, IDENTITY)]
    return {
        "steps_k": train.steps / 1e3,
        "tokens_per_step_k": train.batch_tokens / 1e3,
        "tokens_b": total / 1e9,
        "chinchilla": max(multiples, key=lambda multiple: abs(multiple - claim.values["chinchilla"])),
    }


@CHECKS.of(**ARITHMETIC)
def val_tokens(e: Evidence, claim: PaperClaim) -> Values:
    """Read from the baseline's spec how many held-out sequences and tokens are evaluated, and how often."""
    spec = e.spec(BASELINE)
    sequences = spec.train.validation_sequences
    return {
        "sequences": sequences,
        "tokens_m": sequences * spec.model.context / 1e6,
        "every": spec.train.validate_every,
    }


@CHECKS.of(**ARITHMETIC)
def attn_scale(e: Evidence, claim: PaperClaim) -> Values:
    """By what the first scores of the reduced models are smaller than under the baseline's scale, the farther one."""
    whole = theorem_checks.first_spread(e.spec("wq_identity_unscaled").model)
    divisors = [whole / theorem_checks.first_spread(e.spec(method).model) for method in (IDENTITY, LARGE_MLP)]
    return {"divisor": max(divisors, key=lambda divisor: abs(divisor - claim.values["divisor"]))}


@CHECKS.of(**ARITHMETIC)
def score_std_standard(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the spread of scores of a learned query at the start, of drawn weights of the baseline's shape."""
    model = e.spec(BASELINE).model
    return {"std": theorem_checks.draw_spread(model).standard, "sigma": model.init_std, "d_k": model.head_width}


@CHECKS.of(**ARITHMETIC)
def score_std_reduced(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the spread of scores with W_Q = I at the start, of drawn weights of the reduced model's shape."""
    return {"std": theorem_checks.draw_spread(e.spec(IDENTITY).model).reduced}


@CHECKS.of(**ARITHMETIC)
def score_ratio(e: Evidence, claim: PaperClaim) -> Values:
    """Of drawn weights and rows; next to it that of first layers, under one scale."""
    ratio = theorem_checks.draw_spread(e.spec(IDENTITY).model).ratio
    layers = theorem_checks.first_spread(e.spec("wq_identity_unscaled").model) / theorem_checks.first_spread(
        e.spec(BASELINE).model
    )
    return ComputedValues(values={"ratio": ratio, "inverse": 1 / ratio}, shown={"of first layers": layers})
