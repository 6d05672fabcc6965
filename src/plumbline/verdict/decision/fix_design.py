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
from plumbline.verdict.decision.as_good_as import FUTILITY, write_margin_rule
from plumbline.verdict.decision.bank import CLAIM, LOOP, Bank
from plumbline.verdict.decision.experiment import APART, BASELINE, ExperimentQuestion, ExperimentTerms
from plumbline.verdict.decision.loop import RunOrder, Trainer, schedule
from plumbline.verdict.guard_limit import write_guards
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.outcome import Outcome

#: Of a claim: fresh runs of each side, and its one-sided level.
CLAIM_RUNS, CLAIM_ALPHA = 5, 0.025
#: Seeds that each candidate has for itself.
BLOCK = 100

#: Verdicts of runs that were not compared: what is tried again after them is not a second look.
_NOT_COMPARED = (Outcome.CRASHED, Outcome.CANNOT_BE_JUDGED)
#: What a rule of looks begins with in the ledger.
_TEST = "group-sequential t"


def fix_design(question: ExperimentQuestion, trainer: Trainer, bank: Bank) -> tuple[ExperimentTerms, RunOrder]:
    """Fix the terms and the order of the runs.

    All runs of the baseline since the last keep count as the bank, so that sentinels are not lost; seeds of the
    candidate are numbers that no run of the bank used, since the same number would tie the arms together. One that has
    runs already goes on next to the runs of the baseline that it began with.

    Raises:
        PlumblineError: a number that no design has.
    """
    base, candidate = trainer.method(BASELINE), trainer.method(question.candidate)
    baseline_runs = [
        run for run in bank.list_runs(trainer.group, base, since=question.bank_since) if run.seed >= question.first_seed
    ]
    sentinels = frozenset(run.seed for run in baseline_runs if run.sentinel)
    if question.plan == "paired":
        seeds = list(islice(_walk_unused_seeds(question.first_seed + 2 * APART, set()), question.most))
        theirs, size = seeds, 0
    else:
        start = question.first_seed + APART
        own_seeds = {run.seed for run in bank.list_runs(trainer.group, candidate) if run.seed >= start}
        theirs = _find_baseline_seeds(bank, trainer.group, candidate, own_seeds)
        later_seeds = _walk_unused_seeds(question.first_seed, bank.list_seeds(trainer.group))
        after_it = sorted(run.seed for run in baseline_runs if run.seed not in theirs) if theirs else []
        if not theirs:
            theirs = [run.seed for run in baseline_runs]
            if len(theirs) < question.bank:
                theirs += islice(later_seeds, question.bank - len(theirs))
            elif _brings_sentinel(bank, trainer.group, base, candidate):
                theirs.append(next(later_seeds))
                sentinels |= {theirs[-1]}
        size = len(theirs)
        if question.plan == "interleaved":
            theirs += islice(chain(after_it, later_seeds), question.most - 1)
        new_seeds = _walk_unused_seeds(
            start + BLOCK * _count_earlier_candidates(bank, trainer.group, base, candidate), {*theirs, *own_seeds}
        )
        seeds = sorted(own_seeds - {*theirs} | {*islice(new_seeds, max(0, question.most - len(own_seeds)))})[
            : question.most
        ]
    design = SequentialDesign(
        bank=size,
        most=question.most,
        alpha=question.alpha,
        plan=question.plan,
        first_keep=min(2, question.most),
        target_gain_sigmas=question.target_gain_sigmas,
        # Where fresh runs follow a keep, they answer for what the looks keep of a candidate that spreads more widely.
        allow_wider=not (question.fresh_runs or question.as_good_as or question.plan == "paired"),
        **({"futility": FUTILITY} if question.as_good_as else {}),
    )
    terms = _make_terms(question, design)
    return terms, schedule(terms, theirs, seeds, sentinels=sentinels)


def count_next_baseline_runs(bank: Bank, group: str, base: str, *, first_seed: int, since: int, least: int) -> int:
    """Count the runs of the baseline that a candidate is compared with which nobody has tried yet."""
    runs = sum(run.seed >= first_seed for run in bank.list_runs(group, base, since=since))
    return max(runs, least) + (runs >= least and _brings_sentinel(bank, group, base, candidate=""))


