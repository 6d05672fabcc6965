"""A step with each fault that the counts are to find, on a device that is not there; what was found, as JSON."""

from __future__ import annotations

import contextlib
import json

from benchmarks.fake_device import absent_cuda

absent_cuda.enter()

import torch  # noqa: E402
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode  # noqa: E402

from benchmarks.fake_device import step_counts  # noqa: E402

step_counts.OURS = (*step_counts.OURS, str(step_counts.ROOT / "tests"))


def main() -> None:
    """Make each fault once, and print what was counted."""
    counts = step_counts.StepCounts()
    with FakeTensorMode(allow_non_fake_inputs=True):
        single = torch.empty(64, 32, device="cuda")
        half = torch.empty(64, 32, device="cuda", dtype=torch.bfloat16)
        counts.hold(single)
        with counts:
            with contextlib.suppress(DataDependentOutputException):
                single.sum().item()
            single.cpu()
            torch.zeros(64).to("cuda")
            single @ single.T
            half @ half.T
            single.double() @ single.double().T
            single @ single[0]
            torch.nn.functional.conv1d(single[None], torch.empty(4, 64, 3, device="cuda"))
            with contextlib.suppress(DynamicOutputShapeException):
                single[single > 0] = 1.0
            held_bytes, peak = counts.held, counts.peaks["forward"]
    print(json.dumps({
        "waits": dict(counts.waits), "single": dict(counts.single_products), "held": held_bytes, "peak": peak,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
