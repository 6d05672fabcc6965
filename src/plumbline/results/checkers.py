"""One checker for each kind of claim: printed values against measured ones, by stated rules.

A training run repeated elsewhere does not land on the printed digits; a count of parameters does. So every measured
quantity says how near is near enough (`near`, `factor`); without a word it is the printed rounding, widened to 10 %
where the document itself says "about" and 30 % where it says "roughly".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import stats

Verdict = Literal["reproduced", "partly", "not reproduced", "diverged", "not tested", "demo"]

Near = Callable[[float, float], bool]

#: Beyond this |z| a difference counts as one, as in the document (section 3.3); and its level for p.
SIGNIFICANT_Z, LEVEL = 2.0, 0.05


def near(tolerance: float) -> Near:
    """Within an absolute distance."""
    return lambda printed, measured: abs(printed - measured) <= tolerance + 1e-12


def factor(times: float) -> Near:
    """Of the same sign and within a factor."""

    def close(printed: float, measured: float) -> bool:
        if printed == 0 or measured == 0 or (printed > 0) != (measured > 0):
            return printed == measured
        return 1 / times <= measured / printed <= times

    return close


def half_unit(printed: float) -> float:
    """Half a unit of the last digit in the shortest way to write the printed value."""
    if isinstance(printed, int):
        return 0.5
    mantissa, _, exponent = repr(printed).partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What was measured for a claim: values under the claim's own names, and how near each must be.

    `holds`: for a statement without numbers, whether it is so here. `shown`: what readers see besides.
    """

    values: dict[str, Any] = field(default_factory=dict)
    near: dict[str, Near] | Near | None = None
    holds: bool | None = None
    shown: dict[str, Any] = field(default_factory=dict)


def check(claim: dict[str, Any], measured: Measured) -> tuple[Verdict, str]:
    """A verdict by the rule of the claim's kind, and why."""
    if measured.holds is not None:
        return ("reproduced", "it holds") if measured.holds else ("not reproduced", "it does not hold")
    return CHECKERS[claim["kind"]](claim, measured)


def _agree(claim: dict[str, Any], measured: Measured, name: str) -> bool:
    printed, got = claim["values"][name], measured.values[name]
    given = measured.near.get(name) if isinstance(measured.near, dict) else measured.near
    if isinstance(printed, list):
        if printed and isinstance(printed[0], str):
            return set(printed) == set(got)
        return len(printed) == len(got) and all(
            _close(one, other, given, claim) for one, other in zip(printed, got, strict=True)
        )
    return _close(printed, got, given, claim)


def _close(printed: Any, got: Any, given: Near | None, claim: dict[str, Any]) -> bool:
    if isinstance(printed, str) or isinstance(got, str):
        return printed == got
    if given is not None:
        return given(float(printed), float(got))
    words = str(claim.get("tolerance", ""))
    share = 0.3 if "roughly" in words else 0.1 if "approx" in words else 0.0
    if isinstance(printed, int) and isinstance(got, int) and not share:
        return printed == got
    return near(max(half_unit(printed), share * abs(float(printed))))(float(printed), float(got))


def number(claim: dict[str, Any], measured: Measured) -> tuple[Verdict, str]:
    """All measured values near their printed ones: reproduced; some: partly; none: not reproduced."""
    names = [name for name in claim["values"] if name in measured.values]
    apart = [name for name in names if not _agree(claim, measured, name)]
    assert names, f"{claim['id']}: nothing measured under a printed name"
    if not apart:
        return "reproduced", f"{len(names)} of {len(names)} values agree"
    verdict: Verdict = "partly" if len(apart) < len(names) else "not reproduced"
    return verdict, f"{len(names) - len(apart)} of {len(names)} values agree; apart: {', '.join(apart)}"


