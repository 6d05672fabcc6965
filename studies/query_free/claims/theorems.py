"""Checks claims of the theory (sections 3 and 4, appendices 8.3 and 8.5), on random weights: with their premises, and
without.

A statement whose outputs are as close without a premise as with it would be reproduced by a check that cannot fail; so
both count (`TheoremCheck.holds`).
"""

from __future__ import annotations

import math

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues, Verdict, number
from plumbline.results.claims.claim_registry import ClaimChecks, Values
from plumbline.results.claims.claim_tolerances import near

from .. import theorem_checks
from ..run_values import BASELINE
from ..theory import norm_semiconjugacy
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

ARITHMETIC = {"scope": "arithmetic"}

#: Claim -> the statements that it makes.
STATEMENTS = {
    "single_layer_free_lunch": ("thm_4_1",),
    "attn_skip_only": ("thm_4_2_untied", "thm_4_2_tied"),
    "any_of_three": ("thm_4_2_tied", "abstract_key", "abstract_value"),
    "weight_shared": ("thm_4_3",),
    "block_diag_invariance": ("prop_4_2",),
    "tied_untie": ("remark_4",),
    "skip_absorption": ("thm_8_4_if", "thm_8_4_only_if"),
    "ln_semiconjugacy": ("lemma_8_2",),
}

#: Squares of singular values at the ends of the printed range.
SQUARES = near(0.1)

#: Widths of random matrices, and by what factor a quantity of order d^(-1/2) may seem to grow over them.
WIDTHS, GROWTH = (48, 192, 768), 2.0


@CHECKS.of(*STATEMENTS, **ARITHMETIC)
def statement(e: Evidence, claim: PaperClaim) -> Values:
    """Outputs equal with all premises, and apart without any one of them."""
    checks = [theorem_checks.theorems()[name] for name in STATEMENTS[claim.id]]
    numbers: dict[str, float] = {"residual": max(check.residual for check in checks)}
    without = [broken.residual for check in checks for broken in check.broken]
    if without:
        numbers["least without a premise"] = min(without)
    if claim.id == "block_diag_invariance":
        model = e.spec(BASELINE).model
        numbers["dimensions a layer"] = model.heads * model.head_width**2
    return ComputedValues(holds=all(check.holds for check in checks), shown=numbers)


@CHECKS.of(**ARITHMETIC)
def single_head(e: Evidence, claim: PaperClaim) -> Values:
    """How many of four matrices are left where the products of two and two do as well."""
    check = theorem_checks.theorems()["prop_4_1"]
    return ComputedValues(
        values={"full": 4, "reduced": 2} if check.holds else {"full": 2, "reduced": 4}, shown=_show_residual(check)
    )


def _show_residual(check: theorem_checks.TheoremCheck) -> dict[str, float]:
    return {"residual": check.residual}


def both(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """The printed range and the printed order of the largest value; they contradict each other."""
    inside, grown = number(claim, measured)[0] == "reproduced", measured.shown["growth"]
    order = grown <= GROWTH
    why = f"squares {'as' if inside else 'not as'} printed; (largest - 1) sqrt(d) grows by {grown:.2g} over the widths"
    verdict: Verdict = "reproduced" if inside and order else "partly" if inside or order else "not reproduced"
    return verdict, why


@CHECKS.of(compare=both, **ARITHMETIC)
def sigma_max_random(e: Evidence, claim: PaperClaim) -> Values:
    """Squares of singular values at the largest width; and whether the largest is 1 up to something like d^(-1/2)."""
    singular_values = {width: norm_semiconjugacy.gaussian_singular_values(width, 0) for width in WIDTHS}
    apart = [abs(float(singular_values[width][0]) - 1) * math.sqrt(width) for width in (WIDTHS[0], WIDTHS[-1])]
    squares = singular_values[WIDTHS[-1]] ** 2
    values = {"range": [float(squares.min()), float(squares.max())]}
    numbers = {"largest": float(singular_values[WIDTHS[-1]][0]), "growth": apart[1] / apart[0]}
    return ComputedValues(values=values, near=SQUARES, shown=numbers, limits={"growth": (numbers["growth"], GROWTH)})


CHECKS.mark_untested(
    {
        "albert_18x": "about the literature, not about these runs",
        "skipless_5x": "about the literature, not about these runs",
    }
)
