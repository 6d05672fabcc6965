"""Every claim is reproduced where the paper is right, and not where exactly it is false."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from plumbline.results.claims.claim_registry import ClaimChecks
from plumbline.results.claims.claim_verdicts import judge_claims
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.studies.query_free import theorem_checks
from plumbline.studies.query_free.claims import CHECKS, Evidence, theorems
from plumbline.studies.query_free.run_values import CONFIGURATIONS
from plumbline.studies.query_free.theory import query_elimination
from plumbline.studies.query_free.theory.theorem_check import TheoremCheck
from tests.studies.query_free.runs_with_false_claims import MUTANTS, OF_SPECS, REVERSED, TRANSFERS, another, losses
from tests.studies.query_free.synthetic_runs import (
    PUBLISHED,
    Facts,
    Transfer,
    as_the_document_says,
    load_frames,
    load_right,
    load_where,
    study_at,
    write_runs,
    write_transfer,
)

CLAIMS = PUBLISHED.claims()

#: Claims about the literature.
UNTESTED = {"albert_18x", "skipless_5x"}

#: Printed statements that cannot be so: the squares of singular values spread over [0, 4], and the largest is near 1;
#: one of three equal counts is 1.85 M more than the others.
AGAINST_ITSELF = {"sigma_max_random": "partly", "equal_nonemb_apart": "not reproduced"} | dict.fromkeys(
    UNTESTED, "not tested"
)

TRAINED = [name for name, measure in CHECKS.items() if measure.scope == "training" and measure.function]
ARITHMETIC = [name for name, measure in CHECKS.items() if measure.scope == "arithmetic"]


def rows_of(root: Path, *claims: str, preset: str = "paper") -> pd.DataFrame:
    return judge(load_frames(root, preset=preset), *claims, preset=preset)


def judge(frames: RunFrames, *claims: str, preset: str = "paper") -> pd.DataFrame:
    chosen_claims = [claim for claim in CLAIMS if not claims or claim.id in claims]
    checks = ClaimChecks({claim.id: CHECKS[claim.id] for claim in chosen_claims})
    evidence = Evidence(frames, study_at(preset), PUBLISHED)
    return pd.DataFrame(judge_claims(chosen_claims, checks, evidence)).set_index("id")


def verdicts(root: Path, *claims: str) -> pd.Series:
    return rows_of(root, *claims)["verdict"]


def of_right(right: Path, *claims: str) -> pd.Series:
    return judge(load_right(right), *claims)["verdict"]


@pytest.fixture(scope="module")
def rows(right: Path) -> pd.DataFrame:
    """All claims where the paper is right."""
    return rows_of(right)


@pytest.fixture(scope="module")
def before(rows: pd.DataFrame) -> pd.Series:
    """Their verdicts."""
    return rows["verdict"]


def test_every_claim_is_measured_or_says_why_not() -> None:
    assert set(CHECKS) == {claim.id for claim in CLAIMS} and len(CLAIMS) == 47
    assert {name for name, measure in CHECKS.items() if measure.function is None} == UNTESTED


def test_where_the_document_is_right_its_claims_are_reproduced(before: pd.Series) -> None:
    assert before[before != "reproduced"].to_dict() == AGAINST_ITSELF


@pytest.mark.parametrize("claim", list(MUTANTS))
def test_where_exactly_a_claim_is_false_it_is_not_reproduced(
    claim: str, right: Path, before: pd.Series, tmp_path: Path
) -> None:
    change, follows = MUTANTS[claim]
    frames = load_where(right, change(as_the_document_says()), tmp_path, Transfer())
    verdict_by_claim = judge(frames, *TRAINED)["verdict"]
    assert verdict_by_claim[claim] == "not reproduced"
    assert {name for name in verdict_by_claim.index if verdict_by_claim[name] != before[name]} == follows


def test_worse_by_less_than_what_counts_is_no_worse(tmp_path: Path) -> None:
    change = losses(wq_identity_floor_tenth=2.946)
    root = write_runs(change(as_the_document_says()), tmp_path)
    row = rows_of(root, "deep_decay_helps").loc["deep_decay_helps"]
    assert row["verdict"] == "not reproduced" and "counts as the same" in row["why"]


@pytest.mark.parametrize("name", list(TRANSFERS))
def test_where_the_measurement_says_otherwise(name: str, before: pd.Series, tmp_path: Path) -> None:
    transfer, verdict, follows = TRANSFERS[name]
    about = [claim for claim in TRAINED if claim.startswith("mlp_transfer")]
    verdict_by_claim = verdicts(write_transfer(transfer, tmp_path), *about)
    assert verdict_by_claim[name.partition(",")[0]] == verdict
    assert {claim for claim in about if verdict_by_claim[claim] != before[claim]} == follows


@pytest.mark.parametrize("world", list(REVERSED))
def test_an_effect_that_is_reversed_is_not_reproduced(world: str, right: Path, tmp_path: Path) -> None:
    change, transfer, claims = REVERSED[world]
    rows = judge(load_where(right, change(as_the_document_says()), tmp_path, transfer), *claims)
    other = rows[rows["verdict"] != "not reproduced"]
    assert len(rows) == len(claims) and other.empty, other["why"].to_dict()


@pytest.fixture
def other_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theorem_checks, "load_paper", another)


def test_of_a_document_with_other_sizes_none_of_these_is_so(right: Path, other_document: None) -> None:
    verdict_by_claim = of_right(right, *ARITHMETIC)
    assert verdict_by_claim[sorted(OF_SPECS)].to_dict() == dict.fromkeys(sorted(OF_SPECS), "not reproduced")


def far_off() -> dict[str, Facts]:
    """Every loss another one, and in another order."""
    printed = reversed(as_the_document_says().items())
    return {name: Facts(loss=facts.loss + 0.5 + 0.1 * number) for number, (name, facts) in enumerate(printed)}


def test_a_column_of_table_2_that_is_false_in_all_its_values(tmp_path: Path, other_document: None) -> None:
    verdict_by_claim = verdicts(write_runs(far_off(), tmp_path), *(f"t2_{method}" for method in CONFIGURATIONS))
    assert verdict_by_claim.eq("not reproduced").all(), verdict_by_claim


def test_a_column_of_table_2_needs_more_than_configuration(tmp_path: Path) -> None:
    """Sizes and rates are the paper's own; runs that miss it are not made good by them."""
    verdict_by_claim = verdicts(write_runs(far_off(), tmp_path), *(f"t2_{method}" for method in CONFIGURATIONS))
    assert verdict_by_claim.eq("not reproduced").all(), verdict_by_claim


