"""Products of float32 matrices on a CPU by oneDNN, which uses its widest vectors whoever made it.

The library that torch calls for them (MKL) takes narrower ones on processors that are not its maker's: 100 of 220
billion operations a second on one core of an AMD EPYC. The sums are float32 like there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

#: Multiplications below which a product is left to MKL: oneDNN makes a kernel for each number of rows, in half a
#: millisecond, which the layers of a pass share.
_LEAST = 5_000_000
_AVAILABLE = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def product(x_XI: torch.Tensor, weight_OI: torch.Tensor, bias_O: torch.Tensor | None = None) -> torch.Tensor:
    """`torch.nn.functional.linear` where no gradient is asked for, by oneDNN if that is the faster way."""
    if (
        _AVAILABLE
        and x_XI.device.type == "cpu"
        and x_XI.dtype == weight_OI.dtype == torch.float32
        and x_XI.numel() * len(weight_OI) >= _LEAST
    ):
        return torch.ops.mkldnn._linear_pointwise(x_XI, weight_OI, bias_O, "none", [], "")
    return linear(x_XI, weight_OI, bias_O)


@contextmanager
def fast(model: nn.Module) -> Iterator[None]:
    """While it is entered, the linear maps of `model` are by `product`. There are no gradients."""
    maps = [module for module in model.modules() if type(module).forward is nn.Linear.forward]
    for module in maps:
        module.forward = partial(_forward, module)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for module in maps:
            del module.forward


def _forward(module: nn.Linear, x_XI: torch.Tensor) -> torch.Tensor:
    return product(x_XI, module.weight, module.bias)


class Products(TorchFunctionMode):
    """While it is entered, every call of `torch.nn.functional.linear` is one of `product`.

    It costs each call of torch some microseconds, and is for a few: the head, which is no module where it is the
    embedding.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return product(*args, **(kwargs or {})) if function is linear else function(*args, **(kwargs or {}))
