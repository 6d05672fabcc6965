"""Every claim is reproduced where the summary is right, and not where exactly it is false."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import pandas as pd
import pytest
import torch

from plumbline.results.claims.claim_registry import ClaimChecks
from plumbline.results.claims.claim_verdicts import judge_claims
from plumbline.studies.quack import decoding_memory, lemma1_numbers, logit_change
from plumbline.studies.quack.claims import CHECKS, Evidence, sizes_and_algorithm, trained_models
from plumbline.studies.quack.logit_change import HeadSizes, HeadUpdate
from tests.studies.quack import synthetic_runs
from tests.studies.quack.runs_with_false_claims import MUTANTS, REVERSED, SLOWER
from tests.studies.quack.synthetic_runs import PUBLISHED, Written, key, study_at, times

CLAIMS = PUBLISHED.claims()
TRAINED = [name for name, measure in CHECKS.items() if measure.scope == "training"]

#: A head that is drawn in no time.
SMALL = HeadSizes(width=48, head_width=8, init_std=0.02, rate=3e-3, tau=1.0, tokens=12)


def judge_runs(written: Written, names: list[str] = TRAINED) -> pd.DataFrame:
    checks = ClaimChecks({name: CHECKS[name] for name in names})
    claims = [claim for claim in CLAIMS if claim.id in names]
    rows = judge_claims(claims, checks, Evidence(written.load(), written.study, PUBLISHED))
    return pd.DataFrame(rows).set_index("id")


@pytest.fixture(scope="module")
def before(timed: Written) -> pd.DataFrame:
    """The verdicts where the summary is right."""
    return judge_runs(timed)


@pytest.fixture
def small_head(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(lemma1_numbers, "sizes", lambda study: SMALL)
    lemma1_numbers.compute_rows.cache_clear()
    yield
    lemma1_numbers.compute_rows.cache_clear()


def test_every_claim_is_measured() -> None:
    assert set(CHECKS) == {claim.id for claim in CLAIMS} and len(CLAIMS) == 21
    assert all(measure.function is not None for measure in CHECKS.values())


def test_where_the_document_is_right_its_claims_are_reproduced(before: pd.DataFrame) -> None:
    assert before["verdict"].eq("reproduced").all(), before[before["verdict"] != "reproduced"]


@pytest.mark.parametrize("claim", list(MUTANTS))
def test_where_exactly_a_claim_is_false_it_is_not_reproduced(claim: str, timed, before, tmp_path) -> None:
    mutant, follows = MUTANTS[claim]
    verdicts = judge_runs(timed.changed(mutant, tmp_path))
    assert verdicts.loc[claim, "verdict"] == "not reproduced", verdicts.loc[claim, "why"]
    assert {name for name in verdicts.index if verdicts.loc[name, "verdict"] != before.loc[name, "verdict"]} == follows


@pytest.mark.parametrize("world", list(REVERSED))
def test_an_effect_that_is_reversed_is_not_reproduced(world: str, timed, tmp_path) -> None:
    mutant, claims = REVERSED[world]
    verdict_rows = judge_runs(timed.changed(mutant, tmp_path), list(claims))
    other = verdict_rows[verdict_rows["verdict"] != "not reproduced"]
    assert len(verdict_rows) == len(claims) and other.empty, other["why"].to_dict()


def test_a_method_slower_where_faster_is_claimed_fails(tmp_path) -> None:
    written = Written(tmp_path, {}).measured("step_time", times(qk_norm=1.0, quack=1 / 0.9))
    assert judge_runs(written, list(SLOWER))["verdict"].eq("not reproduced").all()


def test_one_kind_of_attention_is_half_of_a_claim(right: Written, tmp_path) -> None:
    """What holds in one of two is partly so; a QuacK as good as QK norm is competitive and not worse."""

    def half(facts: synthetic_runs.World) -> synthetic_runs.World:
        for tau in synthetic_runs.TAUS:
            facts[key("mha", "quack", 3e-2, tau)].rise = 0.5
            facts[key("mla", "ablation", 3e-2, tau)].loss -= 0.5
            for eta in synthetic_runs.ETAS:
                facts[key("mha", "quack", eta, tau)].loss -= 0.025
        facts[key("mla", "quack.spectral")].loss -= 0.5
        return facts

    verdict_by_claim = judge_runs(right.changed(half, tmp_path))["verdict"]
    partly = ["ablation_underperforms", "higher_lr_enabled", "no_magnitude_constraint", "frobenius_enough"]
    assert verdict_by_claim[[*partly, "competitive_mha"]].eq("partly").all(), verdict_by_claim
    assert verdict_by_claim["stable_lr"] == "not reproduced"


def test_a_diverged_run_is_worse_than_any_loss(right: Written, tmp_path) -> None:
    def worse(facts: synthetic_runs.World) -> synthetic_runs.World:
        for name, run in facts.items():
            if name.startswith("quack/mla/quack.") or name.startswith("quack/mha/ablation.eta_0.03"):
                run.outcome = "diverged"
        return facts

    verdict_rows = judge_runs(right.changed(worse, tmp_path))
    verdicts = verdict_rows["verdict"]
    assert verdicts[["stable_lr", "beats_qk_clip_mla"]].eq("not reproduced").all()
    assert verdicts["ablation_underperforms"] == "partly"
    assert "inf" in verdict_rows.loc["ablation_underperforms", "reproduced"]
    assert verdicts["no_magnitude_constraint"] == "partly"  # no run of QuacK completed in MLA


def test_a_missing_run_leaves_a_gap(right: Written, tmp_path) -> None:
    """One tau that is not there leaves the best tau open."""
    gone = key("mla", "quack", 3e-2, 0.01)
    verdicts = judge_runs(right.changed(lambda facts: {k: v for k, v in facts.items() if k != gone}, tmp_path))
    assert verdicts.loc["stable_lr", "verdict"] == "not tested" and gone in verdicts.loc["stable_lr", "why"]
    assert verdicts.loc["competitive_mha", "verdict"] == "reproduced"


def test_each_verdict_names_its_runs(before: pd.DataFrame) -> None:
    assert len(before.loc["competitive_mha", "runs"].split()) == 3 + 12
    assert len(before.loc["frobenius_enough", "runs"].split()) == 4
    for name in TRAINED:
        keys = before.loc[name, "runs"].split()
        ids = [study_at().runs[key].spec.run_id for key in keys if not key.startswith("measured/")]
        assert keys and set(ids) <= set(before.loc[name, "run_ids"].split()), name


# What needs no training: mutants of the code and of the study.


def another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as deep and half as long."""
    runs = {}
    for name, run in study_at().runs.items():
        model = msgspec.structs.replace(run.spec.model, layers=28)
        train = msgspec.structs.replace(run.spec.train, steps=2500)
        runs[name] = msgspec.structs.replace(run.spec, model=model, train=train)
    changed_runs = {name: type(run)(spec=runs[name], groups=run.groups) for name, run in study_at().runs.items()}
    monkeypatch.setattr(decoding_memory, "paper", lambda study: type(study_at())(
        name="quack", preset="paper", definition=study_at().definition, runs=changed_runs))  # fmt: skip


