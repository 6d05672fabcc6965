"""Holds the values of a method by seed: what counts as the same seed, which values can be judged, and their noise."""

from __future__ import annotations

import math
import numbers
import re
import statistics
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtri

from plumbline.core.errors import PlumblineError
from plumbline.verdict.comparison_terms import LARGEST, SMALLEST, ComparisonTerms
from plumbline.verdict.outcome import CannotBeJudgedError

#: Values that would all be equal more often than this by accident are no evidence that two arms compute the same.
ACCIDENT = 1e-6
#: Seed -> value, of one method.
Seeds = Mapping[str, float]


def normalize_seed(text: str) -> str:
    """Name a seed by its number: ``1``, ``01`` and ``1.0`` are one seed. Other names stay as they are."""
    match = re.fullmatch(r"([+-]?\d{1,60})(\.0*)?", text)
    return str(int(match[1])) if match else text


def name_by_rank(method: str, rank: int) -> str:
    """Name a run of a table without seeds by its place among its method's."""
    return f"{method}, run {rank}"


def describe_seed(seed: str) -> str:
    """State in a sentence which run a seed's name is of: ``seed 2``, or ``a, run 2`` where there are no seeds."""
    return seed if re.search(r", run \d+$", seed) else f"seed {seed}"


def name_runs(*sides: Seeds) -> str:
    """Name what is counted of both sides: ``seed``, or ``run`` where there are no seeds."""
    return "run" if any(describe_seed(seed) == seed for side in sides for seed in side) else "seed"


def check_seeds(name: str, seeds: Seeds) -> dict[str, float]:
    """Return a method's values by `normalize_seed`.

    Raises:
        PlumblineError: there is none, one is not a finite number or too large to be squared, or two are of one seed.
    """
    if not seeds:
        raise PlumblineError(f"{name!r} has no seeds; give the value of at least one")
    values: dict[str, float] = {}
    for seed, value in seeds.items():
        label = normalize_seed(str(seed))
        if label in values:
            raise PlumblineError(f"{name!r} has seed {label!r} twice; a run counts once")
        if isinstance(value, bool) or not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise PlumblineError(
                f"{name!r}, seed {label!r}: {value!r} is no finite number; a run that diverged has no value, and is "
                "its method's outcome, not to be left out"
            )
        if abs(value) > LARGEST:
            raise PlumblineError(f"{name!r}, seed {label!r}: {value:g} is too large to compare; rescale the metric")
        values[label] = float(value)
    return values


def sort_values(seeds: Seeds) -> np.ndarray:
    """Values in the order of the seeds' names, so that sums do not hang on the order of rows."""
    return np.array([seeds[seed] for seed in sorted(seeds)], dtype=float)


def find_scale(*sides: np.ndarray) -> float:
    """What values are divided by before they are squared, so that 1e200 has a mean and a spread too."""
    largest = max((float(np.abs(side).max()) for side in sides if side.size), default=0.0)
    return largest if largest > SMALLEST else 1.0


def subtract_means(ours: np.ndarray, theirs: np.ndarray, scale: float) -> float:
    """The difference of two means; `scale` as of `find_scale`."""
    return scale * (float((ours / scale).mean()) - float((theirs / scale).mean()))


def bound_rounding(*sides: np.ndarray) -> float:
    """A spread that numbers without any have once means and differences were taken of them."""
    return max(SMALLEST, 1e-12 * max(float(np.abs(side).max()) for side in sides))


def estimate_noise(
    name: str, ours: np.ndarray, theirs: np.ndarray, terms: ComparisonTerms, tries: int
) -> tuple[float, float]:
    """Sigma of one run (of a difference, if paired) and its degrees of freedom."""
    if terms.sigma is not None:
        return terms.sigma, terms.sigma_freedom
    scale = find_scale(ours, theirs)
    if terms.paired:
        sigma, freedom = scale * float((ours / scale - theirs / scale).std(ddof=1)), len(ours) - 1
    else:
        if len(theirs) < 2:
            error = math.sqrt(1 / len(ours) + 1)
            raise CannotBeJudgedError(
                f"{name!r}: the baseline has one seed, so there is no noise floor: {advise_repeats()}. "
                + describe_break_even(terms.sign * subtract_means(ours, theirs, scale), error, terms, tries)
            )
        freedom = len(ours) + len(theirs) - 2
        squares = sum(float(((side / scale - (side / scale).mean()) ** 2).sum()) for side in (ours, theirs))
        sigma = scale * math.sqrt(squares / freedom)
    require_spread(name, sigma, ours, theirs, paired=terms.paired)
    return sigma, freedom


def describe_break_even(gain: float, error: float, terms: ComparisonTerms, tries: int) -> str:
    """State how small sigma would have to be for this gain to be better, where nothing was repeated.

    `error`: the standard error of the gain in units of sigma.
    """
    excess = gain - terms.minimum_gain
    if not excess > 0:
        return f"Its gain is {gain:.4g}: no sigma makes it better" + (
            f" by more than {terms.minimum_gain:g}." if terms.minimum_gain else "."
        )
    sigma = excess / (error * -float(ndtri(terms.alpha / tries)))
    tried = f", corrected for {tries} tries" if tries > 1 else ""
    return f"Its gain of {gain:.4g} improves if sigma of one run <= {sigma:.2g} (one-sided {terms.alpha:g}{tried})."


def advise_repeats() -> str:
    """State what gives a noise floor."""
    return (
        "run the same configuration again with another seed, or give --sigma (and --sigma-runs) from other runs. Means "
        "of several runs are no single runs: give columns std and n beside them"
    )


def require_spread(name: str, sigma: float, ours: np.ndarray, theirs: np.ndarray, *, paired: bool) -> None:
    """Refuse runs without any spread."""
    if sigma > bound_rounding(ours, theirs):
        return
    symptom = "differ equally at every seed" if paired else "have no spread over seeds"
    remedy = "leave out --paired" if paired else "give --sigma from other runs"
    raise CannotBeJudgedError(
        f"{name!r} and the baseline {symptom}, so there is no noise floor: are these seeds copies of one run? If they "
        f"are not, {remedy}"
    )


def compute_accident(values: Sequence[float]) -> float:
    """Compute how often other runs of this spread would have all these values, as their digits are, by accident."""
    if len(set(values)) < len(values) or len(values) < 2:
        return 1.0
    texts = [repr(float(value)) for value in values]
    decimals = max(len(text.partition("e")[0].partition(".")[2]) for text in texts)
    exponent = max(int(text.partition("e")[2] or 0) for text in texts)
    unit = 10.0 ** (exponent - decimals)
    return min(1.0, unit / (2 * math.sqrt(math.pi) * statistics.stdev(values))) ** len(values)
