"""Initialisation by name."""

from __future__ import annotations

import math

import pytest
import torch

from plumbline.model.decoder import Decoder, create, on_meta
from plumbline.model.init import initial_value, initialise, seed_of
from plumbline.model.roles import ConstantInit, ExplicitInit, NormalInit, collect_roles
from plumbline.specs.spec import ModelSpec
from tests.model.transfer_methods import ALL, overlay
from tests.model_specs import small


@pytest.fixture(scope="module")
def baseline() -> Decoder:
    return create(small(), 42)


@pytest.mark.parametrize("name", ALL)
def test_every_parameter_has_a_role_and_a_shape(name):
    model = on_meta(ModelSpec.from_dict(overlay(name)))
    roles = collect_roles(model)
    assert roles.keys() == dict(model.named_parameters()).keys()
    assert all(value.ndim >= 1 for value in model.parameters()), "sharded training has no 0-dimensional tensors"
    assert all(role.layer is None or 0 <= role.layer < 4 for role in roles.values())
    assert not list(model.buffers()), "a buffer would be missing from the checkpoint's parameters"


def test_seeds_depend_on_the_name_alone():
    assert seed_of(1, "embedding") == seed_of(1, "embedding") != seed_of(1, "final_norm.gain")
    assert seed_of(1, "embedding") != seed_of(2, "embedding")
    assert 0 <= seed_of(7, "x") < 2**63


def test_another_seed_is_another_draw(baseline):
    other = create(small(), 43)
    for name, value in baseline.named_parameters():
        assert torch.equal(value, other.get_parameter(name)) == name.endswith("gain"), name


def test_initialising_again_restores(baseline):
    model = create(small(), 42)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(1.0)
    initialise(model, 42)
    assert all(torch.equal(value, baseline.get_parameter(name)) for name, value in model.named_parameters())


def test_matrices_and_embedding_are_normal():
    model = create(small(width=512, ffn_width=1408, vocabulary=1000, layers=2, init_std=0.03), 0)
    for name, role in collect_roles(model).items():
        value = model.get_parameter(name)
        if role.matrix or role.role == "embedding":
            assert value.mean().abs() < 5 * 0.03 / math.sqrt(value.numel()), name
            assert value.std().item() == pytest.approx(0.03, rel=0.02), name
        else:
            assert torch.equal(value, torch.ones_like(value)), name


def test_residual_scaling_is_for_maps_into_the_stream():
    scaled = create(small(residual_init_scaling=True), 0)
    plain = create(small(), 0)
    for name, value in plain.named_parameters():
        into_stream = name.endswith(("projections.output.weight", "ffn.down.weight"))
        factor = 1 / math.sqrt(2 * 4) if into_stream else 1.0
        torch.testing.assert_close(scaled.get_parameter(name), factor * value)


def test_scores_at_the_start():
    """A normed input makes scores of standard deviation width * init_std^2: 0.819 at the study's 2048."""
    width, std = 512, 0.02
    model = create(small(width=width, heads=8, key_value_heads=8, head_width=64, layers=1), 0)
    x = torch.randn(1, 256, width, generator=torch.Generator().manual_seed(0))
    attention = model.blocks[0].attention
    q, k, _ = attention.projections(x / x.square().mean(-1, keepdim=True).sqrt())
    assert attention.mixer.scores(q, k).std().item() == pytest.approx(width * std**2, rel=0.05)


def test_kinds_of_start():
    spec = small()
    shape = torch.Size([2, 3])
    assert torch.equal(initial_value(ConstantInit(value=-2.2), shape, 0, "a", spec), torch.full(shape, -2.2))
    rows = initial_value(ExplicitInit(values=(0.0, 1.0, 2.0, 3.0, 4.0, 5.0)), shape, 0, "a", spec)
    assert rows.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert not initial_value(NormalInit(std=0.0), shape, 0, "a", spec).any()
    with pytest.raises(AssertionError, match="unknown kind of start"):
        initial_value("ones", shape, 0, "a", spec)


def test_bias_starts_at_zero():
    model = create(small(projections={"name": "grouped_query", "bias": True}), 0)
    biases = [name for name, role in collect_roles(model).items() if role.role == "bias"]
    assert len(biases) == 16
    assert not any(model.get_parameter(name).any() for name in biases)
