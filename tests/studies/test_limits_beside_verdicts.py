"""What stands next to a verdict for a limit, derived a second time from the printed numbers alone."""

from __future__ import annotations

import math

import pytest

from plumbline.published.printed_numbers import PaperClaim, PrintedNumbers
from plumbline.results.claims.claim_checkers import ComputedValues, describe_nearness, nearest_limit
from plumbline.studies.premature import claims as premature
from plumbline.studies.transfer import claims as transfer
from tests.studies.premature import synthetic_runs as premature_runs
from tests.studies.transfer import synthetic_results as transfer_runs


def find_claim(study: str, claim: str) -> PaperClaim:
    return next(paper_claim for paper_claim in PrintedNumbers.of(study).claims() if paper_claim.id == claim)


def limits_of(study: str, claim: str) -> dict[str, tuple[float, float]]:
    if study == "transfer":
        frames, at = transfer_runs.hold_frames(transfer_runs.right()), transfer_runs.study_at()
        evidence, checks = transfer.Evidence(frames, at, transfer_runs.PUBLISHED), transfer.CHECKS
    else:
        frames, at = premature_runs.load_frames(premature_runs.published_once()), premature_runs.study_at()
        evidence, checks = premature.Evidence(frames, at, premature_runs.PUBLISHED), premature.CHECKS
    return checks[claim](evidence, find_claim(study, claim)).limits


LOSSES = {row["method_id"]: float(row["val_loss"]) for row in transfer_runs.read_printed_rows("table7")}
SCORES = {row["method_id"]: float(row["climb_avg"]) for row in transfer_runs.read_printed_rows("table2")}
PER_NAT = {
    name: 100 * (SCORES["baseline"] - SCORES[name]) / (LOSSES[name] - LOSSES["baseline"])
    for name in ("sigmoid_attn", "ssmax", "attnres")
}

#: Study, claim -> what its limits must state, by printed numbers.
EXPECTED = {
    ("transfer", "loss_ranking_misses"): {
        f"% above of {name}": (100 * (LOSSES[name] / LOSSES["baseline"] - 1), 5)
        for name in ("sigmoid_attn", "ssmax", "attnres")
    },
    ("transfer", "decoupling_attention_only"): {
        "points a nat of attnres": (PER_NAT["attnres"], min(PER_NAT["sigmoid_attn"], PER_NAT["ssmax"]) / 2)
    },
    ("transfer", "t2_geglu_ffn"): {"|z|": (0.20, 2), "p_bonf": (1.0, 0.05)},
    ("transfer", "counts_by_z"): {"|z| of selective_attn": (2.15, 2)},
    ("transfer", "overshoot"): {"orders apart of ssmax": (2 - math.log10(29.94), math.log10(2))},
    ("premature", "rmsnorm_alone"): {"share of the gain": (0.5179 / 0.5858, 0.5)},
    ("premature", "entropy_floor_much_smaller"): {"the floor's share": (0.061 / 0.586, 0.5)},
    ("premature", "ablation_grows"): {"largest step's share": (6.0 / 17.4, 0.5)},
    ("premature", "downstream_largest"): {"share of arc_challenge": (0.057 / 0.575, 0.25)},
}


@pytest.mark.parametrize(("study", "claim"), list(EXPECTED))
def test_limits_follow_from_the_printed_numbers(study: str, claim: str) -> None:
    limits = limits_of(study, claim)
    for name, (value, limit) in EXPECTED[study, claim].items():
        assert limits[name] == (pytest.approx(value, rel=0.03), pytest.approx(limit, rel=0.03)), name


def test_the_column_says_what_was_held_against_a_limit() -> None:
    claim = PaperClaim(id="x", text="", kind="number", values={"a": 2.0}, source="")
    limits = nearest_limit({"b": 1.9, "c": -5.0}, 2.0) | {"d": (math.inf, 3.0)}
    assert limits["b"] == (1.9, 2.0) and "c" not in limits
    text = describe_nearness(claim, ComputedValues(values={"a": 2.02}, limits=limits))
    assert text == "of what is allowed: a 0.4; beside its limit: b 1.9 (2), d infinite (3)"
