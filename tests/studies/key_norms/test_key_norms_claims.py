"""Every claim is reproduced where the paper is right, and not where exactly it is false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pandas as pd
import pytest

from plumbline.published.printed_numbers import PaperClaim
from plumbline.results.claims.claim_registry import ClaimChecks
from plumbline.results.claims.claim_verdicts import judge_claims
from plumbline.studies.key_norms.claims import CHECKS, Evidence, sizes_and_definitions
from tests.studies.key_norms.synthetic_runs import PUBLISHED, Arm, World

CLAIMS = PUBLISHED.claims()

#: Printed statements that their own arithmetic does not bear out.
AGAINST_ITSELF = {
    "size_88m": "partly",  # 88.63 million is 89 when rounded
    "size_80m": "not reproduced",  # nor is it 80
    "softmax_ex2": "not reproduced",  # (0.33, 0.37, 0.30)
}


#: Claims that runs decide, and those that code and printed numbers do; one is both.
OF_RUNS = [claim for claim in CLAIMS if CHECKS[claim.id].scope == "training" or claim.id == "init_norm"]
OF_CODE = [claim for claim in CLAIMS if CHECKS[claim.id].scope != "training"]


def verdicts(world: World, claims: list[PaperClaim] = CLAIMS) -> pd.Series:
    return rows_of(world, claims)["verdict"]


def rows_of(world: World, claims: list[PaperClaim] = CLAIMS) -> pd.DataFrame:
    checks = ClaimChecks({claim.id: CHECKS[claim.id] for claim in claims})
    return pd.DataFrame(judge_claims(claims, checks, Evidence(world.load(), world.study, PUBLISHED))).set_index("id")


@pytest.fixture(scope="module")
def before(right: World) -> pd.Series:
    """The verdicts where the paper is right."""
    return verdicts(right)


def test_every_claim_is_measured() -> None:
    assert set(CHECKS) == {claim.id for claim in CLAIMS} and len(CLAIMS) == 27
    assert all(measure.function is not None for measure in CHECKS.values())


def test_where_the_document_is_right_its_claims_are_reproduced(before: pd.Series) -> None:
    assert before[before != "reproduced"].to_dict() == AGAINST_ITSELF


# Mutants of the runs: what is changed in the world, and exactly which claims are then not reproduced any more. A claim
# next to the first one follows from it (a ratio of norms, an order of ends).


def change_published(change: Callable[[Arm], Arm]) -> Callable[[dict[str, Arm]], dict[str, Arm]]:
    return lambda arms: arms | {"as_published": change(arms["as_published"])}


def norms(**changed: float) -> Callable[[dict[str, Arm]], dict[str, Arm]]:
    return change_published(lambda arm: arm.with_norms(**changed))


def entropies(*layers: int, shift: float) -> Callable[[dict[str, Arm]], dict[str, Arm]]:
    def change(arm: Arm) -> Arm:
        moved = [value + shift * (layer in layers) for layer, value in enumerate(arm.entropies)]
        return replace(arm, entropies=moved)

    return change_published(change)


def near_the_start(arm: Arm) -> Arm:
    """Layers between the printed groups stay where they are."""
    return arm.with_norms(**{f"l{layer}": 8.0 for layer in range(2, 10)})


def all_dampened(arm: Arm) -> Arm:
    return replace(arm, norms=[min(norm, 5.0 + 0.1 * layer) for layer, norm in enumerate(arm.norms)])


MUTANTS: dict[str, tuple[Callable[[dict[str, Arm]], dict[str, Arm]], set[str]]] = {
    "early_final_norm": (norms(l0=6.6, l1=6.8), {"early_final_norm", "low_ratio"}),
    "middle_final_norm": (norms(l10=8.1, l11=8.2), {"middle_final_norm"}),
    "late_final_norm": (norms(l20=11.4, l21=11.6), {"late_final_norm", "high_ratio"}),
    "early_falls": (norms(l0=8.1, l1=8.0), {"early_falls", "early_final_norm", "low_ratio", "order_end"}),
    "late_rises": (
        norms(l20=7.9, l21=7.9),
        {"late_rises", "late_final_norm", "high_ratio", "order_end", "late_attends_few"},
    ),
    "order_end": (norms(l10=9.95, l11=9.95), {"order_end"}),
    "low_ratio": (norms(l0=4.4, l1=4.6), {"low_ratio", "early_final_norm"}),
    "high_ratio": (norms(l20=11.0, l21=11.0), {"high_ratio", "late_final_norm"}),
    "few_stay_at_8": (change_published(near_the_start), {"few_stay_at_8"}),
    "two_regimes": (
        change_published(all_dampened),
        {"two_regimes", "late_rises", "late_final_norm", "middle_final_norm", "high_ratio", "order_end"},
    ),
    "early_attends_many": (entropies(0, 1, shift=-0.5), {"early_attends_many"}),
    "late_attends_few": (entropies(20, 21, shift=0.3), {"late_attends_few"}),
    "init_norm": (change_published(lambda arm: replace(arm, start=7.8)), {"init_norm"}),
}


@pytest.mark.parametrize("claim", list(MUTANTS))
def test_where_exactly_a_claim_is_false_it_is_not_reproduced(claim: str, right, before, tmp_path) -> None:
    change, follows = MUTANTS[claim]
    verdict_by_claim = verdicts(World(tmp_path, arms=change(right.arms), before=right), OF_RUNS)
    assert verdict_by_claim[claim] == "not reproduced"
    assert {name for name in verdict_by_claim.index if verdict_by_claim[name] != before[name]} == follows


@pytest.mark.parametrize(
    ("claim", "share", "verdict"),
    [
        ("early_attends_many", 0.2, "reproduced"), ("early_attends_many", 0.02, "not reproduced"),
        ("late_attends_few", 0.2, "reproduced"), ("late_attends_few", 0.02, "not reproduced"),
    ],
)  # fmt: skip
def test_what_lies_within_noise_of_the_mean_goes_with_nothing(claim, share, verdict, right, tmp_path) -> None:
    """Every layer's entropy that share as far from the mean."""

    def shrink(arm: Arm) -> Arm:
        mean = sum(arm.entropies) / len(arm.entropies)
        return replace(arm, entropies=[mean + share * (entropy - mean) for entropy in arm.entropies])

    world = World(tmp_path, arms=change_published(shrink)(right.arms), before=right)
    assert verdicts(world, OF_RUNS)[claim] == verdict


