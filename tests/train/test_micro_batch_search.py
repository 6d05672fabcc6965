"""The micro-batch that is found by trying."""

from __future__ import annotations

import pytest
import torch

from plumbline.model.decoder import create
from plumbline.runtime.distributed import RankGroup
from plumbline.train.batches.micro_batch_search import fitted, largest
from plumbline.train.batches.micro_batches import MicroBatching
from tests.model_specs import run_spec


@pytest.mark.parametrize(("room", "found"), [(100, 18), (17, 9), (9, 9), (8, 6), (1, 1), (0, 1)])
def test_the_largest_divisor_that_fits(room, found):
    tried, cleared = [], []

    def attempt(number: int) -> None:
        tried.append(number)
        if number > room:
            raise torch.OutOfMemoryError("CUDA out of memory")

    assert largest(18, attempt, lambda: cleared.append(1)) == found
    assert tried == sorted(tried, reverse=True) and len(cleared) == len(tried)


def test_another_fault_is_not_taken_for_a_lack_of_memory():
    def broken(number: int) -> None:
        raise RuntimeError("illegal memory access")

    with pytest.raises(RuntimeError, match="illegal"):
        largest(4, broken, lambda: None)


def test_a_trial_leaves_nothing_behind():
    spec = run_spec()
    model = create(spec.model, 0)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    batching = MicroBatching.derive(spec.sequences_per_batch, None, 1)
    ranks = RankGroup(rank=0, world=1, device=torch.device("cpu"))
    assert fitted(batching, model, spec, ranks) == batching
    assert all(value.grad is None for value in model.parameters())
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
