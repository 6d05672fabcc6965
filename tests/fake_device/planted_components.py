"""The command of the counts, with components that wait for a device."""

from __future__ import annotations

from typing import Any

from benchmarks.fake_device import __main__ as command
from benchmarks.fake_device import absent_cuda
from plumbline.core import command_line

enter = absent_cuda.enter


def plant() -> None:
    """Have QK-norm read a number, ReLU^2 choose by a mask, which no step comes past here, and GeGLU wait forever."""
    enter()
    from benchmarks.fake_device import step_counts
    from plumbline.model.ffn.geglu import GeGLU
    from plumbline.model.ffn.relu_squared import ReLUSquared
    from plumbline.model.query_key.qk_norm import QKNorm

    step_counts.OURS = (*step_counts.OURS, str(step_counts.ROOT / "tests"))
    step_counts.MOST_WAITS = 20
    normed, squared = QKNorm.forward, ReLUSquared.forward

    def reads(norm: Any, q_BHTW: Any, k_BGTW: Any) -> Any:
        return normed(norm, q_BHTW * q_BHTW.sum().item(), k_BGTW)

    def chooses(ffn: Any, x_BTD: Any) -> Any:
        return squared(ffn, x_BTD) + x_BTD[x_BTD > 0].sum()

    def waits(ffn: Any, x_BTD: Any) -> None:
        while x_BTD.sum().item() > 0:
            x_BTD = x_BTD / 2

    QKNorm.forward, ReLUSquared.forward, GeGLU.forward = reads, chooses, waits


if __name__ == "__main__":
    absent_cuda.enter = plant
    command_line.run(command.main)
