"""Compares both arms at the same seeds, to all digits: the cheapest evidence that a candidate is as good.

A refactor, a kernel or a flag that does nothing often computes the same numbers. The first seed at which the values
differ ends this, and its run is used for nothing else: the test has seeds that no run of the bank has.
"""

from __future__ import annotations

from plumbline.verdict.decision.loop import Experiment
from plumbline.verdict.decision.outcome import BANK, BASELINE, ArmRun, Decision
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.seed_values import ACCIDENT, compute_accident

#: What runs at the bank's seeds are for, as the bank keeps it.
EQUAL = "equal"


def decide_by_equal_seeds(experiment: Experiment) -> Decision | None:
    """Decide that the candidate is as good where every value at a seed of the bank is the baseline's, to all digits.

    The runs then belong to the bank of the candidate, which has no others.

    Returns:
        None where a value differs, or where so few digits are printed that equal values say nothing.
    """
    terms, trainer, bank = experiment.terms, experiment.trainer, experiment.bank
    seeds = [seed for arm, seed in experiment.plan.steps[0][0] if arm == BASELINE][:BANK]
    baseline = [run for seed in seeds if (run := experiment.find_run(BASELINE, seed)) is not None and run.has_value]
    values = [run.value for run in baseline if run.value is not None]
    if len(values) < len(seeds) or compute_accident(values) > ACCIDENT:
        return None
    method, runs = trainer.method(terms.candidate), list[ArmRun]()
    for seed, value in zip(seeds, values):
        run = experiment.find_run(terms.candidate, seed)
        if run is None:
            (run,) = trainer.run([(terms.candidate, seed)])
            bank.append(trainer.group, method, run, EQUAL)
        if run.value != value or run.fingerprint != baseline[0].fingerprint:
            experiment.tell(f"{terms.candidate}, seed {seed}: not the value of {terms.baseline} with this seed")
            return None
        experiment.tell(f"{terms.candidate}, seed {seed}: {value!r}, as {terms.baseline} with this seed")
        runs.append(run)
    for run in runs:  # under the role of a bank's runs, once it is known that they are one
        bank.append(trainer.group, method, run)
    experiment.runs += [*baseline, *runs]
    return experiment.make_decision(Outcome.AS_GOOD, equal_seeds=tuple(seeds))
