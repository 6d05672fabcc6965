"""Slower queries and keys, and a factor for all: what moves how much, when it ends, and that it survives anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from plumbline.core import frames
from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.model.decoder import create
from plumbline.train import run_optimizer
from plumbline.train.interventions import _until_release
from tests.model_specs import run_spec
from tests.train.intervention_cases import (
    ALWAYS,
    MODEL,
    NEVER,
    WINDOW,
    is_upper_query_or_key,
    roles,
    slow,
    spec,
    weights,
)
from tests.train.small_runs import read, settings, train


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Of every step that is made: the rate that was requested, and those of the slowed and the other parameters."""
    steps: list[dict[str, Any]] = []
    original = run_optimizer.RunOptimizer.step

    def step(self: run_optimizer.RunOptimizer, number: int, learning_rate: float, skip: torch.Tensor | None) -> None:
        original(self, number, learning_rate, skip)
        groups = self.inner.param_groups
        steps.append(
            {
                "step": number,
                "base": learning_rate,
                "slow": {group["lr"] for group in groups if any(group["labels"])},
                "decay": {group["weight_decay"] for group in groups if any(group["labels"]) and group["decay"]},
                "other": {group["lr"] for group in groups if not any(group["labels"])},
            }
        )

    monkeypatch.setattr(run_optimizer.RunOptimizer, "step", step)
    return steps


def test_a_multiplier_of_one_is_the_control_to_the_bit(packs: Path, tmp_path: Path, unslowed: Path) -> None:
    """Also the score that is read meanwhile changes nothing."""
    for name, intervention in (
        ("online", slow(multiplier=1.0, **ALWAYS)),
        ("fixed", slow(multiplier=1.0, release="fixed", release_at=0.3)),
        ("decay", slow(multiplier=1.0, scale_weight_decay=False)),
        ("factor", {"name": "learning_rate_factor", "factor": 1.0}),
    ):
        assert train(spec(intervention), settings(packs, tmp_path / name)) == 0
        mine, other = tmp_path / name / "out/model.safetensors", unslowed / "out/model.safetensors"
        assert sha256_file(mine) == sha256_file(other), name
        mine, other = (
            frames.read(path / "out/metrics.parquet", "metrics").fillna(-1.0) for path in (tmp_path / name, unslowed)
        )
        assert mine.equals(other)


class Descent:
    """Plain gradient descent, without decay: what an update is, is known to the bit."""

    def __init__(self, groups: list[dict[str, Any]], spec: Any, **options: Any) -> None:
        self.param_groups, self.state = groups, {}
        self.updates: dict[torch.Tensor, torch.Tensor] = {}

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            for value in group["params"]:
                self.updates[value] = value.grad * group["lr"]
                value.sub_(self.updates[value])

    def zero_grad(self) -> None:
        for group in self.param_groups:
            for value in group["params"]:
                value.grad = None


@pytest.mark.parametrize("include_bias", [True, False])
def test_one_step_moves_upper_queries_and_keys_by_a_quarter(
    packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, include_bias: bool
) -> None:
    """And nothing else differs by a bit."""
    updates: list[dict[str, torch.Tensor]] = []
    original = run_optimizer.RunOptimizer.step

    def step(self: run_optimizer.RunOptimizer, number: int, learning_rate: float, skip: torch.Tensor | None) -> None:
        original(self, number, learning_rate, skip)
        updates.append({name: self.inner.updates[value].clone() for name, value in self.parameters.items()})

    monkeypatch.setattr(run_optimizer.RunOptimizer, "step", step)
    monkeypatch.setattr(run_optimizer, "load", lambda kind, name: Descent)
    short = {"train__steps": 1, "schedule": {"name": "constant", "warmup_steps": 0}, "optimizer__learning_rate": 0.3}
    window = {"window_start": 1.0, "window_end": 1.0, "include_bias": include_bias}
    for name, chosen in (("control", spec(**short)), ("slowed", spec(slow(**window), **short))):
        assert train(chosen, settings(packs, tmp_path / name)) == 0
    start = dict(create(spec(**short).model, 42).named_parameters())
    control, slowed = weights(tmp_path / "control"), weights(tmp_path / "slowed")
    selected = set()
    for name, role in roles(spec(**short)).items():
        assert updates[0][name].any(), f"{name} must move for this to mean anything"
        if is_upper_query_or_key(role) and (include_bias or not role.owner):
            selected.add((role.layer, role.role, role.owner))
            assert torch.equal(updates[1][name], 0.25 * updates[0][name]), name
            assert torch.equal(slowed[name], start[name].detach() - 0.25 * updates[0][name]), name
            assert not torch.equal(slowed[name], control[name])
        else:
            assert torch.equal(slowed[name], control[name]), name
    assert len(selected) == (8 if include_bias else 4)