def fix_claim(question: ExperimentQuestion, trainer: Trainer, bank: Bank) -> tuple[ExperimentTerms, RunOrder]:
    """Settle a claim: fresh seeds of both sides, one test, and no bank."""
    base, candidate = trainer.method(BASELINE), trainer.method(question.candidate)
    role = f"{CLAIM}:{candidate}"
    theirs, ours = ([run.seed for run in bank.list_runs(trainer.group, name, role)] for name in (base, candidate))
    fresh = _walk_unused_seeds(
        question.first_seed + 3 * APART, bank.list_seeds(trainer.group, except_role=role) | {*theirs, *ours}
    )
    runs = max(CLAIM_RUNS, question.bank) if question.as_good_as else CLAIM_RUNS
    theirs += islice(fresh, max(0, runs - len(theirs)))
    ours += islice(fresh, max(0, runs - len(ours)))
    design = SequentialDesign(bank=runs, most=runs, alpha=CLAIM_ALPHA, first_keep=runs, target_gain_sigmas=None)
    terms = _make_terms(question, design, claim=True)
    return terms, schedule(terms, theirs, ours, role=role)


def _make_terms(question: ExperimentQuestion, design: SequentialDesign, *, claim: bool = False) -> ExperimentTerms:
    values = {each.name: getattr(question, each.name) for each in fields(ExperimentTerms)}
    settled = {"design": design, "alpha": design.alpha, "target_gain_sigmas": design.target_gain_sigmas, "claim": claim}
    return ExperimentTerms(**values | settled | {"fresh_runs": 0 if claim else question.fresh_runs})


def _count_earlier_candidates(bank: Bank, group: str, base: str, candidate: str) -> int:
    """How many candidates of a group began before this one: each has seeds of its own.

    Where a change does nothing its runs repeat those of others with their seeds to the last digit: then a lucky seed
    would keep all such changes.
    """
    methods = dict.fromkeys(banked.method for banked in bank.runs if banked.group == group and banked.role == LOOP)
    candidates = [method for method in methods if method != base]
    return candidates.index(candidate) if candidate in candidates else len(candidates)


def _brings_sentinel(bank: Bank, group: str, base: str, candidate: str) -> bool:
    """Whether this candidate brings a sentinel, and has no run yet."""
    tried = {banked.method for banked in bank.runs if banked.group == group and banked.role == LOOP} - {base}
    return candidate not in tried and is_due(len(tried) + 1)


def _find_baseline_seeds(bank: Bank, group: str, candidate: str, seeds: set[int]) -> list[int]:
    """Seeds of the baseline beside which these runs of a candidate were begun; none if it was not."""
    baseline_seeds = (
        banked.beside
        for banked in bank.runs
        if (banked.group, banked.method, banked.role) == (group, candidate, LOOP) and banked.run.seed in seeds
    )
    return list(next(baseline_seeds, ()))


def _walk_unused_seeds(start: int, used: set[int]) -> Iterator[int]:
    return (seed for seed in count(start) if seed not in used)


def write_rule(question: ExperimentQuestion) -> str:
    """Write the rule that decides as a ledger has it: all of it that is settled before the runs."""
    target_gain = "" if question.target_gain_sigmas is None else f", worth {question.target_gain_sigmas:g} sigma"
    minimum = f", minimum gain {question.minimum_gain:g}" if question.minimum_gain > 0 else write_margin_rule(question)
    session = "" if question.session == "each" else f", {_describe_session(question)}"
    guards = describe_guards(question)
    return (
        f"{_TEST}, {question.plan}, {question.bank} and {question.most} runs, seeds from {question.first_seed}{minimum}"
        f"{target_gain}{guards} at {question.alpha:g}{session}"
    )


def write_claim_rule(question: ExperimentQuestion) -> str:
    """Write the rule of a claim as a ledger has it."""
    return f"t of a claim{describe_guards(question)} at {CLAIM_ALPHA:g}"


def describe_guards(question: ExperimentQuestion) -> str:
    """State the guards of a question as its rule has them; empty if it has none."""
    return f", guards {write_guards(question.guards)}" if question.guards else ""


def _describe_session(question: ExperimentQuestion) -> str:
    return f"session {question.session} of {question.planned_tries} planned"


