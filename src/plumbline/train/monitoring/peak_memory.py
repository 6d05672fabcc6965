"""Measures the most memory that a start of a run took: of a GPU what torch allocated on it, of a processor what the
process held beside the interpreter and packages that it began with.

Those packages are a quarter of a gigabyte, and more where a run was forked from a process that has others' imports too
(`plumbline.operate.prefork.client`): two methods would differ by their order.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plumbline.model.distributed import RankGroup

#: What a peak is called in a start's entry, by the kind of device it is counted on.
MEASURES = {"cuda": "allocated by torch on the device", "cpu": "resident, beside its packages"}
#: As `plumbline.core.formats.format_peak_memory` reads them.
_KEYS = ("peak_memory_bytes", "peak_memory_of")


def begin(ranks: RankGroup) -> None:
    """Begin to count: what finding a micro-batch by trying took of a GPU was not training's."""
    if ranks.device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(ranks.device)


def report_peak(ranks: RankGroup, packages: int, *, alone: bool = False) -> dict[str, Any]:
    """Report the most bytes until now, and what they are of, for the record of a start: the largest of all ranks.

    Args:
        packages: what `count_resident_bytes` returned before there was a model.
        alone: of this rank alone, since the others may have failed; else all ranks call this.
    """
    device = ranks.device
    if device.type == "cuda":
        import torch

        own_bytes = torch.cuda.max_memory_allocated(device)
    else:
        own_bytes = read_peak_resident_bytes() - packages
    peak_bytes = own_bytes if alone else int(ranks.max([float(own_bytes)])[0])
    return dict(zip(_KEYS, (peak_bytes, MEASURES[device.type]), strict=True))


def find_largest_peak(starts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Find the largest memory that a run's starts recorded; None if none did, one that was killed for instance."""
    recorded_starts = [entry for entry in starts if entry.get(_KEYS[0]) is not None]
    largest = max(recorded_starts, key=lambda entry: entry[_KEYS[0]], default={})
    return {key: largest.get(key) for key in _KEYS}


def count_resident_bytes() -> int:
    """Return the bytes that this process has resident now."""
    return _read_status_bytes("VmRSS") or read_peak_resident_bytes()


def read_peak_resident_bytes() -> int:
    """Return the most bytes that this process had resident.

    Linux's `getrusage` begins with what the process that started this one had, so that a trainer would be as large as
    its Snakemake: the kernel's own count is taken where there is one.
    """
    if status_bytes := _read_status_bytes("VmHWM"):
        return status_bytes
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _read_status_bytes(name: str) -> int | None:
    """A number of bytes from the kernel's page on this process."""
    try:
        match = re.search(rf"^{name}:\s*(\d+) kB$", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return 1024 * int(match[1]) if match else None
