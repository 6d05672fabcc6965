"""Layers that share their weights: the model that has the same values in every layer, with one set of parameters."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from plumbline.core.errors import PlumblineError
from plumbline.model import distributed, flops
from plumbline.model.cache import DecodingCache
from plumbline.model.decoder import Decoder, create
from plumbline.model.model_folder import read_model, write_model
from plumbline.specs.spec import ModelSpec
from tests.model_specs import BASELINE, small

TOKENS = torch.randint(0, 97, (2, 12), generator=torch.Generator().manual_seed(7))


def shared(**sizes) -> Decoder:
    return create(small(shared_layers=True, init_std=0.15, **sizes), init_seed=3)


def with_equal_layers(model: Decoder) -> Decoder:
    """The model that has a set of weights for each layer, with the first layer's values in all of them."""
    other = create(ModelSpec.from_dict(model.spec.to_dict() | {"shared_layers": False}), init_seed=3)
    values = dict(model.named_parameters())
    with torch.no_grad():
        for name, value in other.named_parameters():
            block, number, path = (*name.split(".", 2), "", "")[:3]
            value.copy_(values[f"blocks.0.{path}" if block == "blocks" and number else name])
    return other


def test_it_is_the_model_whose_layers_have_equal_weights() -> None:
    model = shared()
    other = with_equal_layers(model)
    assert torch.equal(model(TOKENS), other(TOKENS))
    for each in (model, other):
        each(TOKENS, loss=True).backward()
    gradients = {name: value.grad for name, value in other.named_parameters()}
    for name, value in model.named_parameters():
        layers = [name.replace("blocks.0.", f"blocks.{layer}.") for layer in range(4 if "blocks" in name else 1)]
        torch.testing.assert_close(value.grad, sum(gradients[each] for each in layers), rtol=1e-4, atol=1e-5)


def test_one_set_of_parameters_is_counted_started_and_stored(tmp_path: Path) -> None:
    model = shared(layers=20)
    names = [name for name, _ in model.named_parameters()]
    assert names == list(model.state_dict()) == list(model.parameter_roles)
    assert {name.split(".")[1] for name in names if name.startswith("blocks.")} == {"0"} and len(names) < 20
    plain = create(small(layers=20, init_std=0.15), init_seed=3)
    assert all(torch.equal(value, plain.get_parameter(name)) for name, value in model.named_parameters())
    for training in (False, True):
        assert flops.operations(model, training=training) == flops.operations(plain, training=training)
    with torch.no_grad():
        model.blocks[0].ffn.down.weight.mul_(2.0)
    write_model(tmp_path, model)
    assert torch.equal(read_model(tmp_path)(TOKENS), model(TOKENS))


@torch.no_grad()
def test_copies_and_conversions_go_on_sharing() -> None:
    model = shared()
    for other in (copy.deepcopy(model), copy.deepcopy(model).double()):
        before = other(TOKENS)
        torch.testing.assert_close(before, model(TOKENS), rtol=1e-3, atol=1e-4)
        other.blocks[0].attention.projections.output.weight.zero_()
        assert not other.blocks[3].attention.projections.output.weight.any()
        assert not torch.allclose(other(TOKENS), before)
    cache, whole = DecodingCache(), model(TOKENS)
    parts = [model(part, cache=cache) for part in TOKENS.split([5, 1, 6], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=1e-4, atol=1e-4)


def test_sharing_refuses_unequal_layers_and_shards_by_layer() -> None:
    with pytest.raises(PlumblineError, match=r"model\.shared_layers: layer 1 .*'attention\.values\.share'"):
        shared(values={"name": "value_residual"})
    ranks = SimpleNamespace(world=2, device=torch.device("cpu"))
    with pytest.raises(PlumblineError, match=r"fsdp.*model\.shared_layers.*ddp"):
        distributed.parallel(shared(), ranks, "fsdp")


def test_a_model_that_shares_nothing_has_the_spec_that_it_had() -> None:
    spec = ModelSpec.from_dict(BASELINE)
    assert "shared_layers" not in spec.to_dict() and ModelSpec.from_dict(BASELINE | {"shared_layers": False}) == spec
    own = ModelSpec.from_dict(BASELINE | {"shared_layers": True})
    assert own.to_dict()["shared_layers"] is True and ModelSpec.from_dict(own.to_dict()) == own != spec
