"""Checks claims of the theory, as arithmetic at the sizes of the paper's model: section 6 and appendix B."""

from __future__ import annotations

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues, parts
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import near

from .. import theorem_numbers
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

ARITHMETIC = {"scope": "arithmetic"}

#: Rounding of float64 next to quantities of order one, and next to their logarithms' differences.
ROUNDING, EQUAL = 1e-9, 1e-6
#: Energy ratios, of which "approximately" is printed and the digits are there all the same; a small step's factor, and
#: its power; a head meets a bound that is no larger than it has to be.
ENERGIES, FACTOR, POWER, SHARP = near(0.0006), near(1e-3), near(0.01), 0.99


def _sizes(e: Evidence) -> theorem_numbers.MatchedModelSizes:
    return theorem_numbers.sizes(e.study.code)


@CHECKS.of(**ARITHMETIC)
def rho_init(e: Evidence, claim: PaperClaim) -> Values:
    """Compute Theorem 2's energy ratios of GEGLU and SwiGLU at the start, from the sizes of the paper's two models."""
    these = _sizes(e)
    values = {
        "geglu": theorem_numbers.rho(these, "gelu"),
        "swiglu": theorem_numbers.rho(these, "silu"),
        "nu": these.variance,
    }
    values |= {"m": these.single.ffn_width, "r": these.gated.ffn_width}
    return ComputedValues(values=values, near=ENERGIES)


@CHECKS.of(near=FACTOR, **ARITHMETIC)
def fourfold(e: Evidence, claim: PaperClaim) -> Values:
    """Compute what the multiplier leaves of a small step's change of logits on drawn heads, the value furthest from
    it."""
    return {
        "alpha": theorem_numbers.learning_rate_factor(theorem_numbers.heads(_sizes(e).single), claim.values["alpha"])
    }


@CHECKS.of(**ARITHMETIC)
def theorem1(e: Evidence, claim: PaperClaim) -> Values:
    """No step beyond the bound, and a head that meets it: a bound that is too large by a factor is none."""
    model = _sizes(e).single
    share, sharp = (
        theorem_numbers.largest_share(theorem_numbers.heads(model), "bound"),
        theorem_numbers.sharpest_share(model),
    )
    return ComputedValues(
        holds=share <= 1 and SHARP < sharp <= 1 + ROUNDING,
        shown={"largest share": share, "sharp": sharp},
        limits={"largest share": (share, 1), "sharp": (sharp, SHARP)},
    )


@CHECKS.of(compare=parts("alone", "beside_a_rest"), **ARITHMETIC)
def rho_squared(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether a small step on drawn heads shrinks with the square of the immature energy: where nothing else is
    in the stream, and next to a mature rest, of which the theorem's text makes no exception."""
    heads = theorem_numbers.heads(_sizes(e).single)
    beside = theorem_numbers.energy_power(heads, alone=False)
    power = theorem_numbers.energy_power(heads, alone=True)
    printed = claim.values["power"]
    values = {"alone": POWER(printed, power), "beside_a_rest": POWER(printed, beside)}
    limits = {
        name: (abs(value - printed), POWER.limit) for name, value in (("alone", power), ("beside_a_rest", beside))
    }
    return ComputedValues(values=values, shown={"power_alone": power, "power_beside_a_rest": beside}, limits=limits)


@CHECKS.of(**ARITHMETIC)
def logit_range(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether no row of drawn scores has less than the needed range, and a row of equal other keys just that."""
    least, equal = theorem_numbers.least_slack(_sizes(e).single), theorem_numbers.equality_slack()
    return ComputedValues(
        holds=least >= -ROUNDING and abs(equal) < EQUAL, shown={"least slack": least, "at equality": equal}
    )


@CHECKS.of(**ARITHMETIC)
def ffn_match(e: Evidence, claim: PaperClaim) -> Values:
    """The widths, where two matrices of the one have as many weights as three of the other."""
    these = _sizes(e)
    single, gated = these.single.ffn_width, these.gated.ffn_width
    return {"gelu": single, "gated": gated} if 2 * single == 3 * gated else {"gelu": -1, "gated": -1}
