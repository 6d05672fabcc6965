"""Checks that seeds differ by more than one seed does from itself when it is run twice: else the seed may do nothing,
and what looks like a spread is rounding.

The variance over seeds is held against that of reruns by an F test, whose null is that the seed does nothing. One
rerun is enough where it falls very near; else `plumbline setup-trainer` makes another, of the next seed, up to `PAIRS`.
Of trainers whose seed does nothing so 4 % pass, and 2 % are refused of those whose reruns spread a tenth as far as
their seeds (5 seeds, 4,000 simulated trainers each).
"""

from __future__ import annotations

import numpy as np

from plumbline.stats.distributions import f_sf
from plumbline.stats.sample_spread import sample_deviation
from plumbline.verdict.comparability.check_answer import CheckAnswer, holds, not_known, refuse, tell
from plumbline.verdict.comparability.compared_arms import ComparedArms
from plumbline.verdict.evidence import RunEvidence
from plumbline.verdict.formatting import name_some

#: Of trainers whose seed does nothing, the share that one look calls one whose seed has an effect.
LEVEL = 0.02
#: Where so many of them would look as this one does, no further rerun is waited for; and the reruns at most.
HOPELESS, PAIRS = 0.5, 4


def check(arms: ComparedArms) -> CheckAnswer:
    """Refuse where reruns of seeds differ about as much as seeds do, and tell where there are too few to say."""
    for arm in dict.fromkeys((arms.baseline, arms.candidate)):
        runs = [run for run in arms.runs_of(arm) if run.value is not None]
        pairs = [run for run in runs if run.rerun_value is not None]
        if pairs and len(runs) > 1:
            return _compare(arms.label(arm), runs, pairs)
    return not_known("how far a seed that is run twice falls from itself")


def _compare(label: str, runs: list[RunEvidence], pairs: list[RunEvidence]) -> CheckAnswer:
    """Hold the spread of an arm's runs against the differences between those that were made twice."""
    differences = np.array([(run.value or 0.0) - (run.rerun_value or 0.0) for run in pairs])
    seeds = f"seed{'s'[: len(pairs) > 1]} {name_some([str(run.seed) for run in pairs])} of {label}"
    sigma = sample_deviation(np.array([run.value for run in runs]))
    largest = float(np.abs(differences).max())
    numbers = {"difference": largest, "sigma": sigma}
    if not largest:
        return holds(f"{seeds} gave the same number twice, and its seeds differ", **numbers)
    # A difference of two runs has twice the variance of one.
    ratio = 2 * sigma**2 / float(np.mean(differences**2))
    numbers["p"] = p = f_sf(ratio, len(runs) - 1, len(pairs))
    text = (
        f"{seeds}, run twice, differ{'s'[: len(pairs) == 1]} by {'up to ' if len(pairs) > 1 else ''}{largest:.2g}, and "
        f"{len(runs)} seeds spread by {sigma:.2g}; {_write_share(p)} of trainers whose seed does nothing show that"
    )
    if p <= LEVEL:
        return holds(text, **numbers)
    if p > HOPELESS or len(pairs) >= min(PAIRS, len(runs)):
        return refuse(
            f"{text}: the seed may do nothing; let the trainer take its seed (run.seed), or print its loss from "
            "the first step on, by which seeds are told apart",
            **numbers,
        )
    return tell(f"{text}: too few reruns to say whether the seed has an effect", **numbers)


def _write_share(p: float) -> str:
    return f"{100 * p:.2g} %" if p >= 0.001 else "less than 0.1 %"
