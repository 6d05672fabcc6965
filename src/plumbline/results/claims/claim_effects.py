"""Rules for the effect that a claim names: what must be so before any of its numbers counts.

A headline is a difference with a sign; its spread, its levels and its other figures say nothing where the sign is the
other one. So a claim that could come out as "partly" names its effect when its check is registered
(`ClaimChecks.of(effect=...)`), and without the effect it is not reproduced, whatever else agrees. A sign that is the
printed one is `claim_checkers.signs`; these are for comparisons. Equal values are no order.
"""

from __future__ import annotations

from itertools import pairwise

from plumbline.audit.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import Compare, ComputedValues, Verdict


def falling(*names: str) -> Compare:
    """Make a rule: the values that are computed or shown under these names fall, each strictly below the one before."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        found = computed.values | computed.shown
        for one, other in pairwise(names):
            if not found[one] > found[other]:
                return "not reproduced", f"{one} is not above {other}"
        return "reproduced", " > ".join(names)

    return compare


def so(*names: str) -> Compare:
    """Make a rule: what is computed or shown as yes or no under these names is so."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        found = computed.values | computed.shown
        failed = [name for name in names if not found[name]]
        return ("not reproduced", f"not so: {', '.join(failed)}") if failed else ("reproduced", "it is so")

    return compare
