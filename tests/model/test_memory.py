"""Memory of attention grows with the number of keys, not with its square, for every mixer in every reading."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.kept import Kept
from plumbline.model.component import build
from plumbline.model.visibility import Visibility
from plumbline.specs.spec import ModelSpec
from tests.model.methods import ALL, overlay

HEADS, GROUPS, WIDTH = 4, 2, 8
MIXERS = {str(sorted(entry["mixer"].items())): entry["mixer"] for entry in ALL.values() if "mixer" in entry}


class Largest(TorchDispatchMode):
    """Elements of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else (made,):
            if isinstance(one, torch.Tensor):
                self.elements = max(self.elements, one.untyped_storage().nbytes() // max(1, one.element_size()))
        return made


def peaks(mixer: dict, tokens: int) -> tuple[int, int]:
    """Elements of the largest tensor, forward and backward, and bytes of all that is kept between the two."""
    sizes = {"heads": HEADS, "key_value_heads": GROUPS, "head_width": WIDTH, "width": HEADS * WIDTH, "context": tokens}
    spec = ModelSpec.from_dict(overlay("baseline", **sizes) | {"mixer": mixer})
    built = build("mixer", spec, 0)
    for value in built.parameters():
        torch.nn.init.normal_(value, std=0.1)
    q, k, v = (
        torch.randn(1, heads, tokens, WIDTH, requires_grad=True) for heads in (HEADS, built.groups, built.groups)
    )
    kept = Kept()
    visibility = Visibility.of(torch.zeros(1, tokens, dtype=torch.long), None, None)
    with Largest() as largest:
        with kept.counted():
            out = built(q, k, v, visibility)
        out.sum().backward()
    return largest.elements, kept.most


@pytest.mark.parametrize("mixer", MIXERS.values(), ids=list(MIXERS))
def test_memory_is_linear_in_time(mixer: dict) -> None:
    (small, small_kept), (large, large_kept) = peaks(mixer, 1024), peaks(mixer, 2048)
    assert large <= 2.1 * small
    assert large_kept <= 2.1 * small_kept
    assert large < HEADS * 2048 * 2048 / 4  # nowhere near the whole of the weights


def test_what_is_kept_is_counted_once_and_only_while_it_is() -> None:
    x_N, scale_N = (torch.ones(1000, requires_grad=True) for _ in range(2))  # of 4,000 bytes each
    kept = Kept(scale_N)
    with kept.counted():
        (x_N * 2.0).exp().sum().backward()  # keeps exp's result, until backward
        assert (kept.now, kept.most) == (0, 4000)
        product_N = x_N * scale_N  # keeps both, of which the parameter is not counted
        product_N = product_N.view(10, 100) * product_N.view(10, 100)  # two views of one storage
    assert (kept.now, kept.most) == (8000, 8000)
    del product_N
    assert (kept.now, kept.most) == (0, 8000)
