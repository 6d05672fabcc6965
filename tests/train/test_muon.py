"""Muon: the orthogonalisation, its conventions, what goes to AdamW, and its state; and parameters that are frozen."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from plumbline.core.errors import PlumblineError
from plumbline.core.stop_request import StopRequest
from plumbline.model.decoder import create
from plumbline.model.distributed import join_ranks
from plumbline.model.roles import ATTENTION, MATRICES, ORTHOGONALISED, OTHERS, ParameterRole
from plumbline.specs.components import options
from plumbline.train.interventions import Intervention, build
from plumbline.train.optimizers._orthogonal import POLAR_EXPRESS, QUINTIC, orthogonalise
from plumbline.train.optimizers.muon import Muon
from plumbline.train.pretrain import build_loop
from plumbline.train.run_optimizer import RunOptimizer
from tests.model_specs import RUN, run_spec
from tests.operator_calls import Calls
from tests.train.small_runs import read, settings, train, train_ranks
from tests.train.test_distributed import assert_alike

#: The small run's optimizer with another name; AdamW's options are the same.
MUON: dict[str, Any] = RUN["optimizer"] | {"name": "muon", "learning_rate": 0.02}

RATE = 0.01

#: Where five steps bring singular values of 0.002 to 1 of the Frobenius norm: the polynomials, followed on a fine grid
#: (0.7 to 1.2, as its author has it).
QUINTIC_BAND = (0.681, 1.203)
POLAR_BAND = (0.858, 1.142)


def build_muon(*hooks: Intervention, **chosen: Any) -> tuple[torch.nn.Module, RunOptimizer]:
    """The small run's model and its Muon, some options changed."""
    spec = run_spec(optimizer=MUON | chosen)
    model = create(spec.model, spec.init_seed)
    return model, RunOptimizer(model, model.parameter_roles, spec.optimizer, hooks)


