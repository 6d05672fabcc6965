"""Every claim can be judged true and can be judged false; a demo speaks about no trained model."""

from __future__ import annotations

import math

import msgspec
import pandas as pd
import pytest

from plumbline.results.claims.claim_registry import ClaimCheck
from plumbline.results.claims.claim_verdicts import judge_claims
from plumbline.results.runs.finished_runs import RunFrames
from plumbline.studies.premature import gradient_step_on_scores, theorem_numbers
from plumbline.studies.premature.claims import CHECKS, Evidence
from tests.studies.premature.claims_made_false import FALSE, REVERSED, Change
from tests.studies.premature.runs_with_false_claims import nothing_happens
from tests.studies.premature.synthetic_runs import (
    PUBLISHED,
    load_frames,
    load_published,
    load_where,
    make_published_facts,
    study_at,
    write_runs,
)

CLAIMS = PUBLISHED.claims()


def judge_runs(frames: RunFrames, preset: str = "paper") -> pd.DataFrame:
    rows = judge_claims(CLAIMS, CHECKS, Evidence(frames, study_at(preset), PUBLISHED))
    return pd.DataFrame(rows).set_index("id")


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return judge_runs(load_published())


@pytest.fixture(scope="module")
def nothing(tmp_path_factory) -> pd.DataFrame:
    """The rows where every run ends and reads as its control does."""
    root = write_runs(nothing_happens(make_published_facts()), tmp_path_factory.mktemp("nothing"))
    return judge_runs(load_frames(root))


def test_every_claim_is_measured_or_says_why_not():
    assert set(CHECKS) == {claim.id for claim in CLAIMS}
    assert all(
        isinstance(check, ClaimCheck) and (check.function or len(check.untested) > 10) for check in CHECKS.values()
    )


def test_the_published_world_reproduces_every_true_claim(rows):
    """Theorem 3's text makes no exception; a square it is only where nothing mature stands beside."""
    other = rows[rows["verdict"] != "reproduced"]
    assert other["why"].to_dict() == {"rho_squared": "1 of 2 parts hold; not so: beside_a_rest"}


TRAINED = [name for name, measure in CHECKS.items() if measure.function]
ARITHMETIC = ["rho_init", "fourfold", "theorem1", "rho_squared", "logit_range", "ffn_match"]


OF_RUNS = [name for name in TRAINED if name not in ARITHMETIC]


def of_runs_where(change: Change, *names: str) -> pd.DataFrame:
    """The rows of some claims of runs in a changed world."""
    evidence = Evidence(load_where(change), study_at(), PUBLISHED)
    claims = [claim for claim in CLAIMS if claim.id in names]
    return pd.DataFrame(judge_claims(claims, {name: CHECKS[name] for name in names}, evidence)).set_index("id")


@pytest.mark.parametrize("name", OF_RUNS)
def test_where_a_claim_is_false_it_is_not_reproduced(name):
    row = of_runs_where(FALSE[name], name).loc[name]
    assert row["verdict"] == "not reproduced", row["why"]


@pytest.mark.parametrize("reversed_world", list(REVERSED))
def test_an_effect_that_is_reversed_is_not_reproduced(reversed_world):
    change, names = REVERSED[reversed_world]
    judged_rows = of_runs_where(change, *names)
    other = judged_rows[judged_rows["verdict"] != "not reproduced"]
    assert len(judged_rows) == len(names) and other.empty, other["why"].to_dict()


@pytest.mark.parametrize("name", ["control_ppl_order", "gain_order", "write_order", "release_order"])
def test_ties_are_no_order(name, nothing):
    verdict = nothing.loc[name]
    assert verdict["verdict"] == "not reproduced" and " = " in verdict["reproduced"], verdict["why"]


@pytest.mark.parametrize(("apart", "verdict"), [(0.3, "reproduced"), (0.1, "not reproduced")])
def test_an_order_within_noise_is_none(apart, verdict):
    """Perplexities in the printed order: two standard deviations of a difference are 0.158."""

    def spread(facts):
        for place, method in enumerate(("gpt_slow", "fixed_3pct", "fixed_6pct", "gpt")):
            facts[f"premature/base/{method}/s42"].loss = math.log(26.2 + apart * place / 3)

    row = of_runs_where(spread, "release_order").loc["release_order"]
    assert row["verdict"] == verdict and "gpt = " not in row["reproduced"], row["why"]


