"""Checks that seeds differ by more than one seed does from itself when it is run twice: else the seed may do nothing,
and what looks like a spread is rounding.
"""

from __future__ import annotations

import math

import numpy as np

from plumbline.stats.sample_spread import sample_deviation
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse
from plumbline.verdict.comparability.compared_arms import ComparedArms

#: The spread over seeds has to be so many times that of a rerun, which is known from one pair. Of trainers whose seed
#: does nothing this lets a quarter pass (5 seeds); of those whose reruns spread a tenth as far as seeds it refuses
#: one in a thousand.
TIMES = 3.0


def check(arms: ComparedArms) -> CheckAnswer:
    """Refuse where a rerun of one seed differs about as much as other seeds do."""
    for arm in dict.fromkeys((arms.baseline, arms.candidate)):
        runs = [run for run in arms.runs_of(arm) if run.value is not None]
        pairs = [(run, run.value, run.rerun_value) for run in runs if run.rerun_value is not None]
        if not pairs or len(runs) < 2:
            continue
        run, value, again = pairs[0]
        sigma = sample_deviation(np.array([each.value for each in runs]))
        difference = abs((value or 0.0) - (again or 0.0))
        numbers = {"difference": difference, "sigma": sigma}
        label = arms.label(arm)
        if not difference:
            return holds(f"seed {run.seed} of {label} gave the same number twice, and its seeds differ", **numbers)
        text = f"seed {run.seed} of {label}, run twice, differs by {difference:.2g}, and seeds spread by {sigma:.2g}"
        if sigma <= TIMES * difference / math.sqrt(2):
            return refuse(
                f"{text}: the seed may do nothing; let the trainer take its seed (run.seed), or print its loss from "
                "the first step on, by which seeds are told apart",
                **numbers,
            )
        return holds(text, **numbers)
    return not_known("how far a seed that is run twice falls from itself")
