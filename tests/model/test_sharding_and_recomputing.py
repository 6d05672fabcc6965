"""Sharding and recomputing leave losses and gradients alone."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from plumbline.model.decoder import Decoder, create
from plumbline.specs.spec import ModelSpec
from tests.model.transfer_methods import METHODS, overlay

TOKENS = torch.randint(0, 97, (2, 17), generator=torch.Generator().manual_seed(0))


def model(name: str) -> Decoder:
    return create(ModelSpec.from_dict(overlay(name, layers=2)), 0)


def gradients(model: Decoder) -> dict[str, torch.Tensor]:
    """Gradients of the loss by parameter, whole also where they are sharded."""
    logits_BTV = model(TOKENS[:, :-1])
    cross_entropy(logits_BTV.flatten(0, 1), TOKENS[:, 1:].flatten()).backward()
    whole = {}
    for name, value in model.named_parameters():
        if value.grad is not None:
            whole[name] = value.grad.full_tensor() if hasattr(value.grad, "full_tensor") else value.grad
    return whole


def assert_same(actual: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            actual[name], value, rtol=1e-4, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("name", [*METHODS, "hyper.official", "denseformer.official", "gpt", "key_norms"])
def test_recomputing_layers(name):
    recomputing = model(name)
    recomputing.recompute = True
    assert_same(gradients(recomputing), gradients(model(name)))


def test_recomputing_keeps_less():
    """Only the states between layers are kept: fewer tensors are saved for the gradient."""

    def count_saved(recompute: bool) -> int:
        decoder, count = model("baseline"), 0

        def pack(tensor):
            nonlocal count
            count += 1
            return tensor

        decoder.recompute = recompute
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            decoder(TOKENS)
        return count

    assert count_saved(True) < count_saved(False) / 2


@pytest.fixture
def process_group(tmp_path):
    """A group of this process alone."""
    if dist.is_initialized():
        pytest.skip("a process group is already there")
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_shards_layer_by_layer(process_group):
    """Each block is sharded on its own, as a model too large for one device has to be."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (1,))
    for name in (*METHODS, "gpt", "key_norms"):
        sharded = model(name)
        sharded.recompute = name in ("value_residual", "attnres")
        for block in sharded.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(sharded, mesh=mesh)
        assert_same(gradients(sharded), gradients(model(name)))
