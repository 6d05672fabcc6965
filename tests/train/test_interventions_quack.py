"""QuacK: what each rate depends on, that it is a rate, where it starts, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.core.files import sha256_file
from plumbline.model.decoder import Decoder, create
from plumbline.model.roles import QUERY_KEY
from plumbline.specs.spec import RunSpec
from plumbline.train.interventions import Intervention
from plumbline.train.interventions._heads import QueryKeyMatrices
from plumbline.train.interventions.quack import Quack
from plumbline.train.run_optimizer import RunOptimizer
from tests.model_specs import run_spec
from tests.train.intervention_cases import (
    ADAMW,
    KINDS,
    LATENT,
    MANY_HEADS,
    MUON,
    SHARED_KEYS,
    attach_hooks,
    parameter,
    weights,
)
from tests.train.small_runs import read, settings, train

OPTIMIZERS = {"adamw": ADAMW, "muon": MUON}


def quack(**options: Any) -> dict[str, Any]:
    return {"name": "quack"} | options


def ablation(tau: float) -> dict[str, Any]:
    return {"name": "query_key_rate", "tau": tau}


def make_spec(model: dict[str, Any], *interventions: dict[str, Any], optimizer: str = "adamw") -> RunSpec:
    return run_spec(model=model, optimizer=OPTIMIZERS[optimizer], interventions=list(interventions))


def trainer(spec: RunSpec) -> tuple[Decoder, RunOptimizer]:
    """A model and its optimizer before step 1. Biases are not where they start, so that decay moves them."""
    model = create(spec.model, spec.init_seed)
    hooks = attach_hooks(spec, model)
    with torch.no_grad():
        for name, role in model.parameter_roles.items():
            if role.role == "bias":
                model.get_parameter(name).add_(0.1)
    for hook in hooks:
        hook.begin(1)
    return model, RunOptimizer(model, model.parameter_roles, spec.optimizer, hooks)


def step(model: Decoder, optimizer: RunOptimizer, number: int = 1) -> dict[str, torch.Tensor]:
    """One update by made-up gradients; returns what it added to each parameter."""
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    generator = torch.Generator().manual_seed(number)
    for value in model.parameters():
        value.grad = torch.randn(value.shape, generator=generator)
    optimizer.step(number, 0.01)
    optimizer.zero_grad()
    return {name: value.detach() - before[name] for name, value in model.named_parameters()}


def rates(model: Decoder, hook: Quack) -> dict[str, list[float]]:
    """Role -> multiplier of each block of the first layer's matrix; all rows of a block have the same one."""
    by_role, by_row = {}, hook.row_multipliers(1)
    for role, (own, *_) in hook.heads.names.items():
        rows_NX = by_row[own[0]].unflatten(0, (hook.heads.blocks[role], -1))
        assert (rows_NX == rows_NX[:, :1]).all()
        assert all(torch.equal(by_row[name], by_row[own[0]]) for name in own), "a bias goes with its matrix"
        by_role[role] = rows_NX[:, 0].tolist()
    return by_role


def start_quack(model: dict[str, Any], **options: Any) -> tuple[Decoder, Quack]:
    of = make_spec(model, quack(**options))
    decoder = create(of.model, of.init_seed)
    (hook,) = attach_hooks(of, decoder)
    hook.begin(1)
    return decoder, hook


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("tau", [0.1, 10.0])
def test_the_first_step_is_the_ablations(kind: str, optimizer: str, tau: float) -> None:
    """With the same tau, decay and biases included; and it moves queries and keys tau times as far as the control."""
    control, fixed, ours = (
        step(*trainer(make_spec(KINDS[kind], *interventions, optimizer=optimizer)))
        for interventions in ([], [ablation(tau)], [quack(tau=tau)])
    )
    model = create(make_spec(KINDS[kind]).model, 0)
    for name, role in model.parameter_roles.items():
        assert control[name].abs().max() > 0
        if {role.role, role.owner} & QUERY_KEY:
            torch.testing.assert_close(ours[name], fixed[name], rtol=1e-4, atol=tau * 1e-7)
            torch.testing.assert_close(ours[name], tau * control[name], rtol=1e-4, atol=tau * 1e-7)
        else:
            assert torch.equal(ours[name], control[name]), name
            assert torch.equal(fixed[name], control[name]), name