@pytest.mark.parametrize(
    "options, slowed",
    [
        ({}, {(layer, role) for layer in (2, 3) for role in ("query", "key", "bias of query", "bias of key")}),
        ({"include_bias": False}, {(layer, role) for layer in (2, 3) for role in ("query", "key")}),
        ({"roles": "query", "include_bias": False, "half": "all"}, {(layer, "query") for layer in range(4)}),
        ({"roles": "value, output", "include_bias": False}, {(2, "value"), (3, "value"), (2, "output"), (3, "output")}),
    ],
)
def test_parameters_are_selected_by_role_and_layer(packs: Path, tmp_path: Path, options: Any, slowed: set) -> None:
    """A rate of next to nothing for the whole run keeps what is selected where it started."""
    chosen = spec(slow(multiplier=1e-300, release="never", **options), train__steps=2, schedule__warmup_steps=0)
    assert train(chosen, settings(packs, tmp_path)) == 0
    start, end = dict(create(chosen.model, 42).named_parameters()), weights(tmp_path)
    stayed = {
        (role.layer, f"bias of {role.owner}" if role.owner else role.role)
        for name, role in roles(chosen).items()
        if torch.equal(start[name], end[name])
    }
    assert stayed == slowed


def test_an_odd_number_of_layers_counts_the_middle_one_as_upper(packs: Path, tmp_path: Path) -> None:
    chosen = run_spec(
        model=MODEL | {"layers": 3}, interventions=[slow(multiplier=1e-300, release="never")], train__steps=3
    )
    assert train(chosen, settings(packs, tmp_path)) == 0
    start, end = dict(create(chosen.model, 42).named_parameters()), weights(tmp_path)
    stayed = {role.layer for name, role in roles(chosen).items() if torch.equal(start[name], end[name])}
    assert stayed == {1, 2}


def test_the_rate_is_a_quarter_until_the_release_and_then_ramps(packs: Path, tmp_path: Path, rates: list) -> None:
    """Released at the window's start (4) and two evaluations, where the score is clamped to reach any limit."""
    assert train(spec(slow(**ALWAYS)), settings(packs, tmp_path)) == 0
    assert [entry["step"] for entry in rates] == list(range(1, 25))
    assert all(entry["other"] == {entry["base"]} for entry in rates)
    share = [1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6]
    expected = [0.25] * 8 + [0.25 + 0.75 * part for part in share] + [1.0] * 11
    assert [entry["slow"] for entry in rates] == [{entry["base"] * factor} for entry, factor in zip(rates, expected)]
    assert {factor for entry in rates for factor in entry["decay"]} == {0.1}
    logged = frames.read(tmp_path / "out/metrics.parquet", "metrics")
    assert logged[logged.split == "train"].learning_rate.tolist() == [entry["base"] for entry in rates]
    assert read(tmp_path / "out/outcome.json")["interventions"] == [{"released": 8, "fraction": 8 / 24, "why": "score"}]


def test_decay_can_be_kept_at_its_own_rate(packs: Path, tmp_path: Path, rates: list) -> None:
    """lr x wd is then what it is without the intervention."""
    assert train(spec(slow(scale_weight_decay=False, **ALWAYS)), settings(packs, tmp_path)) == 0
    for entry in rates:
        (rate,), (decay,) = entry["slow"], entry["decay"]
        assert rate * decay == pytest.approx(entry["base"] * 0.1, rel=1e-12)
    assert rates[0]["decay"] == {0.4} and rates[-1]["decay"] == {0.1}


