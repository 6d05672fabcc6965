"""Lists the blocks of the kernels: rows of a program, warps and stages, by kernel, device, head width and number size.

`MEASURED` is looked at first; `python -m benchmarks.gpu_check.table_lines` prints its rows from what the check measured
on a device. A row of `DEFAULT` was chosen by the shared memory and the registers that the compiler reports
(benchmarks/attention_kernels.md), so that it fits a GPU since Ampere, and not by time. Nothing here imports Triton.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from plumbline.core.errors import PlumblineError

NOT_MEASURED = "not measured"


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockChoice:
    """One row.

    Attributes:
        kernel: its name in `plumbline.model.kernels.selection`; None: any.
        device: the name that torch gives it; None: any.
        widths: the smallest and the largest head width, each a power of two to which heads are padded.
        size: bytes of a number.
        blocks: rows held, rows walked over at a time, warps, stages.
        measured: how it was chosen by time: milliseconds forward and backward, next to the default's, at which commit.
    """

    kernel: str | None = None
    device: str | None = None
    widths: tuple[int, int]
    size: int
    blocks: tuple[int, int, int, int]
    measured: str = NOT_MEASURED

    def __post_init__(self) -> None:
        """Refuse a row that no kernel can run by, or that no call would find.

        Raises:
            PlumblineError: naming the row.
        """
        rows_held, rows_walked, warps, stages = self.blocks
        tiles = [*self.widths, rows_held, rows_walked]
        sound = all(number >= 16 and number & (number - 1) == 0 for number in tiles) and rows_held % rows_walked == 0
        if not (sound and self.widths[0] <= self.widths[1] and self.size in (2, 4)):
            raise PlumblineError(
                f"{self}: head widths and rows are powers of two of at least 16, the smaller width first, rows held a "
                "multiple of rows walked, numbers of 2 or 4 bytes"
            )
        if warps not in (1, 2, 4, 8, 16) or not 1 <= stages <= 8:
            raise PlumblineError(f"{self}: warps are 1, 2, 4, 8 or 16, stages 1 to 8")

    def fits(self, kernel: str, device: str, padded: int, size: int) -> bool:
        """Whether the row is for such a call."""
        alike = self.kernel in (None, kernel) and self.device in (None, device)
        return alike and self.size == size and self.widths[0] <= padded <= self.widths[1]


#: By time, on a device of that very name. No GPU has been at hand yet.
MEASURED: tuple[BlockChoice, ...] = ()

#: By what fits.
DEFAULT = (
    BlockChoice(widths=(16, 64), size=2, blocks=(128, 32, 8, 2)),
    BlockChoice(widths=(128, 128), size=2, blocks=(64, 32, 8, 2)),
    BlockChoice(widths=(256, 4096), size=2, blocks=(32, 32, 8, 2)),
    BlockChoice(widths=(16, 64), size=4, blocks=(64, 32, 8, 2)),
    BlockChoice(widths=(128, 4096), size=4, blocks=(32, 32, 8, 2)),
)


def pad_width(width: int) -> int:
    """The power of two, of at least 16, to which a kernel pads a head."""
    return max(16, 1 << (width - 1).bit_length())


def choose(kernel: str, q_BHTW: torch.Tensor) -> BlockChoice:
    """The first row that fits a kernel's call with these queries."""
    device = device_name() if MEASURED and q_BHTW.device.type == "cuda" else ""
    return row_for(kernel, device, q_BHTW.shape[-1], q_BHTW.dtype.itemsize)


def row_for(kernel: str, device: str, width: int, size: int) -> BlockChoice:
    """The first row that fits a kernel on a device of this name, with heads of a width and numbers of a size."""
    padded = pad_width(width)
    for row in MEASURED + DEFAULT:
        if row.fits(kernel, device, padded, size):
            return row
    raise AssertionError(f"no blocks for {kernel}: head width {width}, numbers of {size} bytes")


@torch.compiler.assume_constant_result
def device_name() -> str:
    """The name of the device in use, which torch.compile takes as it is."""
    return torch.cuda.get_device_name()
