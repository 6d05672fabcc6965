"""Which machine a measurement was made on, for the head of its file."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

#: The option of a benchmark that writes its page from what was measured before.
PAGE_ONLY = "--write-page-only"


def command() -> str:
    """The command that measures, as it was typed from the repository's root; folders and files outside of it by their
    names alone. What only writes the page again measured nothing, and is left out."""
    root = Path(__file__).parents[1]
    arguments = [
        f".../{Path(word).name}" if word.startswith("/") else word for word in sys.argv[1:] if word != PAGE_ONLY
    ]
    return " ".join(["python", str(Path(sys.argv[0]).resolve().relative_to(root)), *arguments])


def describe(*, with_torch: bool = True) -> str:
    """Processor and its widest vectors, cores, load, Python and torch, in one line."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu_lines = [line.partition(":") for line in info.read_text().splitlines()]
        cpu_facts = {name.strip(): value.strip() for name, _, value in cpu_lines}
        flags = cpu_facts.get("flags", "").split()
        widest = [parts for flag, parts in (("avx512f", " with AVX-512"), ("avx2", " with AVX2")) if flag in flags]
        cpu = cpu_facts.get("model name", cpu) + "".join(widest[:1])
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    parts = [cpu, f"{cores} cores, load {load:.1f}", f"Python {platform.python_version()}"]
    if with_torch:
        import torch

        threads = torch.get_num_threads()
        parts.append(f"torch {torch.__version__}, {threads} thread{'s' if threads > 1 else ''}")
        if torch.cuda.is_available():
            parts.append(torch.cuda.get_device_name())
    return "; ".join(parts)
