"""Checks claims about an MLP with a skip that stands in for one in another basis: appendix 8.4 and Figure 2.

Errors and cosines are read at every width; a range is met if all widths lie in it, up to half a unit of its ends.
"""

from __future__ import annotations

import math
from itertools import combinations

import pandas as pd

from plumbline.core.run_files import MISSING
from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_checkers import ComputedValues, Verdict, parts, statements
from plumbline.results.claims.claim_registry import ClaimChecks, MissingRun, Values
from plumbline.results.claims.claim_tolerances import factor, half_unit, near

from ..basis_transfer_results import ANGLE, COSINE, DISTANCE, ERROR, LINEAR, MLP, NAME
from .claim_evidence import Evidence

CHECKS = ClaimChecks()

#: An error grows with the width if at a larger one it is more than this share above that at a smaller one.
GROWN = 0.1


def _read(e: Evidence) -> pd.DataFrame:
    """The measurement's end, by width.

    Raises:
        MissingRun: it was not made.
    """
    table, key = e.basis_transfer, e.frames.find_measurement_key(NAME)
    if table is None:
        raise MissingRun(MISSING, key)
    e.used.add(key)
    return table


def _values(e: Evidence, arm: str, quantity: str) -> list[float]:
    return [float(value) for value in _read(e)[arm, quantity]]


def within(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """Every width inside the printed range, for each of the arms."""
    apart = []
    for arm, (low, high) in claim.values.items():
        room = half_unit(low)
        if not all(low - room <= value <= high + room for value in measured.values[arm]):
            apart.append(arm)
    if not apart:
        return "reproduced", "both in the printed ranges"
    return ("partly" if len(apart) == 1 else "not reproduced"), f"outside its range: {', '.join(apart)}"


def _compare_with_linear(e: Evidence, quantity: str) -> dict[str, bool]:
    """Whether the linear map is the worse one at every width, which is what the comparison is about."""
    pairs = zip(_values(e, MLP, quantity), _values(e, LINEAR, quantity), strict=True)
    return {"linear_is_worse": all(mlp < linear for mlp, linear in pairs)}


@CHECKS.of(effect=statements("linear_is_worse"), compare=within)
def mlp_transfer_error(e: Evidence, claim: PaperClaim) -> Values:
    """Read the relative L2 error in percent at every width, of the MLP with a skip and of the linear map."""
    errors = {arm: [100 * value for value in _values(e, arm, ERROR)] for arm in (MLP, LINEAR)}
    return ComputedValues(values=errors | _compare_with_linear(e, ERROR))


#: A mean cosine to half a unit of the printed digit; an angle, of which "about" is printed, within a quarter.
MEAN_COSINE, MEAN_ANGLE = near(0.0005), factor(1.25)


@CHECKS.of()
def mlp_transfer_cos(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the mean over widths of the MLP's cosine similarity, and of its angle in degrees."""
    cosine, angle = (_mean(_values(e, MLP, quantity)) for quantity in (COSINE, ANGLE))
    return ComputedValues(values={"cos": cosine, "deg": angle}, near={"cos": MEAN_COSINE, "deg": MEAN_ANGLE})


def about_and_above(claim: PaperClaim, measured: ComputedValues) -> tuple[Verdict, str]:
    """The MLP's distance about the printed one, the linear map's above its."""
    about = all(near(half_unit(claim.values[MLP]))(claim.values[MLP], value) for value in measured.values[MLP])
    above = all(value > claim.values[LINEAR] for value in measured.values[LINEAR])
    why = (
        f"{MLP} {'about' if about else 'not about'}, {LINEAR} {'above' if above else 'not above'} the printed distance"
    )
    return ("reproduced" if about and above else "partly" if about or above else "not reproduced"), why


@CHECKS.of(effect=statements("linear_is_worse"), compare=about_and_above)
def mlp_transfer_cosdist(e: Evidence, claim: PaperClaim) -> Values:
    """Read the cosine distance at every width, of the MLP with a skip and of the linear map."""
    distances = {arm: _values(e, arm, DISTANCE) for arm in (MLP, LINEAR)}
    return ComputedValues(values=distances | _compare_with_linear(e, DISTANCE))


#: "A factor of 2": three quarters of it or more, and up to what the printed ranges of the two errors allow (14 / 4).
FACTOR = (1.5, 3.5)


@CHECKS.of(effect=statements("outperforms"), compare=parts("about_the_factor"))
def mlp_transfer_factor(e: Evidence, claim: PaperClaim) -> Values:
    """Compute the mean over widths of the linear map's error over the MLP's, which is above one at every width, and
    decide whether it is about the printed factor."""
    pairs = zip(_values(e, LINEAR, ERROR), _values(e, MLP, ERROR), strict=True)
    ratios = [linear / mlp for linear, mlp in pairs]
    mean, (low, high) = _mean(ratios), FACTOR
    # The printed ends themselves (14 over 4) are inside, whatever their quotient is rounded to.
    about = low <= mean <= high or math.isclose(mean, high)
    values = {"outperforms": min(ratios) > 1, "about_the_factor": about}
    limits = {"mean ratio, at least": (mean, low), "mean ratio, at most": (mean, high)}
    return ComputedValues(values=values, shown={"ratio": mean}, limits=limits)


@CHECKS.of()
def mlp_transfer_dim(e: Evidence, claim: PaperClaim) -> Values:
    """Decide whether the error of no larger width is above that of any smaller one by more than a tenth; the widths
    are the printed ones."""
    errors, widths = _values(e, MLP, ERROR), [int(width) for width in _read(e).index]
    holds = widths == claim.values["h"] and all(
        later <= (1 + GROWN) * earlier for earlier, later in combinations(errors, 2)
    )
    most = max(later / earlier - 1 for earlier, later in combinations(errors, 2))
    numbers = {"h": widths, "error_pct": [100 * error for error in errors]}
    return ComputedValues(holds=holds, shown=numbers, limits={"largest growth": (most, GROWN)})


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
