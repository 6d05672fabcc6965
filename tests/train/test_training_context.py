"""Batching, schedules, parameter groups and interventions, each against what it must be exactly."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from plumbline.core.errors import PlumblineError
from plumbline.model.decoder import create
from plumbline.model.roles import ParameterRole
from plumbline.specs.spec import ScheduleSpec
from plumbline.train.batches.micro_batches import MicroBatching
from plumbline.train.interventions import Intervention, build
from plumbline.train.interventions.none import NoIntervention
from plumbline.train.learning_rate import make_schedule
from plumbline.train.run_optimizer import RunOptimizer, is_decayed
from tests.model_specs import run_spec


@given(some.integers(1, 6), some.integers(1, 6), some.integers(1, 6))
def test_micro_batches_of_all_ranks_are_the_batch_once(micro_batch: int, accumulation: int, ranks: int) -> None:
    batching = MicroBatching.derive(micro_batch * accumulation * ranks, micro_batch, ranks)
    assert batching.accumulation == accumulation
    batch = list(range(batching.sequences))
    read = [batch[place] for rank in range(ranks) for place in batching.micro_batches(rank)]
    assert [place for part in read for place in part] == batch and {len(part) for part in read} == {micro_batch}


def test_a_batch_that_cannot_be_cut_says_what_can_be() -> None:
    assert MicroBatching.derive(12, 8, 2).micro_batch == 6, "no more than there is"
    with pytest.raises(PlumblineError, match=r"--micro-batch 5 does not divide the 6 .* 2 rank\(s\).*\[1, 2, 3, 6\]"):
        MicroBatching.derive(12, 5, 2)
    with pytest.raises(PlumblineError, match=r"16.*cannot be.*by 3"):
        MicroBatching.derive(16, None, 3)


def test_cosine_warms_up_peaks_and_ends_at_the_floor() -> None:
    share = make_schedule(ScheduleSpec(name="cosine", warmup_steps=4, options={"floor": 0.1}), 104)
    assert [share(step) for step in (1, 2, 3, 4)] == [0.25, 0.5, 0.75, 1.0]
    assert share(54) == pytest.approx(0.55) and share(104) == pytest.approx(0.1)
    assert all(share(step) > share(step + 1) for step in range(4, 104))


def test_the_sum_of_rates_is_the_printed_one() -> None:
    """The transfer study's recipe, 44k steps, 3e-4, 2k warm-up, cosine to 10 %: the rates sum to 7.23."""
    share = make_schedule(ScheduleSpec(name="cosine", warmup_steps=2000, options={"floor": 0.1}), 44000)
    assert 3e-4 * sum(share(step) for step in range(1, 44001)) == pytest.approx(7.23, abs=0.005)


def test_constant_holds_the_peak_and_may_have_no_warm_up() -> None:
    share = make_schedule(ScheduleSpec(name="constant", warmup_steps=0), 5)
    assert [share(step) for step in range(1, 6)] == [1.0] * 5


def test_an_unknown_schedule_is_named() -> None:
    with pytest.raises(PlumblineError, match="component 'cosin'; did you mean 'cosine'"):
        make_schedule(ScheduleSpec(name="cosin", warmup_steps=0), 5)


def optimizer(*hooks: Intervention, **overrides: Any) -> tuple[torch.nn.Module, RunOptimizer]:
    spec = run_spec(**overrides)
    model = create(spec.model, spec.init_seed)
    return model, RunOptimizer(model, model.parameter_roles, spec.optimizer, hooks)


def step(model: torch.nn.Module, optimizer: RunOptimizer, number: int = 1) -> dict[str, torch.Tensor]:
    """One update on a fixed batch; returns what it added to each parameter."""
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    tokens = torch.arange(64).reshape(2, 32)
    model(tokens).logsumexp(-1).sum().backward()
    optimizer.step(number, 0.01)
    optimizer.zero_grad()
    return {name: value.detach() - before[name] for name, value in model.named_parameters()}


def test_matrices_are_decayed_and_the_others_by_flag() -> None:
    def role(name: str) -> ParameterRole:
        return run_roles[name]

    model, _ = optimizer()
    run_roles = {value.role: value for value in model.parameter_roles.values()}
    default = run_spec().optimizer
    assert all(is_decayed(role(name), default) for name in ("query", "key", "value", "output", "gate", "up", "down"))
    assert is_decayed(role("embedding"), default) and not is_decayed(role("norm"), default)
    other = run_spec(optimizer__decay_embeddings=False, optimizer__decay_norms=True).optimizer
    assert not is_decayed(role("embedding"), other) and is_decayed(role("norm"), other)
    _, built = optimizer()
    members = {id(value) for group in built.inner.param_groups if group["weight_decay"] for value in group["params"]}
    expected = {name for name, value in model.parameter_roles.items() if value.role != "norm"}
    assert {name for name, value in built.parameters.items() if id(value) in members} == expected