def gradients(seed: int) -> Callable[[torch.Tensor], torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return lambda value: torch.randn(value.shape, generator=generator)


def step(
    model: torch.nn.Module, optimizer: RunOptimizer, number: int = 1, factor: float = 1.0
) -> dict[str, torch.Tensor]:
    """One update by made-up gradients; returns what it added to each parameter."""
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    draw = gradients(number)
    for value in model.parameters():
        value.grad = factor * draw(value)
    optimizer.step(number, RATE)
    optimizer.zero_grad()
    return {name: value.detach() - before[name] for name, value in model.named_parameters()}


def name_of(model: torch.nn.Module, role: str, layer: int | None = 0) -> str:
    return next(key for key, value in model.parameter_roles.items() if (value.role, value.layer) == (role, layer))


def matrix(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


class TestOrthogonalisation:
    @pytest.mark.parametrize("shape", [(64, 64), (96, 32), (32, 96)])
    @pytest.mark.parametrize(
        ("coefficients", "margin", "band"), [((QUINTIC,) * 5, 1.0, QUINTIC_BAND), (POLAR_EXPRESS, 1.01, POLAR_BAND)]
    )
    def test_against_the_singular_value_decomposition(self, shape, coefficients, margin, band):
        """The singular vectors stay as they are, and the values come into the band."""
        u, values, vt = torch.linalg.svd(matrix(*shape), full_matrices=False)
        values = torch.logspace(0, -1.5, len(values))  # known, and none too near zero
        result = orthogonalise(u @ values.diag() @ vt, coefficients, margin)
        moved = u.T @ result @ vt.T
        assert (moved - moved.diagonal().diag()).abs().max() < 1e-4
        assert moved.diagonal().min() > band[0] and moved.diagonal().max() < band[1]

    def test_a_matrix_of_rank_one_has_a_spectral_norm_of_about_one(self):
        result = orthogonalise(torch.outer(matrix(30), matrix(50, seed=1)), (QUINTIC,) * 5)
        first, second, *_ = torch.linalg.svdvals(result).tolist()
        assert QUINTIC_BAND[0] < first < QUINTIC_BAND[1] and second < 1e-4

    def test_a_matrix_of_zeros_stays(self):
        assert not orthogonalise(torch.zeros(3, 5), POLAR_EXPRESS).any()

    def test_in_bfloat16_it_is_torchs(self):
        """Except for where the norm is rounded, which moves a matrix by as much as bfloat16 itself: a fiftieth."""
        gradient = matrix(96, 64)
        result = orthogonalise(gradient, (QUINTIC,) * 5, narrow=True)
        torchs = torch.zeros(96, 64, requires_grad=True)
        torchs.grad = gradient
        torch.optim.Muon([torchs], lr=1.0, weight_decay=0.0, momentum=0.0, nesterov=False).step()
        torchs = -torchs.detach() / math.sqrt(96 / 64)
        exact = orthogonalise(gradient, (QUINTIC,) * 5)
        assert result.dtype == torch.float32
        for other in (torchs, exact):
            assert (result - other).norm() < 0.03 * other.norm()


@pytest.mark.parametrize(
    ("precision", "device", "dtype"),
    [
        ("bfloat16", "meta", torch.bfloat16),
        ("bfloat16_products", "meta", torch.bfloat16),
        ("float32", "meta", torch.float32),
        ("bfloat16", "cpu", torch.float32),
    ],
)
def test_its_products_go_by_the_device_and_the_runs_precision(monkeypatch, precision, device, dtype):
    """The meta device stands for a GPU."""
    monkeypatch.setattr(Muon, "adamw_update", lambda *args, **more: None)
    spec = run_spec(optimizer=MUON)
    model = create(spec.model, spec.init_seed).to(device)
    optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer, precision=precision)
    for value in model.parameters():
        value.grad = torch.ones_like(value)
    with Calls() as calls:
        optimizer.step(1, RATE)
    products = [types for name, types in calls.made if name in ("mm", "addmm")]
    assert len(products) > 10 and {kind for types in products for kind in types} == {dtype}


@pytest.mark.parametrize("precision", ["float32", "bfloat16_products"])
def test_a_run_tells_its_optimizer_how_precise_it_is(packs: Path, tmp_path: Path, precision: str) -> None:
    spec = run_spec(optimizer=MUON, train__precision=precision)
    with join_ranks("cpu") as group:
        loop = build_loop(spec, settings(packs, tmp_path), StopRequest(), group)
    assert loop.parts.optimizer.inner.narrow == (precision != "float32")


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("scale", ["original", "match_rms_adamw"])
def test_matrices_move_as_with_torchs_muon(monkeypatch, nesterov, scale):
    """Three steps with momentum and weight decay, in float32."""
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    model, optimizer = build_muon(matrices="separate", nesterov=nesterov, scale=scale, momentum=0.9)
    copy, _ = build_muon()
    names = [name for name, role in model.parameter_roles.items() if role.role in ORTHOGONALISED]
    assert len(names) == 2 * 7
    reference = torch.optim.Muon(
        [copy.get_parameter(name) for name in names],
        lr=RATE,
        weight_decay=0.1,
        momentum=0.9,
        nesterov=nesterov,
        adjust_lr_fn=scale,
    )
    for number in (1, 2, 3):
        step(model, optimizer, number)
        draw = gradients(number)
        for value in copy.parameters():
            value.grad = draw(value)
        reference.step()
    for name in names:
        torch.testing.assert_close(model.get_parameter(name), copy.get_parameter(name), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("scale", "factor"),
    [
        ("none", lambda r, c: 1.0),
        ("original", lambda r, c: math.sqrt(max(1.0, r / c))),
        ("match_rms_adamw", lambda r, c: 0.2 * math.sqrt(max(r, c))),
    ],
)
def test_conventions_of_scale(scale, factor):
    """The update of a matrix and of a stack: their shapes give the factor, and decay knows nothing of it."""
    plain, scaled = (step(*build_muon(scale=name, weight_decay=0.0)) for name in ("none", scale))
    model, _ = build_muon()
    shapes = {"up": (48, 32), "down": (32, 48), "query": (32 + 2 * 16 + 32, 32)}  # 4 heads of 8, 2 of keys and values
    for role, (rows, columns) in shapes.items():
        name = name_of(model, role)
        torch.testing.assert_close(scaled[name], factor(rows, columns) * plain[name], rtol=1e-3, atol=1e-7)
    decayed = step(*build_muon(scale=scale, weight_decay=0.5))
    name = name_of(model, "up")
    expected = scaled[name] - RATE * 0.5 * model.get_parameter(name).detach()
    torch.testing.assert_close(decayed[name], expected, rtol=1e-3, atol=1e-6)


def test_the_scale_of_a_gradient_does_not_matter():
    first, second = step(*build_muon()), step(*build_muon(), factor=1000.0)
    model, _ = build_muon()
    for name, role in model.parameter_roles.items():
        if role.role in ORTHOGONALISED:
            torch.testing.assert_close(first[name], second[name], rtol=1e-4, atol=1e-7)


def test_attention_is_orthogonalised_as_one_matrix():
    """Query, key, value and output weights of a layer, stacked; the key_norms study has them as one parameter."""
    changes = step(*build_muon(weight_decay=0.0, coefficients="polar_express", scale="none"))
    model, _ = build_muon()
    draw = gradients(1)
    draws = {name: draw(value) for name, value in model.named_parameters()}
    for layer in (0, 1):
        names = [name_of(model, role, layer) for role in ATTENTION]
        stack = orthogonalise(torch.cat([draws[name] for name in names]), POLAR_EXPRESS, 1.01)
        torch.testing.assert_close(torch.cat([changes[name] for name in names]), -RATE * stack, rtol=1e-3, atol=1e-6)
        values = torch.linalg.svdvals(torch.cat([changes[name] for name in names])) / RATE
        assert values.min() > POLAR_BAND[0] and values.max() < POLAR_BAND[1]
    separate = step(*build_muon(weight_decay=0.0, coefficients="polar_express", scale="none", matrices="separate"))
    name = name_of(model, "key")
    torch.testing.assert_close(separate[name], -RATE * orthogonalise(draws[name], POLAR_EXPRESS, 1.01))
    assert (separate[name] - changes[name]).abs().max() > 0.1 * RATE
    name = name_of(model, "up")
    assert torch.equal(separate[name], changes[name])


def test_attention_that_cannot_be_stacked():
    spec = run_spec(optimizer=MUON, model=RUN["model"] | {"head_width": 6})
    model = create(spec.model, 0)
    with pytest.raises(PlumblineError, match=r"optimizer\.matrices: .*\(here they are 24 x 32, 12 x 32, .*32 x 24\)"):
        RunOptimizer(model, model.parameter_roles, spec.optimizer)
    spec = run_spec(optimizer=MUON | {"matrices": "separate"}, model=RUN["model"] | {"head_width": 6})
    RunOptimizer(model, model.parameter_roles, spec.optimizer)


@pytest.mark.parametrize(("coefficients", "steps"), [("polar_express", 6), ("polar_express", 0), ("quintic", 0)])
def test_steps_that_there_are_not(coefficients, steps):
    with pytest.raises(PlumblineError, match=rf"optimizer\.steps: {steps} steps"):
        build_muon(coefficients=coefficients, steps=steps)


@pytest.mark.parametrize("ratio", [1.0, 0.25])
def test_the_rest_is_adamws(ratio):
    """Embeddings, an untied head, gains and biases have the bits of the AdamW component at the rate's multiple."""
    changed = RUN["model"] | {
        "tied_embeddings": False,
        "norm": {"name": "layer_norm"},
        "projections": {"name": "grouped_query", "bias": True},
    }
    models = []
    for optimizer in (MUON | {"adamw_learning_rate_ratio": ratio}, RUN["optimizer"]):
        spec = run_spec(optimizer=optimizer | {"decay_norms": True}, model=changed)
        model = create(spec.model, 0)
        built_optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer)
        for number in (1, 2, 3):
            draw = gradients(number)
            for value in model.parameters():
                value.grad = draw(value)
            built_optimizer.step(number, RATE if spec.optimizer.name == "muon" else RATE * ratio)
        models.append(model)
    muon, adamw = models
    rest = [name for name, role in muon.parameter_roles.items() if role.role not in ORTHOGONALISED]
    assert {muon.parameter_roles[name].role for name in rest} == {"embedding", "head", "norm", "bias"}
    assert all(torch.equal(muon.get_parameter(name), adamw.get_parameter(name)) for name in rest)