@pytest.mark.parametrize("tau", [1.0, 0.01])
def test_head_of_keys_twice_as_long_halves_rate_of_its_queries(tau: float) -> None:
    """And the other way round; no other head, layer or matrix feels it."""
    for role, other in (("key", "query"), ("query", "key")):
        model, hook = start_quack(MANY_HEADS, tau=tau)
        assert rates(model, hook) == {"query": [tau] * 4, "key": [tau] * 4}
        with torch.no_grad():
            parameter(model, role).unflatten(0, (4, 8))[2].mul_(2.0)
        assert rates(model, hook) == {other: [tau, tau, tau / 2, tau], role: [tau] * 4}
        upper = [name for name, own in model.parameter_roles.items() if own.layer == 1]
        by_row = hook.row_multipliers(1)
        assert all((by_row[name] == tau).all() for name in upper if name in by_row)


def test_shared_keys_take_smallest_ratio_of_their_query_heads() -> None:
    """Heads 0 and 1 read the first head of keys, heads 2 and 3 the second."""
    model, hook = start_quack(SHARED_KEYS)
    with torch.no_grad():
        parameter(model, "query").unflatten(0, (4, 8))[1].mul_(4.0)
        parameter(model, "query").unflatten(0, (4, 8))[2].mul_(0.5)
        parameter(model, "key").unflatten(0, (2, 8))[1].mul_(2.0)
    assert rates(model, hook) == {"query": [1.0, 1.0, 0.5, 0.5], "key": [0.25, 1.0]}


@pytest.mark.parametrize(
    "role, halved",
    [
        ("key_value_down", {"query_up", "key_up", "query_down"}),
        ("query_down", {"query_up", "key_up", "query_rotary", "key_value_down", "key_rotary"}),
        ("key_rotary", {"query_rotary"}),
        ("key_up", {"query_up", "query_down", "key_value_down"}),
        ("query_rotary", {"key_rotary"}),
    ],
)
def test_latent_rates_fall_with_what_a_matrix_is_multiplied_with(role: str, halved: set[str]) -> None:
    """Where the content term is the larger one, so that it is W_dq's."""
    model, hook = start_quack(LATENT)
    with torch.no_grad():
        for own in ("query_up", "key_up"):
            parameter(model, own).mul_(8.0)
    hook.begin(1)
    assert all(set(by_name) == {1.0} for by_name in rates(model, hook).values())
    with torch.no_grad():
        parameter(model, role).mul_(2.0)
    by_name = rates(model, hook)
    assert {name for name, values in by_name.items() if set(values) == {0.5}} == halved
    assert {name for name, values in by_name.items() if set(values) == {1.0}} == by_name.keys() - halved