def sign(claim: dict[str, Any], measured: Measured) -> tuple[Verdict, str]:
    """Same signs and same side of |z| = 2: reproduced; same signs only: partly; where no z is printed, signs alone."""
    printed, got = claim["values"], measured.values
    names = [name for name in ("z", "z_denseformer", "delta_3b") if name in printed and name in got]
    if not names:
        return number(claim, measured)
    sides = True
    for name in names:
        pairs = zip(np.atleast_1d(printed[name]), np.atleast_1d(got[name]), strict=True)
        for one, other in pairs:
            if np.sign(one) != np.sign(other):
                return "not reproduced", f"{name} has the other sign"
            sides &= not name.startswith("z") or _side(one) == _side(other)
    if sides:
        return "reproduced", "same sign" + (", same side of |z| = 2" if names[0].startswith("z") else "")
    return "partly", f"same sign, other side of |z| = {SIGNIFICANT_Z:g}"


def _side(z: float) -> bool:
    return abs(z) > SIGNIFICANT_Z


def order(claim: dict[str, Any], measured: Measured) -> tuple[Verdict, str]:
    """The printed order: reproduced; Kendall's tau of at least 0.5 with it: partly."""
    printed, got = claim["values"].get("order") or claim["values"].get("tasks"), measured.values.get("order")
    if printed is None or got is None:
        return number(claim, measured)
    if list(printed) == list(got):
        return "reproduced", "the same order"
    if set(printed) != set(got):
        shared = len(set(printed) & set(got))
        verdict: Verdict = "partly" if shared * 2 >= len(printed) else "not reproduced"
        return verdict, f"{shared} of {len(printed)} of the printed names are among the measured"
    tau = float(stats.kendalltau(range(len(printed)), [list(got).index(name) for name in printed]).statistic)
    return ("partly" if tau >= 0.5 else "not reproduced"), f"Kendall's tau {tau:+.2f} with the printed order"


def ratio(claim: dict[str, Any], measured: Measured) -> tuple[Verdict, str]:
    """As numbers, within 25 % unless the claim or the measurement says otherwise."""
    if measured.near is None and "tolerance" not in claim:
        measured = Measured(values=measured.values, near=factor(1.25), shown=measured.shown)
    return number(claim, measured)


def stat(claim: dict[str, Any], measured: Measured) -> tuple[Verdict, str]:
    """A test: its statistic's sign and its side of the level must be the printed ones (else not reproduced); with the
    statistic within a factor of two reproduced, else partly."""
    printed, got = claim["values"], measured.values
    names = [name for name in ("t", "z", "Z", "rho") if name in printed and name in got]
    levels = [name for name in ("p", "p_one") if name in printed and name in got]
    if not names:
        return number(claim, measured)
    for name in names:
        if np.sign(printed[name]) != np.sign(got[name]):
            return "not reproduced", f"{name} has the other sign"
        if name == "z" and _side(printed[name]) != _side(got[name]):
            return "not reproduced", "z is on the other side of 2"
    for name in levels:
        if (printed[name] < LEVEL) != (got[name] < LEVEL):
            return "not reproduced", f"{name} is on the other side of {LEVEL:g}"
    small = [
        name for name in names if not factor(2)(printed[name], got[name]) and not near(0.5)(printed[name], got[name])
    ]
    return ("partly", f"{small[0]} is not within a factor of two") if small else ("reproduced", "same sign and level")


def qualitative(claim: dict[str, Any], measured: Measured) -> tuple[Verdict, str]:
    """The same names: reproduced; at least half of them in common: partly."""
    verdicts = []
    for name, got in measured.values.items():
        printed = claim["values"][name]
        if not isinstance(printed, list):
            verdicts.append(1.0 if _agree(claim, measured, name) else 0.0)
            continue
        union = set(printed) | set(got)
        verdicts.append(len(set(printed) & set(got)) / len(union) if union else 1.0)
    assert verdicts, f"{claim['id']}: nothing measured"
    if min(verdicts) == 1.0:
        return "reproduced", "the same names"
    share = math.fsum(verdicts) / len(verdicts)
    return ("partly" if share >= 0.5 else "not reproduced"), f"{share:.0%} of the names in common"


CHECKERS: dict[str, Callable[[dict[str, Any], Measured], tuple[Verdict, str]]] = {
    "number": number,
    "sign": sign,
    "order": order,
    "ratio": ratio,
    "stat": stat,
    "qualitative": qualitative,
}
