"""Judges a method against a fixed value instead of a baseline: the one-sample t of its seeds."""

from __future__ import annotations

import math

import numpy as np

from plumbline.core.errors import PlumblineError
from plumbline.verdict.comparison_terms import ComparisonTerms
from plumbline.verdict.judge import BaselineComparison, judged_by
from plumbline.verdict.seed_values import (
    CannotBeJudgedError,
    Seeds,
    break_even,
    checked,
    difference_of,
    require_spread,
    run_again,
    scale_of,
    sorted_values,
)


def judge_goal(name: str, method: Seeds, goal: float, terms: ComparisonTerms, *, tries: int = 1) -> BaselineComparison:
    """Judge one method against a fixed value: the one-sample t of its seeds; `tries`: what p is multiplied by.

    Raises:
        CannotBeJudgedError: one seed and no sigma, or no spread.
        PlumblineError: there is no seed, or a value is no finite number; or pairs are asked for.
    """
    if terms.paired:
        raise PlumblineError("a goal is one number, which has no pairs; leave out --paired")
    method = checked(name, method)
    (goal,) = checked("the goal", {"goal": goal}).values()
    ours, one = sorted_values(method), np.array([goal])
    scale = scale_of(ours, one)
    if terms.sigma is not None:
        sigma, freedom = terms.sigma, terms.sigma_freedom
    elif len(ours) < 2:
        raise CannotBeJudgedError(
            f"{name!r} was run once, so there is no noise floor: {run_again()}. "
            + break_even(terms.sign * (float(ours[0]) - goal), 1.0, terms, tries)
        )
    else:
        sigma, freedom = scale * float((ours / scale).std(ddof=1)), float(len(ours) - 1)
        require_spread(name, sigma, ours, one, paired=False)
    found = (scale * float((ours / scale).mean()), goal)
    gain, error = terms.sign * difference_of(ours, one, scale), math.sqrt(1 / len(ours))
    return judged_by(name, method, {}, terms, tries, (len(ours), 0), found, gain, sigma, freedom, error)
