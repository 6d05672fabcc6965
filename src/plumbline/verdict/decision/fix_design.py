"""Settles an experiment before its first value is seen: the bank's runs, fresh seeds, and the design."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count, islice

from plumbline.stats.sentinel import due
from plumbline.stats.sequential import SequentialDesign
from plumbline.verdict.decision.bank import CLAIM, LOOP, Bank
from plumbline.verdict.decision.experiment_question import APART, ExperimentQuestion
from plumbline.verdict.decision.loop import RunOrder, Trainer, schedule
from plumbline.verdict.decision.outcome import BASELINE, ExperimentTerms

#: Of a claim: fresh runs of each side, and its one-sided level.
CLAIM_RUNS, CLAIM_ALPHA = 5, 0.025
#: Seeds that each candidate has for itself.
BLOCK = 100


def fix_design(asked: ExperimentQuestion, trainer: Trainer, bank: Bank) -> tuple[ExperimentTerms, RunOrder]:
    """Fix the terms and the order of the runs.

    All runs of the baseline since the last keep count as the bank, so that sentinels are not lost; seeds of the
    candidate are numbers that no run of the bank used, since the same number would tie the arms together. One that has
    runs already goes on beside the runs of the baseline that it began with.

    Raises:
        PlumblineError: a number that no design has.
    """
    base, own = trainer.method(BASELINE), trainer.method(asked.candidate)
    known = [run for run in bank.of(trainer.group, base, since=asked.bank_since) if run.seed >= asked.first_seed]
    sentinels = frozenset(run.seed for run in known if run.sentinel)
    if asked.plan == "paired":
        seeds = list(islice(_fresh(asked.first_seed + 2 * APART, set()), asked.most))
        theirs, size = seeds, 0
    else:
        start = asked.first_seed + APART
        made = {run.seed for run in bank.of(trainer.group, own) if run.seed >= start}
        theirs = _begun_beside(bank, trainer.group, own, made)
        later = _fresh(asked.first_seed, bank.seeds(trainer.group))
        after_it = sorted(run.seed for run in known if run.seed not in theirs) if theirs else []
        if not theirs:
            theirs = [run.seed for run in known]
            if len(theirs) < asked.bank:
                theirs += islice(later, asked.bank - len(theirs))
            elif _brings_sentinel(bank, trainer.group, base, own):
                theirs.append(next(later))
                sentinels |= {theirs[-1]}
        size = len(theirs)
        if asked.plan == "interleaved":
            theirs += islice(chain(after_it, later), asked.most - 1)
        more = _fresh(start + BLOCK * _place(bank, trainer.group, base, own), {*theirs, *made})
        seeds = sorted(made - {*theirs} | {*islice(more, max(0, asked.most - len(made)))})[: asked.most]
    design = SequentialDesign(
        bank=size,
        most=asked.most,
        alpha=asked.alpha,
        plan=asked.plan,
        first_keep=min(2, asked.most),
        worth=asked.worth,
    )
    terms = _terms(asked, design)
    return terms, schedule(terms, theirs, seeds, sentinels=sentinels)


def beside_next(bank: Bank, group: str, base: str, *, first_seed: int, since: int, least: int) -> int:
    """Count the runs of the baseline that a candidate is compared with which nobody has tried yet."""
    known = sum(run.seed >= first_seed for run in bank.of(group, base, since=since))
    return max(known, least) + (known >= least and _brings_sentinel(bank, group, base, own=""))


def claim(asked: ExperimentQuestion, trainer: Trainer, bank: Bank) -> tuple[ExperimentTerms, RunOrder]:
    """Settle a claim: fresh seeds of both sides, one test, and no bank."""
    base, own = trainer.method(BASELINE), trainer.method(asked.candidate)
    role = f"{CLAIM}:{own}"
    theirs, ours = ([run.seed for run in bank.of(trainer.group, name, role)] for name in (base, own))
    fresh = _fresh(asked.first_seed + 3 * APART, bank.seeds(trainer.group, but=role) | {*theirs, *ours})
    theirs += islice(fresh, max(0, CLAIM_RUNS - len(theirs)))
    ours += islice(fresh, max(0, CLAIM_RUNS - len(ours)))
    design = SequentialDesign(bank=CLAIM_RUNS, most=CLAIM_RUNS, alpha=CLAIM_ALPHA, first_keep=CLAIM_RUNS, worth=None)
    terms = _terms(asked, design, claim=True)
    return terms, schedule(terms, theirs, ours, role=role)


def _terms(asked: ExperimentQuestion, design: SequentialDesign, *, claim: bool = False) -> ExperimentTerms:
    return ExperimentTerms(
        name=asked.name,
        baseline=asked.baseline,
        candidate=asked.candidate,
        metric=asked.metric,
        higher=asked.higher,
        design=design,
        alpha=design.alpha,
        min_gain=asked.min_gain,
        worth=design.worth,
        session=asked.session,
        unit=asked.unit,
        trainer=asked.trainer,
        budget=asked.budget,
        size=asked.size,
        varies=asked.varies,
        scope=asked.scope,
        differs=asked.differs,
        together=asked.together,
        fresh_runs=0 if claim else asked.fresh_runs,
        claim=claim,
    )


def _place(bank: Bank, group: str, base: str, own: str) -> int:
    """How many candidates of a group began before this one: each has seeds of its own.

    Where a change does nothing its runs repeat those of others with their seeds to the last digit: then a lucky seed
    would keep all such changes.
    """
    begun = dict.fromkeys(one.method for one in bank.runs if one.group == group and one.role == LOOP)
    others = [method for method in begun if method != base]
    return others.index(own) if own in others else len(others)


def _brings_sentinel(bank: Bank, group: str, base: str, own: str) -> bool:
    """Whether this candidate brings a sentinel, and has no run yet."""
    tried = {one.method for one in bank.runs if one.group == group and one.role == LOOP} - {base}
    return own not in tried and due(len(tried) + 1)


def _begun_beside(bank: Bank, group: str, own: str, seeds: set[int]) -> list[int]:
    """Seeds of the baseline beside which these runs of a candidate were begun; none if it was not."""
    beside = (
        one.beside
        for one in bank.runs
        if (one.group, one.method, one.role) == (group, own, LOOP) and one.run.seed in seeds
    )
    return list(next(beside, ()))


def _fresh(start: int, taken: set[int]) -> Iterator[int]:
    return (seed for seed in count(start) if seed not in taken)