def count_runs_at_last_keep(entry: LedgerEntry, ledger: Ledger) -> int:
    """Count the runs that the bank had when the last candidate of a session `each` was kept before this one.

    A bank that happens to be bad keeps one candidate that does nothing after another. The bank of the next one is
    therefore made anew, by which benchmarks/experiment_rules.md shows what is gained.
    """
    runs_at_keep = dict[tuple[str, ...], int]()
    for earlier in ledger.entries:
        if earlier.identity == entry.identity:
            break
        is_same_kind = (earlier.kind, earlier.baseline, earlier.metric) == (entry.kind, entry.baseline, entry.metric)
        if not (is_same_kind and earlier.verdict and earlier.test.startswith(_TEST)) or ", session " in earlier.test:
            continue
        tried = replace(earlier, verdict="", sentence="", at="").identity
        if Outcome(earlier.verdict).is_kept:
            runs_at_keep.pop(tried, None)
            runs_at_keep[tried] = earlier.runs
        elif earlier.verdict == Outcome.CANNOT_BE_JUDGED:  # taken back as a mistake: nothing is compared with it
            runs_at_keep.pop(tried, None)
    return next(reversed(runs_at_keep.values()), 0)


def find_session_level(question: ExperimentQuestion, entry: LedgerEntry, ledger: Ledger) -> float:
    """Find the level that a candidate gets of its session, from what the ledger has of the session before it.

    A session is every try of one control against one baseline in one metric. What is tried again by the same words
    keeps its place, so that an interrupted try goes on as it began.

    Raises:
        PlumblineError: a number of candidates that was not planned, or another than the session was begun with.
    """
    if question.session == "each":
        return question.alpha
    tail = f"at {question.alpha:g}, {_describe_session(question)}"
    earlier_tries = set[tuple[str, ...]]()
    for earlier in ledger.entries:
        if (earlier.kind, earlier.baseline, earlier.metric) != (entry.kind, entry.baseline, entry.metric):
            continue
        if f", session {question.session}" not in earlier.test:
            continue
        if not earlier.test.endswith(tail):
            rule = earlier.test[earlier.test.rindex(" at ") + 1 :]
            raise PlumblineError(
                f"--session {question.session}: the session against this baseline was begun {rule}; its level, and "
                f"the candidates that were planned for it, stay (here: {tail})"
            )
        if earlier.is_try and earlier.identity == entry.identity:
            break
        if earlier.is_try:
            earlier_tries.add(earlier.identity)
    assert question.planned_tries is not None  # as the question requires
    if len(earlier_tries) >= question.planned_tries:
        raise PlumblineError(
            f"--planned-tries {question.planned_tries}: so many candidates were tried in this session already; "
            "confirm what was kept, or try another baseline, which has a session of its own"
        )
    return fwer_level(question.planned_tries, alpha=question.alpha)


def require_announced(entry: LedgerEntry, plan: RunOrder, trainer: Trainer, bank: Bank, ledger: Ledger) -> None:
    """Require that no run of the candidate was made under another rule than the entry's.

    An experiment that was interrupted is continued: its rule is in the ledger already.

    Raises:
        PlumblineError: some were; the sentence says what is allowed instead.
    """
    ours = [pair for step, _ in plan.steps for pair in step if pair[0] != BASELINE]
    announced = any(earlier.is_try and earlier.identity == entry.identity for earlier in ledger.entries)
    if announced or not any(bank.find_run(trainer.run_id(*pair)) for pair in ours):
        return
    verdicts = {  # the newest of each rule, which follows its try; a claim has runs of its own
        earlier.test: earlier.verdict
        for earlier in ledger.entries
        if earlier.test.startswith(_TEST)
        and (earlier.fingerprint, earlier.baseline, earlier.metric) == (entry.fingerprint, entry.baseline, entry.metric)
    }
    other_tests = [test for test, verdict in verdicts.items() if verdict not in _NOT_COMPARED]
    if not other_tests:
        return
    other_rule = f"{other_tests[-1]}: {verdicts[other_tests[-1]] or 'no decision'}"
    fresh = max(bank.list_seeds(trainer.group)) + 1
    raise PlumblineError(
        f"{entry.name}: its runs were looked at by another rule ({other_rule}); "
        "another rule over values that are known is a look that was not announced, and keeps more for nothing than its "
        f"level says. What is allowed: the same words as then, a new try with fresh seeds (--first-seed {fresh}), or, "
        "of what was kept, plumbline confirm"
    )
