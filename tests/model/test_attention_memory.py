"""Memory of attention grows with the number of keys, not with its square, for every mixer in every variant."""

from __future__ import annotations

import pytest
import torch

from benchmarks.attention_memory import HEADS, measure_peaks, small
from benchmarks.autograd_memory import HeldByAutograd
from plumbline.specs.spec import ModelSpec
from tests.model.transfer_methods import ALL, overlay

MIXERS = {str(sorted(entry["mixer"].items())): entry["mixer"] for entry in ALL.values() if "mixer" in entry}


def measure_mixer(mixer: dict, tokens: int) -> tuple[int, int]:
    return measure_peaks(small(ModelSpec.from_dict(overlay("baseline") | {"mixer": mixer}), tokens), tokens)


@pytest.mark.parametrize("mixer", MIXERS.values(), ids=list(MIXERS))
def test_memory_is_linear_in_time(mixer: dict) -> None:
    (largest, kept), (largest_of_twice, kept_of_twice) = measure_mixer(mixer, 1024), measure_mixer(mixer, 2048)
    assert largest_of_twice <= 2.1 * largest
    assert kept_of_twice <= 2.1 * kept
    assert largest_of_twice < HEADS * 2048 * 2048  # bytes: nowhere near the whole of the weights


def test_what_is_kept_is_counted_once_and_only_while_it_is() -> None:
    x_N, scale_N = (torch.ones(1000, requires_grad=True) for _ in range(2))  # of 4,000 bytes each
    counter = HeldByAutograd(scale_N)
    with counter.count():
        (x_N * 2.0).exp().sum().backward()  # keeps exp's result, until backward
        assert (counter.now, counter.most) == (0, 4000)
        product_N = x_N * scale_N  # keeps both, of which the parameter is not counted
        product_N = product_N.view(10, 100) * product_N.view(10, 100)  # two views of one storage
    assert (counter.now, counter.most) == (8000, 8000)
    del product_N
    assert (counter.now, counter.most) == (0, 8000)
