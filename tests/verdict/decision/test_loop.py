"""The loop of an experiment, with arms that are numbers: what is run in which order, what is decided, what survives."""

from __future__ import annotations

import errno
import multiprocessing
import os
import random
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.decision_rules.numbers_trainer import NumbersTrainer, Value
from plumbline.core.errors import PlumblineError
from plumbline.verdict import ledger as ledgers
from plumbline.verdict.decision import bank as banks
from plumbline.verdict.decision import loop
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.decision_page import make_page
from plumbline.verdict.decision.experiment import BASELINE, CRASHED, DIVERGED, ArmRun, Decision, ExperimentQuestion
from plumbline.verdict.decision.fix_design import (
    count_runs_at_last_keep,
    find_session_level,
    fix_claim,
    fix_design,
    require_announced,
    write_rule,
)
from plumbline.verdict.decision.loop import Experiment
from plumbline.verdict.ledger import LedgerEntry

QUESTION = ExperimentQuestion(name="x", baseline="base", candidate="new", metric="loss", higher=False)


def noisy(gain: float) -> Value:
    """Normal noise of sigma 1 around 100, by seed, and a gain of the candidate."""
    return lambda arm, seed: 100 + random.Random(f"{arm}{seed}").gauss(0, 1) - (gain if arm != BASELINE else 0)


def conduct(folder: Path, trainer: NumbersTrainer, question: ExperimentQuestion = QUESTION) -> Decision:
    bank = Bank(folder / "runs.jsonl")
    terms, plan = fix_design(replace(question, candidate=trainer.name), trainer, bank)
    return Experiment(terms=terms, plan=plan, trainer=trainer, bank=bank, tell=lambda line: None).conduct()


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (noisy(8), 0),
        (noisy(-3), 10),
        (noisy(0.2), 11),
        (lambda arm, seed: DIVERGED if seed == 1043 else noisy(8)(arm, seed), 12),
        (lambda arm, seed: CRASHED if arm != BASELINE else noisy(0)(arm, seed), 12),
        (lambda arm, seed: DIVERGED if seed == 44 else noisy(8)(arm, seed), 13),
        (lambda arm, seed: 3.0, 13),
    ],
    ids=["keep", "discard", "undecided", "diverged", "crashed", "a baseline that diverged", "a seed without effect"],
)
def test_every_end_has_its_exit_code_and_sentence(tmp_path: Path, value: Value, code: int) -> None:
    wide = replace(QUESTION, target_gain_sigmas=None) if code == 11 else QUESTION
    decision = conduct(tmp_path, NumbersTrainer(value), wide)
    assert decision.exit_code == code and decision.sentence
    if code < 12:
        assert len(decision.runs) == 5 + decision.looks[-1].k
        assert len(decision.looks) == (8 if code == 11 else decision.looks[-1].k)


def test_no_more_is_run_once_the_baseline_has_lost_a_run(tmp_path: Path) -> None:
    trainer = NumbersTrainer(lambda arm, seed: CRASHED if seed == 43 else 100.0 + seed)
    decision = conduct(tmp_path, trainer)
    assert decision.exit_code == 13 and trainer.made == [(BASELINE, 42), (BASELINE, 43)]
    assert "of 2 runs of `base` 1 crashed" in decision.sentence
    diverged = NumbersTrainer(lambda arm, seed: DIVERGED if seed == 43 else 100.0 + seed)
    (tmp_path / "runs.jsonl").unlink()
    assert conduct(tmp_path, diverged).exit_code == conduct(tmp_path, diverged).exit_code == 13
    assert diverged.made == [(BASELINE, 42), (BASELINE, 43)]  # it is known by then, and nothing else is made


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from(["bank", "interleaved", "paired"]), st.integers(1, 3))
def test_the_order_of_the_runs_depends_on_no_value(
    tmp_path_factory: pytest.TempPathFactory, chance: int, plan: Any, at_once: int
) -> None:
    def any_(arm: str, seed: int) -> float:
        return random.Random(f"{chance}{arm}{seed}").gauss(0, 1)

    question = replace(QUESTION, plan=plan, most=3)
    orders = []
    for value in (any_, noisy(0.7)):
        trainer = NumbersTrainer(value, at_once=at_once)
        with patch.object(loop, "estimate", lambda *_: None):  # which takes its time, and makes no runs
            conduct(tmp_path_factory.mktemp("order"), trainer, question)
        orders.append(trainer.made)
    shorter, longer = sorted(orders, key=len)
    assert longer[: len(shorter)] == shorter and len(set(longer)) == len(longer)


