"""Holds the values of a method by seed: what counts as the same seed, which values can be judged, and their noise."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Mapping

import numpy as np
from scipy.special import ndtri

from plumbline.core.errors import PlumblineError
from plumbline.verdict.comparison_terms import LARGEST, SMALLEST, ComparisonTerms

#: Seed -> value, of one method.
Seeds = Mapping[str, float]


class CannotBeJudgedError(PlumblineError):
    """What was given can be read, but there is nothing to judge by: no noise floor, or a baseline that diverged."""


def seed_name(text: str) -> str:
    """Name a seed by its number: ``1``, ``01`` and ``1.0`` are one seed. Other names stay as they are."""
    whole = re.fullmatch(r"([+-]?\d{1,60})(\.0*)?", text)
    return str(int(whole[1])) if whole else text


def rank_name(method: str, rank: int) -> str:
    """Name a run of a table without seeds by its place among its method's."""
    return f"{method}, run {rank}"


def seed_words(seed: str) -> str:
    """Say in a sentence which run a seed's name is of: ``seed 2``, or ``a, run 2`` where there are no seeds."""
    return seed if re.search(r", run \d+$", seed) else f"seed {seed}"


def checked(name: str, seeds: Seeds) -> dict[str, float]:
    """Return a method's values by `seed_name`.

    Raises:
        PlumblineError: there is none, one is no finite number or too large to be squared, or two are of one seed.
    """
    if not seeds:
        raise PlumblineError(f"{name!r} has no seeds; give the value of at least one")
    found: dict[str, float] = {}
    for seed, value in seeds.items():
        one = seed_name(str(seed))
        if one in found:
            raise PlumblineError(f"{name!r} has seed {one!r} twice; a run counts once")
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise PlumblineError(
                f"{name!r}, seed {one!r}: {value!r} is no finite number; a run that diverged has no value, and is "
                "its method's outcome, not to be left out"
            )
        if abs(value) > LARGEST:
            raise PlumblineError(f"{name!r}, seed {one!r}: {value:g} is too large to compare; rescale the metric")
        found[one] = float(value)
    return found


def sorted_values(seeds: Seeds) -> np.ndarray:
    """Values in the order of the seeds' names, so that sums do not hang on the order of rows."""
    return np.array([seeds[seed] for seed in sorted(seeds)], dtype=float)


def scale_of(*sides: np.ndarray) -> float:
    """What values are divided by before they are squared, so that 1e200 has a mean and a spread too."""
    largest = max((float(np.abs(side).max()) for side in sides if side.size), default=0.0)
    return largest if largest > SMALLEST else 1.0


def difference_of(ours: np.ndarray, theirs: np.ndarray, scale: float) -> float:
    """The difference of two means; `scale` as of `scale_of`."""
    return scale * (float((ours / scale).mean()) - float((theirs / scale).mean()))


def rounding_of(*sides: np.ndarray) -> float:
    """A spread that numbers without any have once means and differences were taken of them."""
    return max(SMALLEST, 1e-12 * max(float(np.abs(side).max()) for side in sides))


def noise(name: str, ours: np.ndarray, theirs: np.ndarray, terms: ComparisonTerms, tries: int) -> tuple[float, float]:
    """Sigma of one run (of a difference, if paired) and its degrees of freedom."""
    if terms.sigma is not None:
        return terms.sigma, terms.sigma_freedom
    scale = scale_of(ours, theirs)
    if terms.paired:
        sigma, freedom = scale * float((ours / scale - theirs / scale).std(ddof=1)), len(ours) - 1
    else:
        if len(theirs) < 2:
            error = math.sqrt(1 / len(ours) + 1)
            raise CannotBeJudgedError(
                f"{name!r}: the baseline has one seed, so there is no noise floor: {run_again()}. "
                + break_even(terms.sign * difference_of(ours, theirs, scale), error, terms, tries)
            )
        freedom = len(ours) + len(theirs) - 2
        squares = sum(float(((side / scale - (side / scale).mean()) ** 2).sum()) for side in (ours, theirs))
        sigma = scale * math.sqrt(squares / freedom)
    require_spread(name, sigma, ours, theirs, paired=terms.paired)
    return sigma, freedom


def break_even(gain: float, error: float, terms: ComparisonTerms, tries: int) -> str:
    """Say how small sigma would have to be for this gain to be better, where nothing was repeated.

    `error`: the standard error of the gain in units of sigma.
    """
    beyond = gain - terms.minimum_gain
    if not beyond > 0:
        return f"Its gain is {gain:.4g}: no sigma makes it better" + (
            f" by more than {terms.minimum_gain:g}." if terms.minimum_gain else "."
        )
    sigma = beyond / (error * -float(ndtri(terms.alpha / tries)))
    tried = f", corrected for {tries} tries" if tries > 1 else ""
    return f"Its gain of {gain:.4g} improves if sigma of one run <= {sigma:.2g} (one-sided {terms.alpha:g}{tried})."


def run_again() -> str:
    """Say what gives a noise floor."""
    return (
        "run the same configuration again with another seed, or give --sigma (and --sigma-runs) from other runs. Means "
        "of several runs are no single runs: give columns std and n beside them"
    )


def require_spread(name: str, sigma: float, ours: np.ndarray, theirs: np.ndarray, *, paired: bool) -> None:
    """Refuse runs without any spread."""
    if sigma > rounding_of(ours, theirs):
        return
    what = "differ equally at every seed" if paired else "have no spread over seeds"
    remedy = "leave out --paired" if paired else "give --sigma from other runs"
    raise CannotBeJudgedError(
        f"{name!r} and the baseline {what}, so there is no noise floor: are these seeds copies of one run? If they "
        f"are not, {remedy}"
    )
