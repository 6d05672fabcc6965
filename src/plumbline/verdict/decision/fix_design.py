"""Settles an experiment before its first value is seen: the bank's runs, fresh seeds, the design, the session's level.

A second rule over runs whose values are known is refused, a look that was not announced before them. Who tries eight
runs, reads "undecided" and tries sixteen has looked eight times for which nothing was paid: each such second chance
keeps more changes that do nothing than the level says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import chain, count, islice

from plumbline.core.errors import PlumblineError
from plumbline.stats.sentinel import is_due
from plumbline.stats.sequential import SequentialDesign
from plumbline.stats.sessions import fwer_level
from plumbline.verdict.decision.bank import CLAIM, LOOP, Bank
from plumbline.verdict.decision.loop import RunOrder, Trainer, schedule
from plumbline.verdict.decision.outcome import APART, BASELINE, ExperimentQuestion, ExperimentTerms
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.outcome import Outcome

#: Of a claim: fresh runs of each side, and its one-sided level.
CLAIM_RUNS, CLAIM_ALPHA = 5, 0.025
#: Seeds that each candidate has for itself.
BLOCK = 100

#: Verdicts of runs that were not compared: what is tried again after them is no second look.
_NOT_COMPARED = (Outcome.CRASHED, Outcome.CANNOT_BE_JUDGED)
#: What a rule of looks begins with in the ledger.
_TEST = "group-sequential t"


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
        target_gain_sigmas=asked.target_gain_sigmas,
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
    design = SequentialDesign(
        bank=CLAIM_RUNS, most=CLAIM_RUNS, alpha=CLAIM_ALPHA, first_keep=CLAIM_RUNS, target_gain_sigmas=None
    )
    terms = _terms(asked, design, claim=True)
    return terms, schedule(terms, theirs, ours, role=role)


def _terms(asked: ExperimentQuestion, design: SequentialDesign, *, claim: bool = False) -> ExperimentTerms:
    known = {each.name: getattr(asked, each.name) for each in fields(ExperimentTerms)}
    settled = {"design": design, "alpha": design.alpha, "target_gain_sigmas": design.target_gain_sigmas, "claim": claim}
    return ExperimentTerms(**known | settled | {"fresh_runs": 0 if claim else asked.fresh_runs})


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
    return own not in tried and is_due(len(tried) + 1)


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


def rule(asked: ExperimentQuestion) -> str:
    """Write the rule that decides as a ledger has it: all of it that is settled before the runs."""
    target_gain = "" if asked.target_gain_sigmas is None else f", worth {asked.target_gain_sigmas:g} sigma"
    beyond = f", minimum gain {asked.minimum_gain:g}" if asked.minimum_gain else ""
    of = "" if asked.session == "each" else f", {_session(asked)}"
    return (
        f"{_TEST}, {asked.plan}, {asked.bank} and {asked.most} runs, seeds from {asked.first_seed}{beyond}"
        f"{target_gain} at {asked.alpha:g}{of}"
    )


def _session(asked: ExperimentQuestion) -> str:
    return f"session {asked.session} of {asked.planned_tries} planned"


def last_keep(entry: LedgerEntry, ledger: Ledger) -> int:
    """Count the runs that the bank had when the last candidate of a session `each` was kept before this one.

    A bank that happens to be bad keeps one candidate that does nothing after another. The bank of the next one is
    therefore made anew, by which benchmarks/experiment_rules.md shows what is gained.
    """
    kept = dict[tuple[str, ...], int]()
    for one in ledger.entries:
        if one.identity == entry.identity:
            break
        same = (one.kind, one.baseline, one.metric) == (entry.kind, entry.baseline, entry.metric)
        if not (same and one.verdict and one.test.startswith(_TEST)) or ", session " in one.test:
            continue
        tried = replace(one, verdict="", sentence="", at="").identity
        if one.verdict == Outcome.KEEP:
            kept.pop(tried, None)
            kept[tried] = one.runs
        elif one.verdict == Outcome.CANNOT_BE_JUDGED:  # taken back as a mistake: nothing is compared with it
            kept.pop(tried, None)
    return next(reversed(kept.values()), 0)


def session_level(asked: ExperimentQuestion, entry: LedgerEntry, ledger: Ledger) -> float:
    """Find the level that a candidate gets of its session, from what the ledger has of the session before it.

    A session is every try of one control against one baseline in one metric. What is tried again by the same words
    keeps its place, so that an interrupted try goes on as it began.

    Raises:
        PlumblineError: a number of candidates that was not planned, or another than the session was begun with.
    """
    if asked.session == "each":
        return asked.alpha
    tail = f"at {asked.alpha:g}, {_session(asked)}"
    before = set[tuple[str, ...]]()
    for one in ledger.entries:
        if (one.kind, one.baseline, one.metric) != (entry.kind, entry.baseline, entry.metric):
            continue
        if f", session {asked.session}" not in one.test:
            continue
        if not one.test.endswith(tail):
            begun = one.test[one.test.rindex(" at ") + 1 :]
            raise PlumblineError(
                f"--session {asked.session}: the session against this baseline was begun {begun}; its level, and the "
                f"candidates that were planned for it, stay (here: {tail})"
            )
        if one.is_try and one.identity == entry.identity:
            break
        if one.is_try:
            before.add(one.identity)
    assert asked.planned_tries is not None  # as the question requires
    if len(before) >= asked.planned_tries:
        raise PlumblineError(
            f"--planned-tries {asked.planned_tries}: so many candidates were tried in this session already; "
            "confirm what was kept, or try another baseline, which has a session of its own"
        )
    return fwer_level(asked.planned_tries, alpha=asked.alpha)


def require_announced(entry: LedgerEntry, plan: RunOrder, trainer: Trainer, bank: Bank, ledger: Ledger) -> None:
    """Require that no run of the candidate was made under another rule than the entry's.

    An experiment that was interrupted is continued: its rule is in the ledger already.

    Raises:
        PlumblineError: some were; the sentence says what is allowed instead.
    """
    ours = [one for step, _ in plan.steps for one in step if one[0] != BASELINE]
    announced = any(one.is_try and one.identity == entry.identity for one in ledger.entries)
    if announced or not any(bank.known(trainer.run_id(*one)) for one in ours):
        return
    verdicts = {  # the newest of each rule, which follows its try; a claim has runs of its own
        one.test: one.verdict
        for one in ledger.entries
        if one.test.startswith(_TEST)
        and (one.fingerprint, one.baseline, one.metric) == (entry.fingerprint, entry.baseline, entry.metric)
    }
    others = [test for test, verdict in verdicts.items() if verdict not in _NOT_COMPARED]
    if not others:
        return
    known = f"{others[-1]}: {verdicts[others[-1]] or 'no decision'}"
    fresh = max(bank.seeds(trainer.group)) + 1
    raise PlumblineError(
        f"{entry.name}: its runs were looked at by another rule ({known}); "
        "another rule over values that are known is a look that was not announced, and keeps more for nothing than its "
        f"level says. What is allowed: the same words as then, a new try with fresh seeds (--first-seed {fresh}), or, "
        "of what was kept, plumbline confirm"
    )