def test_layer_that_moved_by_noise_beyond_limit_is_in_no_regime(right, tmp_path) -> None:
    """All of them 5.5 % from the start, half above and half below."""
    world = World(
        tmp_path,
        arms=change_published(
            lambda arm: replace(arm, norms=[8 * (1 + 0.055 * (-1) ** layer) for layer in range(len(arm.norms))])
        )(right.arms),
        before=right,
    )
    assert verdicts(world, OF_RUNS)["two_regimes"] == "not reproduced"


def upside_down(arms: dict[str, Arm]) -> dict[str, Arm]:
    """The last layers are as the first ones were."""
    return {name: replace(arm, norms=arm.norms[::-1], entropies=arm.entropies[::-1]) for name, arm in arms.items()}


def mirror_norms(arms: dict[str, Arm]) -> dict[str, Arm]:
    """Each layer's norm as far on the other side of where it started, each entropy of the mean."""
    changed = {}
    for name, arm in arms.items():
        mean = sum(arm.entropies) / len(arm.entropies)
        norms = [2 * arm.start - norm for norm in arm.norms]
        changed[name] = replace(arm, norms=norms, entropies=[2 * mean - entropy for entropy in arm.entropies])
    return changed


#: World -> the claims whose direction or order is reversed in it.
REVERSED: dict[str, tuple[Callable[[dict[str, Arm]], dict[str, Arm]], tuple[str, ...]]] = {
    "layers upside down": (
        upside_down,
        ("early_falls", "late_rises", "order_end", "low_ratio", "high_ratio", "early_attends_many", "late_attends_few"),
    ),
    "norms mirrored around the start": (
        mirror_norms,
        ("early_falls", "late_rises", "order_end", "low_ratio", "high_ratio", "early_attends_many", "late_attends_few"),
    ),
}