def test_seeds_of_a_candidate_are_none_of_the_banks(tmp_path: Path) -> None:
    trainer = NumbersTrainer(noisy(0.7))
    conduct(tmp_path, trainer)
    theirs, ours = ({seed for arm, seed in trainer.made if (arm == BASELINE) == base} for base in (True, False))
    assert len(theirs) == 5 and ours and not theirs & ours
    pairs = NumbersTrainer(noisy(0.7), "other")
    conduct(tmp_path / "pairs", pairs, replace(QUESTION, plan="paired", most=3))
    assert [seed for arm, seed in pairs.made if arm == BASELINE] == [s for arm, s in pairs.made if arm != BASELINE]


def test_a_claim_takes_seeds_that_nothing_else_had_and_one_test(tmp_path: Path) -> None:
    trainer, bank = NumbersTrainer(noisy(8)), Bank(tmp_path / "runs.jsonl")
    conduct(tmp_path, trainer)
    before, bank = {seed for _, seed in trainer.made}, Bank(tmp_path / "runs.jsonl")
    terms, plan = fix_claim(replace(QUESTION, candidate="new"), trainer, bank)
    decision = Experiment(terms=terms, plan=plan, trainer=trainer, bank=bank, tell=print).conduct()
    assert len(decision.runs) == 10 and len({run.seed for run in decision.runs}) == 10
    assert not {run.seed for run in decision.runs} & before
    assert decision.exit_code == 0 and len(decision.looks) == 1 and decision.p is not None and decision.p < 0.025
    worse, messages = NumbersTrainer(noisy(-8), "worse"), list[str]()
    terms, plan = fix_claim(replace(QUESTION, candidate="worse"), worse, bank)
    decision = Experiment(terms=terms, plan=plan, trainer=worse, bank=bank, tell=messages.append).conduct()
    text = messages[-1] + make_page(decision).markdown("picture.svg")
    assert decision.exit_code == 10 and "discarded" in messages[-1] and "not decided" not in text
    again = NumbersTrainer(noisy(0.7), "another")
    conduct(tmp_path, again)
    assert not {seed for _, seed in again.made} & {run.seed for run in decision.runs}, "a claim's runs are for it alone"


