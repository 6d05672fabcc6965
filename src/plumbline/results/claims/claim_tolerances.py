"""Decides how far a computed value may be from a printed one, and how much of that distance it takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plumbline.published.printed_numbers import PaperClaim


@dataclass(frozen=True, slots=True)
class Near:
    """A test of nearness. `share`: (printed, computed) -> the share of the allowed distance that is used; near enough
    up to 1, infinite if no distance would be. `limit`: what is allowed, as a distance or a factor.
    """

    share: Callable[[float, float], float]
    limit: float

    def __call__(self, printed: float, computed: float) -> bool:
        """Decide whether a computed value is near enough to the printed one."""
        return self.share(printed, computed) <= 1 + 1e-12


def near(tolerance: float) -> Near:
    """Make a test of nearness: within an absolute distance."""

    def share(printed: float, computed: float) -> float:
        if printed == computed:
            return 0.0
        # 1e-12: a distance that is the tolerance except for rounding is inside.
        return abs(printed - computed) / (tolerance + 1e-12)

    return Near(share, tolerance)


def factor(times: float) -> Near:
    """Make a test of nearness: of the same sign and within a factor."""

    def share(printed: float, computed: float) -> float:
        if printed == computed:
            return 0.0
        if printed == 0 or computed == 0 or (printed > 0) != (computed > 0):
            return math.inf
        return abs(math.log(computed / printed)) / math.log(times)

    return Near(share, times)


def up_to(rounding: float = 0.0) -> Near:
    """Make a test of nearness: at most the printed value, which is a limit, and half a unit of its last digit."""
    return Near(lambda printed, computed: computed / (printed + rounding), rounding)


def half_unit(printed: float) -> float:
    """Compute half a unit of the last digit in the shortest way to write the printed value."""
    if isinstance(printed, int):
        return 0.5
    mantissa, _, exponent = repr(printed).partition("e")
    return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


#: What "about" and "roughly" allow, of the printed value.
ABOUT, ROUGHLY = 0.1, 0.3


def share_used(claim: PaperClaim, printed: Any, got: Any, nearness: Near | None) -> float:
    """Compute the share of the allowed distance that a value, a list of values or a text uses; up to 1 is near enough.

    `nearness`: the test of nearness; None for the printed rounding, widened where the paper says "about" or "roughly".
    """
    if isinstance(printed, list):
        if printed and isinstance(printed[0], str):
            return 0.0 if set(printed) == set(got) else math.inf
        if len(printed) != len(got):
            return math.inf
        return max(
            (share_used(claim, printed_item, item, nearness) for printed_item, item in zip(printed, got, strict=True)),
            default=0.0,
        )
    if isinstance(printed, str) or isinstance(got, str):
        return 0.0 if printed == got else math.inf
    if math.isnan(got):
        return math.inf
    if nearness is not None:
        return nearness.share(float(printed), float(got))
    allowed = ROUGHLY if "roughly" in claim.tolerance else ABOUT if "approx" in claim.tolerance else 0.0
    if isinstance(printed, int) and isinstance(got, int) and not allowed:
        return 0.0 if printed == got else math.inf
    return near(max(half_unit(printed), allowed * abs(float(printed)))).share(float(printed), float(got))
