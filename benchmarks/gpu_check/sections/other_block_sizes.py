"""As `kernel_block_sizes`, of the kernels that a second call has time for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.sections import kernel_block_sizes

TITLE = "Blocks of the other kernels"
AHEAD = kernel_block_sizes.AHEAD

MIXERS: tuple[dict[str, Any], ...] = (
    {"name": "softmax_cap"},
    {"name": "sigmoid"},
    {"name": "softpick", "variant": "original"},
)


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """A row for each choice and kernel."""
    return kernel_block_sizes.rows(setting, MIXERS)


def page(state: MeasuredRows) -> list[str]:
    """As that of `kernel_block_sizes`."""
    return kernel_block_sizes.page(state, "other_block_sizes")
