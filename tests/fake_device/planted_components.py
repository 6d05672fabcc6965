"""The command of the counts, with components that do what no step should."""

from __future__ import annotations

import contextlib
from typing import Any

from benchmarks.fake_device import __main__ as command
from benchmarks.fake_device import absent_cuda
from plumbline.core import command_line

enter = absent_cuda.enter


def plant() -> None:
    """Have QK-norm wait in every way and multiply float32 numbers, and ReLU^2 choose by a mask, past which no step
    comes here."""
    enter()
    import torch
    from torch._subclasses.fake_tensor import DynamicOutputShapeException

    from benchmarks.fake_device import step_counts
    from plumbline.model.ffn.relu_squared import ReLUSquared
    from plumbline.model.query_key.qk_norm import QKNorm

    step_counts.OURS = (*step_counts.OURS, str(step_counts.ROOT / "tests"))
    normed, squared = QKNorm.forward, ReLUSquared.forward

    def does_everything(norm: Any, q_BHTW: Any, k_BGTW: Any) -> Any:
        single, half = (torch.empty(64, 32, device="cuda", dtype=dtype) for dtype in (torch.float32, torch.bfloat16))
        with torch.autocast("cuda", enabled=False):
            single.cpu()
            torch.zeros(64).to("cuda")
            single @ single.T
            half @ half.T
            single.double() @ single.double().T
            single @ single[0]
            torch.nn.functional.conv1d(single[None], torch.empty(4, 64, 3, device="cuda"))
            with contextlib.suppress(DynamicOutputShapeException):
                single[single > 0] = 1.0
        return normed(norm, q_BHTW * q_BHTW.sum().item(), k_BGTW)

    def chooses(ffn: Any, x_BTD: Any) -> Any:
        return squared(ffn, x_BTD) + x_BTD[x_BTD > 0].sum()

    QKNorm.forward, ReLUSquared.forward = does_everything, chooses


if __name__ == "__main__":
    absent_cuda.enter = plant
    command_line.run(command.main)