def test_weight_decay_is_decoupled_and_by_group():
    """Without gradients: embeddings and gains lose lr ratio wd, as the key_norms study's do; matrices what is asked."""
    for decay_matrices in (True, False):
        model, optimizer = build_muon(
            decay_norms=True, decay_matrices=decay_matrices, weight_decay=0.2, adamw_learning_rate_ratio=0.25
        )
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        for value in model.parameters():
            value.grad = torch.zeros_like(value)
        optimizer.step(1, 0.024)
        for name, role in model.parameter_roles.items():
            rate = 0.024 * decay_matrices if role.role in ORTHOGONALISED else 0.006
            assert role.role in ORTHOGONALISED | {"norm", "embedding"}
            torch.testing.assert_close(model.get_parameter(name).detach(), before[name] * (1 - rate * 0.2))
        decayed = sum(role.role in ORTHOGONALISED for role in model.parameter_roles.values()) * decay_matrices + 6
        assert f"muon: {decayed} tensors decayed" in optimizer.describe()


def test_the_state_survives_by_name():
    """Also where groups lie in another order."""
    model, optimizer = build_muon()
    for number in (1, 2):
        step(model, optimizer, number)
    copy, other = build_muon(SlowKeys(1.0))
    copy.load_state_dict(model.state_dict())
    state = {key: value.clone() for key, value in optimizer.tensors().items()}
    assert {key.rpartition(".")[2] for key in state} == {"momentum_buffer", "step", "exp_avg", "exp_avg_sq"}
    other.load(state)
    first, second = step(model, optimizer, 3), step(copy, other, 3)
    assert all(torch.equal(first[name], second[name]) for name in first)
    fresh, started = build_muon()
    fresh.load_state_dict(model.state_dict())
    third = step(fresh, started, 4)
    fourth = step(model, optimizer, 4)
    assert any(not torch.equal(third[name], fourth[name]) for name in third), "the state does something"