def test_adamw_has_the_bits_of_torchs() -> None:
    model, built = optimizer()
    copy, _ = optimizer()
    decays = {id(value): group["decay"] for group in built.inner.param_groups for value in group["params"]}
    groups = [
        {"params": [value], "weight_decay": decays[id(mine)]}
        for mine, value in zip(model.parameters(), copy.parameters())
    ]
    reference = torch.optim.AdamW(groups, lr=0.01, betas=(0.9, 0.95), eps=1e-8, fused=True)
    for number in (1, 2, 3):
        step(model, built, number)
        copy(torch.arange(64).reshape(2, 32)).logsumexp(-1).sum().backward()
        reference.step()
        reference.zero_grad()
    assert all(torch.equal(mine, other) for mine, other in zip(model.parameters(), copy.parameters()))


def test_no_intervention_is_bit_identical_to_none() -> None:
    plain, null = step(*optimizer()), step(*optimizer(NoIntervention()))
    assert all(torch.equal(plain[name], null[name]) for name in plain)


class SlowQuery(Intervention):
    def __init__(self, scales: bool = True) -> None:
        self.scales_weight_decay = scales

    def label(self, name: str, role: ParameterRole) -> str | None:
        return "slow" if role.role == "query" and role.layer == 1 else None

    def before_step(self, step: int) -> dict[str, float]:
        return {"slow": 0.25}


def test_a_multiplier_slows_what_it_selects_and_nothing_else() -> None:
    control, slowed = step(*optimizer()), step(*optimizer(SlowQuery()))
    for name, change in control.items():
        if name == "blocks.1.attention.projections.query.weight":
            torch.testing.assert_close(slowed[name], 0.25 * change, rtol=1e-3, atol=1e-8)
        else:
            assert torch.equal(slowed[name], change), name
    assert any(not torch.equal(slowed[name], change) for name, change in control.items())


def test_weight_decay_can_be_kept_at_full_rate() -> None:
    """With a vanishing gradient the change is pure decay: -lr wd w, whatever the multiplier."""
    for scales, expected in ((True, 0.25), (False, 1.0)):
        model, built = optimizer(SlowQuery(scales))
        name = next(key for key, value in model.parameter_roles.items() if value.role == "query" and value.layer == 1)
        before = dict(model.named_parameters())[name].detach().clone()
        for value in model.parameters():
            value.grad = torch.zeros_like(value)
        built.step(1, 0.01)
        after = dict(model.named_parameters())[name].detach()
        torch.testing.assert_close(after, before * (1 - expected * 0.01 * 0.1))


def test_the_norm_is_measured_before_clipping() -> None:
    for limit, expected in ((1.0, 1.0), (0.0, 40.0), (100.0, 40.0)):
        model, built = optimizer(optimizer__gradient_clip=limit)
        count = sum(value.numel() for value in model.parameters())
        for value in model.parameters():
            value.grad = torch.full_like(value, 40.0 / math.sqrt(count))
        assert built.clip().item() == pytest.approx(40.0, rel=1e-5)
        norm = math.sqrt(sum(float(value.grad.square().sum()) for value in model.parameters()))
        assert norm == pytest.approx(expected, rel=1e-4)


def test_the_state_survives_by_name(tmp_path) -> None:
    model, built = optimizer()
    step(model, built)
    copy, other = optimizer(SlowQuery())  # groups in another order
    copy.load_state_dict(model.state_dict())
    other.interventions, other.inner.param_groups[:] = (
        (),
        [group | {"labels": ()} for group in other.inner.param_groups],
    )
    other.load({key: value.clone() for key, value in built.tensors().items()})
    first, second = step(model, built, 2), step(copy, other, 2)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_interventions_are_chosen_by_name() -> None:
    assert [type(hook) for hook in build(run_spec(interventions=[{"name": "none"}]).interventions)] == [NoIntervention]
    for entry, message in (
        ({"name": "none", "rate": 1}, r"interventions\[0\]: the component 'none' has no option 'rate'"),
        ({"name": "non"}, r"interventions\[0\]\.name: no component 'non'; did you mean 'none'"),
        ({"rate": 1}, r"interventions\[0\]: 'name' is missing"),
    ):
        with pytest.raises(PlumblineError, match=message):
            run_spec(interventions=[entry])
