"""Rules for what a claim is about: an effect's sign, a comparison, an order without ties.

Levels and spreads that agree say nothing where the effect is the other way round: a claim of an effect that lacks its
sign is not reproduced, whatever its other values are.
"""

from __future__ import annotations

from collections.abc import Mapping

from plumbline.results.claims.claim_checkers import Compare, in_turn, number, said, signs

#: Between names that are equal in an order: it is then none of the printed ones.
TIED = " = "


def effect(*names: str, then: Compare = number) -> Compare:
    """Make a rule: these values have the printed sign, else the claim is not reproduced; with it, the rule `then`."""
    return in_turn(signs(*names), then)


def comparison(*names: str, then: Compare = number) -> Compare:
    """Make a rule: what is computed as yes or no under these names holds, else the claim is not reproduced; if it does,
    the rule `then`."""
    return in_turn(said(*names), then)


def ranked(values: Mapping[str, float], *, largest_first: bool = False) -> list[str]:
    """Order names by their values; names of equal values stand as one, joined by TIED, since ties are no order."""
    places: dict[float, list[str]] = {}
    for name, value in values.items():
        places.setdefault(value, []).append(name)
    return [TIED.join(places[value]) for value in sorted(places, reverse=largest_first)]
