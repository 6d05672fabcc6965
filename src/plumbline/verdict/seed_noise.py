"""Finds the noise of one run from the seeds of two methods, or says why there is none and what would do without it."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.seed_values import CannotBeJudgedError, difference_of, rounding_of, scale_of


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
