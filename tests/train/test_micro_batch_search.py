"""The micro-batch that is found by trying."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from plumbline.model.decoder import create
from plumbline.runtime.distributed import RankGroup
from plumbline.train.batches.micro_batch_search import fitted, largest, next_smaller
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


def test_ranks_agree_on_what_fits_them_all():
    """The other one has room for two sequences at a time."""
    spec = run_spec()
    asked: list[list[float]] = []
    ranks: Any = SimpleNamespace(
        world=2, device=torch.device("cpu"), max=lambda mine: asked.append(mine) or [max(*mine, -2.0)]
    )
    batching = MicroBatching.derive(spec.sequences_per_batch, None, 2)
    found = fitted(batching, create(spec.model, 0), spec, ranks)
    assert asked == [[-4.0]] and (found.micro_batch, found.accumulation) == (2, 2)


@pytest.mark.parametrize(
    ("error", "ranks", "asked_for", "found"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), 1, None, 3),
        (MemoryError(), 1, None, 3),
        (torch.OutOfMemoryError("CUDA out of memory"), 1, 6, None),
        (torch.OutOfMemoryError("CUDA out of memory"), 2, None, None),
        (RuntimeError("illegal memory access"), 1, None, None),
    ],
)
def test_what_is_tried_after_an_error(error: Exception, ranks: int, asked_for: int | None, found: int | None):
    """Of several ranks the others wait in a collective by then."""
    assert next_smaller(error, MicroBatching.derive(18 * ranks, 6, ranks), asked_for) == found
    assert next_smaller(error, None, asked_for) is None