#: Claims without a direction that could be reversed -> what they state instead.
UNDIRECTED: dict[str, str] = {
    **dict.fromkeys(("init_norm", "early_final_norm", "middle_final_norm", "late_final_norm"), "a level or a spread"),
    **dict.fromkeys(("few_stay_at_8", "two_regimes"), "a count of layers on both sides"),
    **dict.fromkeys(
        ("tokens", "size_88m", "size_80m", "dot_examples", "norm_examples", *(f"softmax_ex{n}" for n in range(1, 6))),
        "a size, a definition or a theorem",
    ),
}


@pytest.mark.parametrize("world", list(REVERSED))
def test_an_effect_that_is_reversed_is_not_reproduced(world: str, right: World, tmp_path) -> None:
    change, claims = REVERSED[world]
    verdict_by_claim = verdicts(World(tmp_path, arms=change(right.arms), before=right), OF_RUNS)[list(claims)]
    assert verdict_by_claim.eq("not reproduced").all(), verdict_by_claim


# Mutants of the code and of the paper, for what needs no training.


def no_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes_and_definitions.QKNorm, "forward", lambda self, q, k: (q, k))


def square_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that grow as the root of a key's length."""

    def scores(self, q, k):
        return q @ (k / k.norm(dim=-1, keepdim=True).sqrt()).repeat_interleave(2, 1).mT

    monkeypatch.setattr(sizes_and_definitions.Softmax, "scores", scores)


def normalise_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that no longer know how long keys are."""

    def scores(self, q, k):
        return q @ (k / k.norm(dim=-1, keepdim=True)).repeat_interleave(2, 1).mT

    monkeypatch.setattr(sizes_and_definitions.Softmax, "scores", scores)


def mean_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes_and_definitions, "dots", lambda a, b: (a * b).double().mean(-1))


def another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = sizes_and_definitions.paper("key_norms")
    model = msgspec.structs.replace(spec.model, layers=24, width=384, heads=6, head_width=32, key_value_heads=3)
    train = msgspec.structs.replace(spec.train, steps=2000, batch_tokens=2 * 2048)
    changed = msgspec.structs.replace(spec, model=model, train=train)
    monkeypatch.setattr(sizes_and_definitions, "paper", lambda study: changed)


def gain_divides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gain above 1 lowers the norm."""

    def forward(self, q, k):
        return q, k / k.norm(dim=-1, keepdim=True) * k.shape[-1] ** 0.5 / self.key_norm.gain

    monkeypatch.setattr(sizes_and_definitions.QKNorm, "forward", forward)


