"""Looks at what is about to be kept once more: whether it holds with the weights that it was trained to, and whether
anything ever gained so much.

A leak may open in training, and a gain that no modification ever had is more often a leak than a discovery.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plumbline.operate.experiments.carry_out_experiment import require_plausible
from plumbline.project.arms import METRIC, StudyArms
from plumbline.verdict import implausible_gain
from plumbline.verdict.decision.decision_sentences import sentence
from plumbline.verdict.decision.outcome import BASELINE, Decision
from plumbline.verdict.outcome import Outcome


def looked_at_again(decision: Decision, arms: StudyArms, preset: str, *, looked_at: bool) -> Decision:
    """Check causality and the loss of both arms again, each with the weights of a finished run, before a keep is said.

    Returns the decision with what was seen; one that cannot be judged where an arm has a leak, which is named; and one
    that is implausible where nothing ever gained so much, unless it is said to have been `looked_at`.

    Raises:
        PlumblineError: weights of a run cannot be read.
    """
    if decision.verdict != Outcome.KEEP:
        return decision
    from plumbline.operate.preflight.method_checks import finished_run_checks

    held: dict[str, str] = {}
    work, candidate = Path(arms.project.paths.work), decision.terms.candidate
    there = {
        arm: [
            finished_run_checks.TrainedRun(folder=arms.folder(arm, run.seed), spec=arms.spec_of(arm, run.seed))
            for run in decision.runs
            if run.arm == arm and run.has_value
        ]
        for arm in (BASELINE, candidate)
    }
    for arm, label, baseline in (
        (BASELINE, decision.terms.baseline, None),
        (candidate, candidate, there[BASELINE][0]),
    ):
        seen = finished_run_checks.of_arm(there[arm], work, baseline)
        if seen.leak is not None:
            why = (
                f"with the weights that {label} was trained to ({seen.key}), {seen.leak}; what was gained may be the "
                "tokens that it was to predict"
            )
            refused = replace(decision, verdict=Outcome.CANNOT_BE_JUDGED, estimate=None, p=None, more=None)
            return replace(refused, sentence=sentence(refused, reason=why))
        held[label] = seen.words
    decision = replace(decision, checks={**decision.checks, "trained_weights": held})
    terms, at, values = decision.terms, decision.looks[-1], decision.baseline_values
    mean = sum(values) / len(values)
    words = implausible_gain.flagged(at.gain, at.sigma, at.df, mean, preset, loss=terms.metric == METRIC)
    return require_plausible(decision, words, looked_at=looked_at)
