"""Which machine a measurement was made on, for the head of its file."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from plumbline.core.processor import read_facts

#: The option of a benchmark that writes its page from what was measured before.
PAGE_ONLY = "--write-page-only"
#: Flag of a processor -> what it says, the widest first.
WIDEST = {
    "amx_bf16": " with AVX-512 and AMX",
    "avx512_bf16": " with AVX-512 and bfloat16",
    "avx512f": " with AVX-512",
    "avx2": " with AVX2",
}


def command() -> str:
    """The command that measures, as it was typed from the repository's root; folders and files outside of it by their
    names alone. What only writes the page again measured nothing, and is left out."""
    root = Path(__file__).parents[1]
    arguments = [
        f".../{Path(word).name}" if word.startswith("/") else word for word in sys.argv[1:] if word != PAGE_ONLY
    ]
    return " ".join(["python", str(Path(sys.argv[0]).resolve().relative_to(root)), *arguments])


def processor() -> str:
    """The processor, by its maker's name and the widest of its vectors and products."""
    facts = read_facts()
    widest = [text for flag, text in WIDEST.items() if flag in facts.get("flags", "").split()]
    return facts.get("model name", platform.processor() or platform.machine()) + "".join(widest[:1])


def describe(*, with_torch: bool = True) -> str:
    """Processor, cores, load, Python and torch, in one line."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    parts = [processor(), f"{cores} cores, load {load:.1f}", f"Python {platform.python_version()}"]
    if with_torch:
        import torch

        threads = torch.get_num_threads()
        parts.append(f"torch {torch.__version__}, {threads} thread{'s' if threads > 1 else ''}")
        if torch.cuda.is_available():
            parts.append(torch.cuda.get_device_name())
    return "; ".join(parts)


def write_section(page: Path, head: Sequence[str], name: str, lines: Sequence[str]) -> None:
    """Write a page's section of this name and today in place of the one before it. All others stay, such as those of
    other machines, and so does what stands above them: `head` is what a new page begins with."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    start, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    others = [section for section in sections if section.partition("\n")[0].rpartition(", ")[0] != f"## {name}"]
    title = f"## {name}, {time.strftime('%Y-%m-%d')}"
    own = "\n".join([(start or "\n".join(head)).rstrip(), "", title, "", *lines, ""])
    page.write_text("\n".join([own, *others]), encoding="utf-8")
