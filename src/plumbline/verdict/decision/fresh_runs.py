"""Reads the fresh runs of what the looks kept: whether they confirm it, and what it gains by them.

The runs that were looked at are there because they looked good. Fresh ones tell the gain without that; what is left is
the luck of the baseline's runs, which were there before: `confirm` is free of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from plumbline.core.errors import PlumblineError
from plumbline.stats.after_stopping import of_one_test
from plumbline.stats.fresh_runs import FRESH_LEVEL
from plumbline.stats.sequential import statistic
from plumbline.verdict.decision.decision_sentences import ends, sentence
from plumbline.verdict.decision.outcome import ArmRun, Decision
from plumbline.verdict.outcome import Outcome


def with_fresh_runs(decision: Decision, runs: Sequence[ArmRun]) -> Decision:
    """Decide by the fresh runs of what the looks of a decision kept.

    It stays a keep where they beat the baseline's runs, by more than the minimum gain, at `FRESH_LEVEL`, one-sided;
    else it is undecided. It crashed where one of them has no value, and cannot be judged where they were made
    elsewhere than the baseline's.
    """
    terms = decision.terms
    fresh = tuple(run.named(terms.candidate) for run in runs)
    of_looks = ends(terms, decision.runs)
    made = replace(
        decision,
        fresh=fresh,
        notes=(*(note for note in decision.notes if note not in of_looks), *ends(terms, (*decision.runs, *fresh))),
        estimate=None,
        estimate_after_stopping=decision.estimate,
    )
    if lost := [run for run in runs if not run.has_value]:
        return _ended(made, Outcome.CRASHED, f"seed {lost[0].seed} of its fresh runs {lost[0].outcome} ({lost[0].why})")
    if len({run.fingerprint for run in (*made.runs, *made.fresh) if run.fingerprint}) > 1:
        why = (
            "its fresh runs and the baseline's were not made with the same machine, torch and data, and means do not "
            "cross that; the same command makes others"
        )
        return _ended(made, Outcome.CANNOT_BE_JUDGED, why)
    try:
        look = statistic(made.baseline_values, made.fresh_values, higher=terms.higher, min_gain=terms.min_gain)
    except PlumblineError as error:
        return _ended(made, Outcome.CANNOT_BE_JUDGED, str(error))
    gain = of_one_test(look, terms.alpha)
    verdict = Outcome.KEEP if gain.p <= FRESH_LEVEL else Outcome.UNDECIDED
    return _ended(replace(made, estimate=gain), verdict)


def _ended(decision: Decision, verdict: Outcome, reason: str = "") -> Decision:
    ended = replace(decision, verdict=verdict)
    return replace(ended, sentence=sentence(ended, reason=reason))