def test_latent_rates_are_those_of_algorithm_2() -> None:
    """Written out head by head from the factors as the paper has them, at weights that have moved."""
    model, hook = start_quack(LATENT, largest_ratio=1e9)
    roles = ("query_down", "query_up", "query_rotary", "key_value_down", "key_up", "key_rotary")

    def factors() -> dict[str, list[float]]:
        dq, uq, qr, dkv, uk, kr = (parameter(model, role).detach().double() for role in roles)
        by_head = range(4)
        uq, qr, uk = ([x[4 * h : 4 * h + 4].norm().item() for h in by_head] for x in (uq, qr, uk))
        dq, dkv, kr = (x.norm().item() for x in (dq, dkv, kr))
        content, rotary = max(uq[h] * uk[h] for h in by_head), max(qr)
        return {
            "query_up": [1 / (dq * uk[h] * dkv) for h in by_head],
            "key_up": [1 / (uq[h] * dq * dkv) for h in by_head],
            "query_rotary": [1 / (dq * kr)] * 4,
            "query_down": [min(1 / (content * dkv), 1 / (rotary * kr))],
            "key_value_down": [1 / (content * dq)],
            "key_rotary": [1 / (rotary * dq)],
        }

    start = factors()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for role in roles:
            value = parameter(model, role)
            value.mul_(torch.rand(len(value), 1, generator=generator) * 4)
    now = factors()
    for role, values in rates(model, hook).items():
        assert values == pytest.approx([mine / first for mine, first in zip(now[role], start[role])], rel=1e-6), role
        assert not all(value == pytest.approx(1.0, rel=0.01) for value in values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_norms_that_stay_give_the_ablations_run(kind: str, optimizer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several steps with momentum and decay; with norms that move it is another run."""
    runs = {}
    for name, intervention in (("fixed", ablation(0.5)), ("ours", quack(tau=0.5)), ("frozen", quack(tau=0.5))):
        model, optimizer_of = trainer(make_spec(KINDS[kind], intervention, optimizer=optimizer))
        if name == "frozen":
            (hook,) = optimizer_of.interventions
            monkeypatch.setattr(hook.heads, "norms", lambda norm, start=hook.start: start)
        for number in range(1, 6):
            step(model, optimizer_of, number)
        runs[name] = {key: value.detach().clone() for key, value in model.named_parameters()}
    for key, value in runs["fixed"].items():
        torch.testing.assert_close(runs["frozen"][key], value, rtol=1e-5, atol=1e-6)
    assert any((runs["ours"][key] - value).abs().max() > 1e-4 for key, value in runs["fixed"].items())


class Ones(Intervention):
    """A rate of 1 for every row of every parameter."""

    def attach(self, run: Any) -> None:
        self.rows = {name: torch.ones(len(value), dtype=torch.float64) for name, value in run.model.named_parameters()}

    def row_multipliers(self, step: int) -> dict[str, torch.Tensor]:
        return self.rows


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_rates_of_one_keep_every_bit(packs: Path, tmp_path: Path, monkeypatch, optimizer: str) -> None:
    from plumbline.train import interventions

    control, method = make_spec(SHARED_KEYS, optimizer=optimizer), make_spec(SHARED_KEYS, quack(), optimizer=optimizer)
    assert train(control, settings(packs, tmp_path / "control")) == 0
    ones = {"query": torch.ones(2, 4, dtype=torch.float64), "key": torch.ones(2, 2, dtype=torch.float64)}
    monkeypatch.setattr(QueryKeyMatrices, "norms", lambda self, norm: ones)
    assert train(method, settings(packs, tmp_path / "held")) == 0
    monkeypatch.setattr(interventions, "build", lambda specs: [Ones()])
    assert train(control, settings(packs, tmp_path / "ones")) == 0
    first, *others = (sha256_file(tmp_path / name / "out/model.safetensors") for name in ("control", "held", "ones"))
    assert others == [first, first]


def test_several_multipliers_of_a_row_multiply() -> None:
    """A quarter and a half of the rate, by row and by parameter, whatever their order."""
    control = step(*trainer(make_spec(MANY_HEADS)))
    for interventions in ([quack(tau=0.25), ablation(0.5)], [ablation(0.5), quack(tau=0.5), quack(tau=0.5)]):
        changes = step(*trainer(make_spec(MANY_HEADS, *interventions)))
        name = "blocks.1.attention.projections.query.weight"
        torch.testing.assert_close(changes[name], 0.125 * control[name], rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("norm", ["frobenius", "spectral"])
def test_norms_are_those_of_linear_algebra(norm: str) -> None:
    for model in (SHARED_KEYS, LATENT):
        _, hook = start_quack(model, norm=norm)
        for role, blocks in hook.heads.blocks.items():
            for layer, own in enumerate(hook.heads.names[role]):
                matrix = hook.heads.parameters[own[0]].detach().double().unflatten(0, (blocks, -1))
                expected = torch.linalg.matrix_norm(matrix, ord={"frobenius": "fro", "spectral": 2}[norm])
                torch.testing.assert_close(hook.start[role][layer], expected, rtol=1e-12, atol=0.0)


def test_a_ratio_has_a_limit_and_its_hits_are_counted(packs: Path, tmp_path: Path) -> None:
    """Keys that vanish would make the rate of their queries infinite."""
    model, hook = start_quack(MANY_HEADS, tau=0.5, largest_ratio=4.0)
    with torch.no_grad():
        parameter(model, "key").unflatten(0, (4, 8))[0].mul_(0.25)
        parameter(model, "key").unflatten(0, (4, 8))[1].mul_(0.125)
        parameter(model, "key").unflatten(0, (4, 8))[3].zero_()
    assert rates(model, hook) == {"query": [2.0, 2.0, 0.5, 2.0], "key": [0.5] * 4}
    report = hook.report(1)
    assert report["ratios_clamped"] == 2 and report["ratio_lowest"] == 1.0 and report["ratio_highest"] > 1e300
    json.dumps(hook.state(), allow_nan=False)
    assert train(make_spec(MANY_HEADS, quack(largest_ratio=1.0)), settings(packs, tmp_path)) == 0
    (report,) = read(tmp_path / "out/outcome.json")["interventions"]
    assert report["ratios_clamped"] > 0 and report["ratio_lowest"] < 1.0 < report["ratio_highest"]


def test_queries_and_keys_drift_less_than_without_norms(packs: Path, tmp_path: Path) -> None:
    """At a rate at which weights grow, the ratios fall, and with them what the weights do."""
    fast = {"optimizer__learning_rate": 0.03, "train__steps": 24, "model": MANY_HEADS}
    sizes = {}
    for name, intervention in (("ours", quack()), ("fixed", ablation(1.0))):
        assert train(run_spec(interventions=[intervention], **fast), settings(packs, tmp_path / name)) == 0
        own = weights(tmp_path / name)
        sizes[name] = sum(float(value.norm()) for key, value in own.items() if "query.weight" in key)
    (report,) = read(tmp_path / "ours/out/outcome.json")["interventions"]
    assert report["ratio_lowest"] < 0.7
    assert sizes["ours"] < 0.95 * sizes["fixed"]


@pytest.mark.parametrize(
    "changes, options, message",
    [
        ({}, {"tau": 0.0}, r"quack.tau \(0\) must be above 0"),
        ({}, {"largest_ratio": 0.5}, r"quack.largest_ratio \(0.5\) must be 1"),
        (
            {"projections": {"name": "identity_query"}},
            {},
            r"'identity_query', the matrices .* have the roles \['key'\]",
        ),
        ({"projections": {"name": "residual_query"}}, {}, r"'residual_query' and .* .* linear"),
        ({"query_key": {"name": "qk_norm"}}, {}, r"query_key 'qk_norm', .*linear"),
    ],
)
def test_what_cannot_be_meant_is_told_before_the_first_step(packs, tmp_path: Path, changes, options, message) -> None:
    with pytest.raises(PlumblineError, match=f"interventions: quack.*{message}" if not options else message):
        train(make_spec(MANY_HEADS | changes, quack(**options)), settings(packs, tmp_path))
    assert read(tmp_path / "state/fault.json")["reason"]


def test_weights_that_start_at_zero_have_no_ratio() -> None:
    model, hook = start_quack(MANY_HEADS)
    with torch.no_grad():
        parameter(model, "key", 1).unflatten(0, (4, 8))[2].zero_()
    with pytest.raises(PlumblineError, match="role 'key' start"):
        hook.begin(1)


def test_the_ablation_needs_something_to_slow() -> None:
    with pytest.raises(PlumblineError, match=r"query_key_rate.tau \(0\) must be above 0"):
        attach_hooks(make_spec(MANY_HEADS, ablation(0.0)), create(make_spec(MANY_HEADS).model, 0))