def test_score_that_never_gets_there_is_forced_at_end_of_window(packs: Path, tmp_path: Path, rates) -> None:
    assert train(spec(slow(**NEVER)), settings(packs, tmp_path)) == 0
    assert read(tmp_path / "out/outcome.json")["interventions"] == [{"released": 12, "fraction": 0.5, "why": "forced"}]
    assert [entry["slow"] == {0.25 * entry["base"]} for entry in rates[:13]] == [True] * 12 + [False]


@pytest.mark.parametrize("clamped, released, why", [(1.0, 8, "score"), (0.0, 24, "forced")])
def test_the_documents_fractions_on_200_steps(
    packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clamped: float, released: int, why: str
) -> None:
    """Every step is an evaluation: 3 % is step 6, two evaluations later step 8, and 12 % is step 24."""
    monkeypatch.setattr(_until_release, "lower_copy_score", lambda *arguments, **options: (clamped, 0.05))
    chosen = run_spec(
        model=MODEL | {"layers": 2}, interventions=[{"name": "slow_query_key"}], train__steps=200,
        train__validate_every=200, train__batch_tokens=32,
    )  # fmt: skip
    assert train(chosen, settings(packs, tmp_path)) == 0
    assert read(tmp_path / "out/outcome.json")["interventions"] == [
        {"released": released, "fraction": released / 200, "why": why}
    ]
    logged = frames.read(tmp_path / "out/points/online.parquet", "probes")
    assert logged.step.tolist() == list(range(25)) and set(logged.value) == {clamped}


def test_fixed_releases_need_no_score(packs: Path, tmp_path: Path, rates: list, monkeypatch) -> None:
    monkeypatch.setattr(_until_release, "lower_copy_score", lambda *arguments, **options: pytest.fail("was read"))
    chosen = spec(slow(release="fixed", release_at=0.25, ramp=0.0))
    assert train(chosen, settings(packs, tmp_path)) == 0
    factors = [entry["slow"] == {0.25 * entry["base"]} for entry in rates]
    assert factors == [True] * 6 + [False] * 18
    assert all(entry["slow"] == {entry["base"]} for entry in rates[6:])
    assert read(tmp_path / "out/outcome.json")["interventions"] == [{"released": 6, "fraction": 0.25, "why": "fixed"}]
    assert len(frames.read(tmp_path / "out/points/online.parquet", "probes")) == 0


def test_half_the_rate_for_all_is_half_the_rate_in_the_recipe(packs: Path, tmp_path: Path, rates: list) -> None:
    assert train(spec({"name": "learning_rate_factor"}), settings(packs, tmp_path / "factor")) == 0
    assert all(entry["slow"] == {0.5 * entry["base"]} and not entry["other"] for entry in rates)
    assert read(tmp_path / "factor/out/outcome.json")["interventions"] == [
        {"released": None, "fraction": None, "why": None}
    ]
    recipe = spec(optimizer__learning_rate=0.0015)
    assert train(recipe, settings(packs, tmp_path / "recipe")) == 0
    mine, other = weights(tmp_path / "factor"), weights(tmp_path / "recipe")
    assert all(torch.equal(value, other[name]) for name, value in mine.items())