def another_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """One base rate fewer, and no tau of 10 or more."""
    paper, methods = study_at(), {}
    for name, entry in paper.definition["methods"].items():
        shorter = {
            axis: axis_entry | {"values": axis_entry["values"][:-1]} for axis, axis_entry in entry["sweep"].items()
        }
        methods[name] = entry | {"sweep": shorter}
    kept_runs = {name: run for name, run in paper.runs.items() if "tau_10" not in name}
    changed_study = type(paper)(
        name="quack", preset="paper", definition=paper.definition | {"methods": methods}, runs=kept_runs
    )
    monkeypatch.setattr(decoding_memory, "paper", lambda study: changed_study)


def latents_with_norms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding_memory, "explain_refusal", lambda study, scale: "")


def norms_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding_memory, "find_model", lambda study, scale, method="default": QK_NORMED)


QK_NORMED = decoding_memory.find_model(study_at(), "mha", "qk_norm")


def by_own_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each side's rate by its own norm."""
    from plumbline.train.interventions import quack

    swapped = dict(quack.RATIOS) | {"grouped": lambda heads, now, start: {r: start[r] / now[r] for r in now}}
    monkeypatch.setattr(quack, "RATIOS", swapped)


def fix_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        logit_change, "rates", lambda name, now, start, *, rate, tau, kind: (tau * rate, tau * rate)
    )  # fmt: skip


def half_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """First order without the keys' own update."""
    monkeypatch.setattr(HeadUpdate, "first_order", lambda step, query, key: ONLY_QUERIES(step, query, 0.0))


ONLY_QUERIES = HeadUpdate.first_order

CODE_MUTANTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "scale_tested": another_size,
    "suggested_tau_grid": another_grid,
    "suggested_tau_wide": another_grid,
    "mla_applicable": latents_with_norms,
    "two_norms_removed": norms_everywhere,
    "scheme": by_own_norm,
    "bounded_change": fix_rates,
    "first_order": half_the_product,
}


