"""The micro-batch that is found by trying."""

from __future__ import annotations

import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from plumbline.model.decoder import create
from plumbline.model.distributed import RankGroup
from plumbline.train import pretrain
from plumbline.train.batches.micro_batch_search import (
    count_reserved_bytes,
    find_largest_batch,
    find_largest_divisor,
    needs_search,
    next_smaller,
)
from plumbline.train.batches.micro_batches import MicroBatching
from tests.model_specs import run_spec
from tests.train.small_runs import read, settings, train


@pytest.mark.parametrize(("room", "expected"), [(100, 18), (17, 9), (9, 9), (8, 6), (1, 1), (0, 1)])
def test_the_largest_divisor_that_fits(room, expected):
    tried, cleared = [], []

    def attempt(number: int) -> None:
        tried.append(number)
        if number > room:
            raise torch.OutOfMemoryError("CUDA out of memory")

    assert find_largest_divisor(18, attempt, lambda: cleared.append(1)) == expected
    assert tried == sorted(tried, reverse=True) and len(cleared) == len(tried)


def test_another_fault_is_not_taken_for_a_lack_of_memory():
    def broken(number: int) -> None:
        raise RuntimeError("illegal memory access")

    with pytest.raises(RuntimeError, match="illegal"):
        find_largest_divisor(4, broken, lambda: None)


def test_a_trial_leaves_nothing_behind():
    spec = run_spec()
    model = create(spec.model, 0)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    batching = MicroBatching.derive(spec.sequences_per_batch, None, 1)
    ranks = RankGroup(rank=0, world=1, device=torch.device("cpu"))
    assert find_largest_batch(batching, model, spec, ranks) == batching
    assert all(value.grad is None for value in model.parameters())
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


def test_ranks_agree_on_what_fits_them_all():
    """The other one has room for two sequences at a time."""
    spec = run_spec()
    maxima: list[list[float]] = []
    ranks: Any = SimpleNamespace(
        world=2, device=torch.device("cpu"), max=lambda mine: maxima.append(mine) or [max(*mine, -2.0)]
    )
    batching = MicroBatching.derive(spec.sequences_per_batch, None, 2)
    result = find_largest_batch(batching, create(spec.model, 0), spec, ranks)
    assert maxima == [[-4.0]] and (result.micro_batch, result.accumulation) == (2, 2)


@pytest.mark.parametrize(
    ("error", "ranks", "asked_for", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), 1, None, 3),
        (MemoryError(), 1, None, 3),
        (torch.OutOfMemoryError("CUDA out of memory"), 1, 6, None),
        (torch.OutOfMemoryError("CUDA out of memory"), 2, None, None),
        (RuntimeError("illegal memory access"), 1, None, None),
    ],
)
def test_what_is_tried_after_an_error(error: Exception, ranks: int, asked_for: int | None, expected: int | None):
    """Of several ranks the others wait in a collective by then."""
    assert next_smaller(error, MicroBatching.derive(18 * ranks, 6, ranks), asked_for) == expected
    assert next_smaller(error, None, asked_for) is None


@pytest.mark.parametrize("micro_batch", [None, 1, 8])
@pytest.mark.parametrize("device", ["cuda", "cpu", "meta"])
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_when_it_is_searched(micro_batch: int | None, device: str, strategy: Any) -> None:
    assert needs_search(micro_batch, device, strategy) == ((micro_batch, device, strategy) == (None, "cuda", "ddp"))


@pytest.mark.parametrize("search", [True, False])
def test_a_run_trains_as_searched(packs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: bool) -> None:
    """As if the device were a GPU whose memory holds two sequences."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setattr(pretrain, "needs_search", lambda *args: calls.append(args) or search)
    monkeypatch.setattr(
        pretrain, "find_largest_batch", lambda batching, *args: MicroBatching.derive(batching.sequences, 2, 1)
    )
    assert train(run_spec(), settings(packs, tmp_path / "free")) == 0
    assert read(tmp_path / "free/out/manifest.json")["micro_batch"] == (2 if search else 8)
    assert train(run_spec(), settings(packs, tmp_path / "asked", micro_batch=4, strategy="fsdp")) == 0
    assert calls == [(None, "cpu", "ddp"), (4, "cpu", "fsdp")]


def test_a_trial_leaves_room_for_what_comes_later() -> None:
    """Two moments and an earlier micro-batch's gradient of four bytes each, a bucket's four, a gibibyte on a GPU."""
    assert count_reserved_bytes(1000, "cpu", 1) == 12_000
    assert count_reserved_bytes(1000, "cpu", 2) == count_reserved_bytes(1000, "cpu", 8) == 16_000
    assert count_reserved_bytes(1000, "cuda", 1) == 12_000 + 2**30
    assert count_reserved_bytes(1000, "cuda", 8) == 16_000 + 2**30


@pytest.mark.parametrize("world", [1, 2])
def test_the_room_is_held_through_the_whole_trial(monkeypatch: pytest.MonkeyPatch, world: int) -> None:
    """At the end of the forward pass and at that of the backward pass, on the device, and not any longer."""
    spec, plain, room, holds = run_spec(), torch.empty, [], []
    model = create(spec.model, 0)
    size = count_reserved_bytes(sum(value.numel() for value in model.parameters()), "cpu", world)

    def empty(*shape: Any, **options: Any) -> torch.Tensor:
        block = plain(*shape, **options)
        if block.dtype == torch.uint8 and block.numel() == size:
            room.append((weakref.ref(block), block.device))
        return block

    def look(*_: Any) -> None:
        holds.append([tensor() is not None for tensor, _ in room])

    monkeypatch.setattr(torch, "empty", empty)
    model.register_forward_hook(look)
    model.embedding.register_hook(look)
    ranks: Any = SimpleNamespace(world=world, device=torch.device("cpu"), max=lambda mine: mine)
    find_largest_batch(MicroBatching.derive(spec.sequences_per_batch, None, world), model, spec, ranks)
    assert holds == [[True], [True]] and room[0][1] == ranks.device
    assert room[0][0]() is None
