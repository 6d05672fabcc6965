"""Compares printed values with computed ones: a default rule for each kind of claim, and rules a study may choose.

A training run repeated elsewhere does not land on the printed digits; a count of parameters does. So every computed
quantity says how near is near enough (`near`, `factor`); without a word it is the printed rounding, widened to 10 %
where the paper itself says "about" and 30 % where it says "roughly".

Which of a claim's values carry its sign, its order or its test is for the study to say, when it registers the check:
`signs`, `order`, `first` and `statistic` make such rules; `parts` and `said` are for statements without numbers;
`in_turn` and `at_most_partly` put rules together, so that the whole of a claim is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy import stats

from plumbline.audit.printed_numbers import PaperClaim
from plumbline.core.errors import PlumblineError, nearest

Verdict = Literal[
    "reproduced",
    "partly",
    "not reproduced",
    "diverged",
    "not tested",
    "not judged (mini size)",
    "not judged (demo size)",
    "not judged (smoke size)",
    "not judged (other texts)",
]

#: (printed, computed) -> whether they are near enough.
Near = Callable[[float, float], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class ComputedValues:
    """The values that were computed for a claim, under the claim's own names, and how near each must be.

    `holds`: for a statement without numbers, whether it is so here. `shown`: what readers see besides.
    """

    values: dict[str, Any] = field(default_factory=dict)
    near: dict[str, Near] | Near | None = None
    holds: bool | None = None
    shown: dict[str, Any] = field(default_factory=dict)


#: A rule: a claim and what was computed -> a verdict, and why.
Compare = Callable[[PaperClaim, ComputedValues], tuple[Verdict, str]]


def near(tolerance: float) -> Near:
    """Make a test of nearness: within an absolute distance."""
    return lambda printed, computed: abs(printed - computed) <= tolerance + 1e-12


def factor(times: float) -> Near:
    """Make a test of nearness: of the same sign and within a factor."""

    def close(printed: float, computed: float) -> bool:
        if printed == 0 or computed == 0 or (printed > 0) != (computed > 0):
            return printed == computed
        return 1 / times <= computed / printed <= times

    return close


def half_unit(printed: float) -> float:
    """Compute half a unit of the last digit in the shortest way to write the printed value."""
    if isinstance(printed, int):
        return 0.5
    mantissa, _, exponent = repr(printed).partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def check(claim: PaperClaim, computed: ComputedValues, compare: Compare | None = None) -> tuple[Verdict, str]:
    """Give the verdict of a claim by the rule `compare`, by default that of the claim's kind; and the reason.

    Raises:
        PlumblineError: the claim is of no known kind.
    """
    if computed.holds is not None:
        return ("reproduced", "it holds") if computed.holds else ("not reproduced", "it does not hold")
    if claim.kind not in KINDS:
        raise PlumblineError(
            f"claims.yaml: {claim.id}: kind: {claim.kind!r} is none of {sorted(KINDS)}{nearest(claim.kind, KINDS)}"
        )
    return (compare or KINDS[claim.kind])(claim, computed)


def number(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
    """Compare numbers: reproduced if all computed values are near their printed ones, partly if some are, else not
    reproduced.
    """
    names = [name for name in claim.values if name in computed.values]
    apart = [name for name in names if not _agree(claim, computed, name)]
    assert names, f"{claim.id}: nothing computed under a printed name"
    if not apart:
        return "reproduced", f"{len(names)} of {len(names)} values agree"
    verdict: Verdict = "partly" if len(apart) < len(names) else "not reproduced"
    return verdict, f"{len(names) - len(apart)} of {len(names)} values agree; apart: {', '.join(apart)}"


def _agree(claim: PaperClaim, computed: ComputedValues, name: str) -> bool:
    printed, got = claim.values[name], computed.values[name]
    given = computed.near.get(name) if isinstance(computed.near, dict) else computed.near
    if isinstance(printed, list):
        if printed and isinstance(printed[0], str):
            return set(printed) == set(got)
        return len(printed) == len(got) and all(
            _close(one, other, given, claim) for one, other in zip(printed, got, strict=True)
        )
    return _close(printed, got, given, claim)


def _close(printed: Any, got: Any, given: Near | None, claim: PaperClaim) -> bool:
    if isinstance(printed, str) or isinstance(got, str):
        return printed == got
    if given is not None:
        return given(float(printed), float(got))
    share = 0.3 if "roughly" in claim.tolerance else 0.1 if "approx" in claim.tolerance else 0.0
    if isinstance(printed, int) and isinstance(got, int) and not share:
        return printed == got
    return near(max(half_unit(printed), share * abs(float(printed))))(float(printed), float(got))


def ratio(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
    """Compare numbers as `number` does, within 25 % unless the claim or the measurement says otherwise."""
    if computed.near is None and not claim.tolerance:
        computed = replace(computed, near=factor(1.25))
    return number(claim, computed)


def qualitative(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
    """Compare lists of names: reproduced if they are the same, partly if at least half of the names are common to
    both.

    A value that is no list counts as agreeing or not.
    """
    verdicts = []
    for name, got in computed.values.items():
        printed = claim.values[name]
        if not isinstance(printed, list):
            verdicts.append(1.0 if _agree(claim, computed, name) else 0.0)
            continue
        union = set(printed) | set(got)
        verdicts.append(len(set(printed) & set(got)) / len(union) if union else 1.0)
    assert verdicts, f"{claim.id}: nothing computed"
    if min(verdicts) == 1.0:
        return "reproduced", "the same names"
    share = math.fsum(verdicts) / len(verdicts)
    return ("partly" if share >= 0.5 else "not reproduced"), f"{share:.0%} of the names in common"


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
    """Make a rule: each value has the printed sign, and lies on the printed side of |value| = `beyond`.

    Another sign is not reproduced, another side partly.
    """

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        sides = True
        for name in names:
            printed, got = (np.atleast_1d(values[name]) for values in (claim.values, computed.values))
            for one, other in zip(printed, got, strict=True):
                if np.sign(one) != np.sign(other):
                    return "not reproduced", f"{name} has the other sign"
                sides &= beyond is None or _same_side(one, other, beyond)
        if not sides:
            return "partly", f"same sign, other side of |{names[0]}| = {beyond:g}"
        return "reproduced", "same sign" + ("" if beyond is None else f", same side of |{names[0]}| = {beyond:g}")

    return compare


def _same_side(one: float, other: float, beyond: float) -> bool:
    return (abs(one) > beyond) == (abs(other) > beyond)


def order(name: str) -> Compare:
    """Make a rule: the printed order of names is reproduced; Kendall's tau of at least 0.5 with it is partly."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        printed, got = list(claim.values[name]), list(computed.values[name])
        if printed == got:
            return "reproduced", "the same order"
        if set(printed) != set(got):
            shared = len(set(printed) & set(got))
            verdict: Verdict = "partly" if shared * 2 >= len(printed) else "not reproduced"
            return verdict, f"{shared} of {len(printed)} of the printed names are among the computed"
        tau = float(stats.kendalltau(range(len(printed)), [got.index(entry) for entry in printed]).statistic)
        return ("partly" if tau >= 0.5 else "not reproduced"), f"Kendall's tau {tau:+.2f} with the printed order"

    return compare


