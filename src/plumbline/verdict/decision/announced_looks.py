"""Refuses a second rule over runs whose values are known: a look that was not announced before them.

Who tries eight runs, reads "undecided" and tries sixteen has looked eight times for which nothing was paid: each such
second chance keeps more changes that do nothing than the level says.
"""

from __future__ import annotations

from dataclasses import replace

from plumbline.core.errors import PlumblineError
from plumbline.stats.sessions import fwer_level
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.experiment_question import ExperimentQuestion
from plumbline.verdict.decision.loop import RunOrder, Trainer
from plumbline.verdict.decision.outcome import BASELINE
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.outcome import Outcome

#: Verdicts of runs that were not compared: what is tried again after them is no second look.
_NOT_COMPARED = (Outcome.CRASHED, Outcome.CANNOT_BE_JUDGED)
#: What a rule of looks begins with in the ledger.
_TEST = "group-sequential t"


def rule(asked: ExperimentQuestion) -> str:
    """Write the rule that decides as a ledger has it: all of it that is settled before the runs."""
    worth = "" if asked.worth is None else f", worth {asked.worth:g} sigma"
    beyond = f", minimum gain {asked.min_gain:g}" if asked.min_gain else ""
    of = "" if asked.session == "each" else f", {_session(asked)}"
    return (
        f"{_TEST}, {asked.plan}, {asked.bank} and {asked.most} runs, seeds from {asked.first_seed}{beyond}"
        f"{worth} at {asked.alpha:g}{of}"
    )


def _session(asked: ExperimentQuestion) -> str:
    return f"session {asked.session} of {asked.planned} planned"


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
    assert asked.planned is not None  # as the question requires
    if len(before) >= asked.planned:
        raise PlumblineError(
            f"--planned-candidates {asked.planned}: so many candidates were tried in this session already; "
            "confirm what was kept, or try another baseline, which has a session of its own"
        )
    return fwer_level(asked.planned, alpha=asked.alpha)


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