def test_an_ablation_that_costs_both_sides_alike_orders_nothing():
    def alike(facts):
        slowed, control = (facts[f"premature/base/{name}/s42"].run_values for name in ("gpt_slow", "gpt"))
        for at in slowed["loss_neither", "model"]:
            whole, (lost, null) = slowed["loss", "model"][at][0], control["loss_neither", "model"][at]
            cost = math.exp(lost) - math.exp(control["loss", "model"][at][0])
            slowed["loss_neither", "model"][at] = (math.log(math.exp(whole) + 0.99 * cost), null)

    assert of_runs_where(alike, "ablation_order").loc["ablation_order", "verdict"] == "not reproduced"


def test_what_grows_in_one_jump_does_not_grow_gradually():
    def jumps(facts):
        curve = facts["premature/base/gpt_slow/s42"].run_values["loss_neither", "model"]
        whole = facts["premature/base/gpt_slow/s42"].run_values["loss", "model"]
        for number, at in enumerate(sorted(at for at in curve if at >= 0.03)):
            lost = 0.35 + 0.01 * number + (17.0 if at == 1.0 else 0.0)
            curve[at] = (math.log(math.exp(whole[at][0]) + lost), curve[at][1])

    assert of_runs_where(jumps, "ablation_grows").loc["ablation_grows", "verdict"] == "not reproduced"


def test_what_is_there_at_once_does_not_grow_gradually():
    def as_the_control(facts):
        slowed, control = (facts[f"premature/base/{name}/s42"] for name in ("gpt_slow", "gpt"))
        slowed.run_values = control.run_values

    row = of_runs_where(as_the_control, "ablation_grows").loc["ablation_grows"]
    assert row["verdict"] == "not reproduced" and "largest step's share 0.563 (0.5)" in row["nearness"]


def test_a_ratio_of_one_is_not_below_one():
    def above(facts):
        for side in ("gpt", "gpt_slow"):
            facts[f"premature/base/{side}/s42"].run_values["locality_query", "upper"] = {0.03: (1.02, 0.174)}

    assert of_runs_where(above, "locality").loc["locality", "verdict"] == "not reproduced"


def test_what_suppresses_nothing_is_no_suppressor():
    def other_way(facts):
        for method, gain in (("gpt_swiglu", 0.62), ("gpt_rmsnorm", 0.2), ("gpt_biasless", 0.2), ("gpt", 0.5858)):
            control = facts[f"premature/base/{method}/s42"]
            facts[f"premature/base/{method}_slow/s42"].loss = math.log(math.exp(control.loss) - gain)

    verdicts = of_runs_where(other_way, "swiglu_suppressor", "rmsnorm_alone", "biasless_partial")
    assert len(verdicts) == 3 and verdicts["verdict"].eq("not reproduced").all(), verdicts["why"]


def _wider(study: str) -> theorem_numbers.MatchedModelSizes:
    """Models whose feed-forward widths do not match, at another start."""
    these = SIZES(study)
    gated = msgspec.structs.replace(these.gated, ffn_width=2048)
    return theorem_numbers.MatchedModelSizes(
        msgspec.structs.replace(these.single, ffn_width=5120, init_std=0.03), gated
    )


SIZES, MOVED, WEAKENED, NEEDED = (
    theorem_numbers.sizes,
    gradient_step_on_scores.DirectedHead.score_change,
    gradient_step_on_scores.DirectedHead.weaken,
    theorem_numbers.least_range,
)

#: Claim of arithmetic -> what is wrong in a world in which it must fail: owner, name, replacement.
WRONG = {
    "rho_init": (theorem_numbers, "sizes", _wider),
    "ffn_match": (theorem_numbers, "sizes", _wider),
    "fourfold": (
        gradient_step_on_scores.DirectedHead,
        "score_change",
        lambda head, query, key: MOVED(head, query**2, key**2),
    ),
    "theorem1": (
        gradient_step_on_scores.DirectedHead,
        "score_change",
        lambda head, query, key: 2 * MOVED(head, query, key),
    ),
    "rho_squared": (gradient_step_on_scores.DirectedHead, "weaken", lambda head, share: WEAKENED(head, share**2)),
    "logit_range": (theorem_numbers, "least_range", lambda keys, odds: NEEDED(keys, odds) + 0.1),
}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_every_claim_of_the_theory_fails_where_it_is_wrong(name, monkeypatch):
    assert set(ARITHMETIC) == set(WRONG)
    evidence = Evidence(load_published(), study_at(), PUBLISHED)
    monkeypatch.setattr(*WRONG[name])
    verdicts = judge_claims([claim for claim in CLAIMS if claim.id == name], {name: CHECKS[name]}, evidence)
    assert verdicts[0]["verdict"] == "not reproduced", verdicts[0]