class SlowKeys(Intervention):
    def __init__(self, factor: float, scales: bool = True) -> None:
        self.factor, self.scales_weight_decay = factor, scales

    def label(self, name: str, role: ParameterRole) -> str | None:
        return "slow" if role.role == "key" else None

    def before_step(self, step: int) -> dict[str, float]:
        return {"slow": self.factor}


def test_a_part_of_a_stack_may_be_slowed():
    """Keys at a quarter of the rate, decay included; the stack that they are orthogonalised in is the same."""
    control, slowed = step(*build_muon()), step(*build_muon(SlowKeys(0.25)))
    model, _ = build_muon()
    for name, change in control.items():
        if model.parameter_roles[name].role == "key":
            torch.testing.assert_close(slowed[name], 0.25 * change, rtol=1e-3, atol=1e-7)
        else:
            assert torch.equal(slowed[name], change), name


class TestFreeze:
    @pytest.mark.parametrize("optimizer", ["adamw", "muon"])
    @pytest.mark.parametrize("role", ["norm", "key", "embedding"])
    def test_frozen_parameters_do_not_move_by_a_bit(self, optimizer, role):
        chosen = RUN["optimizer"] | {"name": optimizer, "decay_norms": True}
        spec = run_spec(optimizer=chosen, interventions=[{"name": "freeze", "role": role}])
        models = []
        for hooks in (build(spec.interventions), []):
            model = create(spec.model, 0)
            built_optimizer = RunOptimizer(model, model.parameter_roles, spec.optimizer, hooks)
            before = {name: value.detach().clone() for name, value in model.named_parameters()}
            for number in (1, 2, 3):
                step(model, built_optimizer, number)
            models.append(model)
        frozen, free = models
        for name, value in frozen.named_parameters():
            is_frozen = frozen.parameter_roles[name].role == role
            assert torch.equal(value, before[name] if is_frozen else free.get_parameter(name)), name
            assert not torch.equal(free.get_parameter(name), before[name]), name

    def test_any_role_can_be_frozen(self):
        assert set(options("intervention", "freeze")["role"].choices) == MATRICES | OTHERS

    def test_what_is_stopped_cannot_be_decayed(self):
        with pytest.raises(PlumblineError, match="SlowKeys: a learning rate times 0"):
            step(*build_muon(SlowKeys(0.0, scales=False)))


@pytest.fixture(scope="module")
def whole(packs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small run by Muon, trained on one rank without interruption."""
    work = tmp_path_factory.mktemp("muon")
    assert train(run_spec(optimizer=MUON), settings(packs, work)) == 0
    return work


def test_a_run_learns_and_is_the_same_again(packs: Path, tmp_path: Path, whole: Path) -> None:
    assert train(run_spec(optimizer=MUON), settings(packs, tmp_path)) == 0
    first, second = (load_file(path / "out/model.safetensors") for path in (whole, tmp_path))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert read(whole / "out/outcome.json")["validation_loss"] < 4.3 < math.log(97)


def test_sharded_ranks_train_as_one_and_resume(packs: Path, tmp_path: Path, whole: Path) -> None:
    """Two sharded ranks, which are stopped after step 8; one rank to the end."""
    chosen = settings(packs, tmp_path, strategy="fsdp", checkpoint_steps=4)
    assert train_ranks(2, run_spec(optimizer=MUON), chosen, STOP_AFTER_STEP="8") == [75, 75]
    assert train(run_spec(optimizer=MUON), chosen) == 0
    assert read(tmp_path / "out/manifest.json")["resumed_from"] == [8]
    assert_alike(tmp_path, whole)