def test_scores_are_logged_where_tables_find_them(packs: Path, tmp_path: Path, slowed: Path, capfd) -> None:
    """In the frame of online probe values, in the state's log, and on stderr with the limit that is used."""
    from plumbline.data.loader import Pack
    from plumbline.train.interventions._release_rule import ReleaseRule, find_release_step
    from plumbline.train.interventions._until_release import lower_copy_score

    logged = frames.read(slowed / "out/points/online.parquet", "probes")
    assert logged.step.tolist() == [0, 2, 4, 6, 8, 10, 12], "to the end of the window, so that others can be replayed"
    assert set(logged.probe) == {"release_score"} and logged.layer.isna().all() and set(logged.source) == {"online"}
    tokens_BT = torch.from_numpy(Pack(packs / "validation.json").rows(np.arange(10, 14)))
    chosen = spec(slow(**ALWAYS))
    expected = lower_copy_score(create(chosen.model, chosen.init_seed), tokens_BT)
    assert (logged.value[0], logged.null[0]) == expected and logged.null.nunique() == 1
    assert expected[0] == pytest.approx(expected[1], rel=0.1), "at the start, attention is nearly uniform"
    assert logged.value.nunique() == 7
    rule = ReleaseRule(
        release="online", **{key: value for key, value in (WINDOW | ALWAYS).items() if key != "sequences"}
    )
    replayed = list(zip(logged.step, logged.value, logged.null))
    assert find_release_step(replayed, rule, 24) == 8
    events = [json.loads(line) for line in (slowed / "state/progress.jsonl").read_text().splitlines()]
    events = [event for event in events if event["event"] == "release_score"]
    assert [(event["step"], event["counter"], event["released"]) for event in events] == [
        (0, 0, False), (2, 0, False), (4, 1, False), (6, 2, False), (8, 3, True), (10, 4, True), (12, 5, True),
    ]  # fmt: skip
    assert [event["score"] for event in events] == logged.value.tolist()
    assert train(spec(slow(**ALWAYS), train__steps=12), settings(packs, tmp_path)) == 0
    stderr = capfd.readouterr().err
    assert "slow_query_key: until the lower-copy score" in stderr
    assert "slow_query_key: released after step 4 (33.33%" in stderr


def test_scores_come_with_what_probes_read(packs: Path, tmp_path: Path) -> None:
    """Into one frame with values at probe points; only the intervention reads anything online here."""
    from plumbline.evaluate.probes._offline import read_run

    probed = spec(slow(**ALWAYS), probes=[{"name": "query_key_norms", "at": [1.0], "sequences": 2}])
    assert train(probed, settings(packs, tmp_path)) == 0
    rows = read_run(tmp_path / "out", packs / "validation.json", torch.device("cpu")).rows
    assert [row["step"] for row in rows if row["probe"] == "release_score"] == [0, 2, 4, 6, 8, 10, 12]
    assert {row["probe"]: row["source"] for row in rows} == {
        "query_norm": "offline",
        "key_norm": "offline",
        "release_score": "online",
    }


@pytest.mark.parametrize(
    "intervention, message",
    [
        (slow(multiplier=0.0), r"slow_query_key.multiplier \(0\) must be above 0.*'freeze'"),
        (slow(roles="query,keys"), "role 'keys'; did you mean 'key'"),
        (slow(roles="attention_gate"), "no layer from 2.*'attention_gate'"),
        (slow(sequences=31), r"slow_query_key reads 31 held-out sequences, and 30 of \S+ lie behind the 10 of"),
        (slow(sequences=0), r"\(0\) must be 1 or more"),
        (slow(window_start=0.6), r"window_start \(0.6\) and window_end \(0.5\)"),
        ({"name": "learning_rate_factor", "factor": -1.0}, r"learning_rate_factor.factor \(-1\)"),
    ],
)
def test_what_cannot_be_meant_is_told_before_the_first_step(packs: Path, tmp_path: Path, intervention, message) -> None:
    with pytest.raises(PlumblineError, match=message):
        train(spec(intervention), settings(packs, tmp_path))
    assert read(tmp_path / "state/fault.json")["reason"]


def test_validation_text_without_repetitions_is_told(packs: Path, tmp_path: Path) -> None:
    from tests.train.small_runs import write_pack

    write_pack(tmp_path / "once.json", np.tile(np.arange(32), (40, 1)))
    with pytest.raises(PlumblineError, match=r"many sequences of .*once.json"):
        train(spec(slow()), settings(packs, tmp_path, validation_pack=tmp_path / "once.json"))
    assert not list((tmp_path / "state").glob("step-*"))
