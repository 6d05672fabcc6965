"""Puts the fastest blocks that the check measured on a device into the table that kernels read.

    python -m benchmarks.gpu_check.fill_block_choices benchmarks/gpu_check_h100.json

Of each kernel the choice with the least time forward and backward, among those whose numbers stayed and that were
launched as that kernel. It is written into `MEASURED` of src/plumbline/model/kernels/block_choices.py, in the place of
that device's earlier row for the kernel and width; a kernel whose default was the fastest gets a row as well, which
says so. Nothing is written from a rehearsal.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from benchmarks.gpu_check.measured_rows import MeasuredRows
from benchmarks.gpu_check.sections.kernel_block_sizes import CHOICES
from plumbline.core.command_line import run
from plumbline.core.errors import PlumblineError
from plumbline.core.files import atomic_write_text
from plumbline.model.kernels import block_choices
from plumbline.model.kernels.block_choices import BlockChoice, padded_width

#: The module's assignment, from its name to the bracket that closes it.
_MEASURED = re.compile(r"^MEASURED: tuple\[BlockChoice, \.\.\.\] = \((?:\)|\n.*?^\))$", re.MULTILINE | re.DOTALL)
#: The sections that measure blocks.
SECTIONS = ("kernel_block_sizes", "other_block_sizes")
#: Bytes of a number of bfloat16, in which they measure.
SIZE = 2


def fastest(state: MeasuredRows) -> list[BlockChoice]:
    """A row of the table for each kernel that was measured.

    Raises:
        PlumblineError: nothing that counts was measured.
    """
    call, machine = state.told(), state.content["machine"]
    if call["rehearsal"]:
        raise PlumblineError(f"{state.path}: a {call['rehearsal']}; name what the check wrote on a GPU")
    kernels: dict[tuple[str, int], list[dict[str, Any]]] = {}
    rows = [row for section in SECTIONS for row in state.rows(section).values()]
    for row in rows:
        if row["equal"] and row["path"] == row["kernel"]:
            kernels.setdefault((row["kernel"], row["width"]), []).append(row)
    if not kernels:
        raise PlumblineError(f"{state.path}: no blocks are measured in it; run the section kernel_block_sizes")
    commit = str(machine.get("git_commit") or "unknown")[:8]
    return [
        BlockChoice(
            kernel=kernel,
            device=machine["device"],
            widths=(padded_width(width), padded_width(width)),
            size=SIZE,
            blocks=tuple(best["choice"]),
            measured=f"{best['milliseconds']['both']:.3g} ms{_beside(best, rows)}, commit {commit}",
        )
        for (kernel, width), rows in sorted(kernels.items())
        for best in [min(rows, key=lambda row: row["milliseconds"]["both"])]
    ]


def _beside(best: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """How much of the default's time that is; empty if the default has no row."""
    default = next((row for row in rows if row["choice"] == list(CHOICES[0])), None)
    if default is None:
        return ""
    return f", {best['milliseconds']['both'] / default['milliseconds']['both']:.2f} of the default's"


def merge(before: tuple[BlockChoice, ...], measured: list[BlockChoice]) -> list[BlockChoice]:
    """All rows, those found in the place of earlier ones for the same kernel, device, widths and size of numbers."""
    calls = {(row.kernel, row.device, row.widths, row.size) for row in measured}
    others = [row for row in before if (row.kernel, row.device, row.widths, row.size) not in calls]
    return sorted([*others, *measured], key=lambda row: (row.device or "", row.kernel or "", row.widths))


def insert_rows(source: str, rows: list[BlockChoice]) -> str:
    """The module's text with these rows.

    Raises:
        PlumblineError: the text has no place for them.
    """
    lines = [
        f'    BlockChoice(\n        kernel="{row.kernel}",\n        device="{row.device}",\n'
        f"        widths={row.widths},\n        size={row.size},\n        blocks={row.blocks},\n"
        f'        measured="{row.measured}",\n    ),\n'
        for row in rows
    ]
    text, times = _MEASURED.subn(lambda _: f"MEASURED: tuple[BlockChoice, ...] = (\n{''.join(lines)})", source)
    if times != 1:
        raise PlumblineError(f"{block_choices.__file__}: no `MEASURED: tuple[BlockChoice, ...] = (...)`; restore it")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", type=Path, metavar="GPU_CHECK.json", help="what the check wrote on a GPU")
    options = parser.parse_args()
    if not options.state.is_file():
        raise PlumblineError(f"{options.state}: no such file; `make gpu-check` writes it")
    choices = fastest(MeasuredRows.read(options.state))
    place = Path(block_choices.__file__)
    atomic_write_text(place, insert_rows(place.read_text(encoding="utf-8"), merge(block_choices.MEASURED, choices)))
    for row in choices:
        print(f"{row.kernel}, width {row.widths[1]}: {'/'.join(map(str, row.blocks))}, {row.measured}")
    print(f"{place}: written; commit it with {options.state}")


if __name__ == "__main__":
    run(main)
