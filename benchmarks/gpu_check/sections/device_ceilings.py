"""What the device reaches by itself: the two ceilings that every other time is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.gpu_check.call_settings import SectionCall
from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.results_page import table

TITLE = "Ceilings of the device"
SHARE = 0.05

COPY, PRODUCT = "copy", "product bfloat16"


def rows(setting: SectionCall) -> dict[str, Callable[[], dict[str, Any]]]:
    """A large copy, bytes read and written counted; square matrix products of random numbers."""
    import torch

    from benchmarks.gpu_check.device_under_test import milliseconds
    from plumbline.model.numerics import numerics

    numerics(torch.device(setting.device))
    size, how = setting.size, {"repeats": setting.size.repeats, "warmup": setting.size.warmup}

    def copy() -> dict[str, Any]:
        source = torch.randint(256, (size.copied,), dtype=torch.uint8, device=setting.device)
        target = torch.empty_like(source)
        duration = milliseconds(lambda: target.copy_(source), setting.device, **how)
        return {"milliseconds": duration, "bytes_per_second": 2e3 * size.copied / duration}

    def product(dtype: torch.dtype) -> dict[str, Any]:
        a, b = (torch.randn(size.product, size.product, device=setting.device).to(dtype) for _ in range(2))
        duration = milliseconds(lambda: a @ b, setting.device, **how)
        return {"milliseconds": duration, "operations_per_second": 2e3 * size.product**3 / duration}

    return {COPY: copy, PRODUCT: lambda: product(torch.bfloat16), "product float32": lambda: product(torch.float32)}


def page(state: MeasuredRows) -> list[str]:
    """The table."""
    measured = state.rows("device_ceilings")
    return table(
        ("ceiling", "ms", "GB/s", "TFLOP/s"),
        (
            (key, row["milliseconds"], _scale(row, "bytes_per_second", 1e9), _scale(row, "operations_per_second", 1e12))
            for key, row in measured.items()
        ),
    )


def _scale(row: dict[str, Any], name: str, unit: float) -> float | None:
    return row[name] / unit if name in row else None


def read_ceilings(state: MeasuredRows) -> tuple[float | None, float | None]:
    """Operations and bytes a second that the device was seen to reach; None if that is not measured."""
    measured = state.rows("device_ceilings")
    return (measured.get(PRODUCT, {}).get("operations_per_second"), measured.get(COPY, {}).get("bytes_per_second"))
