"""Whether a candidate is as good within a margin: settled beforehand; equal values decide, else a test."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.decision_rules.numbers_trainer import NumbersTrainer, Value
from plumbline.core.errors import PlumblineError
from plumbline.stats.sequential import SequentialDesign
from plumbline.stats.sequential.boundary import integrate_paths
from plumbline.stats.sequential.simulation import find_ends, simulate_paths
from plumbline.verdict.decision.as_good_as import (
    FUTILITY,
    compute_chance,
    count_fresh_runs,
    decide_by_equal_seeds,
    describe_chance,
    explain_too_few_runs,
    parse_margin,
    propose_runs,
    settle_margin,
)
from plumbline.verdict.decision.bank import Bank
from plumbline.verdict.decision.decision_page import make_page
from plumbline.verdict.decision.experiment import BASELINE, ExperimentQuestion
from plumbline.verdict.decision.fix_design import fix_design, write_rule
from plumbline.verdict.decision.loop import Experiment
from plumbline.verdict.ledger import Ledger, LedgerEntry
from plumbline.verdict.outcome import Outcome
from plumbline.verdict.seed_values import compute_accident

QUESTION = ExperimentQuestion(
    name="x", baseline="base", candidate="new", metric="loss", higher=False, as_good_as="2 sigma", bank=12, most=12
)
NO_LEDGER = Ledger(Path("memory"), (), ())


def noisy(gain: float) -> Value:
    """Normal noise of sigma 1 around 100, by arm and seed, and a gain of the candidate."""
    return lambda arm, seed: 100 + random.Random(f"{arm}{seed}").gauss(0, 1) - (gain if arm != BASELINE else 0)


def experiment(folder: Path, value: Value) -> tuple[Experiment, NumbersTrainer]:
    """The bank is made, the margin settled by it, and no run of the candidate made yet."""
    trainer, bank = NumbersTrainer(value), Bank(folder / "runs.jsonl")

    def make(question: ExperimentQuestion) -> Experiment:
        terms, plan = fix_design(question, trainer, bank)
        return Experiment(terms=terms, plan=plan, trainer=trainer, bank=bank, tell=lambda line: None)

    first = make(QUESTION)
    first.take_bank()
    values = first.list_bank()
    assert values is not None and trainer.made == [(BASELINE, seed) for seed in range(42, 54)]
    return make(settle_margin(QUESTION, values, NO_LEDGER)), trainer


@pytest.mark.parametrize(("gain", "outcome"), [(0.0, Outcome.AS_GOOD), (3.0, Outcome.AS_GOOD), (-6.0, Outcome.DISCARD)])
def test_a_null_is_as_good_and_a_loss_beyond_the_margin_is_not(tmp_path: Path, gain: float, outcome: Outcome) -> None:
    tried, _ = experiment(tmp_path, noisy(gain))
    decision = tried.conduct()
    assert decision.verdict == outcome and decision.exit_code == (0 if outcome.is_kept else 10)
    margin = 2 * statistics.stdev(decision.baseline_values)
    assert decision.terms.minimum_gain == pytest.approx(-margin, rel=1e-5)
    assert decision.estimate is not None
    if outcome.is_kept:
        assert "is as good as `base` in `loss` by a margin of" in decision.sentence
        assert decision.estimate.low > -margin
    else:
        assert "worse than `base` in `loss` by more" in decision.sentence
        assert decision.estimate.high < -margin
    assert "(2 sigma)" in make_page(decision).sections["What decides"]


def test_chances_are_those_of_simulated_tries() -> None:
    n, margin, rng = 12, 2.0, np.random.default_rng(3)
    design = SequentialDesign(bank=n, most=n, target_gain_sigmas=margin, futility=FUTILITY)
    base_WB, own_WK = rng.standard_normal((4000, n)), rng.standard_normal((4000, n))
    margin_W = margin * base_WB.std(axis=1, ddof=1)
    shares = []
    for gain in (0.0, -margin, -2 * margin):
        t_WK = simulate_paths(design, base_WB, own_WK + gain + margin_W[:, None])
        shares.append(find_ends(integrate_paths(design)[0], t_WK)[0].mean())
    assert compute_chance(n, n, 0.05, margin) - 0.03 < shares[0] < compute_chance(n, n, 0.05, margin)
    assert shares[1] == pytest.approx(0.05, abs=0.015) and shares[2] < 0.001


def test_the_proposed_runs_accept_nearly_every_null() -> None:
    runs = propose_runs(0.05, 2.0)
    assert runs is not None and compute_chance(runs, runs, 0.05, 2.0) == pytest.approx(0.98, abs=0.006)
    assert propose_runs(0.05, 0.1) is None and "a wider margin" in describe_chance(5, 8, 0.05, 0.1)
    few = replace(QUESTION, bank=5, most=4, target_gain_sigmas=2.0)
    assert f"--baseline-runs {runs} --max-runs {runs}" in explain_too_few_runs(few)
    assert not explain_too_few_runs(replace(few, sizes_named=True))
    assert not explain_too_few_runs(replace(few, bank=runs, most=runs))
    assert 5 < count_fresh_runs(36, 1.0) < 36 and count_fresh_runs(5, 0.5) == 5


def test_the_margin_is_that_of_the_first_runs() -> None:
    bank = [random.Random(seed).gauss(0, 1) for seed in range(12)]
    settled = settle_margin(QUESTION, bank, NO_LEDGER)
    assert settle_margin(QUESTION, [*bank, 99.0], NO_LEDGER) == settled
    in_units = settle_margin(replace(QUESTION, as_good_as="0.5"), bank, NO_LEDGER)
    assert in_units.minimum_gain == -0.5
    assert in_units.target_gain_sigmas == pytest.approx(0.5 / statistics.stdev(bank), rel=1e-5)
    entry = LedgerEntry(kind="try", name="x", fingerprint="f", baseline="b", metric="loss", test=write_rule(settled))
    again = settle_margin(QUESTION, [2 * value for value in bank], Ledger(Path("memory"), (entry,), ("h",)))
    assert again == settled and write_rule(again) == entry.test
    with pytest.raises(PlumblineError, match="seed reach the trainer"):
        settle_margin(QUESTION, [1.0] * 12, NO_LEDGER)


@pytest.mark.parametrize("text", ["", "0", "-1", "1 sd", "nan", "inf", "sigma", "1e999"])
def test_what_is_no_margin_is_refused(text: str) -> None:
    with pytest.raises(PlumblineError, match="--as-good-as"):
        parse_margin(text)


def test_equal_values_at_equal_seeds_decide(tmp_path: Path) -> None:
    tried, trainer = experiment(tmp_path, lambda arm, seed: random.Random(seed).gauss(100, 1))
    decision = decide_by_equal_seeds(tried)
    assert decision is not None and decision.verdict == Outcome.AS_GOOD and not decision.looks
    assert decision.equal_seeds == (42, 43, 44, 45, 46) == tuple(seed for _, seed in trainer.made[12:])
    assert "to all digits" in decision.sentence
    assert [run.seed for run in tried.bank.list_runs(trainer.group, "new")] == [42, 43, 44, 45, 46]


def test_a_value_that_differs_ends_the_comparison(tmp_path: Path) -> None:
    tried, trainer = experiment(tmp_path, lambda arm, seed: seed + (0.1 if arm != BASELINE and seed == 44 else 0.0123))
    assert decide_by_equal_seeds(tried) is None
    assert trainer.made[12:] == [("new", 42), ("new", 43), ("new", 44)]
    assert not tried.bank.list_runs(trainer.group, "new")
    decision = tried.conduct()
    assert not {42, 43, 44} & {run.seed for run in decision.runs if run.arm != BASELINE}


def test_equality_by_few_digits_is_no_evidence(tmp_path: Path) -> None:
    tried, trainer = experiment(tmp_path, lambda arm, seed: 0.8 + seed / 100)
    assert decide_by_equal_seeds(tried) is None and len(trainer.made) == 12
    assert compute_accident([0.81, 0.82, 0.81]) == 1.0
    assert compute_accident([0.812345, 0.823456, 0.811111]) < 1e-9