def first(name: str) -> Compare:
    """Make a rule: the printed first of an order is the first; what follows it is not claimed."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        found, printed = computed.values[name][0], claim.values[name][0]
        return ("reproduced" if found == printed else "not reproduced"), f"{found} is first"

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


def said(*names: str) -> Compare:
    """Make a rule: what is computed as yes or no under these names holds; else the claim is not reproduced."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        failed = [name for name in names if not computed.values[name]]
        return ("not reproduced", f"not so: {', '.join(failed)}") if failed else ("reproduced", "it holds")

    return compare


def in_turn(*rules: Compare) -> Compare:
    """Make a rule of several: reproduced if all say so; else the verdict of the first that does not."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        why = []
        for rule in rules:
            verdict, reason = rule(claim, computed)
            if verdict != "reproduced":
                return verdict, reason
            why.append(reason)
        return "reproduced", "; ".join(dict.fromkeys(why))

    return compare


def at_most_partly(rule: Compare) -> Compare:
    """Make a rule for a side remark of a claim: if the remark does not hold, the claim is partly reproduced."""

    def compare(claim: PaperClaim, computed: ComputedValues) -> tuple[Verdict, str]:
        verdict, why = rule(claim, computed)
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
        if close is None and not factor(2)(printed, got) and not near(0.5)(printed, got):
            return "partly", f"{name} is not within a factor of two"
        return "reproduced", "same sign and level"

    return compare