def test_each_verdict_names_its_runs(rows):
    pair = [f"premature/base/llama_layernorm{arm}/s42" for arm in ("", "_slow")]
    assert rows.loc["t3_llama_layernorm", "runs"].split() == pair
    assert len(rows.loc["ppl_gain_270m", "runs"].split()) == 6 and len(rows.loc["downstream_wins", "runs"].split()) == 6
    study = study_at()
    for name in TRAINED:
        if name not in ARITHMETIC:
            keys = rows.loc[name, "runs"].split()
            assert keys and rows.loc[name, "run_ids"].split() == [study.runs[key].spec.run_id for key in keys], name


def test_a_claim_about_runs_that_are_not_there_is_not_tested():
    def fewer(facts):
        for key in [key for key in facts if "/gpt" not in key or "glu" in key]:
            del facts[key]
        facts["premature/base/gpt_slow/s43"].outcome = "diverged"

    verdicts = of_runs_where(fewer, "t4_gpt", "t4_gpt_geglu", "ppl_gain_270m", "downstream_wins", "ffn_match")
    assert verdicts.loc["t4_gpt", "verdict"] == "reproduced"
    assert verdicts.loc["t4_gpt_geglu", "verdict"] == "not tested"
    assert "is missing" in verdicts.loc["t4_gpt_geglu", "why"]
    assert verdicts.loc["ppl_gain_270m", "verdict"] == "diverged"
    assert "premature/base/gpt_slow/s43" in verdicts.loc["ppl_gain_270m", "why"]
    assert verdicts.loc["downstream_wins", "verdict"] == "diverged"
    assert verdicts.loc["ffn_match", "verdict"] == "reproduced"


def test_an_intervention_that_never_gets_there_saves_nothing():
    def never(facts):
        run = facts["premature/base/gpt_slow/s44"]
        run.loss, run.saved = math.log(27.5), None

    verdicts = of_runs_where(never, "tokens_saved_270m", "gain_every_paired_difference")
    assert len(verdicts) == 2 and verdicts["verdict"].eq("not reproduced").all()


def test_a_loss_at_half_the_rate_is_not_the_controls():
    """Printed 3.4474 for 3.2883: a twentieth of the loss, but a sixth of the perplexity."""

    def higher(facts):
        for seed in (42, 43, 44):
            facts[f"premature/base/gpt/s{seed}"].loss += 3.4474 - 3.2902

    verdicts = of_runs_where(higher, "control_270m")
    assert verdicts.loc["control_270m", "why"].startswith("2 of 4 values agree; apart: loss_mean, ppl_mean")


def test_routing_that_matures_before_the_window_is_told():
    def early(facts):
        curve = facts["premature/base/gpt_slow/s42"].run_values["lower_copy", "model"]
        curve[0.01] = (0.0055, curve[0.01][1])

    reproduced = of_runs_where(early, "lower_routing_same").loc["lower_routing_same", "reproduced"]
    assert "intervention_pct = 3" in reproduced and "intervention_of_all = 1" in reproduced
    assert "control_of_all = 3" in reproduced


def test_the_flat_task_must_be_flat_as_well():
    def lower(facts):
        for seed in (42, 43, 44):
            facts[f"premature/base/gpt_slow/s{seed}"].tasks["arc_challenge"] -= 0.05

    verdicts = of_runs_where(lower, "downstream_largest")
    assert verdicts.loc["downstream_largest", "verdict"] == "partly"
    assert "arc_challenge is not nearly" in verdicts.loc["downstream_largest", "why"]


def test_a_demo_speaks_only_about_arithmetic(tmp_path):
    root = write_runs(make_published_facts("demo"), tmp_path, "demo")
    verdicts = judge_runs(load_frames(root, preset="demo"), "demo")
    trained = verdicts.drop([name for name, measure in CHECKS.items() if measure.scope == "arithmetic"])
    assert trained["verdict"].eq("not judged (demo size)").all()
    arithmetic = verdicts.loc[ARITHMETIC, "verdict"]
    assert arithmetic.pop("rho_squared") == "partly" and arithmetic.eq("reproduced").all()
    assert verdicts.loc["ablation_equivalent", "verdict"] == "reproduced"
