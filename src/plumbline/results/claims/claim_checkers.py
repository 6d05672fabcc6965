"""Compares printed values with computed ones: a default rule for each kind of claim, and rules a study may choose.

A training run that is repeated elsewhere does not reach the printed digits; a count of parameters does. So every
computed quantity states how near is near enough (`near`, `factor`); by default it is the printed rounding, widened to
10 % where the paper itself says "about" and 30 % where it says "roughly".

Which of a claim's values carry its sign, its order or its test is declared by the study when it registers the check:
`signs`, `order`, `first` and `statistic` make such rules; `parts` and `statements` are for statements without numbers;
`in_turn` and `at_most_partly` put rules together, so that the whole of a claim is checked. A check is
registered with the claim's effect, by `signs` or `statements`: what must hold before any of it counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby
from typing import Any, Literal

import numpy as np

from plumbline.core.errors import PlumblineError, nearest
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_tolerances import Near, factor, near, share_used

Verdict = Literal[
    "reproduced",
    "partly",
    "not reproduced",
    "diverged",
    "not tested",
    "not judged (mini size)",
    "not judged (evening size)",
    "not judged (demo size)",
    "not judged (smoke size)",
    "not judged (other texts)",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComputedValues:
    """The values that were computed for a claim, under the claim's own names, and how near each must be.

    `holds`: for a statement without numbers, whether it is true here. `shown`: what readers see in addition. `limits`:
    what was compared with a limit that the paper does not print: name -> (computed, limit).
    """

    values: dict[str, Any] = field(default_factory=dict)
    near: dict[str, Near] | Near | None = None
    holds: bool | None = None
    shown: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, tuple[float, float]] = field(default_factory=dict)


#: A rule: a claim and what was computed -> a verdict, and why.
Compare = Callable[[PaperClaim, ComputedValues], tuple[Verdict, str]]


def check(
    claim: PaperClaim, computed: ComputedValues, compare: Compare | None = None, effect: Compare | None = None
) -> tuple[Verdict, str]:
    """Give the verdict of a claim by the rule `compare`, by default that of the claim's kind; and the reason.

    Without its `effect` a claim is not reproduced, whatever else agrees.

    Raises:
        PlumblineError: the claim is of no known kind.
    """
    if computed.holds is False:
        return "not reproduced", "it does not hold"
    if effect is not None:
        effect_verdict, why = effect(claim, computed)
        if effect_verdict != "reproduced":
            return "not reproduced", f"without its effect: {why}"
    if computed.holds is not None:
        return "reproduced", "it holds"
    if claim.kind not in KINDS:
        raise PlumblineError(
            f"claims.yaml: {claim.id}: kind: {claim.kind!r} is none of {sorted(KINDS)}{nearest(claim.kind, KINDS)}"
        )
    return (compare or KINDS[claim.kind])(claim, computed)


def describe_nearness(claim: PaperClaim, computed: ComputedValues, compare: Compare | None = None) -> str:
    """Describe how near the computed values came: the share of the allowed distance that each uses (up to 1 is near
    enough), and what was compared with a limit, with the limit.

    Without a test of nearness only values that are compared by the rule of the claim's kind have such a share.
    """
    names = computed.near if isinstance(computed.near, dict) else computed.values
    if compare is not None and computed.near is None:
        names = {}
    names_compared = [name for name in names if name in computed.values and _is_number(claim.values.get(name))]
    shares = [
        f"{name} {_share_of_tolerance(claim, computed, name):.2g}".replace("inf", "infinite") for name in names_compared
    ]
    clauses = [f"of what is allowed: {', '.join(shares)}"] if shares else []
    limits = [f"{name} {got:.3g} ({limit:.3g})" for name, (got, limit) in computed.limits.items()]
    clauses += [f"beside its limit: {', '.join(limits)}".replace("inf ", "infinite ")] if limits else []
    return "; ".join(clauses)


def _is_number(printed: Any) -> bool:
    """Return whether a printed value is a number, or a list of numbers."""
    value = printed[0] if isinstance(printed, list) and printed else printed
    return isinstance(value, (int, float))


def number(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
    """Compare numbers: reproduced if all computed values are near their printed ones, partly if some are, else not
    reproduced.
    """
    names = [name for name in claim.values if name in computed.values]
    names_apart = [name for name in names if not _agree(claim, computed, name)]
    assert names, f"{claim.id}: nothing computed under a printed name"
    if not names_apart:
        return "reproduced", f"{len(names)} of {len(names)} values agree"
    verdict: Verdict = "partly" if len(names_apart) < len(names) else "not reproduced"
    return verdict, f"{len(names) - len(names_apart)} of {len(names)} values agree; apart: {', '.join(names_apart)}"


def _agree(claim: PaperClaim, computed: ComputedValues, name: str) -> bool:
    return _share_of_tolerance(claim, computed, name) <= 1 + 1e-12


def _share_of_tolerance(claim: PaperClaim, computed: ComputedValues, name: str) -> float:
    nearness = computed.near.get(name) if isinstance(computed.near, dict) else computed.near
    return share_used(claim, claim.values[name], computed.values[name], nearness)


#: How near a ratio and a test's statistic must be by default; the common share of names from which on lists are partly
#: the same.
RATIO, STATISTIC, STATISTIC_APART, COMMON_NAMES = factor(1.25), factor(2), near(0.5), 0.5


def number_with(*names: str) -> Compare:
    """Make a rule: as `number`; but where none of these values agrees, others that do cannot make the claim partly so.

    Others are those that a false claim shares: a spread, a size, a level that either side is near.
    """

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        verdict, why = number(claim, computed)
        carriers = [name for name in names if name in computed.values]
        if verdict == "partly" and not any(_agree(claim, computed, name) for name in carriers):
            return "not reproduced", why
        return verdict, why

    return compare


def ratio(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
    """Compare numbers as `number` does, within 25 % unless the claim or the measurement states otherwise."""
    if computed.near is None and not claim.tolerance:
        computed = replace(computed, near=RATIO)
    return number(claim, computed)


def qualitative(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
    """Compare lists of names: reproduced if they are the same, partly if at least half of the names are common to
    both.

    A value that is not a list counts as agreeing or not.
    """
    verdicts = []
    for name in [name for name in claim.values if name in computed.values]:
        printed, got = claim.values[name], computed.values[name]
        if not isinstance(printed, list):
            verdicts.append(1.0 if _agree(claim, computed, name) else 0.0)
            continue
        union = set(printed) | set(got)
        verdicts.append(len(set(printed) & set(got)) / len(union) if union else 1.0)
    assert verdicts, f"{claim.id}: nothing computed"
    if min(verdicts) == 1.0:
        return "reproduced", "the same names"
    share = math.fsum(verdicts) / len(verdicts)
    return ("partly" if share >= COMMON_NAMES else "not reproduced"), f"{share:.0%} of the names in common"


#: Kinds of claims, with the rule for each: a sign, an order or a test is compared as numbers unless the study says how.
KINDS: dict[str, Compare] = {
    "number": number,
    "sign": number,
    "order": number,
    "stat": number,
    "ratio": ratio,
    "qualitative": qualitative,
}


def signs(*names: str, beyond: float | None = None) -> Compare:
    """Make a rule: each value has the printed sign, and is farther from zero than `beyond`; else it is not reproduced.

    Noise has the printed sign in half of all cases: `beyond` is how far from zero it comes alone.
    """

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        inside = ""
        for name in names:
            printed, got = (np.atleast_1d(values[name]) for values in (claim.values, computed.values))
            for printed_number, number in zip(printed, got, strict=True):
                if np.sign(printed_number) != np.sign(number):
                    return "not reproduced", f"{name} has the other sign"
                if beyond is not None and abs(number) <= beyond:
                    inside = inside or name
        if inside:
            return "not reproduced", f"the printed sign, inside |{inside}| = {beyond:.3g}"
        return "reproduced", "same sign" + ("" if beyond is None else f", beyond |{names[0]}| = {beyond:.3g}")

    return compare


def _same_side(first: float, second: float, beyond: float) -> bool:
    return (abs(first) > beyond) == (abs(second) > beyond)


def nearest_limit(values: Mapping[str, float], limit: float) -> dict[str, tuple[float, float]]:
    """Find which of several values is nearest to a limit that all of them are compared with; for `limits`."""
    name = min(values, key=lambda key: abs(values[key] - limit))
    return {name: (values[name], limit)}


#: What joins names of one value, which have no order among themselves.
TIED = " = "


def ranking(numbers: Mapping[str, float], *, highest_first: bool) -> list[str]:
    """Order names by their numbers; those of one number are one entry, which is in no printed order."""
    ranked = sorted(numbers, key=numbers.__getitem__, reverse=highest_first)
    return [TIED.join(tied) for _, tied in groupby(ranked, key=numbers.__getitem__)]


#: Kendall's tau with the printed order from which on another one is partly that order, and in what share of orders
#: that are drawn by chance one as near may come.
PARTLY_AN_ORDER, BY_CHANCE = 0.5, 0.05


def order(name: str) -> Compare:
    """Make a rule: the printed order of names is reproduced; one that is near it is partly.

    Near is Kendall's tau of at least 0.5, if chance gives as much in one order of twenty at most: of four names none is
    near. The computed order is a `ranking`; in tau a pair that is tied, or has a name that is not there, counts as
    neither of the two orders.
    """

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        printed, got = list(claim.values[name]), list(computed.values[name])
        if printed == got:
            return "reproduced", "the same order"
        place = {entry: place_number for place_number, tied in enumerate(got) for entry in tied.split(TIED)}
        pairs = [
            np.sign(place[lower] - place[upper]) if {upper, lower} <= set(place) else 0
            for upper, lower in combinations(printed, 2)
        ]
        tau = float(np.mean(pairs))
        is_near = tau >= PARTLY_AN_ORDER and chance_of_tau(len(printed), tau) <= BY_CHANCE
        remarks = [
            *(["with ties"] if len(got) < len(place) else []),
            *(["with other names"] if set(printed) != set(place) else []),
        ]
        why = ", ".join([f"Kendall's tau {tau:+.2f} with the printed order", *remarks])
        return ("partly" if is_near else "not reproduced"), why

    return compare


def chance_of_tau(names: int, tau: float) -> float:
    """Compute the chance that Kendall's tau of a random order of so many names is at least `tau`."""
    # Orders by their inversions: each further name adds from none to as many as there are names before it.
    orders = np.ones(1)
    for names_before in range(1, names):
        orders = np.convolve(orders, np.ones(names_before + 1))
    allowed = math.floor((1 - tau) / 2 * (len(orders) - 1) + 1e-9)
    return float(orders[: allowed + 1].sum() / orders.sum())


