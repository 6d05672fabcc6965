"""The table of blocks: its defaults, and what a measured row changes and where."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks.gpu_check.sections.kernel_blocks import CHOICES
from plumbline.core.errors import PlumblineError
from plumbline.model.kernels import block_choices, selection
from plumbline.model.kernels.block_choices import NOT_MEASURED, BlockChoice, row_for

DEVICE = "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize("size", [2, 4])
def test_defaults_are_those_that_were_compiled(size: int) -> None:
    """At most 128 rows of 64 half-precision numbers, and at least 32 rows, whatever the width."""
    for width in (8, 16, 32, 48, 64, 72, 96, 128, 256, 512):
        row, padded = row_for("softpick", "", width, size), block_choices.pad_width(width)
        assert padded >= width and padded & (padded - 1) == 0
        assert row.blocks == (max(32, min(128, 128 * 64 * 2 // (max(padded, 64) * size))), 32, 8, 2)
        assert row.measured == NOT_MEASURED
    assert row_for("selective", "", 64, 2).blocks == CHOICES[0]


def test_a_measured_row_is_for_its_kernel_and_device_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = BlockChoice(
        kernel="softpick", device=DEVICE, widths=(64, 64), size=2, blocks=(64, 64, 4, 2), measured="1 ms, commit abc"
    )
    monkeypatch.setattr(block_choices, "MEASURED", (mine,))
    assert row_for("softpick", DEVICE, 64, 2) is row_for("softpick", DEVICE, 48, 2) is mine
    for other in (("sigmoid", DEVICE, 64, 2), ("softpick", "NVIDIA H200", 64, 2), ("softpick", DEVICE, 32, 2)):
        assert row_for(*other).measured == NOT_MEASURED
    assert row_for("softpick", DEVICE, 64, 4).measured == NOT_MEASURED


def test_a_compiler_takes_the_look_up_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is asked while a graph is made, and breaks none."""
    mine = BlockChoice(kernel="softpick", device=DEVICE, widths=(64, 64), size=2, blocks=(64, 16, 4, 2))
    monkeypatch.setattr(block_choices, "MEASURED", (mine,))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *args: DEVICE)

    def look_up(x: torch.Tensor) -> torch.Tensor:
        row = row_for("softpick", block_choices.device_name(), x.shape[-1], x.dtype.itemsize)
        return x + row.blocks[1]

    graph = torch.compile(look_up, backend="eager", fullgraph=True)
    assert graph(torch.zeros(2, 64, dtype=torch.bfloat16)).tolist() == [[16.0] * 64] * 2


def test_rows_of_the_table_are_of_kernels_that_there_are() -> None:
    kernels = {name for name, row in selection.TABLE.items() if row.module is not None}
    assert {row.kernel for row in (*block_choices.MEASURED, *block_choices.DEFAULT)} - {None} <= kernels


@pytest.mark.parametrize(
    "wrong",
    [
        {"blocks": (48, 20, 3, 2)}, {"blocks": (0, 0, 0, 0)}, {"blocks": (32, 64, 4, 2)}, {"blocks": (32, 32, 3, 2)},
        {"blocks": (32, 32, 8, 0)}, {"widths": (128, 64)}, {"widths": (48, 48)}, {"size": 3},
    ],
)  # fmt: skip
def test_a_row_that_no_kernel_can_run_by_is_refused(wrong: dict[str, Any]) -> None:
    sound = {"widths": (64, 128), "size": 2, "blocks": (64, 32, 8, 2)}
    block_choices.BlockChoice(**sound)
    with pytest.raises(PlumblineError, match=r"powers of two|warps"):
        block_choices.BlockChoice(**(sound | wrong))
