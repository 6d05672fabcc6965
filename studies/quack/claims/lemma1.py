"""Checks claims about Lemma 1: exact, untrained, at the summary's size (`plumbline.studies.quack.lemma1_numbers`)."""

from __future__ import annotations

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues
from plumbline.results.claims.claim_registry import ClaimChecks, Values

from .. import lemma1_numbers
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

ARITHMETIC = {"scope": "arithmetic"}

#: What is left out shrinks with the square of the rates, to so much of the exponent.
SQUARE, FIRST_ORDER = 2, 0.01


@CHECKS.of(**ARITHMETIC)
def bounded_change(e: Evidence, claim: PaperClaim) -> Values:
    """With QuacK's rates the first-order change keeps to one bound at every size of the weights; fixed rates must break
    it as weights grow, or it would be no bound to speak of."""
    rows = lemma1_numbers.compute_rows(e.study.code)
    share = {name: max(row.share for row in rows if row.rates == name) for name in ("quack", "fixed")}
    holds = all(row.within for row in rows if row.rates == "quack") and share["fixed"] > 1
    numbers = {"largest share of the bound": share["quack"], "with fixed rates": share["fixed"]}
    return ComputedValues(holds=holds, shown=numbers, limits={name: (value, 1) for name, value in numbers.items()})


@CHECKS.of(**ARITHMETIC)
def first_order(e: Evidence, claim: PaperClaim) -> Values:
    """What the two terms leave out shrinks with the square of the rates."""
    power = lemma1_numbers.power_of_the_rest(e.study.code)
    apart = abs(power - SQUARE)
    numbers, limits = {"power of the rest": power}, {"apart from the square": (apart, FIRST_ORDER)}
    return ComputedValues(holds=apart < FIRST_ORDER, shown=numbers, limits=limits)