@pytest.mark.parametrize("claim", list(CODE_MUTANTS))
def test_where_the_code_is_otherwise_a_definition_does_not_hold(claim, small_head, tmp_path, monkeypatch) -> None:
    nothing = Written(tmp_path, {}, "smoke")
    assert judge_runs(nothing, [claim]).loc[claim, "verdict"] == "reproduced"
    lemma1_numbers.compute_rows.cache_clear()
    CODE_MUTANTS[claim](monkeypatch)
    verdicts = judge_runs(nothing, [claim])
    assert verdicts.loc[claim, "verdict"] == "not reproduced", verdicts.loc[claim, "reproduced"]


def test_a_bound_that_anything_keeps_to_bounds_nothing(small_head, tmp_path, monkeypatch) -> None:
    loose = logit_change.bound
    monkeypatch.setattr(logit_change, "bound", lambda *arguments: 1e6 * loose(*arguments))
    verdicts = judge_runs(Written(tmp_path, {}, "smoke"), ["bounded_change"])
    assert verdicts.loc["bounded_change", "verdict"] == "not reproduced", verdicts.loc["bounded_change", "reproduced"]


@pytest.mark.parametrize(
    ("scales", "verdict"), [(("mla",), "partly"), (("mha", "mla"), "not reproduced")], ids=["one", "both"]
)
def test_no_run_is_stable_if_all_diverged(scales, verdict, right, tmp_path) -> None:
    def make_diverged(facts: synthetic_runs.World) -> synthetic_runs.World:
        for scale, eta, tau in itertools.product(scales, synthetic_runs.ETAS, synthetic_runs.TAUS):
            facts[key(scale, "quack", eta, tau)].outcome = "diverged"
        return facts

    verdicts = judge_runs(right.changed(make_diverged, tmp_path), ["no_magnitude_constraint"])
    assert verdicts.loc["no_magnitude_constraint", "verdict"] == verdict, verdicts.loc["no_magnitude_constraint", "why"]


@pytest.mark.parametrize(
    ("seconds", "verdicts"),
    [
        (1.02, {"speed": "not reproduced", "cheaper": "not reproduced"}),
        (0.99, {"speed": "not reproduced", "cheaper": "reproduced"}),
        (0.70, {"speed": "not reproduced", "cheaper": "reproduced"}),
        (0.92, {"speed": "reproduced", "cheaper": "reproduced"}),
    ],
)
def test_what_a_step_takes_is_judged(seconds: float, verdicts: dict[str, str], tmp_path) -> None:
    written = Written(tmp_path, {}).measured("step_time", times(qk_norm=1.0, quack=seconds), device_name="H200")
    verdict_rows = judge_runs(written, list(verdicts))
    assert verdict_rows["verdict"].to_dict() == verdicts
    assert verdict_rows["runs"].eq("measured/quack/step_time").all()
    assert verdict_rows["reproduced"].str.contains("H200").all()


def test_a_ratio_above_1_in_a_quarter_of_turns_is_not_cheaper(tmp_path) -> None:
    frame = times(qk_norm=1.0, quack=0.9)
    frame.loc[(frame["method"].str.startswith("quack")) & (frame["repeat"] % 3 == 0), "seconds"] = 5.0
    verdict_rows = judge_runs(Written(tmp_path, {}).measured("step_time", frame), ["cheaper"])
    assert verdict_rows.loc["cheaper", "verdict"] == "not reproduced"


def test_times_that_were_not_taken_are_a_gap(right: Written) -> None:
    assert judge_runs(right, ["speed", "cheaper"])["verdict"].eq("not tested").all()


def test_unbounded_updates_break_the_assumptions(right: Written, monkeypatch) -> None:
    monkeypatch.setattr(trained_models, "orthogonalise", lambda gradient, coefficients: gradient)
    assert judge_runs(right, ["assumptions"]).loc["assumptions", "verdict"] == "not reproduced"


def test_the_head_of_the_lemma_is_the_summarys() -> None:
    assert lemma1_numbers.sizes("quack") == HeadSizes(width=2048, head_width=64, init_std=0.02, rate=0.003, tau=1.0)


def test_a_demo_speaks_only_about_definitions(tmp_path) -> None:
    written = Written(tmp_path, synthetic_runs.right("demo"), "demo").measured(
        "step_time", times(qk_norm=1.0, quack=0.9)
    )
    assert judge_runs(written)["verdict"].eq("not judged (demo size)").all()


def test_updates_are_read_by_head() -> None:
    spec = sizes_and_algorithm.smallest("quack")
    head_updates = sizes_and_algorithm.updates(spec, (), {"query": np.ones(spec.model.heads)})
    assert all(len(norms_H) == spec.model.heads and (norms_H > 0).all() for norms_H in head_updates.values())
    assert torch.get_default_dtype() == torch.float32