def longer_is_flatter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that fall as keys grow."""

    def scores(self, q, k):
        return q @ (k / k.norm(dim=-1, keepdim=True) ** 2).repeat_interleave(2, 1).mT

    monkeypatch.setattr(sizes_and_definitions.Softmax, "scores", scores)


#: Code that does the reverse of what a definition states.
REVERSED_CODE: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...]]] = {
    "a gain divides": (gain_divides, ("norm_equals_gain",)),
    "longer keys give smaller scores": (longer_is_flatter, ("norm_scales_logits", "temperature")),
    "sums are means": (mean_product, ("dot_sqrt_d",)),
}


@pytest.mark.parametrize("world", list(REVERSED_CODE))
def test_a_definition_that_is_reversed_is_not_reproduced(world: str, right: World, monkeypatch) -> None:
    change, claims = REVERSED_CODE[world]
    change(monkeypatch)
    assert verdicts(right, OF_CODE)[list(claims)].eq("not reproduced").all()


CODE_MUTANTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], set[str]]] = {
    "norm_equals_gain": (no_gain, {"norm_equals_gain"}),
    "norm_scales_logits": (square_root, {"norm_scales_logits"}),
    "temperature": (normalise_keys, {"norm_scales_logits", "temperature"}),
    "dot_sqrt_d": (mean_product, {"dot_sqrt_d", "dot_examples"}),
    "size_88m": (another_size, {"size_88m", "tokens"}),
}


@pytest.mark.parametrize("claim", list(CODE_MUTANTS))
def test_where_the_code_is_otherwise_a_definition_does_not_hold(claim, right, before, monkeypatch) -> None:
    change, follows = CODE_MUTANTS[claim]
    change(monkeypatch)
    verdict_by_claim = verdicts(right, OF_CODE)
    assert {name for name in verdict_by_claim.index if verdict_by_claim[name] != before[name]} == follows
    assert verdict_by_claim[claim] == "not reproduced"


def with_values(name: str, **values: Any) -> list[PaperClaim]:
    claim = next(claim for claim in CLAIMS if claim.id == name)
    return [replace(claim, values=claim.values | values)]


#: What the document could print instead, and what is then said of it.
PRINTED: list[tuple[str, dict[str, Any], str]] = [
    ("softmax_ex1", {"probs": [0.10, 0.24, 0.66]}, "not reproduced"),
    ("softmax_ex2", {"probs": [0.33, 0.37, 0.30]}, "reproduced"),
    ("softmax_ex3", {"probs": [0.9990, 0.0005, 0.0005]}, "not reproduced"),
    ("softmax_ex4", {"probs": [0.28, 0.38, 0.34]}, "not reproduced"),
    ("softmax_ex5", {"probs": [0.5, 0.25, 0.25]}, "not reproduced"),
    ("dot_examples", {"d2": 12, "d4": 17}, "not reproduced"),
    ("norm_examples", {"norms": [5, 10, 2.0]}, "not reproduced"),
    ("tokens", {"tokens_m": 16, "steps": 2000, "batch": 8, "seq": 1024}, "not reproduced"),
    ("size_88m", {"params_m": 89}, "reproduced"),
    ("size_80m", {"params_m": 89}, "reproduced"),
    ("init_norm", {"norm": 1.0}, "not reproduced"),
]

#: Claim -> values with which it is false; two are false as they are printed.
PRINTED_FALSE = {name: values for name, values, verdict in PRINTED if verdict == "not reproduced"}
PRINTED_FALSE |= {name: {} for name, verdict in AGAINST_ITSELF.items() if verdict == "not reproduced"}


@pytest.mark.parametrize(("name", "values", "verdict"), PRINTED)
def test_where_the_document_says_otherwise_the_arithmetic_tells(right: World, name, values, verdict) -> None:
    assert verdicts(right, with_values(name, **values))[name] == verdict


def test_beside_a_norm_stands_what_decay_does(right: World) -> None:
    row = rows_of(right).loc["early_falls"]
    assert "decay_alone = 2.475" in row["reproduced"] and "without_decay = 8.8" in row["reproduced"]
    assert row["runs"].split() == ["key_norms/base/as_published/s42", "key_norms/base/no_decay/s42"]


def test_a_missing_or_diverged_run_has_no_verdict(right: World, tmp_path) -> None:
    arms = right.arms | {"as_published": replace(right.arms["as_published"], outcome="diverged")}
    rows = rows_of(World(tmp_path / "a", arms=arms, before=right))
    assert rows.loc["early_falls", "verdict"] == "diverged" and rows.loc["softmax_ex1", "verdict"] == "reproduced"
    only = {"no_decay": right.arms["no_decay"]}
    rows = rows_of(World(tmp_path / "b", arms=only, before=right))
    assert rows.loc["early_falls", "verdict"] == "not tested" and "is missing" in rows.loc["early_falls", "why"]


def test_a_demo_speaks_only_about_sizes_and_definitions(tmp_path) -> None:
    verdict_by_claim = verdicts(World(tmp_path, "demo"))
    for name, measure in CHECKS.items():
        expected = "not judged (demo size)" if measure.scope == "training" else AGAINST_ITSELF.get(name, "reproduced")
        assert verdict_by_claim[name] == expected, name