class Hasty(NumbersTrainer):
    """Three runs side by side, of which the one that was requested last ends first."""

    at_once = 3

    def run(self, requests: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
        yield from super().run(requests[::-1])


def _die(folder: Path, after: int, question: ExperimentQuestion, trainer: type[NumbersTrainer]) -> None:
    def value(arm: str, seed: int) -> float:
        nonlocal after
        after -= 1
        if after < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return float(noisy(1)(arm, seed))

    conduct(folder, trainer(value), question)


@pytest.mark.parametrize(
    ("after", "plan", "trainer"),
    [(0, "bank", NumbersTrainer), (6, "bank", NumbersTrainer), (2, "bank", Hasty), (9, "interleaved", NumbersTrainer)],
)
def test_killed_nothing_is_run_twice(tmp_path: Path, after: int, plan: Any, trainer: type[NumbersTrainer]) -> None:
    """What is resumed is what was begun, whatever else was tried meanwhile."""
    question = replace(QUESTION, plan=plan, target_gain_sigmas=None)
    process = multiprocessing.get_context("fork").Process(target=_die, args=(tmp_path, after, question, trainer))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with open(tmp_path / "runs.jsonl", "ab") as file:
        file.write(b'{"schema":1,"run":{"arm":"new","se')  # as a power cut leaves it
    meanwhile = trainer(noisy(8), "meanwhile")
    if after > 5:
        conduct(tmp_path, meanwhile, question)
    resumed, whole = trainer(noisy(1)), trainer(noisy(1))
    decision, uninterrupted = conduct(tmp_path, resumed, question), conduct(tmp_path / "whole", whole, question)
    assert (decision.looks, decision.sentence) == (uninterrupted.looks, uninterrupted.sentence)
    again = {pair for pair in resumed.made if pair in whole.made[:after]}
    assert not again, "a run was made twice"


def test_a_bank_that_is_held_names_who_holds_it(tmp_path: Path) -> None:
    with banks.hold(tmp_path, "plumbline try softpick"):
        message = rf"is held by process {os.getpid()} on .* \(plumbline try softpick\), since"
        with pytest.raises(PlumblineError, match=message), banks.hold(tmp_path, "plumbline try qknorm"):
            pass
    with banks.hold(tmp_path, "plumbline try qknorm"):
        pass


def test_a_machine_at_fault_is_an_error_and_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(arm: str, seed: int) -> float:
        if seed == 1043:
            raise PlumblineError("no disk space")
        return float(noisy(1)(arm, seed))

    with pytest.raises(PlumblineError, match="no disk space"):
        conduct(tmp_path, NumbersTrainer(full))
    before = (tmp_path / "runs.jsonl").read_bytes()

    def fails(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(banks.os, "fsync", fails)
    with pytest.raises(PlumblineError, match="No space left"):
        conduct(tmp_path, NumbersTrainer(noisy(1)))
    assert (tmp_path / "runs.jsonl").read_bytes() == before, "half a line is worse than none"


def test_a_crash_is_tried_again_and_a_divergence_is_not(tmp_path: Path) -> None:
    for outcome, again in ((CRASHED, 0), (DIVERGED, 12)):
        name = f"of {outcome}"
        broken = NumbersTrainer(lambda arm, seed, o=outcome: noisy(8)(arm, seed) if arm == BASELINE else o, name)
        assert conduct(tmp_path, broken).exit_code == 12
        assert conduct(tmp_path, NumbersTrainer(noisy(8), name)).exit_code == again


def test_means_do_not_cross_machines(tmp_path: Path) -> None:
    """Whatever was tried before, and however wide it spread: a null of wider arms would be kept by the past's sigma."""
    alone = conduct(tmp_path / "alone", NumbersTrainer(noisy(1), "other"))
    conduct(tmp_path, NumbersTrainer(lambda arm, seed: noisy(9)(arm, seed) / (1 if arm == BASELINE else 30)))
    other = NumbersTrainer(lambda arm, seed: noisy(1)(arm, seed - 100 * (arm != BASELINE)), "other")
    after = conduct(tmp_path, other)  # the next candidate has the next hundred of seeds
    assert [look.t for look in after.looks] == [look.t for look in alone.looks] and after.sentence == alone.sentence
    assert all(arm != BASELINE for arm, _ in other.made), "the bank is there"
    elsewhere = conduct(tmp_path, NumbersTrainer(noisy(8), "elsewhere", machine="another"))
    assert elsewhere.exit_code == 13 and "--first-seed" in elsewhere.sentence


def test_another_rule_over_runs_that_were_looked_at_is_refused(tmp_path: Path) -> None:
    """After "undecided" more runs are a look that was not announced; which of them are allowed is stated."""
    rule = replace(QUESTION, target_gain_sigmas=None)
    trainer = NumbersTrainer(noisy(0.2))
    assert conduct(tmp_path, trainer, rule).exit_code == 11
    bank, ledger = Bank(tmp_path / "runs.jsonl"), tmp_path / "ledger.jsonl"

    def entry(question: ExperimentQuestion) -> LedgerEntry:
        fields = {"kind": "try", "name": "x", "fingerprint": "f", "baseline": "base", "metric": "loss"}
        return LedgerEntry(**fields, test=write_rule(question))

    def list_seeds(question: ExperimentQuestion) -> set[int]:
        plan = fix_design(question, trainer, bank)[1]
        require_announced(entry(question), plan, trainer, bank, ledgers.read(ledger))
        return {seed for step, _ in plan.steps for _, seed in step}

    ledgers.append(ledger, [entry(rule), replace(entry(rule), verdict="undecided", sentence="s")])
    list_seeds(rule)
    interleaved = replace(rule, plan="interleaved")
    for other in (replace(rule, most=16), replace(rule, alpha=0.2), replace(rule, first_seed=43), interleaved):
        with pytest.raises(PlumblineError, match=r"5 and 8 runs, .*: undecided\).*--first-seed 1050\), or, of"):
            list_seeds(other)
    assert not list_seeds(replace(rule, most=16, first_seed=1050)) & {seed for _, seed in trainer.made}
    ledgers.append(ledger, [replace(entry(rule), verdict="crashed", sentence="s")])
    list_seeds(replace(rule, most=16))


def test_a_session_has_its_level_from_the_ledger(tmp_path: Path) -> None:
    """A plan is not made larger or smaller; the session that an earlier version called `fdr` is none of today's."""
    ledger, planned = tmp_path / "ledger.jsonl", replace(QUESTION, session="fwer", planned_tries=2)
    fields = {"kind": "try", "name": "x", "baseline": "base", "metric": "loss"}
    past = LedgerEntry(**fields, fingerprint="old", test=f"{write_rule(QUESTION)}, session fdr")
    ledgers.append(ledger, [past, replace(past, verdict="keep", sentence="s")])

    def level(candidate: str, question: ExperimentQuestion) -> float:
        entry = LedgerEntry(**fields, fingerprint=candidate, test=write_rule(question))
        session_level = find_session_level(question, entry, ledgers.read(ledger))
        ledgers.append(ledger, [entry])
        return session_level

    assert [level(candidate, planned) for candidate in "abab"] == [0.025] * 4, "what is continued keeps its place"
    with pytest.raises(PlumblineError, match="--planned-tries 2: so many"):
        level("c", planned)
    for other in (replace(planned, planned_tries=9), replace(planned, alpha=0.2)):
        with pytest.raises(PlumblineError, match=r"was begun at 0\.05, session fwer of 2 planned"):
            level("d", other)
    assert level("e", QUESTION) == 0.05


def test_after_a_keep_the_bank_is_made_anew(tmp_path: Path) -> None:
    """A bank that is bad by chance keeps one candidate that does nothing after another."""
    fields = {"kind": "try", "baseline": "base", "metric": "loss", "test": write_rule(QUESTION)}
    entry, ledger = LedgerEntry(**fields, name="new", fingerprint="b"), tmp_path / "ledger.jsonl"
    keep = LedgerEntry(**fields, name="x", fingerprint="a", verdict="keep", sentence="s", runs=8)
    assert count_runs_at_last_keep(entry, ledgers.append(ledger, [replace(keep, verdict="discard")])) == 0
    since = count_runs_at_last_keep(entry, ledgers.append(ledger, [keep, entry]))
    assert since == 8
    assert count_runs_at_last_keep(entry, ledgers.append(ledger, [replace(keep, name="z", runs=9)])) == since
    with patch.object(banks.process_record, "now", lambda: "2999-01-01T00:00:00Z"):  # a clock that then steps back
        assert len(conduct(tmp_path, NumbersTrainer(noisy(8), "x")).runs) == since
    after = NumbersTrainer(noisy(8))
    decision = conduct(tmp_path, after, replace(QUESTION, bank_since=since))
    assert [seed for arm, seed in after.made if arm == BASELINE] == [47, 48, 49, 50, 51]
    assert decision.terms.design.bank == 5 and decision.looks[-1].df == 4 + decision.looks[-1].k - 1


def test_every_third_candidate_brings_sentinel_that_joins_bank(tmp_path: Path) -> None:
    for number in range(2):
        assert not any(run.sentinel for run in conduct(tmp_path, NumbersTrainer(noisy(8), f"c{number}")).runs)
    third = conduct(tmp_path, NumbersTrainer(noisy(8), "c2"))
    assert [run.seed for run in third.runs if run.sentinel] == [47] and third.terms.design.bank == 6


def test_a_claim_alternates_its_arms_also_where_it_goes_on(tmp_path: Path) -> None:
    def claim(trainer: NumbersTrainer) -> list[str]:
        bank = Bank(tmp_path / "runs.jsonl")
        terms, plan = fix_claim(replace(QUESTION, candidate="new"), trainer, bank)
        Experiment(terms=terms, plan=plan, trainer=trainer, bank=bank, tell=lambda line: None).conduct()
        return [arm for arm, _ in trainer.made]

    class Stopped(NumbersTrainer):
        def run(self, requests: Sequence[tuple[str, int]]) -> Iterator[ArmRun]:
            yield from super().run(requests[:3])
            raise PlumblineError("the disk is full")

    first, rest = Stopped(noisy(8)), NumbersTrainer(noisy(8), at_once=2)
    with pytest.raises(PlumblineError, match="full"):
        claim(first)
    assert [arm for arm, _ in first.made] == [BASELINE, "new", BASELINE]
    assert claim(rest) == ["new", BASELINE] * 3 + ["new"]


def test_candidates_share_no_seed(tmp_path: Path) -> None:
    seeds = []
    for name in ("one", "two", "three"):
        trainer = NumbersTrainer(noisy(-3), name)
        conduct(tmp_path, trainer)
        seeds += [seed for arm, seed in trainer.made if arm != BASELINE]
    assert len(set(seeds)) == len(seeds) >= 3


def test_equal_pairs_are_not_a_seed_without_effect(tmp_path: Path) -> None:
    same = NumbersTrainer(lambda arm, seed: random.Random(seed).gauss(0, 1))
    decision = conduct(tmp_path, same, replace(QUESTION, plan="paired"))
    assert decision.verdict == "cannot be judged" and "same at every seed" in decision.sentence
