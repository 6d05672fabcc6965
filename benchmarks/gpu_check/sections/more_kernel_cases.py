"""What `kernel_accuracy` compares, in the other types, head widths and lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.sections import kernel_accuracy

TITLE = "Mixers against float64, other types and widths"
SHARE = 0.3
AHEAD = True


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """A row for each of the other cases and each mixer."""
    return kernel_accuracy.rows_of(setting.size.cases[1:], setting)


def page(state: MeasuredRows) -> list[str]:
    """As that of `kernel_accuracy`."""
    return kernel_accuracy.page(state, "more_kernel_cases")