def first(name: str) -> Compare:
    """Make a rule: the printed first of an order is the first; what follows it is not claimed."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        computed_first, printed_first = computed.values[name][0], claim.values[name][0]
        return ("reproduced" if computed_first == printed_first else "not reproduced"), f"{computed_first} is first"

    return compare


def parts(*names: str) -> Compare:
    """Make a rule for a statement of several parts: reproduced if all of them hold, not reproduced if none does, else
    partly.

    Each part is computed as yes or no; `names` are the measurement's own.
    """

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        failed = [name for name in names if not computed.values[name]]
        if not failed:
            return "reproduced", "every part holds"
        verdict: Verdict = "partly" if len(failed) < len(names) else "not reproduced"
        return verdict, f"{len(names) - len(failed)} of {len(names)} parts hold; not so: {', '.join(failed)}"

    return compare


def statements(*names: str) -> Compare:
    """Make a rule: what is computed as yes or no under these names holds; else the claim is not reproduced."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        failed = [name for name in names if not computed.values[name]]
        return ("not reproduced", f"not so: {', '.join(failed)}") if failed else ("reproduced", "it holds")

    return compare


def in_turn(*rules: Compare) -> Compare:
    """Make a rule of several: reproduced if all return that; else the verdict of the first that does not."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        why = []
        for rule in rules:
            verdict, reason = rule(claim, computed)
            if verdict != "reproduced":
                return verdict, reason
            why.append(reason)
        return "reproduced", "; ".join(dict.fromkeys(why))

    return compare


def at_most_partly(*names: str) -> Compare:
    """Make a rule for side remarks of a claim: if one of these statements does not hold, it is partly reproduced.

    It stands last, after what the claim rests on. Numbers are no remark: where none agrees, nothing is reproduced.
    """
    remarks = statements(*names)

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        verdict, why = remarks(claim, computed)
        return ("partly" if verdict == "not reproduced" else verdict), why

    return compare


def statistic(
    name: str,
    *,
    p: str | None = None,
    level: float = 0.05,
    beyond: float | None = None,
    close: Near | None = None,
) -> Compare:
    """Make a rule for a test: sign, side of |statistic| = `beyond`, and side of `level` of its p must be the printed
    ones.

    Otherwise the claim is not reproduced. With the statistic within a factor of two (or `close`) it is reproduced, else
    partly.

    Args:
        name: the claim's value that holds the statistic.
        p: the claim's value that holds its p-value.
    """

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        printed, got = claim.values[name], computed.values[name]
        if np.sign(printed) != np.sign(got):
            return "not reproduced", f"{name} has the other sign"
        if beyond is not None and not _same_side(printed, got, beyond):
            return "not reproduced", f"{name} is on the other side of {beyond:g}"
        if p is not None and (claim.values[p] < level) != (computed.values[p] < level):
            return "not reproduced", f"{p} is on the other side of {level:g}"
        if close is not None and not close(printed, got):
            return "partly", f"{name} is not near {printed:g}"
        if close is None and not STATISTIC(printed, got) and not STATISTIC_APART(printed, got):
            return "partly", f"{name} is not within a factor of two"
        return "reproduced", "same sign and level"

    return compare