def test_column_of_table_2_with_printed_loss_alone_is_partly_so(right: Path, other_document: None) -> None:
    assert of_right(right, "t2_baseline_small_mlp").eq("partly").all()


# Mutants of the theorems: one that does not hold, and one that needs no premise.


def that_fails(check: TheoremCheck) -> TheoremCheck:
    return replace(check, residual=1e-6)


def that_needs_nothing(check: TheoremCheck) -> TheoremCheck:
    first, *others = check.broken
    return replace(check, broken=(replace(first, residual=1e-12), *others))


@pytest.mark.parametrize("mutant", [that_fails, that_needs_nothing], ids=["false", "needs nothing"])
@pytest.mark.parametrize("claim", [*theorems.STATEMENTS, "single_head"])
def test_a_theorem_that_fails_or_cannot_fail_is_not_reproduced(claim: str, mutant, right: Path, monkeypatch) -> None:
    for id in theorems.STATEMENTS.get(claim, ("prop_4_1",)):
        changed = theorem_checks.theorems() | {id: mutant(theorem_checks.theorems()[id])}
        with monkeypatch.context() as patched:
            patched.setattr(theorem_checks, "theorems", lambda checks=changed: checks)
            assert of_right(right, claim)[claim] == "not reproduced"


def test_a_wrong_construction_is_seen(right: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks behind the claims run the constructions: one that leaves W_K alone is found out."""
    eliminate = query_elimination.attention_skip_only

    def without_keys(weights, *arguments):
        done = eliminate(weights, *arguments)
        layers = [replace(layer, key_DN=old.key_DN) for layer, old in zip(done.layers, weights.layers, strict=True)]
        return replace(done, layers=tuple(layers))

    monkeypatch.setattr(query_elimination, "attention_skip_only", without_keys)
    # What was tried with the true one stays for other tests.
    monkeypatch.setattr(theorem_checks, "theorems", cache(theorem_checks.theorems.__wrapped__))
    verdict_by_claim = of_right(right, *theorems.STATEMENTS)
    assert set(verdict_by_claim[verdict_by_claim == "not reproduced"].index) == {"attn_skip_only", "any_of_three"}
    assert set(verdict_by_claim.drop(["attn_skip_only", "any_of_three"])) == {"reproduced"}


def test_singular_values_of_another_law(right: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gaussian_singular_values = theorems.norm_semiconjugacy.gaussian_singular_values
    monkeypatch.setattr(
        theorems.norm_semiconjugacy, "gaussian_singular_values", lambda d, seed: 3 * gaussian_singular_values(d, seed)
    )
    assert of_right(right, "sigma_max_random")["sigma_max_random"] == "not reproduced"


# What is said next to a verdict.


def test_each_verdict_names_its_runs(rows: pd.DataFrame) -> None:
    assert rows.loc["match_baseline", "runs"].split() == [
        "query_free/base/baseline/s42",
        "query_free/base/wq_identity/s42",
    ]
    assert len(rows.loc["val_order", "runs"].split()) == 5 and len(rows.loc["lr_ratio", "runs"].split()) == 6
    assert rows.loc["mlp_transfer_error", "runs"] == "measured/query_free/basis_transfer"
    runs = study_at("paper").runs
    for name in TRAINED:
        keys = rows.loc[name, "runs"].split()
        assert keys, name
        ids = [runs[key].spec.run_id if key in runs else "m" * 16 for key in keys]
        assert rows.loc[name, "run_ids"].split() == ids
    assert rows.loc["equal_nonemb", "reproduced"].startswith("m = 79.73")


def test_a_missing_or_diverged_run_has_no_verdict(tmp_path: Path) -> None:
    world = as_the_document_says()
    world["wq_identity"] = replace(world["wq_identity"], outcome="diverged")
    del world["baseline_small_d"]
    names = ("match_baseline", "fewer_params", "pct_small_d", "mlp_transfer_error")
    rows = rows_of(write_runs(world, tmp_path), *names)
    assert rows.loc["match_baseline", "verdict"] == "diverged" and rows.loc["fewer_params", "verdict"] == "reproduced"
    assert rows.loc["pct_small_d", "verdict"] == "not tested" and "is missing" in rows.loc["pct_small_d", "why"]
    assert rows.loc["mlp_transfer_error", "verdict"] == "not tested"
    assert "measured/query_free/basis_transfer is missing" in rows.loc["mlp_transfer_error", "why"]


def test_a_rate_at_which_a_run_diverges_is_not_its_best(tmp_path: Path) -> None:
    world = as_the_document_says()
    world["baseline_large_schedule"] = replace(world["baseline_large_schedule"], outcome="diverged")
    row = rows_of(write_runs(world, tmp_path), "higher_lr_admitted").loc["higher_lr_admitted"]
    assert row["verdict"] == "reproduced" and "query_free/base/baseline_large_schedule/s42" in row["runs"]
    for name in ("baseline", "baseline_reduced_schedule"):
        world[name] = replace(world[name], outcome="diverged")
    row = rows_of(write_runs(world, tmp_path / "all"), "higher_lr_admitted").loc["higher_lr_admitted"]
    assert row["verdict"] == "diverged"


def test_a_demo_speaks_only_about_sizes_and_theorems(tmp_path: Path) -> None:
    root = write_transfer(Transfer(), write_runs(as_the_document_says(), tmp_path, "demo"))
    verdict_by_claim = rows_of(root, preset="demo")["verdict"]
    assert verdict_by_claim[TRAINED].eq("not judged (demo size)").all()
    for name in ARITHMETIC:
        assert verdict_by_claim[name] == AGAINST_ITSELF.get(name, "reproduced"), name
